"""The long-term memory on a real store: answers, hits, times to live, forgetting, and a store that is away."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.long_term.entries import CachedResult
from tasklore.memory.long_term.index import QUARANTINE_KEPT, EntryIndex
from tasklore.memory.long_term.owners import EntryOwners
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.runtime.servers.embedded import ValkeyServer

HOUR = timedelta(hours=1)
#: The clock of those who remember; entries of later than that live by it.
NOW_MS = 1_000
ANNA = "YW5uYQ"
BEN = "YmVu"


def key(question: str, agent_id: str = "Budget", user_token: str | None = None) -> str:
    """Return the key of a question."""
    return keys.ltm(agent_id, "1.1", question, user_token)


def patient(client: Redis) -> LongTermMemory:
    """Return a memory whose budget no busy machine exceeds."""
    return LongTermMemory(client, budget_s=60.0)


@pytest.fixture
def memory(valkey_or_redis: Redis) -> LongTermMemory:
    return patient(valkey_or_redis)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ValkeyServer]:
    """Run a server for one test that freezes it."""
    server = ValkeyServer(tmp_path)
    await server.start()
    yield server
    server.resume()
    await server.stop()


async def fill(memory: LongTermMemory) -> None:
    """Remember two tasks of one agent, one of another, and one of a user."""
    for number, name in enumerate(("analyze:1", "analyze:2", "advise:1")):
        await memory.remember(
            key(name), b"%d" % number, computed_ms=100, ttl=HOUR, now_ms=1000 + number
        )
    await memory.remember(
        key("analyze:1", "Other"), b"9", computed_ms=50, ttl=None, now_ms=2000
    )
    await memory.remember(
        key("mine:1", user_token=ANNA), b"8", computed_ms=10, ttl=HOUR, now_ms=3000
    )


async def names(memory: LongTermMemory, **selection: object) -> list[str]:
    """Return the questions that are listed, sorted; one of another agent with its name."""
    parts = [entry.parts async for entry in memory.entries(**selection)]  # type: ignore[arg-type]
    return sorted(
        f"{one.question}{' Other' if one.agent_id == 'Other' else ''}" for one in parts
    )


async def test_an_answer_is_recalled_byte_for_byte_until_a_newer_one_replaces_it(
    memory: LongTermMemory,
) -> None:
    for number, result in enumerate(
        (b'{"each": 1.50}', b"null", b"false", b"0", b'""', b"[]")
    ):
        await memory.remember(
            key("q:1"), result, computed_ms=103, ttl=HOUR, now_ms=number
        )
        assert await memory.recall(key("q:1")) == CachedResult(number, 103, result)
    found = await memory.recall_many([key("q:2"), key("q:1"), key("q:2"), key("q:1")])
    assert found == [
        None,
        CachedResult(5, 103, b"[]"),
        None,
        CachedResult(5, 103, b"[]"),
    ]
    assert await memory.recall_many([]) == []


async def test_another_version_user_or_agent_is_another_question(
    memory: LongTermMemory,
) -> None:
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    others = [
        key("q:2"),
        key("q:1", "Other"),
        key("q:1", user_token=ANNA),
        keys.ltm("Budget", "1.2", "q:1"),
    ]
    assert [await memory.recall(other) for other in others] == [None] * 4


async def test_an_expired_or_forgotten_answer_is_not_brought_back_by_its_hits(
    memory: LongTermMemory,
) -> None:
    await memory.remember(
        key("q:1"), b"1", computed_ms=1, ttl=timedelta(milliseconds=20), now_ms=1
    )
    async with asyncio.timeout(60):
        while await memory.recall(key("q:1")) is not None:
            await memory.count_hits({key("q:1"): 1})
            await asyncio.sleep(0)
    assert await memory.show(key("q:1")) is None
    assert await names(memory) == []
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    await memory.forget(key("q:1"))
    assert await memory.count_hits({key("q:1"): 7}) == 0
    assert await memory.recall(key("q:1")) is None
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    assert (await memory.stats()).hits == 0


async def test_hits_add_up_over_flushes_agents_and_refreshes(
    memory: LongTermMemory,
) -> None:
    await fill(memory)
    served = Counter(
        {
            key("analyze:1"): 3,
            key("advise:1"): 1,
            key("analyze:1", "Other"): 2,
            key("gone:1"): 5,
        }
    )
    assert await memory.count_hits(served) == 3
    assert await memory.count_hits({key("analyze:1"): 1}) == 1
    assert await memory.count_hits({}) == 0
    stats = await memory.stats()
    assert (stats.entries, stats.hits, stats.saved_ms) == (
        5,
        7,
        3 * 100 + 100 + 100 + 2 * 50,
    )
    assert stats.by_task["analyze"].saved_ms == 500
    budget = await memory.stats("Budget")
    assert (budget.entries, budget.hits) == (4, 5)
    await memory.remember(key("analyze:1"), b"2", computed_ms=20, ttl=None, now_ms=2)
    entry = await memory.show(key("analyze:1"))
    assert (entry.hits, entry.expires_in_ms) == (4, None)


async def test_more_entries_than_a_page_are_listed_each_once(
    memory: LongTermMemory,
) -> None:
    await asyncio.gather(
        *(
            memory.remember(key(f"q:{n}"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
            for n in range(1200)
        )
    )
    assert len(await names(memory)) == 1200
    assert await memory.count_hits({key(f"q:{n}"): 1 for n in range(1200)}) == 1200
    assert (await memory.stats()).hits == 1200
    assert await memory.forget(everything=True) == 1200


async def test_an_entry_is_shown_with_its_parameters_and_hits(
    memory: LongTermMemory,
) -> None:
    await memory.remember(
        key("q:1"),
        b'{"a":1}',
        computed_ms=5,
        ttl=HOUR,
        now_ms=7,
        parameters_json=b'{"limit": 50000}',
    )
    await memory.count_hits({key("q:1"): 4})
    entry = await memory.show(key("q:1"))
    assert (entry.parts.agent_id, entry.parts.version, entry.parts.task_name) == (
        "Budget",
        "1.1",
        "q",
    )
    assert (entry.answer, entry.hits, entry.parameters_json) == (
        CachedResult(7, 5, b'{"a":1}'),
        4,
        b'{"limit":50000}',
    )
    assert entry.expires_in_ms is not None
    assert 3_500_000 < entry.expires_in_ms <= 3_600_000


async def test_a_result_put_by_hand_keeps_parameters_and_cost(
    memory: LongTermMemory,
) -> None:
    await memory.remember(
        key("q:1"),
        b"1",
        computed_ms=5,
        ttl=HOUR,
        now_ms=7,
        parameters_json=b'{"limit":1}',
    )
    await memory.put(key("q:1"), b"2", ttl=None, now_ms=9)
    await memory.put(key("q:2"), b"3", ttl=HOUR, now_ms=9)
    entry = await memory.show(key("q:1"))
    assert (entry.answer, entry.parameters_json) == (
        CachedResult(9, 5, b"2"),
        b'{"limit":1}',
    )
    assert await memory.recall(key("q:2")) == CachedResult(9, 0, b"3")


async def test_listing_and_forgetting_take_entries_that_fit_every_condition(
    memory: LongTermMemory,
) -> None:
    everything = {"advise:1", "analyze:1 Other", "analyze:1", "analyze:2", "mine:1"}
    await fill(memory)
    assert await names(memory, agent_id="Budget") == [
        "advise:1",
        "analyze:1",
        "analyze:2",
        "mine:1",
    ]
    assert await names(memory, task="analyze") == [
        "analyze:1",
        "analyze:1 Other",
        "analyze:2",
    ]
    assert await names(memory, since_ms=2000) == ["analyze:1 Other", "mine:1"]
    assert await names(memory, agent_id="Nobody") == []
    for selection, gone in (
        ({"agent_id": "Other"}, {"analyze:1 Other"}),
        ({"task": "analyze"}, {"analyze:1 Other", "analyze:1", "analyze:2"}),
        ({"agent_id": "Budget", "task": "analyze"}, {"analyze:1", "analyze:2"}),
        ({"created_before_ms": 1002}, {"analyze:1", "analyze:2"}),
        ({"user_token": ANNA}, {"mine:1"}),
        ({"user_token": BEN}, set()),
        (
            {"in_force": {("Budget", "analyze"): "v1.1-0a1b2c3d"}},
            {"analyze:1", "analyze:2"},
        ),
        ({"in_force": {("Budget", "analyze"): "v1.1"}}, set()),
        ({"everything": True}, everything),
    ):
        await fill(memory)
        assert await memory.forget(**selection) == len(gone)
        assert set(await names(memory)) == everything - gone
    await fill(memory)
    assert [await memory.forget(key("analyze:1")) for _ in range(2)] == [1, 0]
    assert set(await names(memory)) == everything - {"analyze:1"}


async def test_answers_of_other_code_are_counted_by_agent(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    for version in (
        "v1.1-aaaaaaaa",
        "v1.1-bbbbbbbb",
        "v1.1-bbbbbbbb+3fa9c01d",
        "v1.2-bbbbbbbb",
    ):
        for task in ("q", "p"):
            name = keys.ltm("Budget", version, f"{task}:1")
            await memory.remember(name, b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    assert await memory.left_behind({("Budget", "q"): "v1.1-bbbbbbbb"}) == {"Budget": 2}
    assert await memory.left_behind(
        {("Budget", "q"): "v1.1", ("Budget", "p"): "v1.1-bbbbbbbb"}
    ) == {"Budget": 3}
    assert await memory.left_behind({("Other", "q"): "v1.1-bbbbbbbb"}) == {}


async def test_forgetting_a_user_finds_the_shared_answers_of_their_tasks(
    memory: LongTermMemory,
) -> None:
    for question, user, ttl in (
        ("q:1", ANNA, HOUR),
        ("q:2", ANNA, None),
        ("p:1", ANNA, HOUR),
        ("q:3", BEN, HOUR),
    ):
        await memory.remember(
            key(question), b"1", computed_ms=1, ttl=ttl, now_ms=1, user_token=user
        )
    assert await memory.forget(user_token=ANNA, task="p") == 1
    assert await memory.forget(user_token=ANNA) == 2
    assert await memory.forget(user_token=ANNA) == 0
    assert await names(memory) == ["q:3"]


async def test_an_unusable_key_lifetime_or_selection_is_refused(
    memory: LongTermMemory,
) -> None:
    with pytest.raises(InvalidInput, match="long-term memory key"):
        await memory.remember("tl:task:{1}", b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    for ttl in (timedelta(0), timedelta(seconds=-1)):
        with pytest.raises(InvalidInput, match="time to live"):
            await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=ttl, now_ms=1)
    with pytest.raises(InvalidInput, match="everything"):
        await memory.forget()


async def test_a_quarantine_is_over_in_bounded_time(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    """From its first entry on, however many follow; one that had no end gets it when somebody is forgotten."""
    place = keys.quarantine("Budget")
    kept_ms = QUARANTINE_KEPT // timedelta(milliseconds=1)
    await memory.quarantine("Budget", {"analyze:1,2,3,4,5": b"1"})
    assert 0 < await valkey_or_redis.pttl(place) <= kept_ms
    await valkey_or_redis.pexpire(place, 60_000)
    await memory.quarantine("Budget", {"analyze:1,2,3,4,6": b"2"})
    assert 0 < await valkey_or_redis.pttl(place) <= 60_000
    await valkey_or_redis.persist(place)
    await EntryOwners(valkey_or_redis, deadline_s=60.0).release(ANNA)
    assert 0 < await valkey_or_redis.pttl(place) <= kept_ms


async def test_quarantined_entries_are_listed_and_never_served(
    memory: LongTermMemory,
) -> None:
    await memory.quarantine(
        "Budget", {"analyze:1,2,3,4,5": b'{"mean":9}', "analyze:1": b"1"}
    )
    await memory.quarantine("Other", {"x:1,2,3,4,5": b"2"})
    await memory.quarantine("Other", {})
    held = await memory.quarantined()
    assert [(one.agent_id, one.file_key) for one in held] == [
        ("Budget", "analyze:1"),
        ("Budget", "analyze:1,2,3,4,5"),
        ("Other", "x:1,2,3,4,5"),
    ]
    assert held[1].result_json == b'{"mean":9}'
    assert await memory.recall(key("analyze:1,2,3,4,5")) is None
    assert await names(memory) == []
    assert await memory.forget(task="analyze") == 0
    assert await memory.forget(agent_id="Other") == 1
    assert [one.agent_id for one in await memory.quarantined("Budget")] == [
        "Budget",
        "Budget",
    ]
    assert await memory.forget(everything=True) == 2
    assert await memory.quarantined() == []


async def test_a_time_to_live_is_absolute_and_shared_by_the_hits(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    await memory.remember(
        key("q:1"), b"1", computed_ms=1, ttl=timedelta(minutes=1), now_ms=1
    )
    await memory.remember(key("q:2"), b"1", computed_ms=1, ttl=None, now_ms=1)
    expires = await valkey_or_redis.execute_command("PEXPIRETIME", key("q:1"))
    await memory.recall(key("q:1"))
    await memory.count_hits({key("q:1"): 1, key("q:2"): 1})
    assert await valkey_or_redis.execute_command("PEXPIRETIME", key("q:1")) == expires
    assert 0 < await valkey_or_redis.pttl(keys.hits_of(key("q:1"))) <= 60_000
    assert (
        await valkey_or_redis.pttl(key("q:2"))
        == await valkey_or_redis.pttl(keys.hits_of(key("q:2")))
        == -1
    )


async def test_the_list_of_a_users_entries_lives_as_long_as_the_longest(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    index = keys.ltm_users(ANNA)
    await memory.remember(
        key("q:1", user_token=ANNA),
        b"1",
        computed_ms=1,
        ttl=timedelta(seconds=9),
        now_ms=1000,
    )
    await memory.remember(
        key("q:2", user_token=ANNA),
        b"1",
        computed_ms=1,
        ttl=timedelta(seconds=5),
        now_ms=1000,
    )
    assert 5_000 < await valkey_or_redis.pttl(index) <= 9_000
    await memory.remember(
        key("q:3", user_token=ANNA), b"1", computed_ms=1, ttl=HOUR, now_ms=8000
    )
    assert await valkey_or_redis.zcard(index) == 2
    await memory.remember(
        key("q:4", user_token=ANNA), b"1", computed_ms=1, ttl=None, now_ms=8000
    )
    assert await valkey_or_redis.pttl(index) == -1


async def test_forgetting_everything_leaves_no_key_behind(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    await fill(memory)
    await memory.count_hits({key("analyze:1"): 1})
    await memory.quarantine("Budget", {"x": b"1"})
    await valkey_or_redis.set("tl:task:{1}", b"x")
    assert await memory.forget(everything=True) == 6
    assert set(await valkey_or_redis.keys("*")) == {
        b"tl:task:{1}",
        b"tl:ltm-agents:{all}",
    }


async def test_an_unreadable_entry_is_a_counted_miss_and_dropped(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    await memory.remember(key("q:2"), b"2", computed_ms=1, ttl=HOUR, now_ms=1)
    for count, value in enumerate(
        (b"", b"not json", b"{}", b'{"format":1,"created_at":1', b"\xff"), start=1
    ):
        await valkey_or_redis.set(key("q:1"), value)
        assert await memory.recall_many([key("q:1"), key("q:2")]) == [
            None,
            CachedResult(1, 1, b"2"),
        ]
        assert memory.corrupt_entries == count
        assert await valkey_or_redis.exists(key("q:1")) == 0


async def test_an_entry_of_another_type_is_a_miss_and_gets_replaced(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    await valkey_or_redis.hset(key("q:1"), "a", "b")
    await valkey_or_redis.set(keys.hits_of(key("q:2")), b"many")
    await memory.remember(key("q:2"), b"2", computed_ms=1, ttl=HOUR, now_ms=1)
    assert await memory.recall(key("q:1")) is None
    assert await names(memory) == ["q:2"]
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    assert await memory.recall(key("q:1")) == CachedResult(1, 1, b"1")


async def test_hits_are_counted_by_a_server_that_forgot_the_script(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    await memory.remember(
        key("q:1", user_token=ANNA), b"1", computed_ms=1, ttl=HOUR, now_ms=1
    )
    await valkey_or_redis.script_flush()
    assert await memory.count_hits({key("q:1", user_token=ANNA): 2}) == 1
    assert (await memory.stats()).hits == 2


async def test_recalling_asks_the_server_once_a_batch(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    await memory.recall(key("q:0"))
    before = await valkey_or_redis.info("stats")
    await memory.recall_many([key(f"q:{n}") for n in range(40)])
    after = await valkey_or_redis.info("stats")
    # The other command is the first INFO itself.
    assert after["total_commands_processed"] - before["total_commands_processed"] == 2


async def test_a_frozen_server_costs_a_few_budgets_and_then_nothing(
    server: ValkeyServer,
) -> None:
    now = [0.0]
    breaker = Breaker(failures=3, rest_s=1.0, clock=lambda: now[0])
    async with Redis.from_url(server.url) as client:
        await patient(client).remember(
            key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1
        )
        memory = LongTermMemory(client, budget_s=0.05, breaker=breaker)
        server.pause()
        for _ in range(3):
            with pytest.raises(MemoryUnavailable, match="within"):
                await memory.recall(key("q:1"))
        for _ in range(100):
            with pytest.raises(MemoryUnavailable, match="left alone"):
                await memory.recall(key("q:1"))
        with pytest.raises(MemoryUnavailable, match="left alone"):
            await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
        server.resume()
        now[0] += 1.0
        quick = LongTermMemory(client, budget_s=60.0, breaker=breaker)
        assert await quick.recall(key("q:1")) == CachedResult(1, 1, b"1")
        assert not breaker.is_open


async def index_of(client: Redis) -> dict[str, float]:
    """Return what the index of the agent Budget lists, by when it ends."""
    listed = await client.zrange(keys.ltm_index("Budget"), 0, -1, withscores=True)
    return {member.decode(): until for member, until in listed}


async def commands_of(client: Redis, doing: Awaitable[object]) -> set[str]:
    """Return which commands *doing* calls."""
    await client.config_resetstat()
    await doing
    return {name.removeprefix("cmdstat_") for name in await client.info("commandstats")}


async def test_entries_of_before_are_found_by_a_scan_until_all_are_listed(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    """Then counting, listing and forgetting walk the index alone, and find the same."""
    await fill(memory)
    await memory.quarantine("Budget", {"x": b"1"})
    for index in await valkey_or_redis.keys("tl:ltm-index:*"):
        await valkey_or_redis.delete(index)
    await valkey_or_redis.delete(keys.ltm_agents(), keys.ltm_user_lists())
    before = await memory.stats()
    assert await memory.quarantined()
    assert "scan" in await commands_of(valkey_or_redis, memory.stats())
    count = await EntryIndex(valkey_or_redis, deadline_s=5.0).build(NOW_MS)
    assert count == before.entries
    assert await memory.stats() == before
    assert len(await memory.quarantined()) == 1
    walked = await commands_of(valkey_or_redis, memory.stats())
    assert "scan" not in walked
    assert "scan" not in await commands_of(
        valkey_or_redis, memory.forget(everything=True)
    )
    assert not await valkey_or_redis.keys("tl:ltm:*")
    assert not await index_of(valkey_or_redis)


async def test_an_index_lists_what_lives_and_nothing_else(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    """By its end; what is over goes when a user is forgotten, as it tells what was asked."""
    short, long = key("analyze:1"), key("analyze:2")
    await memory.remember(short, b"1", computed_ms=1, ttl=HOUR, now_ms=1_000)
    await memory.remember(long, b"2", computed_ms=1, ttl=None, now_ms=1_000)
    member = keys.ltm_listing(short)[1]
    assert await index_of(valkey_or_redis) == {
        member: 1_000 + HOUR.total_seconds() * 1000,
        keys.ltm_listing(long)[1]: float("inf"),
    }
    await memory.forget(long)
    assert set(await index_of(valkey_or_redis)) == {member}
    await EntryOwners(valkey_or_redis, deadline_s=5.0).release("dXNlcg")
    assert not await index_of(valkey_or_redis)


async def test_what_is_over_leaves_the_index_while_others_are_remembered(
    memory: LongTermMemory, valkey_or_redis: Redis
) -> None:
    second = timedelta(seconds=1)
    for number in range(150):
        await memory.remember(
            key(f"analyze:{number}"), b"1", computed_ms=1, ttl=second, now_ms=1_000
        )
    for number in range(150, 300):
        await memory.remember(
            key(f"analyze:{number}"), b"1", computed_ms=1, ttl=second, now_ms=90_000
        )
    assert len(await index_of(valkey_or_redis)) == 150
