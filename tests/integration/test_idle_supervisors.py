"""What supervisors do once for all of them: another one takes it over within the same time as ever."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import TypeAdapter
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import Shares
from tasklore.contracts.errors import Unreachable
from tasklore.memory import keys
from tasklore.memory.budgets.governor import ModelBudget
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.shared_values import SharedReading
from tasklore.supervisor.admission.queue_mover import WaitingQueueMover
from tests.integration.test_governor import call
from tests.integration.test_waiting_tasks import DAY, declare
from tests.servers import PATIENCE_S

#: Seconds after which another desk moves what waits, when the one that did so is killed.
MOST_S = 3.0
NUMBERS = TypeAdapter(dict[str, int])


class Unheard:
    """A connection to NATS on which nothing comes."""

    def __init__(self) -> None:
        self.client = self
        self.is_closed = True

    async def subscribe(self, *_: Any, **__: Any) -> None:
        """Take a subscription."""


class Desk(WaitingQueueMover):
    """A desk that notes since when it leads, and moves nothing."""

    def __init__(self, redis: Redis, name: str) -> None:
        parts: Any = Unheard()
        self.led_at: float | None = None
        super().__init__(
            parts, redis, parts, parts, holder=name, read_shares=self._read_no_shares
        )

    async def _read_no_shares(self) -> Shares:
        return Shares()

    async def has_led(self) -> bool:
        """Return whether it has led by now."""
        return self.led_at is not None

    async def _drive(self, _messages: Any) -> None:
        self.led_at = self.led_at or time.monotonic()
        await asyncio.sleep(0.01)


async def until(fact: Callable[[], Awaitable[object]]) -> None:
    """Return once *fact* holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not await fact():  # noqa: ASYNC110 - a server is waited for
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _no_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reads:
        async def __aenter__(self) -> None: ...
        async def __aexit__(self, *_: object) -> None: ...

    monkeypatch.setattr(
        "tasklore.supervisor.admission.queue_mover.open_direct_reads",
        lambda *_: Reads(),
    )
    monkeypatch.setattr(
        "tasklore.supervisor.admission.queue_mover.WaitingMessages", lambda *_: None
    )


@pytest.mark.parametrize("is_killed", [True, False])
async def test_another_desk_moves_what_waits_when_the_first_one_ends(
    valkey_or_redis: Redis, *, is_killed: bool
) -> None:
    """Within three seconds of a kill, and within one of an orderly end."""
    first, second = (Desk(valkey_or_redis, name) for name in ("first", "second"))
    running = [asyncio.create_task(first.run())]
    await until(first.has_led)
    running.append(asyncio.create_task(second.run()))
    await asyncio.sleep(1.5)
    assert second.led_at is None
    ended_at = time.monotonic()
    if is_killed:
        running[0].cancel()
    else:
        await first.drain()
    await until(second.has_led)
    most_s = MOST_S if is_killed else 1.0
    assert second.led_at is not None
    assert second.led_at - ended_at < most_s + 0.2
    await second.drain()
    for one in running:
        one.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def test_one_supervisor_looks_for_whom_to_wake_and_another_does_when_it_ends(
    valkey_or_redis: Redis,
) -> None:
    """Without limits nobody does."""
    first, second = WaitingTasks(valkey_or_redis), WaitingTasks(valkey_or_redis)
    assert await first.is_idle()
    await declare(valkey_or_redis, DAY)
    assert not await first.is_idle()
    await first.wake(10)
    assert (first.leads, await first.is_idle(), await second.is_idle()) == (
        True,
        False,
        True,
    )
    await valkey_or_redis.delete(keys.budget("waking"))
    assert not await second.is_idle()


async def test_whoever_wakes_frees_what_a_dead_process_held(
    valkey_or_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other process asks a model, or looks."""
    monkeypatch.setattr("tasklore.memory.budgets.governor.LEASE_S", 0.1)
    await declare(valkey_or_redis, {"name": "one", "at_once": 1})
    await ModelBudget(valkey_or_redis).reserve(call(most=200))
    budgets = Budgets(valkey_or_redis)
    assert [one.reserved for one in await budgets.standings()] == [1]
    waiting = WaitingTasks(valkey_or_redis)

    async def is_freed() -> bool:
        await waiting.wake(10)
        return not any(one.reserved for one in await budgets.standings())

    await until(is_freed)


def numbered(
    fails: int = 0,
) -> tuple[list[int], Callable[[], Awaitable[dict[str, int]]]]:
    """Return a list of readings, and what reads the next one; the first *fails* times it cannot."""
    made: list[int] = []
    failing = iter(range(fails))

    async def read() -> dict[str, int]:
        if next(failing, None) is not None:
            raise Unreachable("away")
        made.append(len(made))
        return {"number": made[-1]}

    return made, read


#: Seconds for which a reading is shared: in fewer, ten readers of a busy machine may not all have come.
KEPT_S = 1.0


@pytest.fixture
def readings(valkey_or_redis: Redis) -> list[SharedReading[dict[str, int]]]:
    return [
        SharedReading(
            valkey_or_redis,
            keys.backlog(),
            keep_ms=int(1000 * KEPT_S),
            kind=NUMBERS,
            deadline_s=5.0,
        )
        for _ in range(10)
    ]


async def test_one_process_reads_for_all_until_it_is_old(
    readings: list[SharedReading[dict[str, int]]],
) -> None:
    made, read = numbered()
    found = await asyncio.gather(*(one.take(read) for one in readings))
    assert [one.value for one in found] == [{"number": 0}] * len(readings)
    assert all(0.0 <= one.age_s <= KEPT_S for one in found)
    assert made == [0]

    async def is_newer() -> bool:
        return (await readings[1].take(read)).value == {"number": 1}

    await until(is_newer)
    assert made == [0, 1]


async def test_a_reader_that_fails_shares_nothing_and_the_next_one_reads_at_once(
    readings: list[SharedReading[dict[str, int]]], valkey_or_redis: Redis
) -> None:
    made, read = numbered(fails=1)
    with pytest.raises(Unreachable):
        await readings[0].take(read)
    assert not await valkey_or_redis.exists(*keys.backlog())
    async with asyncio.timeout(PATIENCE_S):
        assert (await readings[1].take(read)).value == {"number": 0}
    assert made == [0]


async def test_whoever_waited_for_as_long_as_a_lease_reads_for_itself(
    readings: list[SharedReading[dict[str, int]]], valkey_or_redis: Redis
) -> None:
    """The others are as many as there are, and each may fail for as long; the lease of another is left to it."""
    _, lease = keys.backlog()
    await valkey_or_redis.set(lease, "another")
    made, read = numbered(fails=1)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(Unreachable):
            await readings[0].take(read)
        assert await valkey_or_redis.get(lease) == b"another"
        found = await asyncio.gather(*(one.take(read) for one in readings))
    assert len(found) == len(readings)
    assert made
