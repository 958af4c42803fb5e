"""Single flight on real servers: identical questions asked at once are computed once, whoever dies."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from redis.asyncio import Redis

from memory import keys
from memory.breaker import Breaker
from memory.entries import Remembered
from memory.fakes import FakeLongTermMemory, FakeSingleFlight
from memory.long_term import LongTermMemory
from memory.single_flight import Joined, Leader, SingleFlight
from runtime.embedded import ValkeyServer

ROOT = Path(__file__).parents[2]
KEY = keys.ltm("Budget", "1.1", "analyze:1")

#: Seconds that any wait here may take on a busy machine; no test waits for it to pass.
LONG_S = 60.0

Compute = Callable[[], Awaitable[bytes]]


class Process:
    """What one worker process has: a memory and single flights over one client."""

    def __init__(self, client: Redis, flights: SingleFlight[Remembered]) -> None:
        self.memory = LongTermMemory(client, budget_s=LONG_S)
        self.flights = flights

    async def ask(self, compute: Compute, wait_s: float = LONG_S) -> tuple[bytes, bool]:
        """Return the answer and whether somebody else computed it, as a host does after a miss."""
        outcome = await self.flights.join(KEY, lambda: self.memory.recall(KEY), wait_s=wait_s)
        if isinstance(outcome, Joined):
            return outcome.value.result_json, True
        async with outcome:
            result = await compute()
            await self.memory.remember(KEY, result, computed_ms=1, ttl=None, now_ms=1)
            outcome.share(Remembered(1, 1, result))
        return result, False


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


class Work:
    """A computation that ends when it is let go, and counts its runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.started = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self) -> bytes:
        """Return a result once allowed."""
        self.runs += 1
        self.started.set()
        await self.may_end.wait()
        return b"42"


async def awaited(client: Redis, key: str = KEY) -> None:
    """Return when another process is known to wait for the lease of *key*."""
    async with asyncio.timeout(LONG_S):
        while not await client.hexists(keys.flight_of(key), "awaited"):
            pass


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
from memory.entries import Remembered
from memory.fakes import FakeLongTermMemory, FakeSingleFlight
from memory.long_term import LongTermMemory
from memory.single_flight import Joined, SingleFlight

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


async def test_a_leader_that_is_killed_is_replaced(redis: Redis, servers: object) -> None:
    """Its lease ends by itself."""
    url = servers.redis_url  # type: ignore[attr-defined]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DOOMED, url, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"leading True\n"
    async with SingleFlight[Remembered](redis, owner="heir", budget_s=LONG_S) as flights:
        heir, work = Process(redis, flights), Work()
        work.may_end.set()
        asking = asyncio.create_task(heir.ask(work))
        await awaited(redis)
        assert work.runs == 0
        child.kill()
        await child.wait()
        assert await asking == (b"42", False)


DOOMED = """
import asyncio, sys
from redis.asyncio import Redis
from memory.single_flight import SingleFlight

async def nothing():
    return None

async def main():
    client = Redis.from_url(sys.argv[1])
    async with SingleFlight(client, owner="doomed", budget_s=60, lease_s=1.0) as flights:
        leader = await flights.join("tl:ltm:{Budget}:v1.1:analyze:1", nothing, wait_s=60)
        print("leading", leader.is_leased, flush=True)
        await asyncio.Event().wait()

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


@pytest.mark.parametrize("steps", range(12))
async def test_a_caller_cancelled_on_its_way_leaves_no_lease(process: Process, redis: Redis, steps: int) -> None:
    """Wherever it was when it was cancelled."""
    asking = asyncio.create_task(process.flights.join(KEY, lambda: process.memory.recall(KEY), wait_s=LONG_S))
    for _ in range(steps):
        await asyncio.sleep(0)
    if asking.done():
        await _leave(asking.result())
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert await redis.exists(keys.flight_of(KEY)) == 0
    work = Work()
    work.may_end.set()
    assert await process.ask(work) == (b"42", False)


async def _leave(outcome: Leader[Remembered] | Joined[Remembered]) -> None:
    assert isinstance(outcome, Leader)
    async with outcome:
        pass


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


async def test_a_lease_is_renewed_while_its_leader_computes(redis: Redis) -> None:
    """Computing may take longer than a lease."""
    async with SingleFlight[Remembered](redis, owner="slow", budget_s=LONG_S, lease_s=30.0) as flights:
        slow = Process(redis, flights)
        flights._lease_s = 0.03
        work = Work()
        leading = asyncio.create_task(slow.ask(work))
        await work.started.wait()
        await redis.pexpire(keys.flight_of(KEY), 10_000)
        async with asyncio.timeout(LONG_S):
            while await redis.pttl(keys.flight_of(KEY)) <= 10_000:
                pass
        work.may_end.set()
        await leading
        assert await redis.exists(keys.flight_of(KEY)) == 0


async def test_a_lease_of_somebody_else_is_not_given_back(process: Process, redis: Redis) -> None:
    """A leader that slept through its lease must not end its successor's."""
    work = Work()
    leading = asyncio.create_task(process.ask(work))
    await work.started.wait()
    await redis.hset(keys.flight_of(KEY), "owner", "successor")
    work.may_end.set()
    await leading
    assert await redis.hget(keys.flight_of(KEY), "owner") == b"successor"


