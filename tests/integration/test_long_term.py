"""The long-term memory's contract."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from contracts.errors import InvalidInput, MemoryUnavailable
from memory import keys
from memory.breaker import Breaker
from memory.long_term.entries import Remembered
from memory.long_term.store import LongTermMemory
from runtime.servers.embedded import ValkeyServer

HOUR = timedelta(hours=1)
ANNA, BEN = "YW5uYQ", "YmVu"


def key(question: str, agent_id: str = "Budget", user_token: str | None = None) -> str:
    """Return the key of a question."""
    return keys.ltm(agent_id, "1.1", question, user_token)


def patient(client: Redis) -> LongTermMemory:
    """Return a memory whose budget no busy machine exceeds."""
    return LongTermMemory(client, budget_s=60.0)


@pytest.fixture
def memory(valkey_or_redis: Redis) -> LongTermMemory:
    """Return a memory on a server."""
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
        await memory.remember(key(name), b"%d" % number, computed_ms=100, ttl=HOUR, now_ms=1000 + number)
    await memory.remember(key("analyze:1", "Other"), b"9", computed_ms=50, ttl=None, now_ms=2000)
    await memory.remember(key("mine:1", user_token=ANNA), b"8", computed_ms=10, ttl=HOUR, now_ms=3000)


async def names(memory: LongTermMemory, **selection: object) -> list[str]:
    """Return the questions that are listed, sorted."""
    return sorted([entry.parts.question async for entry in memory.entries(**selection)])  # type: ignore[arg-type]


async def test_what_was_remembered_is_recalled(memory: LongTermMemory) -> None:
    """Byte for byte, with its age and cost."""
    await memory.remember(key("q:1"), b'{"each": 1.50}', computed_ms=103, ttl=HOUR, now_ms=1000)
    assert await memory.recall(key("q:1")) == Remembered(1000, 103, b'{"each": 1.50}')


async def test_what_was_not_remembered_is_none(memory: LongTermMemory) -> None:
    """Other versions, users and agents are other questions."""
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    others = [key("q:2"), key("q:1", "Other"), key("q:1", user_token=ANNA), keys.ltm("Budget", "1.2", "q:1")]
    assert [await memory.recall(other) for other in others] == [None] * 4


async def test_a_falsy_result_is_a_hit(memory: LongTermMemory) -> None:
    """Nothing found is an answer as well."""
    for result in (b"null", b"false", b"0", b'""', b"[]"):
        await memory.remember(key("q:1"), result, computed_ms=1, ttl=HOUR, now_ms=1)
        answer = await memory.recall(key("q:1"))
        assert answer is not None
        assert answer.result_json == result


async def test_a_batch_is_recalled_in_order(memory: LongTermMemory) -> None:
    """Hits and misses at their places; an empty batch asks nobody."""
    await memory.remember(key("q:2"), b"2", computed_ms=1, ttl=HOUR, now_ms=1)
    recalled = await memory.recall_many([key("q:1"), key("q:2"), key("q:1"), key("q:2")])
    assert recalled == [None, Remembered(1, 1, b"2"), None, Remembered(1, 1, b"2")]
    assert await memory.recall_many([]) == []


async def test_a_new_answer_takes_the_place_of_the_old(memory: LongTermMemory) -> None:
    """A refresh overwrites."""
    for number in (1, 2):
        await memory.remember(key("q:1"), b"%d" % number, computed_ms=number, ttl=HOUR, now_ms=number)
    assert await memory.recall(key("q:1")) == Remembered(2, 2, b"2")


async def test_an_answer_is_gone_when_its_time_is_over(memory: LongTermMemory) -> None:
    """Being served does not prolong it."""
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=timedelta(milliseconds=20), now_ms=1)
    async with asyncio.timeout(60):
        while await memory.recall(key("q:1")) is not None:
            await memory.count_hits({key("q:1"): 1})
            await asyncio.sleep(0)
    assert await memory.show(key("q:1")) is None
    assert await names(memory) == []


async def test_an_expired_answer_is_not_brought_back_by_its_hits(memory: LongTermMemory) -> None:
    """Hits are flushed up to a second late."""
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    await memory.forget(key("q:1"))
    assert await memory.count_hits({key("q:1"): 7}) == 0
    assert await memory.recall(key("q:1")) is None
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    assert (await memory.stats()).hits == 0


async def test_hits_are_added_up_over_flushes_and_agents(memory: LongTermMemory) -> None:
    """Saved time is hits times what the answer took."""
    await fill(memory)
    served = Counter({key("analyze:1"): 3, key("advise:1"): 1, key("analyze:1", "Other"): 2, key("gone:1"): 5})
    assert await memory.count_hits(served) == 3
    assert await memory.count_hits({key("analyze:1"): 1}) == 1
    assert await memory.count_hits({}) == 0
    stats = await memory.stats()
    assert (stats.entries, stats.hits, stats.saved_ms) == (5, 7, 3 * 100 + 100 + 100 + 2 * 50)
    assert stats.by_task["analyze"].saved_ms == 500
    budget = await memory.stats("Budget")
    assert (budget.entries, budget.hits) == (4, 5)


async def test_a_refreshed_answer_keeps_its_hits(memory: LongTermMemory) -> None:
    """They belong to the question."""
    await memory.remember(key("q:1"), b"1", computed_ms=10, ttl=HOUR, now_ms=1)
    await memory.count_hits({key("q:1"): 2})
    await memory.remember(key("q:1"), b"2", computed_ms=20, ttl=None, now_ms=2)
    entry = await memory.show(key("q:1"))
    assert entry is not None
    assert (entry.hits, entry.expires_in_ms) == (2, None)


async def test_entries_are_listed_by_agent_task_and_age(memory: LongTermMemory) -> None:
    """Each condition narrows."""
    await fill(memory)
    assert await names(memory) == ["advise:1", "analyze:1", "analyze:1", "analyze:2", "mine:1"]
    assert await names(memory, agent_id="Budget") == ["advise:1", "analyze:1", "analyze:2", "mine:1"]
    assert await names(memory, task="analyze") == ["analyze:1", "analyze:1", "analyze:2"]
    assert await names(memory, since_ms=2000) == ["analyze:1", "mine:1"]
    assert await names(memory, agent_id="Nobody") == []


async def test_more_entries_than_a_page_are_listed_each_once(memory: LongTermMemory) -> None:
    """A scan comes in pages."""
    await asyncio.gather(
        *(memory.remember(key(f"q:{n}"), b"1", computed_ms=1, ttl=HOUR, now_ms=1) for n in range(1200))
    )
    assert len(await names(memory)) == 1200
    assert await memory.count_hits({key(f"q:{n}"): 1 for n in range(1200)}) == 1200
    assert (await memory.stats()).hits == 1200
    assert await memory.forget(everything=True) == 1200


async def test_an_entry_is_shown_with_all_that_is_known(memory: LongTermMemory) -> None:
    """Its parameters too, which the export needs."""
    await memory.remember(
        key("q:1"), b'{"a":1}', computed_ms=5, ttl=HOUR, now_ms=7, parameters_json=b'{"limit": 50000}'
    )
    await memory.count_hits({key("q:1"): 4})
    entry = await memory.show(key("q:1"))
    assert entry is not None
    assert (entry.parts.agent_id, entry.parts.version, entry.parts.task_name) == ("Budget", "1.1", "q")
    assert (entry.answer, entry.hits, entry.parameters_json) == (Remembered(7, 5, b'{"a":1}'), 4, b'{"limit":50000}')
    assert entry.expires_in_ms is not None
    assert 3_500_000 < entry.expires_in_ms <= 3_600_000


async def test_a_result_put_by_hand_keeps_what_is_known(memory: LongTermMemory) -> None:
    """Parameters and cost are those of the question."""
    await memory.remember(key("q:1"), b"1", computed_ms=5, ttl=HOUR, now_ms=7, parameters_json=b'{"limit":1}')
    await memory.put(key("q:1"), b"2", ttl=None, now_ms=9)
    await memory.put(key("q:2"), b"3", ttl=HOUR, now_ms=9)
    entry = await memory.show(key("q:1"))
    assert entry is not None
    assert (entry.answer, entry.parameters_json) == (Remembered(9, 5, b"2"), b'{"limit":1}')
    assert await memory.recall(key("q:2")) == Remembered(9, 0, b"3")


@pytest.mark.parametrize(
    ("selection", "left"),
    [
        ({"agent_id": "Other"}, ["advise:1", "analyze:1", "analyze:2", "mine:1"]),
        ({"task": "analyze"}, ["advise:1", "mine:1"]),
        ({"agent_id": "Budget", "task": "analyze"}, ["advise:1", "analyze:1", "mine:1"]),
        ({"created_before_ms": 1002}, ["advise:1", "analyze:1", "mine:1"]),
        ({"user_token": ANNA}, ["advise:1", "analyze:1", "analyze:1", "analyze:2"]),
        ({"user_token": BEN}, ["advise:1", "analyze:1", "analyze:1", "analyze:2", "mine:1"]),
        ({"in_force": {("Budget", "analyze"): "v1.1-0a1b2c3d"}}, ["advise:1", "analyze:1", "mine:1"]),
        ({"in_force": {("Budget", "analyze"): "v1.1"}}, ["advise:1", "analyze:1", "analyze:1", "analyze:2", "mine:1"]),
        ({"everything": True}, []),
    ],
)
async def test_forgetting_takes_what_fits_every_condition(
    memory: LongTermMemory, selection: dict[str, object], left: list[str]
) -> None:
    """And says how many they were."""
    await fill(memory)
    assert await memory.forget(**selection) == 5 - len(left)  # type: ignore[arg-type]
    assert await names(memory) == left


async def test_what_other_code_left_behind_is_counted_by_agent(valkey_or_redis: Redis) -> None:
    """Of the tasks that are known; other settings are no other code, and a card without a digest is of any."""
    memory = patient(valkey_or_redis)
    for version in ("v1.1-aaaaaaaa", "v1.1-bbbbbbbb", "v1.1-bbbbbbbb+3fa9c01d", "v1.2-bbbbbbbb"):
        for task in ("q", "p"):
            name = keys.ltm("Budget", version, f"{task}:1")
            await memory.remember(name, b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    assert await memory.left_behind({("Budget", "q"): "v1.1-bbbbbbbb"}) == {"Budget": 2}
    assert await memory.left_behind({("Budget", "q"): "v1.1", ("Budget", "p"): "v1.1-bbbbbbbb"}) == {"Budget": 3}
    assert await memory.left_behind({("Other", "q"): "v1.1-bbbbbbbb"}) == {}


async def test_forgetting_one_key_leaves_its_neighbours(memory: LongTermMemory) -> None:
    """Twice is no error."""
    await fill(memory)
    assert await memory.forget(key("analyze:1")) == 1
    assert await memory.forget(key("analyze:1")) == 0
    assert await names(memory, agent_id="Budget") == ["advise:1", "analyze:2", "mine:1"]


async def test_forgetting_a_user_finds_the_shared_answers_that_their_tasks_stored(memory: LongTermMemory) -> None:
    """They hold what the user said; another user's answers stay."""
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1, user_token=ANNA)
    await memory.remember(key("q:2"), b"2", computed_ms=1, ttl=None, now_ms=1, user_token=ANNA)
    await memory.remember(key("q:3"), b"3", computed_ms=1, ttl=HOUR, now_ms=1, user_token=BEN)
    assert await memory.forget(user_token=ANNA) == 2
    assert await memory.forget(user_token=ANNA) == 0
    assert await names(memory) == ["q:3"]


