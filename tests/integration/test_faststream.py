"""FastStream serves requests, progress, cancellation and cards, and neither tasks nor reports."""

from datetime import UTC, datetime

import pytest
from faststream.nats import NatsBroker, TestNatsBroker
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import (
    Cancellation,
    PersonReply,
    PersonRequest,
    Progress,
)
from tasklore.runtime.settings import Settings
from tasklore.supervisor.wiring import Supervisor
from tasklore.workers.agents.budget import agent
from tasklore.workers.wiring import Worker

SETTINGS = Settings(nats_url="nats://127.0.0.1:4", redis_url="redis://127.0.0.1:4")


class Answering:
    async def answer(self, request: PersonRequest) -> PersonReply:
        return PersonReply(
            request_id="r1",
            conversation_id="c1",
            kind="answer",
            text=request.text.upper(),
        )


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    """Make a supervisor that was never opened, with a service in its place."""
    supervisor = Supervisor(SETTINGS, lambda _address: None)
    supervisor.service = Answering()  # type: ignore[attr-defined]
    parts = type("Parts", (), {"service": supervisor.service})  # type: ignore[attr-defined]
    monkeypatch.setattr(supervisor, "_parts", parts)
    return supervisor


def subscribed(broker: NatsBroker) -> set[str]:
    return {
        getattr(subscriber, "subject").template  # noqa: B009 - not in their base
        for subscriber in broker.subscribers
    }


def test_brokers_serve_neither_tasks_nor_reports() -> None:
    """The engine reads those on a connection of its own."""
    broker = Supervisor(SETTINGS, lambda _address: None).process.broker
    asked = {
        "requests.SupervisorAgent",
        "pipelines.SupervisorAgent",
        "analyses.SupervisorAgent",
        "operations.SupervisorAgent",
        "operations.SupervisorAgent.left",
    }
    assert subscribed(broker) == {
        *asked,
        "approvals.SupervisorAgent.*",
        "cancel.*",
        "from.*.cancel.*",
        "$KV.agents.*",
    }
    worker = Worker([agent], SETTINGS, remembers=True, on_ready=lambda _address: None)
    assert subscribed(worker.process.broker) == {
        subjects.CANCEL_ANY,
        subjects.CANCEL_ELSEWHERE,
    }
    published = {
        getattr(publisher, "subject").template  # noqa: B009
        for publisher in worker.process.broker.publishers
    }
    assert published == {"progress.SupervisorAgent.task"}


async def test_no_metric_is_labelled_with_a_task_or_an_inbox(
    supervisor: Supervisor,
) -> None:
    worker = Worker([agent], SETTINGS, remembers=True, on_ready=lambda _address: None)
    async with TestNatsBroker(supervisor.process.broker) as broker:
        for text in ("one", "two"):
            await broker.request(
                PersonRequest(text=text), subjects.requests("SupervisorAgent")
            )
    async with TestNatsBroker(worker.process.broker) as broker:
        for task in ("task-a", "task-b"):
            await broker.publish(Cancellation(task_id=task), subjects.cancel(task))
            await worker._send_progress(
                "Other", Progress(task_id=task, agent_id="A", at=datetime.now(UTC))
            )
    text = (
        supervisor.process.metrics.render() + worker.process.metrics.render()
    ).decode()
    assert 'handler="cancel"' in text
    assert 'destination="progress"' in text
    for name in ("task-a", "task-b", "_INBOX", "Other"):
        assert name not in text


async def test_a_ledger_that_keeps_failing_is_left_alone() -> None:
    settings = Settings(
        nats_url=SETTINGS.nats_url, redis_url=SETTINGS.redis_url, ledger_deadline_ms=10
    )
    async with Redis.from_url("redis://127.0.0.1:4") as nowhere:
        ledger = Supervisor(settings, lambda _address: None)._make_ledger(nowhere)
        for _ in range(3):
            with pytest.raises(MemoryUnavailable, match="no usable answer"):
                await ledger.read("t1")
        with pytest.raises(MemoryUnavailable, match="left alone"):
            await ledger.read("t1")
