"""Near matches on a real store: the nearest neighbour within tolerance, and no place left behind."""

import asyncio
from datetime import timedelta
from decimal import Decimal

import pytest
from redis.asyncio import Redis

from deploy.privileges.roles import Cast
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.parameters.neighbours import Neighbourhood
from tasklore.contracts.quantities.amounts import Amount
from tasklore.memory import keys
from tasklore.memory.long_term.entries import NearMatch
from tasklore.memory.long_term.owners import EntryOwners
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.runtime.servers.embedded import ValkeyServer
from tests.servers import PATIENCE_S
from tests.unit.quantities.test_near_matches import a_plan, a_worker

HOUR = timedelta(hours=1)
ANNA = user_token("anna")


class Plan(Parameters):
    """One tolerant amount beside a text."""

    limit: Amount = Field(tolerance=10)
    town: str = "Kiel"


def asking(
    limit: object, token: str | None = None, **options: str
) -> tuple[str, Neighbourhood]:
    """Return the entry key of a question, and its neighbourhood."""
    plan = Plan.read(
        {
            "limit": limit,
            **{name: text for name, text in options.items() if name == "town"},
        }
    )
    near = Parameters.neighbourhood(plan, "plan")
    assert near is not None
    key = keys.ltm(
        options.get("agent", "Planner"),
        options.get("version", "1.1"),
        Parameters.key(plan, "plan"),
        token,
    )
    return key, near


async def remember(
    memory: LongTermMemory,
    limit: object,
    token: str | None = None,
    ttl: timedelta | None = HOUR,
    **options: str,
) -> str:
    """Remember the limit itself as the answer, and return its key."""
    key, near = asking(limit, token, **options)
    user = options.get("user")
    await memory.remember(
        key,
        str(limit).encode(),
        computed_ms=7,
        ttl=ttl,
        now_ms=1,
        near=near,
        user_token=user,
    )
    return key


async def nearest(
    memory: LongTermMemory, limit: object, token: str | None = None, **options: str
) -> bytes | None:
    """Return the answer of the nearest neighbour."""
    [found] = await memory.nearest([asking(limit, token, **options)])
    return None if found is None else found.answer.result_json


async def places(redis: Redis) -> list[str]:
    """Return every place that stands in an index, of both kinds, with repetitions."""
    found = [
        key async for key in redis.scan_iter(match="tl:ltm:{*}:near:*", count=1000)
    ]
    return sorted(
        [place.decode() for key in found for place in await redis.zrange(key, 0, -1)]
    )


@pytest.fixture
def memory(valkey_or_redis: Redis) -> LongTermMemory:
    return LongTermMemory(valkey_or_redis, budget_s=60.0)


async def test_the_nearest_within_the_tolerance_is_found(
    memory: LongTermMemory,
) -> None:
    for limit in (100, 104, 111, -100, "100.5"):
        await remember(memory, limit)
    [found] = await memory.nearest([asking(101)])
    assert found == NearMatch(
        asking("100.5")[0], "100.5", found.answer if found else None
    )  # type: ignore[arg-type]
    assert found.answer[:3] == (1, 7, b"100.5")
    assert await nearest(memory, 102) == b"100.5"
    assert await nearest(memory, "102.25") == b"100.5"
    assert await nearest(memory, 103) == b"104"
    assert await nearest(memory, 121) == b"111"
    assert await nearest(memory, "121.0000000000000000000000001") is None
    assert await nearest(memory, -95) == b"-100"
    assert await nearest(memory, 1) is None


async def test_an_answer_of_another_question_agent_version_user_or_frame_is_no_neighbour(
    memory: LongTermMemory,
) -> None:
    await memory.remember(
        asking(95)[0], b"without a place", computed_ms=1, ttl=HOUR, now_ms=1
    )
    key = await remember(memory, 100)
    await remember(memory, 100, ANNA)
    assert await nearest(memory, 100) is None
    assert await nearest(memory, 101, agent="Other") is None
    assert await nearest(memory, 101, version="1.2") is None
    assert await nearest(memory, 101, town="Ulm") is None
    assert await nearest(memory, 101, user_token("ben")) is None
    assert await nearest(memory, 101, ANNA) == b"100"
    await memory.put(key, b'"mended"', ttl=HOUR, now_ms=2)
    assert await nearest(memory, 94) == b'"mended"'


async def test_neighbours_of_a_batch_come_in_order(memory: LongTermMemory) -> None:
    await remember(memory, 100)
    await remember(memory, 200)
    found = await memory.nearest([asking(205), asking(150), asking(95)])
    assert [one and one.answer.result_json for one in found] == [b"200", None, b"100"]
    assert await memory.nearest([]) == []


