"""Sessions as files."""

import json
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from contracts.errors import InvalidInput
from memory.sessions.session import NewEntry
from memory.times import spell_time
from tests.integration.sessions import KEY, SESSION, StoreStage, values

DAY_MS = 86_400_000


@pytest.fixture
def stage(valkey_or_redis: Redis) -> StoreStage:
    """Return a cache on a server."""
    return StoreStage(valkey_or_redis)


def file_of(**changes: Any) -> dict[str, Any]:
    """Return a file as another program writes it, once with everything and once with as little as there may be."""
    cache = {
        "context_query:contextBundle": {
            "key": "context_query:contextBundle",
            "value": {"files": ["a.tsx"], "tokens": 0, "theme": None},
            "created_at": "2025-11-19T10:00:07.000Z",
            "created_by_phase": "context_query",
            "metadata": {
                "computation_time_ms": 7000,
                "source_agent": "ProjectContextServer",
                "cache_hit_count": 3,
            },
        },
        "implementation_pass_1:results": {
            "key": "implementation_pass_1:results",
            "value": False,
            "created_at": "2025-11-19T10:02:00.123Z",
            "created_by_phase": "implementation_pass_1",
        },
    }
    document = {
        "version": "2.0.0",
        "session_id": "a1b2c3d4",
        "domain": "woodwork",
        "created_at": "2025-11-19T10:00:00.000Z",
        "updated_at": "2025-11-19T10:02:00.123Z",
        "ttl_ms": 3600000,
        "cache": cache,
    }
    return {**document, **changes}


async def test_a_file_of_another_program_is_a_session_and_comes_out_the_same(stage: StoreStage) -> None:
    """Without metadata, of an unknown domain, years after it was written: its time to live starts when it is loaded."""
    report = await stage.cache.load(file_of())
    assert (report.session_id, report.loaded, report.expired, report.refused) == ("a1b2c3d4", 2, (), {})
    assert await stage.cache.export("a1b2c3d4") == file_of()
    root = await stage.cache.root("a1b2c3d4")
    assert root is not None
    assert root.expires_in_ms is not None
    assert 3_000_000 < root.expires_in_ms <= 3_600_000
    stats = await stage.cache.stats("a1b2c3d4")
    assert (stats.total_entries, stats.total_hits, stats.total_saved_time_ms) == (2, 3, 21_000)
    assert [root.session_id for root in await stage.cache.sessions()] == ["a1b2c3d4"]


async def test_ours_goes_round_by_way_of_text(stage: StoreStage) -> None:
    """Under another id, with its uses, times and own times to live; what was counted goes on from there."""
    await stage.cache.create(SESSION, domain="seo", ttl=timedelta(minutes=5))
    large = {"rows": ["Zoë"] * 3_000}
    entries = [
        NewEntry("a:x", large, agent="A", computation_ms=120_000),
        NewEntry("b:x", 0, ttl=timedelta(hours=1)),
        NewEntry("b:x:c:d", None, computation_ms=None),
    ]
    await stage.cache.set_many(SESSION, entries)
    for _ in range(3):
        await stage.cache.get(SESSION, "a:x")
    exported = await stage.cache.export(SESSION)
    again = json.loads(json.dumps(exported))
    report = await stage.cache.load(again, "copy")
    assert (report.session_id, report.loaded) == ("copy", 3)
    assert await stage.cache.export("copy") == {**exported, "session_id": "copy"}
    assert exported["cache"]["a:x"]["metadata"] == {
        "computation_time_ms": 120_000,
        "source_agent": "A",
        "cache_hit_count": 3,
    }
    assert exported["cache"]["b:x"]["ttl_ms"] == 3_600_000
    assert "metadata" not in exported["cache"]["b:x:c:d"]
    found = await stage.cache.get("copy", "a:x", reader="t1")
    assert found is not None
    assert found.entry.hits == 4
    await stage.cache.set("copy", "c:x", 1)
    assert [entry.key for entry in await stage.cache.entries("copy")] == ["a:x", "b:x", "b:x:c:d", "c:x"]


async def test_the_order_of_a_file_is_that_of_its_times(stage: StoreStage) -> None:
    """So that what is younger is known to be."""
    cache = file_of()["cache"]
    turned = dict(reversed(cache.items()))
    await stage.cache.load(file_of(cache=turned))
    removed = await stage.cache.invalidate_downstream("a1b2c3d4", "context_query")
    assert removed == ("implementation_pass_1:results",)


