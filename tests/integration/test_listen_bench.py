"""Around the loop of a listener: its backlog, rows that waited for a model, and one listener a queue."""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore import Agent
from tasklore.contracts.errors import ConfigurationError, MemoryUnavailable
from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory.queues.claims import Claim, Closing
from tasklore.memory.queues.queue import Mended, PersonalQueue
from tasklore.workers.execution.crash_isolation import CrashIsolation
from tasklore.workers.host import Host
from tasklore.workers.listening.backlog import Backlog
from tasklore.workers.listening.outflow import ListenLimits, Outflow
from tasklore.workers.listening.queue_listener import QueueListener
from tasklore.workers.listening.wiring import demand_one_listener
from tests.servers import PATIENCE_S


class AwayQueue(PersonalQueue):
    """A table that can be away, and in which owners can have been forgotten."""

    is_away = False
    forgotten = 0

    async def pending_total(self, limit_owners: int = 10_000) -> int:
        if self.is_away:
            raise MemoryUnavailable("away")
        return await super().pending_total(limit_owners)

    async def mend(self, limit: int = 1, cursor: int = 0) -> Mended:
        return Mended(self.forgotten, cursor + 1)


class NoWork:
    """Does nothing with rows."""

    async def work(self, claim: Claim, is_leaving: Any, rests: int) -> float:
        return 0.0


def listener_of(queue: PersonalQueue, *, has_model: bool = False) -> QueueListener:
    """Return a listener of facts in *queue* that does nothing with them."""
    outflow = Outflow(
        queue,
        NoWork(),
        ListenLimits(1, 1, 60.0),
        holder="w2",
        exclusive=CrashIsolation(),
    )
    return QueueListener(
        agent_id="Ear",
        queue_name="facts",
        queue=queue,
        engines=(),
        outflow=outflow,
        backlog=Backlog(queue, outflow.look_soon),
        has_model=has_model,
    )


async def test_the_backlog_is_the_last_reading_while_the_store_is_away(
    redis: Redis,
) -> None:
    later_ms = 0
    queue = AwayQueue(redis, "facts", deadline_s=PATIENCE_S)
    mended = list[int]()
    backlog = Backlog(
        queue,
        lambda: mended.append(1),
        now_ms=lambda: int(time.time() * 1000) + later_ms,
    )
    assert (backlog.pending(), backlog.oldest_s()) == (0, 0)
    await queue.append("ann", [("f1", b"1"), ("f2", b"2")])
    await queue.append("ben", [("f1", b"1")])
    later_ms = 90_000
    await backlog.read()
    assert backlog.pending() == 3
    assert 90 <= backlog.oldest_s() < 90 + PATIENCE_S
    queue.is_away = True
    await queue.append("ben", [("f2", b"1")])
    await backlog.read()
    assert backlog.pending() == 3
    queue.is_away = False
    queue.forgotten = 2
    await backlog.read()
    assert backlog.pending() == 4
    assert mended == [1]


async def test_parked_rows_come_back_when_a_worker_with_a_model_starts(
    redis: Redis,
) -> None:
    for has_model in (False, True):
        await redis.flushall()
        queue = PersonalQueue(redis, "facts", deadline_s=PATIENCE_S)
        await queue.append("ann", [("f1", b"1")])
        claim = await queue.claim("ann", holder="w", limit=1, lease_ms=60_000, now_ms=0)
        assert claim is not None
        await queue.close(
            claim, [Closing(row_id="f1", state="needs_model", reason="two readings")]
        )
        await queue.release(claim)
        bench = listener_of(queue, has_model=has_model)
        running: list[asyncio.Task[None]] = []

        def spawn(
            work: Coroutine[Any, Any, None], running: list[asyncio.Task[None]] = running
        ) -> None:
            running.append(asyncio.create_task(work))

        bench.start(spawn)
        async with asyncio.timeout(PATIENCE_S):
            while has_model and (await queue.counts("ann")).parked:  # noqa: ASYNC110 - the store makes no event
                await asyncio.sleep(0.01)
        bench.stop()
        await bench.emptied()
        assert bench.vital_sign()[0]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        assert (await queue.counts("ann")).parked == (0 if has_model else 1)


async def test_rows_that_this_worker_appended_are_looked_at_at_once(
    redis: Redis,
) -> None:
    """By the listener of their queue, and by no other."""
    host = Host()
    looks: list[str] = []
    for name in ("turns", "facts"):
        listener = listener_of(PersonalQueue(redis, name, deadline_s=PATIENCE_S))
        listener.queue_name = name
        listener.outflow.look_soon = partial(looks.append, name)  # type: ignore[method-assign]
        host.listeners.append(listener)
    host.look_soon("facts")
    assert looks == ["facts"]


def listening(agent_id: str) -> Agent:
    """Return an agent that listens to turns."""
    agent = Agent(agent_id)

    @agent.listen("turns")
    def hear(turn: ChatTurn) -> Sequence[Fact]:
        return []

    return agent


def test_two_agents_of_one_worker_cannot_listen_to_one_queue() -> None:
    with pytest.raises(
        ConfigurationError, match=r"One.hear and Two.hear both listen to 'turns'"
    ):
        demand_one_listener([listening("One"), listening("Two")])
    demand_one_listener([listening("One"), Agent("Other")])