async def test_forgetting_leaves_no_neighbour_and_no_place(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    """A place is a number that a person said: it goes with the answer, and its neighbours stay."""
    gone = await remember(memory, 100)
    await remember(memory, 120)
    assert await nearest(memory, 101) == b"100"
    assert await memory.forget(gone) == 1
    assert await nearest(memory, 101) is None
    assert await places(valkey_or_redis) == ["120", "120"]
    for selection in (
        {"agent_id": "Planner"},
        {"agent_id": "Planner", "task": "plan"},
        {"created_before_ms": 5},
        {"everything": True},
    ):
        await remember(memory, 100)
        assert await memory.forget(**selection) >= 1
        assert await nearest(memory, 101) is None
        assert await places(valkey_or_redis) == []


async def test_forgetting_a_user_leaves_no_place_behind(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    await remember(memory, 100, ANNA)
    await remember(memory, 104, user=ANNA)
    await memory.forget(user_token=ANNA)
    assert await places(valkey_or_redis) == []
    await remember(memory, 100, ANNA)
    await remember(memory, 104, user=ANNA)
    released = await EntryOwners(valkey_or_redis, deadline_s=PATIENCE_S).release(ANNA)
    assert (released.removed, released.kept) == (2, 0)
    assert await places(valkey_or_redis) == []


async def test_an_expired_answer_is_no_neighbour(memory: LongTermMemory) -> None:
    await remember(memory, 100, ttl=timedelta(milliseconds=20))
    await remember(memory, 110, ttl=HOUR)
    async with asyncio.timeout(60):
        while await nearest(memory, 99) is not None:
            await memory.count_hits({asking(100)[0]: 1})
    assert await nearest(memory, 101) == b"110"


async def test_places_of_expired_answers_go_with_the_next_one(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    key, near = asking(100)
    for place, now_ms in ((100, 1), (104, 1), (108, 3_600_002)):
        key, near = asking(place)
        await memory.remember(
            key, b"1", computed_ms=1, ttl=HOUR, now_ms=now_ms, near=near
        )
    assert await places(valkey_or_redis) == ["108", "108"]
    for index in keys.near(key, near.frame):
        assert 0 < await valkey_or_redis.pttl(index) <= 3_600_000
    await remember(memory, 112, ttl=None)
    assert [
        await valkey_or_redis.pttl(index) for index in keys.near(key, near.frame)
    ] == [-1, -1]


async def test_a_foreign_place_in_the_index_is_passed_over(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    broken = await remember(memory, 100)
    key, near = asking(101)
    index = keys.near(key, near.frame)[0]
    await valkey_or_redis.zadd(
        index,
        {
            "nonsense": 101.0,
            "1e2": 101.0,
            "-101": 101.0,
            b"\xff": 101.0,
            "100.0": 100.0,
        },
    )
    assert await nearest(memory, 101) == b"100"
    await valkey_or_redis.set(broken, b"broken")
    assert await nearest(memory, 101) is None


async def test_the_index_is_not_listed_among_entries(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    key = await remember(memory, 100)
    assert [entry.key async for entry in memory.entries()] == [key]
    assert (await memory.stats()).entries == 1
    [shown] = [entry async for entry in memory.entries()]
    assert shown.standing == (asking(100)[1].frame, "100")


async def test_without_a_tolerance_only_the_entry_is_stored(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    await memory.remember(
        keys.ltm("A", "1.1", "q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1
    )
    assert [key async for key in valkey_or_redis.scan_iter(match="tl:ltm:*")] == [
        b"tl:ltm:{A}:v1.1:q:1"
    ]
    assert await valkey_or_redis.get(keys.ltm("A", "1.1", "q:1")) == (
        b'{"format":1,"created_at":1,"computed_ms":1,"check":2212294583,"size":1,"result":1,'
        b'"agent_version":"1.1","parameters":{}}'
    )


async def test_the_rights_of_a_worker_are_enough(
    store_server: ValkeyServer, valkey_or_redis: Redis
) -> None:
    [worker] = [
        role
        for role in Cast(workers={"plans": ("Planner",)}).roles()
        if role.name == "worker-plans"
    ]
    keys_of = [f"~{pattern}" for pattern in worker.owns]
    rules = [
        "on",
        "nopass",
        "resetkeys",
        *keys_of,
        "-@all",
        *(f"+{command}" for command in worker.commands),
    ]
    await valkey_or_redis.execute_command("ACL", "SETUSER", "planner", *rules)
    async with Redis.from_url(
        store_server.url, username="planner", password="x"
    ) as client:
        memory = LongTermMemory(client, budget_s=60.0)
        key = await remember(memory, 100, ANNA)
        assert await nearest(memory, 101, ANNA) == b"100"
        assert await memory.forget(key) == 1
    await valkey_or_redis.execute_command("ACL", "DELUSER", "planner")
    assert await places(valkey_or_redis) == []


async def test_a_worker_serves_a_neighbour_that_another_worker_stored(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    runs: list[Decimal] = []
    await a_worker(runs, memory).work(a_plan("t1", "50,000"))
    second = a_worker(runs, memory)
    await second.work(a_plan("t2", "50,200"), a_plan("t3", "60,000"))
    told = {report.task_id: report.memory for report in second.outbox.reports()}
    assert (told["t2"].outcome, told["t2"].distances, told["t3"].outcome) == (
        "near",
        {"limit": "200"},
        "miss",
    )
    assert runs == [50_000, 60_000]
    assert await memory.count_hits(second.hits) == 1
    assert sorted(set(await places(valkey_or_redis))) == ["50000", "60000"]