async def test_forgetting_part_of_a_user_leaves_the_rest_to_be_found(memory: LongTermMemory) -> None:
    """The list of a user's entries keeps what is still there."""
    for question in ("q:1", "p:1"):
        await memory.remember(key(question), b"1", computed_ms=1, ttl=HOUR, now_ms=1, user_token=ANNA)
    assert await memory.forget(user_token=ANNA, task="q") == 1
    assert await memory.forget(user_token=ANNA) == 1


async def test_forgetting_without_saying_what_is_refused(memory: LongTermMemory) -> None:
    """A slip must not cost everything."""
    with pytest.raises(InvalidInput, match="everything"):
        await memory.forget()


async def test_a_key_or_lifetime_that_makes_no_sense_is_refused(memory: LongTermMemory) -> None:
    """Before anything is stored."""
    with pytest.raises(InvalidInput, match="long-term memory key"):
        await memory.remember("tl:task:{1}", b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    for ttl in (timedelta(0), timedelta(seconds=-1)):
        with pytest.raises(InvalidInput, match="time to live"):
            await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=ttl, now_ms=1)


async def test_quarantined_entries_are_listed_and_never_served(memory: LongTermMemory) -> None:
    """Forgetting an agent, or everything, takes them along."""
    await memory.quarantine("Budget", {"analyze:1,2,3,4,5": b'{"mean":9}', "analyze:1": b"1"})
    await memory.quarantine("Other", {"x:1,2,3,4,5": b"2"})
    await memory.quarantine("Other", {})
    held = await memory.quarantined()
    assert [(one.agent_id, one.seed_key) for one in held] == [
        ("Budget", "analyze:1"),
        ("Budget", "analyze:1,2,3,4,5"),
        ("Other", "x:1,2,3,4,5"),
    ]
    assert held[1].result_json == b'{"mean":9}'
    assert await memory.recall(key("analyze:1,2,3,4,5")) is None
    assert await names(memory) == []
    assert await memory.forget(task="analyze") == 0
    assert await memory.forget(agent_id="Other") == 1
    assert [one.agent_id for one in await memory.quarantined("Budget")] == ["Budget", "Budget"]
    assert await memory.forget(everything=True) == 2
    assert await memory.quarantined() == []


