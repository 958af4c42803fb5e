"""FastStream is where the design puts it: on requests, progress, cancellation and cards, and nowhere near the tasks."""

from datetime import UTC, datetime

import pytest
from faststream.nats import NatsBroker, TestNatsBroker
from redis.asyncio import Redis

from contracts import subjects
from contracts.errors import MemoryUnavailable
from contracts.messages import Cancellation, PersonReply, PersonRequest, Progress
from runtime.settings import Settings
from supervisor.wiring import Supervisor
from workers.agents.budget import agent
from workers.card import card_of
from workers.host import Host
from workers.wiring import Worker

SETTINGS = Settings(nats_url="nats://127.0.0.1:4", redis_url="redis://127.0.0.1:4")


class Answering:
    """A service that answers with what it was asked."""

    def __init__(self) -> None:
        self.asked: list[PersonRequest] = []

    async def answer(self, request: PersonRequest) -> PersonReply:
        """Return the text of *request*."""
        self.asked.append(request)
        return PersonReply(request_id="r1", conversation_id="c1", kind="answer", text=request.text.upper())


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    """Make a supervisor that was never opened, with a service in its place."""
    supervisor = Supervisor(SETTINGS, lambda _address: None)
    supervisor.service = Answering()  # type: ignore[attr-defined]
    parts = type("Parts", (), {"service": supervisor.service})  # type: ignore[attr-defined]
    monkeypatch.setattr(supervisor, "_parts", parts)
    return supervisor


def subscribed(broker: NatsBroker) -> set[str]:
    """Return every subject that *broker* listens on."""
    return {getattr(subscriber, "subject").template for subscriber in broker.subscribers}  # noqa: B009 - not in their base


def test_a_supervisors_broker_serves_requests_cards_and_cancellations_alone() -> None:
    """Neither tasks nor reports pass through it."""
    broker = Supervisor(SETTINGS, lambda _address: None).process.broker
    asked = {"requests.SupervisorAgent", "pipelines.SupervisorAgent", "analyses.SupervisorAgent"}
    assert subscribed(broker) == {*asked, "cancel.*", "$KV.agents.*"}


def test_a_workers_broker_serves_cancellation_and_publishes_progress() -> None:
    """Tasks are read by the engine on a connection of its own."""
    worker = Worker([agent], SETTINGS, remembers=True, on_ready=lambda _address: None)
    assert subscribed(worker.process.broker) == {subjects.CANCEL_ANY}
    published = {getattr(publisher, "subject").template for publisher in worker.process.broker.publishers}  # noqa: B009
    assert published == {"progress.SupervisorAgent.task"}


async def test_a_request_is_answered_by_the_typed_handler(supervisor: Supervisor) -> None:
    """JSON in, JSON out, and the middleware counts it."""
    async with TestNatsBroker(supervisor.process.broker) as broker:
        answer = await broker.request(PersonRequest(text="hello"), subjects.requests("SupervisorAgent"))
    reply = PersonReply.model_validate_json(answer.body)
    assert (reply.kind, reply.text) == ("answer", "HELLO")
    assert received(supervisor, 'handler="requests"') == 1


@pytest.mark.parametrize(
    ("body", "field"), [(b"{}", "text"), (b'{"text": "x", "wait_ms": -1}', "wait_ms"), (b"", "request")]
)
async def test_an_unusable_request_is_refused_with_its_field(supervisor: Supervisor, body: bytes, field: str) -> None:
    """The handler is not reached, and the person is not left without a word."""
    async with TestNatsBroker(supervisor.process.broker) as broker:
        answer = await broker.request(body, subjects.requests("SupervisorAgent"))
    reply = PersonReply.model_validate_json(answer.body)
    assert reply.kind == "failed"
    assert field in reply.text


