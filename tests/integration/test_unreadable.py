"""Messages that cannot be read: a request is answered in words, anything else is logged and passed over."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from faststream.nats import TestNatsBroker
from nats.aio.msg import Msg
from structlog.testing import LogCapture

from tasklore.contracts import subjects
from tasklore.contracts.errors import MessageTooLarge
from tasklore.contracts.messages import Cancellation, PersonReply, PersonRequest
from tasklore.runtime.settings import Settings
from tasklore.supervisor.admission.owner_bounds import OwnerBounds
from tasklore.supervisor.wiring import Supervisor
from tasklore.workers.agents.budget import agent
from tasklore.workers.card import card_of
from tasklore.workers.host import Host
from tasklore.workers.wiring import Worker

SETTINGS = Settings(nats_url="nats://127.0.0.1:4", redis_url="redis://127.0.0.1:4")
REQUESTS = subjects.requests("SupervisorAgent")

#: JSON at which a reader that follows every level, or counts every digit, gives up.
DEEP = b"[" * 5000 + b"]" * 5000
LONG = b"9" * 5000
#: What is no message of any kind, and headers that would have it read as something else.
UNREADABLE: list[tuple[bytes, dict[str, str]]] = [
    (DEEP, {}),
    (
        b'{"text": ' + DEEP + b', "task_id": ' + DEEP + b', "agent_id": ' + DEEP + b"}",
        {},
    ),
    (
        b'{"text": ' + LONG + b', "task_id": ' + LONG + b', "agent_id": ' + LONG + b"}",
        {},
    ),
    (LONG, {}),
    (b"{" * 9000, {}),
    (b'{"a":' * 50_000, {}),
    (b"", {}),
    (b"\xff\xfe", {"content-type": "text/plain"}),
    (b"not json", {"content-type": "application/json"}),
    (b'"\\ud800"', {}),
]


class Answering:
    """A service that answers with the text of the request, or raises its error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def answer(self, request: PersonRequest) -> PersonReply:
        if request.text == "confuse":
            return PersonReply.model_validate({"kind": 5})
        if self.error is not None:
            raise self.error
        return PersonReply(
            request_id="r1", conversation_id="c1", kind="answer", text=request.text
        )


class NoCanceller:
    """Counts wishes."""

    def __init__(self) -> None:
        self.heeded: list[str] = []

    async def heed(self, wish: Cancellation) -> None:
        self.heeded.append(wish.task_id)


@pytest.fixture
def log() -> Iterator[LogCapture]:
    """Keep what is logged."""
    capture = LogCapture()
    before = structlog.get_config()["processors"]
    structlog.configure(processors=[capture])
    yield capture
    structlog.configure(processors=before)


def supervisor_with(service: Any) -> tuple[Supervisor, NoCanceller]:
    """Return a supervisor that was never opened, with *service* in its place, and who heeds its cancellations."""
    supervisor = Supervisor(SETTINGS, lambda _address: None)
    canceller = NoCanceller()
    parts = {"service": service, "canceller": canceller, "bounds": OwnerBounds()}
    supervisor._parts = type("Parts", (), parts)  # type: ignore[assignment]
    return supervisor, canceller


async def asked(
    supervisor: Supervisor, body: bytes, headers: dict[str, str] | None = None
) -> PersonReply:
    """Return the reply to *body*."""
    async with TestNatsBroker(supervisor.process.broker) as broker:
        answer = await broker.request(body, REQUESTS, headers=headers)
    return PersonReply.model_validate_json(answer.body)


async def test_an_unreadable_request_is_answered_in_words_and_logged(
    log: LogCapture,
) -> None:
    supervisor, _ = supervisor_with(Answering())
    for body, headers in UNREADABLE:
        reply = await asked(supervisor, body, headers)
        assert reply.kind == "failed"
        assert reply.text.startswith("This request cannot be read: ")
        assert len(reply.text) < 500
    events = [event for event in log.entries if event["event"] == "unreadable_message"]
    assert [(one["log_level"], one["kind"]) for one in events] == [
        ("info", "PersonRequest")
    ] * len(UNREADABLE)
    assert not [event for event in log.entries if event["log_level"] == "error"]
    for kind in ("", "text/plain", "application/json; charset=x"):
        assert (
            await asked(supervisor, b'{"text": "hello"}', {"content-type": kind})
        ).text == "hello"


