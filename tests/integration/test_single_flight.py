"""Single flight on real servers: identical questions asked at once are computed once, whoever fails."""

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from memory import keys
from memory.long_term.entries import Remembered
from memory.long_term.single_flight import Joined, Leader, SingleFlight
from tests.fakes.stores import FakeLongTermMemory
from tests.integration.flights import KEY, LONG_S, ROOT, Process, Work, awaited
from workers.testing.sessions import FakeSingleFlight


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
    """199 join."""
    work = Work()
    asking = [asyncio.create_task(one.ask(work)) for one in (process, neighbour) for _ in range(100)]
    await awaited(redis)
    work.may_end.set()
    answers = await asyncio.gather(*asking)
    assert work.runs == 1
    assert {answer for answer, _ in answers} == {b"42"}
    assert [joined for _, joined in answers].count(False) == 1


async def test_real_processes_compute_once(redis: Redis, servers: object) -> None:
    """As many asks as it likes, one run over both."""
    url = servers.redis_url  # type: ignore[attr-defined]
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, url, str(number), cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        for number in range(2)
    ]
    outputs = [(await child.communicate())[0] for child in children]
    assert outputs == [b"100\n", b"100\n"]
    assert await redis.get("runs") == b"1"


CHILD = """
import asyncio, sys
from redis.asyncio import Redis
from memory.long_term.entries import Remembered
from workers.testing.sessions import FakeSingleFlight
from tests.fakes.stores import FakeLongTermMemory
from memory.long_term.store import LongTermMemory
from memory.long_term.single_flight import Joined, SingleFlight

KEY = "tl:ltm:{Budget}:v1.1:analyze:1"

async def main():
    async with Redis.from_url(sys.argv[1]) as client, SingleFlight(client, owner=sys.argv[2], budget_s=60) as flights:
        memory = LongTermMemory(client, budget_s=60)

        async def ask():
            outcome = await flights.join(KEY, lambda: memory.recall(KEY), wait_s=60)
            if isinstance(outcome, Joined):
                return outcome.value.result_json
            async with outcome:
                await client.incr("runs")
                while not await client.hexists("tl:flight:{Budget}:v1.1:analyze:1", "awaited"):
                    pass
                await memory.remember(KEY, b"42", computed_ms=1, ttl=None, now_ms=1)
                outcome.share(Remembered(1, 1, b"42"))
            return b"42"

        print((await asyncio.gather(*(ask() for _ in range(100)))).count(b"42"))

asyncio.run(main())
"""


async def test_a_leader_that_fails_hands_over_at_once(process: Process, neighbour: Process, redis: Redis) -> None:
    """Its error is its own; the next caller computes."""
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
    """Also one that is cancelled while it asks for the lease."""
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


async def test_who_missed_before_the_answer_was_stored_still_joins(process: Process, neighbour: Process) -> None:
    """Between its miss and its join another process finished."""
    work = Work()
    work.may_end.set()
    await process.ask(work)
    assert await neighbour.ask(work) == (b"42", True)
    assert work.runs == 1


async def test_the_fake_shares_within_its_process_and_hands_over() -> None:
    """Without a server: one computes, the others join; after a failure the next one computes."""
    memory, runs = FakeLongTermMemory(), 0
    async with FakeSingleFlight[Remembered]() as flights:

        async def ask(*, fails: bool = False) -> bytes:
            nonlocal runs
            outcome = await flights.join(KEY, lambda: memory.recall(KEY), wait_s=LONG_S)
            if isinstance(outcome, Joined):
                return outcome.value.result_json
            async with outcome:
                runs += 1
                await asyncio.sleep(0)
                if fails:
                    raise ValueError("no")
                await memory.remember(KEY, b"42", computed_ms=1, ttl=None, now_ms=1)
                outcome.share(Remembered(1, 1, b"42"))
            return b"42"

        answers = await asyncio.gather(ask(fails=True), *(ask() for _ in range(20)), return_exceptions=True)
        assert isinstance(answers[0], ValueError)
        assert answers[1:] == [b"42"] * 20
        assert await ask() == b"42"
    assert runs == 2


async def test_an_entry_that_cannot_be_read_stops_nobody(process: Process, redis: Redis) -> None:
    """It is there, but it is no answer: the caller computes and replaces it."""
    await redis.hset(KEY, "a", "b")
    work = Work()
    work.may_end.set()
    assert await process.ask(work) == (b"42", False)


async def test_who_cannot_wait_computes(process: Process, neighbour: Process) -> None:
    """In the same process and in another, without touching the leader's lease."""
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
