"""Sessions exported to files and loaded again."""

import json
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.sessions.session import NewEntry
from tasklore.memory.times import spell_time
from tests.integration.sessions import KEY, SESSION, StoreStage, values

DAY_MS = 86_400_000


@pytest.fixture
def stage(valkey_or_redis: Redis) -> StoreStage:
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
                "source_agent": "ContextServer",
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


async def test_a_file_of_another_program_loads_and_exports_the_same(
    stage: StoreStage,
) -> None:
    report = await stage.cache.load(file_of())
    assert (report.session_id, report.loaded, report.expired, report.refused) == (
        "a1b2c3d4",
        2,
        (),
        {},
    )
    assert await stage.cache.export("a1b2c3d4") == file_of()
    root = await stage.cache.root("a1b2c3d4")
    assert root.expires_in_ms is not None
    assert 3_000_000 < root.expires_in_ms <= 3_600_000
    stats = await stage.cache.stats("a1b2c3d4")
    assert (stats.total_entries, stats.total_hits, stats.total_saved_time_ms) == (
        2,
        3,
        21_000,
    )
    assert [root.session_id for root in await stage.cache.sessions()] == ["a1b2c3d4"]


async def test_an_exported_session_loads_the_same_under_another_id(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION, domain="seo", ttl=timedelta(minutes=5))
    large = {"rows": ["Zoë"] * 3_000}
    entries = [
        NewEntry(key="a:x", value=large, agent="A", computation_ms=120_000),
        NewEntry(key="b:x", value=0, ttl=timedelta(hours=1)),
        NewEntry(key="b:x:c:d", value=None, computation_ms=None),
    ]
    await stage.cache.set_many(SESSION, entries)
    for _ in range(3):
        await stage.cache.get(SESSION, "a:x")
    exported = await stage.cache.export(SESSION)
    again = json.loads(json.dumps(exported))
    report = await stage.cache.load(again, "copy")
    assert (report.session_id, report.loaded) == ("copy", 3)
    assert await stage.cache.export("copy") == {**exported, "session_id": "copy"}
    metadata = {
        "computation_time_ms": 120_000,
        "source_agent": "A",
        "cache_hit_count": 3,
    }
    assert exported["cache"]["a:x"]["metadata"] == metadata
    assert exported["cache"]["b:x"]["ttl_ms"] == 3_600_000
    assert "metadata" not in exported["cache"]["b:x:c:d"]
    found = await stage.cache.get("copy", "a:x", reader="t1")
    assert found.entry.hits == 4
    await stage.cache.set("copy", "c:x", 1)
    assert [entry.key for entry in await stage.cache.entries("copy")] == [
        "a:x",
        "b:x",
        "b:x:c:d",
        "c:x",
    ]


async def test_entries_of_a_file_are_ordered_by_their_times(stage: StoreStage) -> None:
    cache = file_of()["cache"]
    turned = dict(reversed(cache.items()))
    await stage.cache.load(file_of(cache=turned))
    removed = await stage.cache.invalidate_downstream("a1b2c3d4", "context_query")
    assert removed == ("implementation_pass_1:results",)


async def test_expired_entries_are_left_out_and_reported(stage: StoreStage) -> None:
    await stage.cache.create(SESSION)
    now_ms = (await stage.cache.root(SESSION)).created_ms
    made = [spell_time(now_ms - DAY_MS), spell_time(now_ms)]
    cache = {
        key: {
            "key": key,
            "value": 1,
            "created_at": at,
            "created_by_phase": "a",
            "ttl_ms": DAY_MS // 2,
        }
        for key, at in zip(("a:old", "a:new"), made, strict=True)
    }
    report = await stage.cache.load(file_of(cache=cache))
    assert (report.loaded, report.expired) == (1, ("a:old",))
    assert await values(stage.cache, "a:old", "a:new", session_id="a1b2c3d4") == [
        "-",
        1,
    ]


@pytest.mark.parametrize(
    ("key", "change", "why"),
    [
        ("data", {}, "naming rule"),
        ("a:x", {"created_by_phase": "b"}, "belongs to phase 'a'"),
        ("a:x", {"key": "a:y"}, "must be equal"),
        ("a:x", {"created_at": "yesterday"}, "created_at"),
        ("a:x", {"ttl_ms": 0}, "ttl_ms"),
        ("a:x", {"metadata": []}, "metadata"),
        ("a:x", {"metadata": {"cache_hit_count": -1}}, "cache_hit_count"),
        ("a:x", {"value": "x" * 17_000_000}, "17000002 bytes"),
    ],
)
async def test_an_entry_that_breaks_a_rule_is_left_out_with_the_reason(
    stage: StoreStage, key: str, change: dict[str, Any], why: str
) -> None:
    sound = {
        "key": key,
        "value": 1,
        "created_at": "2025-11-19T10:00:00Z",
        "created_by_phase": "a",
    }
    report = await stage.cache.load(
        file_of(cache={key: {**sound, **change}, **file_of()["cache"]})
    )
    assert (report.loaded, set(report.refused)) == (2, {key})
    assert why in report.refused[key]


@pytest.mark.parametrize(
    "change",
    [
        {"cache": []},
        {"version": "1.0.0"},
        {"session_id": "a b"},
        {"domain": None},
        {"created_at": 1763546400},
        {"ttl_ms": -1},
        {"ttl_ms": 10**18},
    ],
)
async def test_a_file_that_is_no_session_is_refused_whole(
    stage: StoreStage, change: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        await stage.cache.load(file_of(**change))
    assert await stage.cache.sessions() == []


async def test_loading_never_mixes_two_sessions(stage: StoreStage) -> None:
    await stage.cache.create("a1b2c3d4")
    await stage.cache.set("a1b2c3d4", KEY, "mine")
    with pytest.raises(
        InvalidInput, match=r"'a1b2c3d4' exists already.*under another id"
    ):
        await stage.cache.load(file_of())
    assert [entry.key for entry in await stage.cache.entries("a1b2c3d4")] == [KEY]
    await stage.cache.drop("a1b2c3d4")
    report = await stage.cache.load(file_of(cache={}))
    assert report.loaded == 0
    assert (await stage.cache.export("a1b2c3d4"))["cache"] == {}
