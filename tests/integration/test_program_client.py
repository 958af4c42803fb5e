"""A program of somebody's own has NATS alone: it stores its tasks, and reads its reports, without the ledger."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.contracts.messages import CompletionReport, MemoryNote, Status
from tasklore.runtime import task_caller
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.program_client import Asker, asking
from tasklore.supervisor.reports import reports
from tasklore.supervisor.reports.reports import ReportWaiter
from tests.servers import PATIENCE_S

NAME = "World"
AGENT = "NapAgent"
WITHIN = timedelta(seconds=PATIENCE_S)


@pytest.fixture
async def client(own_servers: EmbeddedServers) -> AsyncIterator[Client]:
    """Connect to a NATS with the streams, as a worker would."""
    async with connected(own_servers.nats_url, "test") as client:
        await declare_streams(client, StreamSizes())
        yield client


@pytest.fixture
async def asker(
    own_servers: EmbeddedServers,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Asker]:
    """Ask with the address of NATS alone, by a client that looks often."""
    del client
    monkeypatch.setattr(reports, "_LOOK_S", 0.05)
    monkeypatch.setattr(task_caller, "_STORED_AGAIN_S", 0.05)
    async with asking(NAME, nats_url=own_servers.nats_url) as asker:
        yield asker


async def taken(client: Client, number: int = 1) -> dict[str, Any]:
    """Return the state of TASKS once it holds *number* tasks."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            info = await ask_jetstream(client, f"STREAM.INFO.{subjects.TASKS}")
            if info["state"]["messages"] == number:
                return info
            await asyncio.sleep(0.01)


async def report(
    client: Client, task_id: str, generation: int = 1, status: Status = "completed"
) -> None:
    """Store a report on a task of the program."""
    body = CompletionReport(
        task_id=task_id,
        generation=generation,
        agent_id=AGENT,
        supervisor_id=NAME,
        task_name="nap",
        status=status,
        result=generation,
        memory=MemoryNote(outcome="off"),
        attempt=1,
        worker_id="w",
        queued_ms=0,
        run_ms=1,
        finished_at=datetime.now(UTC),
    ).model_dump_json()
    subject = subjects.report(NAME, task_id, generation)
    await client.request(subject, body.encode(), timeout=PATIENCE_S)


async def test_a_report_is_read_from_the_stream_when_no_hint_of_it_comes(
    asker: Asker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReportWaiter, "hear_hint", lambda _self, _arrival: None)
    asked = asyncio.ensure_future(
        asker.ask(AGENT, "nap", {}, task_id="t", within=WITHIN)
    )
    await taken(client)
    await report(client, "t")
    assert (await asked).result == 1


async def test_the_newest_report_of_a_task_that_was_sent_again_counts(
    asker: Asker, client: Client
) -> None:
    """Asked for once more under its id."""
    await report(client, "t", 1, "failed")
    await report(client, "t", 2)
    await report(client, "another", 3)
    found = await asker.ask(AGENT, "nap", {}, task_id="t", within=WITHIN)
    assert (found.generation, found.status) == (2, "completed")


async def test_a_task_that_its_stream_lost_is_stored_again_and_never_twice(
    asker: Asker, client: Client
) -> None:
    """While the program waits: no ledger has what no worker has begun."""
    stored: list[str] = []
    repeated = asyncio.Event()
    put = asker._outbox.put

    async def count(subject: str, *arguments: Any, **named: Any) -> None:
        await put(subject, *arguments, **named)
        stored.append(subject)
        if len(stored) == 3:
            repeated.set()

    asker._outbox.put = count  # type: ignore[assignment,method-assign]
    asked = asyncio.ensure_future(
        asker.ask(AGENT, "nap", {}, task_id="t", within=WITHIN)
    )
    async with asyncio.timeout(PATIENCE_S):
        await repeated.wait()
    info = await taken(client)
    assert info["state"]["last_seq"] == 1

    await ask_jetstream(client, f"STREAM.DELETE.{subjects.TASKS}")
    await declare_streams(client, StreamSizes())
    await taken(client)
    await report(client, "t")
    assert (await asked).result == 1