@pytest.mark.parametrize(
    "error", [KeyError("secret"), RecursionError("secret"), OSError()]
)
async def test_an_internal_error_is_answered_without_details_and_logged(
    log: LogCapture, error: Exception
) -> None:
    """As is a validation inside: only what the decoder refuses is the fault of the sender."""
    supervisor, _ = supervisor_with(Answering(error))
    for text in (b"hello", b"confuse"):
        reply = await asked(supervisor, b'{"text": "%b"}' % text)
        assert reply.kind == "failed"
        assert "Something went wrong here" in reply.text
        assert "secret" not in reply.text
        assert "cannot be read" not in reply.text
    first, second = [event for event in log.entries if event["log_level"] == "error"]
    assert (first["event"], second["event"], first["exc_info"]) == (
        "handler_failed",
        "handler_failed",
        error,
    )
    assert first["exc_info"].__traceback__ is not None


async def test_an_error_with_a_cure_is_answered_with_it(log: LogCapture) -> None:
    reply = await asked(
        supervisor_with(Answering(MessageTooLarge("send a reference")))[0],
        b'{"text": "hello"}',
    )
    assert (reply.kind, reply.text) == ("failed", "send a reference")
    assert not [event for event in log.entries if event["log_level"] == "error"]


async def test_unreadable_cancellations_and_cards_are_passed_over(
    log: LogCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By workers and supervisors alike; the next one is taken."""
    cancelled: list[str] = []
    monkeypatch.setattr(
        Host, "cancel", lambda _host, wish: cancelled.append(wish.task_id) or set()
    )
    worker = Worker([agent], SETTINGS, remembers=True, on_ready=lambda _address: None)
    supervisor, canceller = supervisor_with(Answering())
    card = card_of(agent)
    readable = (
        Cancellation(task_id="t1").model_dump_json().encode(),
        card.model_dump_json().encode(),
    )
    for process in (worker.process, supervisor.process):
        async with TestNatsBroker(process.broker) as broker:
            for body, headers in UNREADABLE:
                await hear(broker, subjects.cancel("t1"), body, headers)
                await hear(broker, f"$KV.agents.{card.agent_id}", body, headers)
            await hear(broker, subjects.cancel("t1"), readable[0], {})
            await hear(broker, f"$KV.agents.{card.agent_id}", readable[1], {})
    assert (cancelled, canceller.heeded) == (["t1"], ["t1"])
    assert set(supervisor._cards.catalogue.cards) == {card.agent_id}
    events = Counter(
        event["kind"] for event in log.entries if event["event"] == "unreadable_message"
    )
    assert events == {"Cancellation": 3 * len(UNREADABLE), "AgentCard": len(UNREADABLE)}
    assert not [event for event in log.entries if event["log_level"] == "error"]


async def test_an_agent_is_retired_whatever_the_body_of_the_mark() -> None:
    supervisor, _ = supervisor_with(Answering())
    card = card_of(agent)
    notice = f"$KV.agents.{card.agent_id}"
    async with TestNatsBroker(supervisor.process.broker) as broker:
        await hear(broker, notice, card.model_dump_json().encode(), {})
        assert set(supervisor._cards.catalogue.cards) == {card.agent_id}
        await hear(broker, notice, DEEP, {"KV-Operation": "DEL"})
    assert set(supervisor._cards.catalogue.cards) == set()


async def test_a_card_counts_under_its_own_key_alone(log: LogCapture) -> None:
    supervisor, _ = supervisor_with(Answering())
    card = card_of(agent).model_dump_json().encode()
    async with TestNatsBroker(supervisor.process.broker) as broker:
        for _ in range(2):
            await hear(broker, "$KV.agents.Somebody", card, {})
    assert set(supervisor._cards.catalogue.cards) == set()
    [warning] = [event for event in log.entries if event["event"] == "card_left_out"]
    assert (warning["agent"], warning["log_level"]) == ("Somebody", "warning")


async def hear(broker: Any, subject: str, body: bytes, headers: dict[str, str]) -> None:
    """Let every subscriber of *broker* that listens to *subject* hear a message, as a connection would."""
    for subscriber in broker.subscribers:
        wanted = subscriber.subject.template.split(".")
        parts = subject.split(".")
        if len(wanted) == len(parts) and all(
            want in ("*", part) for want, part in zip(wanted, parts, strict=True)
        ):
            await subscriber.consume(
                Msg(_client=None, subject=subject, data=body, headers=headers or None)
            )