async def test_time_to_live_is_absolute(valkey_or_redis: Redis) -> None:
    """Recalling and counting leave it alone, and the hits leave with their entry."""
    memory = patient(valkey_or_redis)
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=timedelta(minutes=1), now_ms=1)
    expires = await valkey_or_redis.execute_command("PEXPIRETIME", key("q:1"))
    await memory.recall(key("q:1"))
    await memory.count_hits({key("q:1"): 1})
    assert await valkey_or_redis.execute_command("PEXPIRETIME", key("q:1")) == expires
    assert 0 < await valkey_or_redis.pttl(keys.hits_of(key("q:1"))) <= 60_000


async def test_for_ever_has_no_time_to_live(valkey_or_redis: Redis) -> None:
    """Neither for the entry nor for its hits."""
    memory = patient(valkey_or_redis)
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=None, now_ms=1)
    await memory.count_hits({key("q:1"): 1})
    assert await valkey_or_redis.pttl(key("q:1")) == -1
    assert await valkey_or_redis.pttl(keys.hits_of(key("q:1"))) == -1


async def test_the_list_of_a_users_entries_lives_as_long_as_the_longest(valkey_or_redis: Redis) -> None:
    """And drops what has expired."""
    memory, index = patient(valkey_or_redis), keys.ltm_users(ANNA)
    await memory.remember(key("q:1", user_token=ANNA), b"1", computed_ms=1, ttl=timedelta(seconds=9), now_ms=1000)
    await memory.remember(key("q:2", user_token=ANNA), b"1", computed_ms=1, ttl=timedelta(seconds=5), now_ms=1000)
    assert 5_000 < await valkey_or_redis.pttl(index) <= 9_000
    await memory.remember(key("q:3", user_token=ANNA), b"1", computed_ms=1, ttl=HOUR, now_ms=8000)
    assert await valkey_or_redis.zcard(index) == 2
    await memory.remember(key("q:4", user_token=ANNA), b"1", computed_ms=1, ttl=None, now_ms=8000)
    assert await valkey_or_redis.pttl(index) == -1