async def test_entries_past_their_own_time_to_live_stay_behind(stage: StoreStage) -> None:
    """It counts from when they were made; the report names them."""
    root = await _made(stage)
    made = [spell_time(root - DAY_MS), spell_time(root)]
    cache = {
        key: {"key": key, "value": 1, "created_at": at, "created_by_phase": "a", "ttl_ms": DAY_MS // 2}
        for key, at in zip(("a:old", "a:new"), made, strict=True)
    }
    report = await stage.cache.load(file_of(cache=cache))
    assert (report.loaded, report.expired) == (1, ("a:old",))
    assert await values(stage.cache, "a:old", "a:new", session_id="a1b2c3d4") == ["-", 1]


async def _made(stage: StoreStage) -> int:
    """Return the time of the cache's clock, ms since 1970."""
    await stage.cache.create(SESSION)
    root = await stage.cache.root(SESSION)
    assert root is not None
    return root.created_ms


@pytest.mark.parametrize(
    ("key", "change", "why"),
    [
        ("data", {}, "naming rule"),
        ("a:x", {"created_by_phase": "b"}, "belongs to phase 'a'"),
        ("a:x", {"key": "a:y"}, "must be equal"),
        ("a:x", {"created_at": "yesterday"}, "created_at"),
        ("a:x", {"created_at": None}, "created_at"),
        ("a:x", {"ttl_ms": 0}, "ttl_ms"),
        ("a:x", {"metadata": []}, "metadata"),
        ("a:x", {"metadata": {"cache_hit_count": -1}}, "cache_hit_count"),
        ("a:x", {"metadata": {"computation_time_ms": "7 s"}}, "computation_time_ms"),
        ("a:x", {"value": "x" * 17_000_000}, "17000002 bytes"),
    ],
)
async def test_an_entry_that_breaks_a_rule_stays_behind_with_a_reason(
    stage: StoreStage, key: str, change: dict[str, Any], why: str
) -> None:
    """The others are loaded."""
    sound = {"key": key, "value": 1, "created_at": "2025-11-19T10:00:00Z", "created_by_phase": "a"}
    report = await stage.cache.load(file_of(cache={key: {**sound, **change}, **file_of()["cache"]}))
    assert (report.loaded, set(report.refused)) == (2, {key})
    assert why in report.refused[key]


@pytest.mark.parametrize(
    "change",
    [
        {"cache": []},
        {"version": "1.0.0"},
        {"version": None},
        {"session_id": "a b"},
        {"session_id": 7},
        {"domain": None},
        {"domain": "\n"},
        {"created_at": 1763546400},
        {"ttl_ms": -1},
        {"ttl_ms": True},
        {"ttl_ms": 10**18},
    ],
)
async def test_what_is_no_session_is_refused_as_a_whole(stage: StoreStage, change: dict[str, Any]) -> None:
    """And leaves nothing behind."""
    with pytest.raises(InvalidInput):
        await stage.cache.load(file_of(**change))
    assert await stage.cache.sessions() == []


async def test_loading_never_mixes_two_sessions(stage: StoreStage) -> None:
    """One of that id has to go first; without its entries a session is loaded, too."""
    await stage.cache.create("a1b2c3d4")
    await stage.cache.set("a1b2c3d4", KEY, "mine")
    with pytest.raises(InvalidInput, match=r"'a1b2c3d4' exists already.*under another id"):
        await stage.cache.load(file_of())
    assert [entry.key for entry in await stage.cache.entries("a1b2c3d4")] == [KEY]
    await stage.cache.drop("a1b2c3d4")
    report = await stage.cache.load(file_of(cache={}))
    assert report.loaded == 0
    assert (await stage.cache.export("a1b2c3d4"))["cache"] == {}


async def test_a_file_of_which_every_entry_is_refused_makes_no_session(valkey_or_redis: Redis) -> None:
    """What is wrong with each is told; a file without entries is a session without entries."""
    stage = StoreStage(valkey_or_redis)
    bad = {"bad key": {"value": 1}, "a:b": {"value": 1, "created_by_phase": "c"}}
    report = await stage.cache.load(file_of(cache=bad))
    assert (report.loaded, list(report.refused)) == (0, ["bad key", "a:b"])
    assert await stage.cache.root("a1b2c3d4") is None
    assert (await stage.cache.load(file_of(cache={}))).refused == {}
    assert await stage.cache.root("a1b2c3d4") is not None
