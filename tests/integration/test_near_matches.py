"""Near matches in the memory, and what is left behind."""

import asyncio
from datetime import timedelta
from decimal import Decimal

import pytest
from redis.asyncio import Redis

from contracts.identifiers import user_token
from contracts.parameters.model import Field, Parameters
from contracts.parameters.neighbours import Neighbourhood
from deploy.privileges.roles import Cast
from memory import keys
from memory.long_term.entries import Near
from memory.long_term.owners import EntryOwners
from memory.long_term.store import LongTermMemory
from quantities.amounts import Amount
from runtime.servers.embedded import ValkeyServer
from tests.servers import PATIENCE_S
from tests.unit.quantities.test_near_matches import a_plan, a_worker

HOUR = timedelta(hours=1)
ANNA = user_token("anna")


class Plan(Parameters):
    """One tolerant amount beside a text."""

    limit: Amount = Field(tolerance=10)
    town: str = "Kiel"


def asking(limit: object, token: str | None = None, **options: str) -> tuple[str, Neighbourhood]:
    """Return the entry key of a question, and its neighbourhood."""
    plan = Plan.read({"limit": limit, **{name: text for name, text in options.items() if name == "town"}})
    near = Parameters.neighbourhood(plan, "plan")
    assert near is not None
    key = keys.ltm(options.get("agent", "Planner"), options.get("version", "1.1"), Parameters.key(plan, "plan"), token)
    return key, near


async def remember(
    memory: LongTermMemory, limit: object, token: str | None = None, ttl: timedelta | None = HOUR, **options: str
) -> str:
    """Remember the limit itself as the answer, and return its key."""
    key, near = asking(limit, token, **options)
    user = options.get("user")
    await memory.remember(key, str(limit).encode(), computed_ms=7, ttl=ttl, now_ms=1, near=near, user_token=user)
    return key


async def nearest(memory: LongTermMemory, limit: object, token: str | None = None, **options: str) -> bytes | None:
    """Return the answer of the nearest neighbour."""
    [found] = await memory.nearest([asking(limit, token, **options)])
    return None if found is None else found.answer.result_json


async def places(redis: Redis) -> list[str]:
    """Return every place that stands in an index, of both kinds, with repetitions."""
    found = [key async for key in redis.scan_iter(match="tl:ltm:{*}:near:*", count=1000)]
    return sorted([place.decode() for key in found for place in await redis.zrange(key, 0, -1)])


@pytest.fixture
def memory(valkey_or_redis: Redis) -> LongTermMemory:
    """Return a memory on a server."""
    return LongTermMemory(valkey_or_redis, budget_s=60.0)


@pytest.fixture
def store(valkey_or_redis: Redis) -> LongTermMemory:
    """Return the store alone, for what only a server can show."""
    return LongTermMemory(valkey_or_redis, budget_s=60.0)


async def test_the_nearest_within_the_tolerance_is_found(memory: LongTermMemory) -> None:
    """With its key, its place and its answer as it was stored; of equally near ones the lesser."""
    for limit in (100, 104, 111, -100, "100.5"):
        await remember(memory, limit)
    [found] = await memory.nearest([asking(101)])
    assert found == Near(asking("100.5")[0], "100.5", found.answer if found else None)  # type: ignore[arg-type]
    assert found.answer == (1, 7, b"100.5")
    assert await nearest(memory, 102) == b"100.5"
    assert await nearest(memory, "102.25") == b"100.5"
    assert await nearest(memory, 103) == b"104"
    assert await nearest(memory, 121) == b"111"
    assert await nearest(memory, "121.0000000000000000000000001") is None
    assert await nearest(memory, -95) == b"-100"
    assert await nearest(memory, 1) is None


async def test_the_own_answer_is_no_neighbour(memory: LongTermMemory) -> None:
    """An exact answer is asked for elsewhere, and first."""
    await remember(memory, 100)
    assert await nearest(memory, 100) is None


async def test_neighbours_are_of_one_agent_version_user_and_frame(memory: LongTermMemory) -> None:
    """What differs in anything else is no neighbour."""
    await remember(memory, 100)
    await remember(memory, 100, ANNA)
    assert await nearest(memory, 101, agent="Other") is None
    assert await nearest(memory, 101, version="1.2") is None
    assert await nearest(memory, 101, town="Ulm") is None
    assert await nearest(memory, 101, user_token("ben")) is None
    assert await nearest(memory, 101, ANNA) == b"100"


