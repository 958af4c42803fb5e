"""Presence and card of a worker come back when their buckets are lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import pytest
from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.contracts.messages import AgentCard, AwayModel, WorkerPresence
from tasklore.runtime.messaging.buckets import read_bucket
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.presences import live_workers
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor import live_workers as attending
from tasklore.supervisor.live_workers import LiveWorkers
from tasklore.workers import presence as presences
from tasklore.workers.presence import show_presence

#: Seconds for a fact on a busy machine.
PATIENCE_S = 60.0

CARD = AgentCard(agent_id="A", version=1, digest="d", tasks=())
PRESENCE = WorkerPresence(
    worker_id="w1",
    agent_id="A",
    version=1,
    digest="d",
    slots=4,
    http=None,
    started_at=datetime.now(UTC),
)


@pytest.fixture
async def client(
    own_servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Client]:
    monkeypatch.setattr(presences, "REFRESH_S", 0.05)
    async with connected(own_servers.nats_url, "worker") as client:
        await declare_streams(client, StreamSizes())
        yield client


@contextlib.asynccontextmanager
async def shown(
    client: Client, heal: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """Show a worker while the block runs; what ends it fails the test."""
    showing = asyncio.create_task(show_presence(client, PRESENCE, CARD, heal))
    try:
        yield
    finally:
        showing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await showing


async def until_seen(client: Client) -> None:
    """Return once worker and card can be read."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with contextlib.suppress(Unreachable):
                if await live_workers(client) == [PRESENCE] and await read_bucket(
                    client, subjects.AGENTS_BUCKET
                ):
                    return
            await asyncio.sleep(0.02)


async def test_buckets_that_were_deleted_are_made_and_filled_again(
    client: Client,
) -> None:
    async def heal() -> None:
        await declare_streams(client, StreamSizes())

    async with shown(client, heal):
        await until_seen(client)
        for lost in (["workers"], ["agents"], ["workers", "agents"]):
            for bucket in lost:
                await ask_jetstream(
                    client, f"STREAM.DELETE.{subjects.bucket_stream(bucket)}"
                )
            await until_seen(client)


async def test_a_worker_says_which_models_do_not_answer_it_for_as_long_as_that_is_so(
    client: Client,
) -> None:
    away = [AwayModel(model="gpt-6", since=datetime.now(UTC), said="503")]

    async def heal() -> None:
        await declare_streams(client, StreamSizes())

    showing = asyncio.create_task(
        show_presence(client, PRESENCE, CARD, heal, read_away=lambda: tuple(away))
    )
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if [one.away for one in await live_workers(client)] == [tuple(away)]:
                break
            await asyncio.sleep(0.02)
        away.clear()
        await until_seen(client)
    showing.cancel()
    await asyncio.gather(showing, return_exceptions=True)


async def test_a_worker_without_the_right_to_create_buckets_waits_for_them(
    client: Client,
) -> None:
    asked = asyncio.Event()

    async def refuse() -> None:
        asked.set()
        raise ConfigurationError("this is left to others")

    async with shown(client, refuse):
        await until_seen(client)
        await ask_jetstream(
            client, f"STREAM.DELETE.{subjects.bucket_stream(subjects.WORKERS_BUCKET)}"
        )
        async with asyncio.timeout(PATIENCE_S):
            await asked.wait()
        await declare_streams(client, StreamSizes())
        await until_seen(client)


async def test_agents_without_a_live_worker_are_told_from_one_read_for_all_who_ask(
    client: Client,
) -> None:
    """While the bucket does not answer none is said to be away."""
    now = 0.0

    async def heal() -> None:
        raise ConfigurationError("this is left to others")

    attendance = LiveWorkers(client, lambda: now)
    async with shown(client, heal):
        await until_seen(client)
        assert await attendance.absent(["A", "B"]) == {"B"}
    bucket = subjects.bucket_stream(subjects.WORKERS_BUCKET)
    await ask_jetstream(client, f"STREAM.PURGE.{bucket}")
    assert await attendance.absent(["A"]) == frozenset()
    now = 3.0
    assert await attendance.absent(["A"]) == {"A"}
    await ask_jetstream(client, f"STREAM.DELETE.{bucket}")
    now = 6.0
    assert await attendance.absent(["A"]) == frozenset()
    assert await attendance.absent([]) == frozenset()


async def test_a_bucket_that_does_not_answer_is_asked_once_for_all_who_wait(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    """Nobody waits for it for long, and nobody for a while after that."""
    asked: list[None] = []
    monkeypatch.setattr(attending, "_WITHIN_S", 0.05)

    async def never_answer(_line: object) -> list[WorkerPresence]:
        asked.append(None)
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(attending, "live_workers", never_answer)
    now = 0.0
    attendance = LiveWorkers(client, lambda: now)
    found = await asyncio.gather(*(attendance.alive() for _ in range(5)))
    assert found == [None] * 5
    assert len(asked) == 1
    now = 1.9
    assert await attendance.absent(["A"]) == frozenset()
    assert len(asked) == 1
    now = 2.1
    assert await attendance.alive() is None
    assert len(asked) == 2
