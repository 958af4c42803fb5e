"""`get_or_compute` of sessions: an entry is computed once over all processes, and a dead leader is replaced."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest
from pydantic import JsonValue
from redis.asyncio import Redis

from tasklore.contracts.errors import (
    EntryTooLarge,
    InvalidInput,
    MemoryUnavailable,
    PhaseReplaced,
    UnknownSession,
)
from tasklore.memory import keys
from tasklore.memory.long_term.single_flight import SingleFlight
from tasklore.memory.sessions.once import Computed, get_or_compute
from tasklore.memory.sessions.session import FoundEntry, NewEntry, SessionCache
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.workers.testing.flights import KitFlights
from tests.fakes.sessions import FakeSessions
from tests.integration.flights import LONG_S, ROOT
from tests.integration.sessions import BLINK, KEY, SESSION, until_gone

FLIGHT = keys.session_flight(SESSION, KEY)


class Asking:
    """A process that asks for one entry, and computes it when it must."""

    def __init__(
        self, cache: "SessionCache | Away", flights: SingleFlight[Computed]
    ) -> None:
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
    cache = SessionCache(redis, deadline_s=LONG_S)
    await cache.create(SESSION)
    async with SingleFlight[Computed](redis, owner="one", budget_s=LONG_S) as flights:
        yield Asking(cache, flights)


@pytest.fixture
async def other(redis: Redis) -> AsyncIterator[Asking]:
    async with SingleFlight[Computed](redis, owner="other", budget_s=LONG_S) as flights:
        yield Asking(SessionCache(redis, deadline_s=LONG_S), flights)


async def awaited(client: Redis) -> None:
    """Return once another process waits for the entry."""
    async with asyncio.timeout(LONG_S):
        while not await client.hexists(FLIGHT, "awaited"):
            pass


async def test_forty_callers_of_two_processes_compute_once_and_every_use_is_counted(
    one: Asking, other: Asking, redis: Redis
) -> None:
    asking = [
        asyncio.create_task(process.ask(reader=f"{process.flights}-{number}"))
        for process in (one, other)
        for number in range(20)
    ]
    await awaited(redis)
    for process in (one, other):
        process.may_end.set()
    answers = await asyncio.gather(*asking)
    assert answers == [[]] * 40
    assert len({id(answer) for answer in answers}) == 40
    (entry,) = await one.cache.entries(SESSION)
    assert (one.runs + other.runs, entry.hits) == (1, 39)
    assert (entry.computation_ms, entry.agent) == (12_300, "Mapper")
    assert await redis.exists(FLIGHT) == 0
    assert await other.ask(reader="another") == []


async def test_a_leader_that_is_killed_is_replaced(
    redis: Redis, servers: EmbeddedServers, one: Asking
) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        DOOMED,
        servers.redis_url,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert await child.stdout.readline() == b"computing\n"
    asking = asyncio.create_task(one.ask())
    await awaited(redis)
    assert one.runs == 0
    child.kill()
    await child.wait()
    await redis.pexpire(FLIGHT, 1)  # the lease ends by itself seconds later
    one.may_end.set()
    assert await asking == []
    assert one.runs == 1


DOOMED = """
import asyncio, sys
from redis.asyncio import Redis
from tasklore.memory.sessions.session import SessionCache
from tasklore.memory.sessions.once import get_or_compute
from tasklore.memory.long_term.single_flight import SingleFlight

async def compute():
    print("computing", flush=True)
    await asyncio.Event().wait()

async def main():
    client = Redis.from_url(sys.argv[1])
    async with SingleFlight(client, owner="doomed", budget_s=60) as flights:
        await get_or_compute(SessionCache(client, deadline_s=60), flights, "s1", "analysis:map", compute, wait_s=60)

asyncio.run(main())
"""


async def test_after_an_error_the_next_caller_computes(
    one: Asking, other: Asking, redis: Redis
) -> None:
    started = asyncio.Event()
    may_fail = asyncio.Event()

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


async def test_an_entry_past_its_time_to_live_is_computed_once_again(
    one: Asking, other: Asking, redis: Redis
) -> None:
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


async def test_a_caller_that_cannot_wait_computes_and_the_first_stored_value_stays(
    one: Asking, other: Asking
) -> None:
    leading = asyncio.create_task(one.ask())
    await one.started.wait()

    async def second() -> JsonValue:
        return "second"

    assert await other.ask(second, wait_s=0.01) == "second"
    one.may_end.set()
    assert await leading == []
    found = await one.cache.get(SESSION, KEY)
    assert (found.value, found.entry.hits) == ("second", 1)


async def test_a_refusal_of_the_session_reaches_the_caller_and_leaves_no_lease(
    one: Asking, redis: Redis
) -> None:
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
        await get_or_compute(
            one.cache, one.flights, SESSION, "map", one.compute, wait_s=1.0
        )
    assert await redis.exists(FLIGHT) == 0


class Away:
    """A cache whose server does not answer."""

    async def get(
        self, session_id: str, key: str, *, reader: str | None = None
    ) -> FoundEntry | None:
        raise MemoryUnavailable("away")

    async def set_many(
        self,
        session_id: str,
        entries: Sequence[NewEntry],
        *,
        task_id: str | None = None,
        phase: str | None = None,
    ) -> None:
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
    async with KitFlights[Computed]() as flights:
        asker = Asking(cache, flights)
        asker.may_end.set()
        assert await asyncio.gather(*(asker.ask() for _ in range(10))) == [[]] * 10
    (entry,) = await cache.entries(SESSION)
    assert (asker.runs, entry.hits, entry.computation_ms) == (1, 9, 12_300)