async def test_many_are_asked_for_at_once(memory: LongTermMemory) -> None:
    """Each gets its own, in order."""
    await remember(memory, 100)
    await remember(memory, 200)
    found = await memory.nearest([asking(205), asking(150), asking(95)])
    assert [one and one.answer.result_json for one in found] == [b"200", None, b"100"]
    assert await memory.nearest([]) == []


async def test_what_was_stored_without_a_place_is_no_neighbour(memory: LongTermMemory) -> None:
    """An entry from before a tolerance was declared is served to its own question alone."""
    key, _ = asking(100)
    await memory.remember(key, b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    assert await nearest(memory, 101) is None


async def test_an_answer_put_by_hand_keeps_its_place(memory: LongTermMemory) -> None:
    """As it keeps what else is known of it."""
    key = await remember(memory, 100)
    await memory.put(key, b'"mended"', ttl=HOUR, now_ms=2)
    assert await nearest(memory, 101) == b'"mended"'


@pytest.mark.parametrize("how", ["key", "agent", "task", "age", "everything"])
async def test_what_is_forgotten_is_no_neighbour_any_more(memory: LongTermMemory, how: str) -> None:
    """However it was forgotten."""
    key = await remember(memory, 100)
    assert await nearest(memory, 101) == b"100"
    match how:
        case "key":
            assert await memory.forget(key) == 1
        case "agent":
            assert await memory.forget(agent_id="Planner") == 1
        case "task":
            assert await memory.forget(agent_id="Planner", task="plan") == 1
        case "age":
            assert await memory.forget(created_before_ms=5) == 1
        case _:
            assert await memory.forget(everything=True) == 1
    assert await nearest(memory, 101) is None


async def test_forgetting_leaves_no_place_behind(store: LongTermMemory, valkey_or_redis: Redis) -> None:
    """A place is a number that somebody said: it goes with the answer, and its neighbours stay."""
    gone = await remember(store, 100)
    await remember(store, 104)
    await store.forget(gone)
    assert await places(valkey_or_redis) == ["104", "104"]
    await store.forget(agent_id="Planner", task="plan")
    assert await places(valkey_or_redis) == []


async def test_forgetting_a_user_leaves_no_place_behind(store: LongTermMemory, valkey_or_redis: Redis) -> None:
    """By either way there is: everything their tasks stored, or what nobody else asked for."""
    await remember(store, 100, ANNA)
    await remember(store, 104, user=ANNA)
    await store.forget(user_token=ANNA)
    assert await places(valkey_or_redis) == []
    await remember(store, 100, ANNA)
    await remember(store, 104, user=ANNA)
    released = await EntryOwners(valkey_or_redis, deadline_s=PATIENCE_S).release(ANNA)
    assert (released.removed, released.kept) == (2, 0)
    assert await places(valkey_or_redis) == []


async def test_an_answer_whose_time_is_over_is_no_neighbour(memory: LongTermMemory) -> None:
    """And a place outlives it only until somebody looks there, or stores another."""
    await remember(memory, 100, ttl=timedelta(milliseconds=20))
    await remember(memory, 110, ttl=HOUR)
    async with asyncio.timeout(60):
        while await nearest(memory, 99) is not None:
            await memory.count_hits({asking(100)[0]: 1})
    assert await nearest(memory, 101) == b"110"


async def test_places_of_expired_answers_go_with_the_next_one(store: LongTermMemory, valkey_or_redis: Redis) -> None:
    """The index never grows past what is alive; and it goes with its last answer."""
    key, near = asking(100)
    for place, now_ms in ((100, 1), (104, 1), (108, 3_600_002)):
        key, near = asking(place)
        await store.remember(key, b"1", computed_ms=1, ttl=HOUR, now_ms=now_ms, near=near)
    assert await places(valkey_or_redis) == ["108", "108"]
    for index in keys.near(key, near.frame):
        assert 0 < await valkey_or_redis.pttl(index) <= 3_600_000
    await remember(store, 112, ttl=None)
    assert [await valkey_or_redis.pttl(index) for index in keys.near(key, near.frame)] == [-1, -1]


async def test_an_entry_that_redis_evicted_is_passed_over(store: LongTermMemory, valkey_or_redis: Redis) -> None:
    """The next nearest is served, and the place of the one that is gone is let go of."""
    evicted = await remember(store, 100)
    await remember(store, 104)
    await valkey_or_redis.unlink(evicted)
    assert await nearest(store, 101) == b"104"
    assert await places(valkey_or_redis) == ["104", "104"]


async def test_a_place_that_is_none_of_ours_is_passed_over(store: LongTermMemory, valkey_or_redis: Redis) -> None:
    """Whoever put it there; and an entry that cannot be read is a miss."""
    broken = await remember(store, 100)
    key, near = asking(101)
    index = keys.near(key, near.frame)[0]
    await valkey_or_redis.zadd(index, {"nonsense": 101.0, "1e2": 101.0, "-101": 101.0, b"\xff": 101.0, "100.0": 100.0})
    assert await nearest(store, 101) == b"100"
    await valkey_or_redis.set(broken, b"broken")
    assert await nearest(store, 101) is None


async def test_the_index_is_not_listed_among_entries(store: LongTermMemory, valkey_or_redis: Redis) -> None:
    """It lies under the same prefix, so that the rights of an agent need no word more."""
    key = await remember(store, 100)
    assert [entry.key async for entry in store.entries()] == [key]
    assert (await store.stats()).entries == 1
    [shown] = [entry async for entry in store.entries()]
    assert shown.standing == (asking(100)[1].frame, "100")


async def test_without_a_tolerance_nothing_is_stored_but_the_entry(
    store: LongTermMemory, valkey_or_redis: Redis
) -> None:
    """The same keys and the same bytes as ever."""
    await store.remember(keys.ltm("A", "1.1", "q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    assert [key async for key in valkey_or_redis.scan_iter(match="tl:*")] == [b"tl:ltm:{A}:v1.1:q:1"]
    assert await valkey_or_redis.get(keys.ltm("A", "1.1", "q:1")) == (
        b'{"format":1,"created_at":1,"computed_ms":1,"check":2212294583,"size":1,"result":1,'
        b'"agent_version":"1.1","parameters":{}}'
    )


async def test_the_rights_of_a_worker_are_enough(store_server: ValkeyServer, valkey_or_redis: Redis) -> None:
    """Of the agent alone, as they are given out: no word was added for neighbours."""
    [worker] = [role for role in Cast(workers={"plans": ("Planner",)}).roles() if role.name == "worker-plans"]
    keys_of = [f"~{pattern}" for pattern in worker.owns]
    rules = ["on", "nopass", "resetkeys", *keys_of, "-@all", *(f"+{command}" for command in worker.commands)]
    await valkey_or_redis.execute_command("ACL", "SETUSER", "planner", *rules)
    async with Redis.from_url(store_server.url, username="planner", password="x") as client:
        memory = LongTermMemory(client, budget_s=60.0)
        key = await remember(memory, 100, ANNA)
        assert await nearest(memory, 101, ANNA) == b"100"
        assert await memory.forget(key) == 1
    await valkey_or_redis.execute_command("ACL", "DELUSER", "planner")
    assert await places(valkey_or_redis) == []


async def test_a_desk_serves_a_neighbour_from_a_real_store(store: LongTermMemory, valkey_or_redis: Redis) -> None:
    """Stored by one worker, served by another one; its hit is counted where it was stored."""
    runs: list[Decimal] = []
    await a_worker(runs, store).work(a_plan("t1", "50,000"))
    second = a_worker(runs, store)
    await second.work(a_plan("t2", "50,200"), a_plan("t3", "60,000"))
    told = {report.task_id: report.memory for report in second.outbox.reports()}
    assert (told["t2"].outcome, told["t2"].distances, told["t3"].outcome) == ("near", {"limit": "200"}, "miss")
    assert runs == [50_000, 60_000]
    assert await store.count_hits(second.hits) == 1
    assert sorted(set(await places(valkey_or_redis))) == ["50000", "60000"]