async def test_forgetting_everything_leaves_no_key_behind(valkey_or_redis: Redis) -> None:
    """Hits and users' lists included; what is not the memory's stays."""
    memory = patient(valkey_or_redis)
    await fill(memory)
    await memory.count_hits({key("analyze:1"): 1})
    await memory.quarantine("Budget", {"x": b"1"})
    await valkey_or_redis.set("tl:task:{1}", b"x")
    assert await memory.forget(everything=True) == 6
    assert await valkey_or_redis.keys("*") == [b"tl:task:{1}"]


@pytest.mark.parametrize("value", [b"", b"not json", b"{}", b'{"format":1,"created_at":1', b"\xff"])
async def test_an_unreadable_entry_is_a_counted_miss_and_dropped(valkey_or_redis: Redis, value: bytes) -> None:
    """No exception in somebody's task; its neighbours in the batch are served."""
    memory = patient(valkey_or_redis)
    await valkey_or_redis.set(key("q:1"), value)
    await memory.remember(key("q:2"), b"2", computed_ms=1, ttl=HOUR, now_ms=1)
    assert await memory.recall_many([key("q:1"), key("q:2")]) == [None, Remembered(1, 1, b"2")]
    assert memory.corrupt_entries == 1
    assert await valkey_or_redis.exists(key("q:1")) == 0


