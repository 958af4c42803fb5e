"""`get_or_compute` of sessions: an entry is computed once over all processes, and a dead leader is replaced."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest
from pydantic import JsonValue
from redis.asyncio import Redis

from contracts.errors import EntryTooLarge, InvalidInput, MemoryUnavailable, PhaseReplaced, UnknownSession
from memory import keys
from memory.long_term.single_flight import SingleFlight
from memory.sessions.once import Computed, get_or_compute
from memory.sessions.session import FoundEntry, NewEntry, SessionCache
from tests.integration.flights import LONG_S, ROOT
from tests.integration.sessions import BLINK, KEY, SESSION, until_gone
from workers.testing.sessions import FakeSessions, FakeSingleFlight

FLIGHT = keys.session_flight(SESSION, KEY)


class Asking:
    """A process that asks for one entry, and what it computes when it has to."""

    def __init__(self, cache: "SessionCache | Away", flights: SingleFlight[Computed]) -> None:
        self.cache = cache
        self.flights = flights
        self.runs = 0
        self.started = asyncio.Event()
        self.may_end = asyncio.Event()
        self.now_s = 100.0

    async def compute(self) -> JsonValue:
        """Return a value that is falsy, once allowed; it takes 12.3 s by this process's clock."""
        self.runs += 1
        self.started.set()
        await self.may_end.wait()
        self.now_s += 12.3
        return []

    async def ask(
        self,
        compute: Callable[[], Awaitable[JsonValue]] | None = None,
        *,
        reader: str | None = None,
        wait_s: float = LONG_S,
        task_id: str | None = None,
    ) -> JsonValue:
        """Return the entry."""
        return await get_or_compute(
            self.cache,
            self.flights,
            SESSION,
            KEY,
            compute or self.compute,
            wait_s=wait_s,
            reader=reader,
            agent="Mapper",
            task_id=task_id,
            clock=lambda: self.now_s,
        )


@pytest.fixture
async def one(redis: Redis) -> AsyncIterator[Asking]:
    """Stand for one process, with a session."""
    cache = SessionCache(redis, deadline_s=LONG_S)
    await cache.create(SESSION)
    async with SingleFlight[Computed](redis, owner="one", budget_s=LONG_S) as flights:
        yield Asking(cache, flights)


@pytest.fixture
async def other(redis: Redis) -> AsyncIterator[Asking]:
    """Stand for another process: it shares nothing with the first but the server."""
    async with SingleFlight[Computed](redis, owner="other", budget_s=LONG_S) as flights:
        yield Asking(SessionCache(redis, deadline_s=LONG_S), flights)


async def awaited(client: Redis) -> None:
    """Return once another process waits for the entry."""
    async with asyncio.timeout(LONG_S):
        while not await client.hexists(FLIGHT, "awaited"):
            pass


async def test_two_processes_compute_once_and_every_use_is_counted(redis: Redis, servers: object) -> None:
    cache = SessionCache(redis, deadline_s=LONG_S)
    await cache.create(SESSION)
    children = [await _child(ASKING, servers, str(number)) for number in range(2)]
    outputs = [(await child.communicate())[0] for child in children]
    assert outputs == [b"20\n"] * 2
    assert await redis.get("runs") == b"1"
    (entry,) = await cache.entries(SESSION)
    assert (entry.hits, entry.agent) == (39, "A")
    assert await redis.exists(FLIGHT) == 0


ASKING = """
import asyncio, sys
from redis.asyncio import Redis
from memory.sessions.session import SessionCache
from memory.sessions.once import get_or_compute
from memory.long_term.single_flight import SingleFlight

async def main():
    async with Redis.from_url(sys.argv[1]) as client, SingleFlight(client, owner=sys.argv[2], budget_s=60) as flights:
        cache = SessionCache(client, deadline_s=60)

        async def compute():
            await client.incr("runs")
            while not await client.hexists("tl:flight:{s1}:analysis%3Amap", "awaited"):
                pass
            return 0

        async def ask(number):
            reader = f"{sys.argv[2]}-{number}"
            terms = {"wait_s": 60, "agent": "A", "reader": reader}
            return await get_or_compute(cache, flights, "s1", "analysis:map", compute, **terms)

        print((await asyncio.gather(*map(ask, range(20)))).count(0))

asyncio.run(main())
"""


async def test_a_leader_that_is_killed_is_replaced(redis: Redis, servers: object, one: Asking) -> None:
    child = await _child(DOOMED, servers, "doomed")
    assert child.stdout is not None
    assert await child.stdout.readline() == b"computing\n"
    asking = asyncio.create_task(one.ask())
    await awaited(redis)
    assert one.runs == 0
    child.kill()
    await child.wait()
    await redis.pexpire(FLIGHT, 1)
    one.may_end.set()
    assert await asking == []
    assert one.runs == 1


DOOMED = """
import asyncio, sys
from redis.asyncio import Redis
from memory.sessions.session import SessionCache
from memory.sessions.once import get_or_compute
from memory.long_term.single_flight import SingleFlight

async def compute():
    print("computing", flush=True)
    await asyncio.Event().wait()

async def main():
    client = Redis.from_url(sys.argv[1])
    async with SingleFlight(client, owner="doomed", budget_s=60) as flights:
        await get_or_compute(SessionCache(client, deadline_s=60), flights, "s1", "analysis:map", compute, wait_s=60)

asyncio.run(main())
"""