async def test_nothing_is_announced_that_nobody_awaits(process: Process, redis: Redis) -> None:
    """A lone miss wakes no other process."""
    async with redis.pubsub() as channel:
        await channel.subscribe(keys.FLIGHTS)
        work = Work()
        work.may_end.set()
        await process.ask(work)
        assert await redis.publish(keys.FLIGHTS, "end") == 1
        first = await channel.get_message(ignore_subscribe_messages=True, timeout=LONG_S)
        while first is None:
            first = await channel.get_message(ignore_subscribe_messages=True, timeout=LONG_S)
        assert first["data"] == b"end"


async def test_with_redis_away_each_process_computes_once() -> None:
    """Callers of one process still share."""
    async with (
        Redis(host="127.0.0.1", port=1) as nowhere,
        SingleFlight[Remembered](nowhere, owner="alone", budget_s=0.05) as flights,
    ):
        runs = 0

        async def ask() -> Remembered:
            nonlocal runs
            outcome = await flights.join(KEY, _unreachable, wait_s=LONG_S)
            if isinstance(outcome, Joined):
                return outcome.value
            async with outcome:
                runs += 1
                await asyncio.sleep(0)
                outcome.share(Remembered(1, 1, b"42"))
            return Remembered(1, 1, b"42")

        answers = await asyncio.gather(*(ask() for _ in range(50)))
    assert runs == 1
    assert set(answers) == {Remembered(1, 1, b"42")}


async def _unreachable() -> None:
    raise AssertionError("nobody recalls from a server that did not answer")


async def test_a_server_that_freezes_lets_waiters_compute(tmp_path: Path) -> None:
    """They wait for a process that they can no longer hear."""
    server = ValkeyServer(tmp_path)
    await server.start()
    async with (
        Redis.from_url(server.url) as client,
        SingleFlight[Remembered](client, owner="one", budget_s=LONG_S) as first,
        SingleFlight[Remembered](client, owner="two", budget_s=0.2, breaker=Breaker(failures=1)) as second,
    ):
        leader = await first.join(KEY, _unreachable, wait_s=LONG_S)
        waiting = asyncio.create_task(second.join(KEY, _unreachable, wait_s=LONG_S))
        await awaited(client)
        server.pause()
        outcome = await waiting
        assert isinstance(outcome, Leader)
        assert not outcome.is_leased
        server.resume()
        await _leave(outcome)
        await _leave(leader)
    await server.stop()


async def test_a_waiter_hears_again_after_the_server_restarted(tmp_path: Path) -> None:
    """The announcement connection is renewed; meanwhile waiters look for themselves."""
    server = ValkeyServer(tmp_path)
    await server.start()
    async with (
        Redis.from_url(server.url) as client,
        SingleFlight[Remembered](client, owner="one", budget_s=LONG_S) as first,
        SingleFlight[Remembered](client, owner="two", budget_s=LONG_S) as second,
    ):
        for _ in range(2):
            work = Work()
            leading = asyncio.create_task(Process(client, first).ask(work))
            await work.started.wait()
            following = asyncio.create_task(Process(client, second).ask(work))
            await awaited(client)
            work.may_end.set()
            assert await leading == (b"42", False)
            assert await following == (b"42", True)
            await client.delete(KEY)
            await server.stop()
            await server.start()
    await server.stop()