async def test_a_card_put_into_its_bucket_is_learned_and_one_taken_out_is_forgotten(supervisor: Supervisor) -> None:
    """The bucket's own notices are the message; an unreadable card changes nothing."""
    card = card_of(agent)
    notice = f"$KV.agents.{agent.agent_id}"
    async with TestNatsBroker(supervisor.process.broker) as broker:
        await broker.publish(card, notice)
        assert set(supervisor._cards.catalogue.cards) == {agent.agent_id}
        assert received(supervisor, 'handler="cards"') == 1
        await broker.publish(b"", notice, headers={"KV-Operation": "DEL"})
        assert set(supervisor._cards.catalogue.cards) == set()


async def test_a_wish_to_cancel_reaches_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is typed on its way, and one about a task that does not run here is no error."""
    worker = Worker([agent], SETTINGS, remembers=True, on_ready=lambda _address: None)
    wishes: list[Cancellation] = []

    def note(_host: Host, wish: Cancellation) -> set[str]:
        wishes.append(wish)
        return set()

    monkeypatch.setattr(Host, "cancel", note)
    async with TestNatsBroker(worker.process.broker) as broker:
        await broker.publish(Cancellation(task_id="t1", reason="enough"), subjects.cancel("t1"))
    assert [(wish.task_id, wish.reason) for wish in wishes] == [("t1", "enough")]


async def test_progress_is_published_by_the_broker() -> None:
    """What a task tells goes to its own supervisor's subject, as the contract's JSON."""
    worker = Worker([agent], SETTINGS, remembers=True, on_ready=lambda _address: None)
    heard: list[dict[str, object]] = []

    @worker.process.broker.subscriber("progress.Other.t1")
    async def hear(sign: dict[str, object]) -> None:
        heard.append(sign)

    async with TestNatsBroker(worker.process.broker):
        sign = Progress(task_id="t1", agent_id="A", fraction=0.5, text="half", at=datetime.now(UTC))
        await worker._send_progress("Other", sign)
    assert [(sign["task_id"], sign["fraction"]) for sign in heard] == [("t1", 0.5)]


async def test_no_metric_is_labelled_with_a_task_or_an_inbox(supervisor: Supervisor) -> None:
    """A thousand tasks and people make no more series than one."""
    worker = Worker([agent], SETTINGS, remembers=True, on_ready=lambda _address: None)
    async with TestNatsBroker(supervisor.process.broker) as broker:
        for text in ("one", "two"):
            await broker.request(PersonRequest(text=text), subjects.requests("SupervisorAgent"))
    async with TestNatsBroker(worker.process.broker) as broker:
        for task in ("task-a", "task-b"):
            await broker.publish(Cancellation(task_id=task), subjects.cancel(task))
            await worker._send_progress("Other", Progress(task_id=task, agent_id="A", at=datetime.now(UTC)))
    text = (supervisor.process.metrics.render() + worker.process.metrics.render()).decode()
    assert 'handler="cancel"' in text
    assert 'destination="progress"' in text
    for name in ("task-a", "task-b", "_INBOX", "Other"):
        assert name not in text


def received(supervisor: Supervisor, subject: str) -> float:
    """Return how many messages with *subject* among their labels the broker's middleware has counted."""
    lines = supervisor.process.metrics.render().decode().splitlines()
    found = [line for line in lines if line.startswith("tasklore_broker_received_messages_total") and subject in line]
    return sum(float(line.rpartition(" ")[2]) for line in found)


async def test_a_supervisor_leaves_a_ledger_alone_that_keeps_failing() -> None:
    """Each report and each request would else wait for it again."""
    settings = Settings(nats_url=SETTINGS.nats_url, redis_url=SETTINGS.redis_url, ledger_deadline_ms=10)
    async with Redis.from_url("redis://127.0.0.1:4") as nowhere:
        ledger = Supervisor(settings, lambda _address: None)._make_ledger(nowhere)
        for _ in range(3):
            with pytest.raises(MemoryUnavailable, match="no usable answer"):
                await ledger.read("t1")
        with pytest.raises(MemoryUnavailable, match="left alone"):
            await ledger.read("t1")