async def _child(source: str, servers: object, name: str) -> asyncio.subprocess.Process:
    url = servers.redis_url  # type: ignore[attr-defined]
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", source, url, name, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )


async def test_a_computed_entry_is_timed_and_found_by_both_processes(one: Asking, other: Asking) -> None:
    one.may_end.set()
    assert await one.ask(reader="t1") == []
    assert await one.ask(reader="t2") == []
    assert await other.ask(reader="t3") == []
    assert (one.runs, other.runs) == (1, 0)
    (entry,) = await one.cache.entries(SESSION)
    assert (entry.computation_ms, entry.agent, entry.hits) == (12_300, "Mapper", 2)


async def test_callers_of_one_process_get_copies_of_the_value(one: Asking) -> None:
    asking = [asyncio.create_task(one.ask(reader=f"t{number}")) for number in range(5)]
    await one.started.wait()
    one.may_end.set()
    answers = await asyncio.gather(*asking)
    assert answers == [[]] * 5
    assert len({id(answer) for answer in answers}) == 5
    (entry,) = await one.cache.entries(SESSION)
    assert (one.runs, entry.hits) == (1, 4)


async def test_after_an_error_the_next_caller_computes(one: Asking, other: Asking, redis: Redis) -> None:
    started, may_fail = asyncio.Event(), asyncio.Event()

    async def fail() -> JsonValue:
        started.set()
        await may_fail.wait()
        raise ValueError("no")

    failing = asyncio.create_task(one.ask(fail))
    await started.wait()
    asking = asyncio.create_task(other.ask())
    await awaited(redis)
    may_fail.set()
    other.may_end.set()
    with pytest.raises(ValueError, match="no"):
        await failing
    assert (await asking, other.runs) == ([], 1)


async def test_an_entry_past_its_time_to_live_is_computed_once_again(one: Asking, other: Asking, redis: Redis) -> None:
    await one.cache.set(SESSION, KEY, "old", ttl=BLINK)
    await until_gone(one.cache)
    other.may_end.set()
    leading = asyncio.create_task(one.ask())
    await one.started.wait()
    following = asyncio.create_task(other.ask())
    await awaited(redis)
    one.may_end.set()
    assert (await leading, await following) == ([], [])
    assert (one.runs, other.runs) == (1, 0)
    assert [entry.hits for entry in await one.cache.entries(SESSION)] == [1]


async def test_a_caller_that_cannot_wait_computes_and_the_first_stored_value_stays(one: Asking, other: Asking) -> None:
    leading = asyncio.create_task(one.ask())
    await one.started.wait()

    async def second() -> JsonValue:
        return "second"

    assert await other.ask(second, wait_s=0.01) == "second"
    one.may_end.set()
    assert await leading == []
    found = await one.cache.get(SESSION, KEY)
    assert (found.value, found.entry.hits) == ("second", 1)


async def test_a_refusal_of_the_session_reaches_the_caller_and_leaves_no_lease(one: Asking, redis: Redis) -> None:
    async def large() -> JsonValue:
        return "x" * 20_000_000

    with pytest.raises(EntryTooLarge):
        await one.ask(large)
    await redis.hset(keys.session(SESSION).tasks, "analysis", "t2")
    one.may_end.set()
    with pytest.raises(PhaseReplaced):
        await one.ask(task_id="t1")
    await one.cache.drop(SESSION)
    with pytest.raises(UnknownSession):
        await one.ask()
    with pytest.raises(InvalidInput, match="naming rule"):
        await get_or_compute(one.cache, one.flights, SESSION, "map", one.compute, wait_s=1.0)
    assert await redis.exists(FLIGHT) == 0


class Away:
    """A cache whose server does not answer."""

    async def get(self, session_id: str, key: str, *, reader: str | None = None) -> FoundEntry | None:
        """Find nothing out."""
        raise MemoryUnavailable("away")

    async def set_many(
        self, session_id: str, entries: Sequence[NewEntry], *, task_id: str | None = None, phase: str | None = None
    ) -> None:
        """Keep nothing."""
        raise MemoryUnavailable("away")


async def test_with_the_server_away_each_process_computes_once() -> None:
    async with (
        Redis(host="127.0.0.1", port=1) as nowhere,
        SingleFlight[Computed](nowhere, owner="alone", budget_s=0.05) as flights,
    ):
        alone = Asking(Away(), flights)
        asking = [asyncio.create_task(alone.ask()) for _ in range(5)]
        await alone.started.wait()
        alone.may_end.set()
        answers = await asyncio.gather(*asking)
    assert answers == [[]] * 5
    assert len({id(answer) for answer in answers}) == 5
    assert alone.runs == 1


async def test_the_testing_kit_computes_once_without_a_server() -> None:
    cache = FakeSessions()
    await cache.create(SESSION)
    async with FakeSingleFlight[Computed]() as flights:
        asker = Asking(cache, flights)
        asker.may_end.set()
        assert await asyncio.gather(*(asker.ask() for _ in range(10))) == [[]] * 10
        await cache.set_many(SESSION, [NewEntry("a:x", 1)])
    (entry, _) = await cache.entries(SESSION)
    assert (asker.runs, entry.hits, entry.computation_ms) == (1, 9, 12_300)