async def test_an_entry_of_another_type_is_a_miss_and_gets_replaced(valkey_or_redis: Redis) -> None:
    """Listing passes over it."""
    memory = patient(valkey_or_redis)
    await valkey_or_redis.hset(key("q:1"), "a", "b")
    await valkey_or_redis.set(keys.hits_of(key("q:2")), b"many")
    await memory.remember(key("q:2"), b"2", computed_ms=1, ttl=HOUR, now_ms=1)
    assert await memory.recall(key("q:1")) is None
    assert await names(memory) == ["q:2"]
    await memory.remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    assert await memory.recall(key("q:1")) == Remembered(1, 1, b"1")


async def test_hits_are_counted_by_a_server_that_forgot_the_script(valkey_or_redis: Redis) -> None:
    """It is given the source again."""
    memory = patient(valkey_or_redis)
    await memory.remember(key("q:1", user_token=ANNA), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
    await valkey_or_redis.script_flush()
    assert await memory.count_hits({key("q:1", user_token=ANNA): 2}) == 1
    assert (await memory.stats()).hits == 2


async def test_recalling_asks_the_server_once_a_batch(valkey_or_redis: Redis) -> None:
    """One MGET for everything that one read of the socket brought."""
    memory = patient(valkey_or_redis)
    await memory.recall(key("q:0"))
    before = await valkey_or_redis.info("stats")
    await memory.recall_many([key(f"q:{n}") for n in range(40)])
    after = await valkey_or_redis.info("stats")
    # The other command is the first INFO itself.
    assert after["total_commands_processed"] - before["total_commands_processed"] == 2


async def test_a_frozen_server_costs_a_few_budgets_and_then_nothing(server: ValkeyServer) -> None:
    """The breaker opens after three failures, and a probe closes it once the server is back."""
    now = [0.0]
    breaker = Breaker(failures=3, rest_s=1.0, clock=lambda: now[0])
    async with Redis.from_url(server.url) as client:
        await patient(client).remember(key("q:1"), b"1", computed_ms=1, ttl=HOUR, now_ms=1)
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
        assert await quick.recall(key("q:1")) == Remembered(1, 1, b"1")
        assert not breaker.is_open
