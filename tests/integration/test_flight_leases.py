"""Leases of single flight on real servers: held while their leader computes, and never left behind."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.asyncio.client import PubSub

from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.long_term import single_flight
from tasklore.memory.long_term.entries import CachedResult
from tasklore.memory.long_term.single_flight import Joined, Leader, SingleFlight
from tasklore.runtime.servers.embedded import ValkeyServer
from tests.integration.flights import KEY, LONG_S, ROOT, Process, Work, awaited, leave


@pytest.fixture
async def process(redis: Redis) -> AsyncIterator[Process]:
    async with SingleFlight[CachedResult](
        redis, owner="one", budget_s=LONG_S
    ) as flights:
        yield Process(redis, flights)


async def test_the_lease_of_a_killed_leader_ends_and_a_waiter_computes(
    redis: Redis, servers: object
) -> None:
    url = servers.redis_url  # type: ignore[attr-defined]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DOOMED, url, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"leading True\n"
    async with SingleFlight[CachedResult](
        redis, owner="heir", budget_s=LONG_S
    ) as flights:
        heir = Process(redis, flights)
        work = Work()
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
from tasklore.memory.long_term.single_flight import SingleFlight

async def nothing():
    return None

async def main():
    client = Redis.from_url(sys.argv[1])
    async with SingleFlight(client, owner="doomed", budget_s=60, lease_s=1.5) as flights:
        leader = await flights.join("tl:ltm:{Budget}:v1.1:analyze:1", nothing, wait_s=60)
        print("leading", leader.is_leased, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_caller_cancelled_at_any_step_leaves_no_lease(
    process: Process, redis: Redis
) -> None:
    for steps in range(12):
        asking = asyncio.create_task(
            process.flights.join(KEY, lambda: process.memory.recall(KEY), wait_s=LONG_S)
        )
        for _ in range(steps):
            await asyncio.sleep(0)
        if asking.done():
            await leave(asking.result())
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert await redis.exists(keys.flight_of(KEY)) == 0
        work = Work()
        work.may_end.set()
        assert await process.ask(work) == (b"42", False)
        await redis.delete(KEY)


async def test_a_lease_is_renewed_while_its_leader_computes(redis: Redis) -> None:
    async with SingleFlight[CachedResult](
        redis, owner="slow", budget_s=LONG_S, lease_s=30.0
    ) as flights:
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


async def test_a_lease_that_a_successor_holds_is_not_given_back(
    process: Process, redis: Redis
) -> None:
    work = Work()
    leading = asyncio.create_task(process.ask(work))
    await work.started.wait()
    await redis.hset(keys.flight_of(KEY), "owner", "successor")
    work.may_end.set()
    await leading
    assert await redis.hget(keys.flight_of(KEY), "owner") == b"successor"


async def test_a_waiter_is_woken_by_the_announcement(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_flight, "RECHECK_S", LONG_S)
    async with (
        SingleFlight[CachedResult](
            redis, owner="one", lease_s=LONG_S, budget_s=LONG_S
        ) as first,
        SingleFlight[CachedResult](
            redis, owner="two", lease_s=LONG_S, budget_s=LONG_S
        ) as second,
    ):
        # The first waiter of a process begins to listen, and looks again once it does.
        for _ in range(2):
            work = Work()
            leading = asyncio.create_task(Process(redis, first).ask(work))
            await work.started.wait()
            following = asyncio.create_task(Process(redis, second).ask(work))
            await awaited(redis)
            work.may_end.set()
            assert await leading == (b"42", False)
            async with asyncio.timeout(LONG_S / 2):
                assert await following == (b"42", True)
            await redis.delete(KEY)


async def test_without_redis_each_process_computes_once() -> None:
    async with (
        Redis(host="127.0.0.1", port=1) as nowhere,
        SingleFlight[CachedResult](nowhere, owner="alone", budget_s=0.05) as flights,
    ):
        runs = 0

        async def ask() -> CachedResult:
            nonlocal runs
            outcome = await flights.join(KEY, _unreachable, wait_s=LONG_S)
            if isinstance(outcome, Joined):
                return outcome.value
            async with outcome:
                runs += 1
                await asyncio.sleep(0)
                outcome.share(CachedResult(1, 1, b"42"))
            return CachedResult(1, 1, b"42")

        answers = await asyncio.gather(*(ask() for _ in range(50)))
    assert runs == 1
    assert set(answers) == {CachedResult(1, 1, b"42")}


async def _unreachable() -> None:
    raise AssertionError("nobody recalls from a server that did not answer")


async def test_when_the_server_freezes_waiters_compute_themselves(
    tmp_path: Path,
) -> None:
    server = ValkeyServer(tmp_path)
    await server.start()
    async with (
        Redis.from_url(server.url) as client,
        SingleFlight[CachedResult](client, owner="one", budget_s=LONG_S) as first,
        SingleFlight[CachedResult](
            client, owner="two", budget_s=1.0, breaker=Breaker(failures=1)
        ) as second,
    ):
        leader = await first.join(KEY, _unreachable, wait_s=LONG_S)
        waiting = asyncio.create_task(second.join(KEY, _unreachable, wait_s=LONG_S))
        await awaited(client)
        server.pause()
        outcome = await waiting
        assert isinstance(outcome, Leader)
        assert not outcome.is_leased
        server.resume()
        await leave(outcome)
        await leave(leader)
    await server.stop()


async def test_a_listener_that_forgets_a_cancellation_is_ended(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client library does so now and then, where it connects or writes under a timeout."""
    hearing = asyncio.Event()
    forgotten = asyncio.Event()
    get_message = PubSub.get_message

    async def forget_once(channel: PubSub, **options: Any) -> Any:
        if hearing.is_set():
            return await get_message(channel, **options)
        hearing.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            forgotten.set()

    monkeypatch.setattr(PubSub, "get_message", forget_once)
    async with asyncio.timeout(LONG_S):
        async with SingleFlight[CachedResult](
            redis, owner="one", budget_s=LONG_S
        ) as flights:
            flights._wanted.set()
            await hearing.wait()
    assert forgotten.is_set()


async def test_a_waiter_hears_announcements_again_after_the_server_restarted(
    tmp_path: Path,
) -> None:
    server = ValkeyServer(tmp_path)
    await server.start()
    async with (
        Redis.from_url(server.url) as client,
        SingleFlight[CachedResult](client, owner="one", budget_s=LONG_S) as first,
        SingleFlight[CachedResult](client, owner="two", budget_s=LONG_S) as second,
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
