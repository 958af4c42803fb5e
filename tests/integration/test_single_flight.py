"""Single flight on a real store: identical questions asked at once are computed once, whichever leader fails."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from memory import keys
from memory.long_term.entries import Remembered
from memory.long_term.single_flight import Leader, SingleFlight
from tests.integration.flights import KEY, LONG_S, Process, Work, awaited


@pytest.fixture
async def process(redis: Redis) -> AsyncIterator[Process]:
    """Stand for one process."""
    async with SingleFlight[Remembered](redis, owner="one", budget_s=LONG_S) as flights:
        yield Process(redis, flights)


@pytest.fixture
async def neighbour(redis: Redis) -> AsyncIterator[Process]:
    """Stand for another process: it shares nothing with the first but the server."""
    async with SingleFlight[Remembered](redis, owner="two", budget_s=LONG_S) as flights:
        yield Process(redis, flights)


async def test_two_hundred_callers_of_two_processes_compute_once(
    process: Process, neighbour: Process, redis: Redis
) -> None:
    work = Work()
    asking = [asyncio.create_task(one.ask(work)) for one in (process, neighbour) for _ in range(100)]
    await awaited(redis)
    work.may_end.set()
    answers = await asyncio.gather(*asking)
    assert work.runs == 1
    assert {answer for answer, _ in answers} == {b"42"}
    assert [joined for _, joined in answers].count(False) == 1


async def test_a_leader_that_fails_hands_over_at_once(process: Process, neighbour: Process, redis: Redis) -> None:
    started = asyncio.Event()
    may_fail = asyncio.Event()

    async def fail() -> bytes:
        started.set()
        await may_fail.wait()
        raise ValueError("no")

    failing = asyncio.create_task(process.ask(fail))
    await started.wait()
    work = Work()
    work.may_end.set()
    others = [asyncio.create_task(one.ask(work)) for one in (process, neighbour, neighbour)]
    await awaited(redis)
    may_fail.set()
    with pytest.raises(ValueError, match="no"):
        await failing
    assert {answer for answer, _ in await asyncio.gather(*others)} == {b"42"}
    assert work.runs == 1


async def test_a_cancelled_leader_hands_over(process: Process, redis: Redis) -> None:
    work = Work()
    leading = asyncio.create_task(process.ask(work))
    await work.started.wait()
    following = asyncio.create_task(process.ask(work))
    leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading
    work.may_end.set()
    assert await following == (b"42", False)
    assert await redis.exists(keys.flight_of(KEY)) == 0


async def test_a_caller_that_missed_just_before_the_answer_was_stored_joins(
    process: Process, neighbour: Process
) -> None:
    work = Work()
    work.may_end.set()
    await process.ask(work)
    assert await neighbour.ask(work) == (b"42", True)
    assert work.runs == 1


async def test_an_unreadable_entry_is_computed_and_replaced(process: Process, redis: Redis) -> None:
    await redis.hset(KEY, "a", "b")
    work = Work()
    work.may_end.set()
    assert await process.ask(work) == (b"42", False)


async def test_a_caller_that_cannot_wait_computes_without_the_lease(process: Process, neighbour: Process) -> None:
    work = Work()
    leading = asyncio.create_task(process.ask(work))
    await work.started.wait()
    for one in (process, neighbour):
        outcome = await one.flights.join(KEY, lambda: process.memory.recall(KEY), wait_s=0.01)
        assert isinstance(outcome, Leader)
        assert not outcome.is_leased
        async with outcome:
            pass
    following = asyncio.create_task(neighbour.ask(work))
    work.may_end.set()
    assert await leading == (b"42", False)
    assert await following == (b"42", True)
