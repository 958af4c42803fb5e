"""The sessions of pipelines on a real store: entries, uses, times to live, phases and their tasks."""

import time
from datetime import timedelta

import pytest
from pydantic import JsonValue
from redis.asyncio import Redis

from tasklore.contracts.errors import (
    EntryTooLarge,
    InvalidInput,
    PhaseReplaced,
    UnknownSession,
)
from tasklore.memory.sessions.session import NewEntry, SessionStats
from tests.integration.sessions import (
    BLINK,
    KEY,
    SESSION,
    StoreStage,
    until_gone,
    until_over,
    values,
)

#: Longer than any test takes, in ms.
MINUTE_MS = 60_000


@pytest.fixture
def stage(valkey_or_redis: Redis) -> StoreStage:
    return StoreStage(valkey_or_redis, max_value_bytes=100_000)


async def test_a_session_is_created_once_with_its_metadata(stage: StoreStage) -> None:
    before = int(time.time() * 1000) - MINUTE_MS
    made = await stage.cache.create(
        SESSION,
        domain="woodwork",
        ttl=timedelta(minutes=5),
        dependencies={"report": ("analysis", "context")},
        user_id="Zoë",
        project="bench",
    )
    assert made
    assert not await stage.cache.create(SESSION, domain="data")
    root = await stage.cache.root(SESSION)
    assert (root.session_id, root.version, root.domain, root.state) == (
        SESSION,
        "2.0.0",
        "woodwork",
        "open",
    )
    assert (root.ttl_ms, root.dependencies) == (
        300_000,
        {"report": ("analysis", "context")},
    )
    assert (root.user_id, root.project, root.supervisor_id, root.keep, root.run) == (
        "Zoë",
        "bench",
        None,
        False,
        0,
    )
    assert before < root.created_ms == root.updated_ms < before + 2 * MINUTE_MS
    assert root.expires_in_ms is not None
    assert 0 < root.expires_in_ms <= 300_000
    assert await stage.cache.of_user("Zoë") == [SESSION]


async def test_any_json_value_comes_back_unchanged(stage: StoreStage) -> None:
    await stage.cache.create(SESSION)
    falsy: list[JsonValue] = [0, False, None, "", [], {}, 0.0]
    odd: list[JsonValue] = [
        "Zoë 🦊",
        "half \ud800 pair",
        10**30,
        1e-300,
        {"ключ": ["a", {"b": None}]},
        ["ü" * 9000],
    ]
    for value in falsy + odd:
        await stage.cache.set(SESSION, KEY, value)
        found = await stage.cache.get(SESSION, KEY)
        assert (found.value, type(found.value)) == (value, type(value))


async def test_an_entry_has_phase_agent_duration_and_size(stage: StoreStage) -> None:
    await stage.cache.create(SESSION)
    await stage.cache.set(
        SESSION,
        "analysis:map:src/a b:{c}.py",
        "four",
        phase="analysis",
        agent="Mapper",
        computation_ms=120_000,
    )
    found = await stage.cache.get(SESSION, "analysis:map:src/a b:{c}.py")
    entry = found.entry
    assert (entry.phase, entry.data_type, entry.identifier) == (
        "analysis",
        "map",
        "src/a b:{c}.py",
    )
    assert (entry.agent, entry.computation_ms, entry.hits, entry.bytes) == (
        "Mapper",
        120_000,
        1,
        6,
    )
    assert (entry.ttl_ms, entry.expires_ms, entry.hidden_by) == (None, None, None)
    root = await stage.cache.root(SESSION)
    assert root.created_ms <= entry.created_ms == root.updated_ms


async def test_reading_an_unknown_entry_or_session_returns_none(
    stage: StoreStage,
) -> None:
    assert await stage.cache.get("nowhere", KEY) is None
    assert await stage.cache.get_many("nowhere", [KEY, "a:b"]) == [None, None]
    assert await stage.cache.root("nowhere") is None
    await stage.cache.create(SESSION)
    assert await stage.cache.get_many(SESSION, []) == []
    await stage.cache.set_many(
        SESSION, [NewEntry(key="a:x", value=1), NewEntry(key="b:x", value=2)]
    )
    found = await stage.cache.get_many(SESSION, ["b:x", "c:x", "a:x", "d:x"])
    assert [one and one.value for one in found] == [2, None, 1, None]


async def test_writing_to_an_unknown_session_is_an_error_and_removing_finds_nothing(
    stage: StoreStage,
) -> None:
    with pytest.raises(UnknownSession, match="GET /v1/sessions"):
        await stage.cache.set("nowhere", KEY, 1)
    with pytest.raises(UnknownSession):
        await stage.cache.export("nowhere")
    assert not await stage.cache.delete("nowhere", KEY)
    assert await stage.cache.invalidate_phases("nowhere", ["analysis"]) == ()
    assert await stage.cache.invalidate_downstream("nowhere", "analysis") == ()
    assert (
        await stage.cache.clear("nowhere"),
        await stage.cache.cleanup("nowhere"),
    ) == (0, 0)
    assert (
        await stage.cache.entries("nowhere"),
        await stage.cache.stats("nowhere"),
    ) == ([], SessionStats())
    assert not await stage.cache.drop("nowhere")


async def test_uses_are_counted_once_a_reader(stage: StoreStage) -> None:
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, 0)
    for reader in (None, None, "t1", "t1", "t2", "t1"):
        await stage.cache.get(SESSION, KEY, reader=reader)
    await stage.cache.peek(SESSION, [KEY])
    found = await stage.cache.get(SESSION, KEY, reader="t2")
    assert found.entry.hits == 4
    assert [entry.hits for entry in await stage.cache.entries(SESSION)] == [4]


async def test_an_entry_expires_by_its_own_time_or_with_its_session(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    await stage.cache.set_many(
        SESSION,
        [
            NewEntry(key=KEY, value=1, ttl=BLINK),
            NewEntry(key="b:x", value=2, ttl=timedelta(days=9)),
        ],
    )
    await until_gone(stage.cache)
    assert await stage.cache.get(SESSION, KEY) is None
    assert [
        (entry.key, entry.ttl_ms) for entry in await stage.cache.entries(SESSION)
    ] == [("b:x", 777_600_000)]
    assert not await stage.cache.delete(SESSION, KEY)
    assert await values(stage.cache, "b:x") == [2]
    await stage.cache.create("brief", ttl=BLINK)
    await until_over(stage.cache, "brief")
    assert await stage.cache.get("brief", "b:x") is None


async def test_an_expired_session_is_created_anew_and_empty(stage: StoreStage) -> None:
    await stage.cache.create(SESSION, ttl=BLINK, dependencies={"b": ("a",)})
    await until_over(stage.cache)
    with pytest.raises(UnknownSession):
        await stage.cache.set(SESSION, KEY, 1)
    assert await stage.cache.create(SESSION)
    root = await stage.cache.root(SESSION)
    assert (root.entries, root.dependencies, await stage.cache.entries(SESSION)) == (
        0,
        {},
        [],
    )


async def test_a_malformed_key_or_session_id_is_refused_and_nothing_is_written(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    for key in ("analysis", "analysis:", ":map", "a b:map", "analysis:map:", "a:b:\n"):
        with pytest.raises(InvalidInput, match=r"naming rule|identifier"):
            await stage.cache.set_many(
                SESSION, [NewEntry(key="a:x", value=1), NewEntry(key=key, value=1)]
            )
        with pytest.raises(InvalidInput):
            await stage.cache.get(SESSION, key)
        with pytest.raises(InvalidInput):
            await stage.cache.delete(SESSION, key)
    for name in ("", "a b", "x" * 65, "{x}"):
        with pytest.raises(InvalidInput):
            await stage.cache.create(name)
        with pytest.raises(InvalidInput):
            await stage.cache.get(name, KEY)
    assert await stage.cache.entries(SESSION) == []


async def test_a_phase_writes_only_keys_of_its_own(stage: StoreStage) -> None:
    await stage.cache.create(SESSION)
    with pytest.raises(
        InvalidInput, match=r"'analysis:map' belongs to phase 'analysis'.*'review:map'"
    ):
        await stage.cache.set(SESSION, KEY, 1, phase="review")
    await stage.cache.set(SESSION, KEY, 1, phase="analysis")
    assert await values(stage.cache, KEY) == [1]


async def test_a_value_over_the_limit_is_refused_with_the_whole_batch(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, "x" * 99_998)
    with pytest.raises(
        EntryTooLarge, match=r"'a:b'.*100001 bytes.*100000.*reference.*'a:b:part-1'"
    ):
        await stage.cache.set_many(
            SESSION,
            [NewEntry(key="a:x", value=1), NewEntry(key="a:b", value="x" * 99_999)],
        )
    assert await values(stage.cache, "a:x", KEY) == ["-", "x" * 99_998]


async def test_a_value_that_is_not_json_is_refused(stage: StoreStage) -> None:
    await stage.cache.create(SESSION)
    for value in (float("nan"), {1, 2}, object(), b"x"):
        with pytest.raises(InvalidInput, match="'analysis:map' is not valid JSON"):
            await stage.cache.set(SESSION, KEY, value)


async def test_an_unusable_time_to_live_is_refused(stage: StoreStage) -> None:
    for ttl in (
        timedelta(0),
        timedelta(seconds=-1),
        timedelta(microseconds=1),
        timedelta.max,
    ):
        with pytest.raises(InvalidInput, match="time to live"):
            await stage.cache.create(SESSION, ttl=ttl)
    await stage.cache.create(SESSION)
    with pytest.raises(InvalidInput, match="'analysis:map'"):
        await stage.cache.set(SESSION, KEY, 1, ttl=timedelta(0))


async def test_if_absent_leaves_an_entry_unless_its_time_is_over(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, "brief", ttl=BLINK)
    await until_gone(stage.cache)
    for value in ("third", "fourth"):
        await stage.cache.set_many(
            SESSION, [NewEntry(key=KEY, value=value, if_absent=True)]
        )
    assert await values(stage.cache, KEY) == ["third"]


async def test_a_replaced_task_writes_nothing(stage: StoreStage) -> None:
    """All or nothing, for each phase of its entries; in a pipeline a task of a phase that was begun alone writes."""
    await stage.cache.create(SESSION)
    await stage.put_task("analysis", "t2")
    with pytest.raises(PhaseReplaced, match=r"'analysis' of session 's1'.*'t2'.*'t1'"):
        await stage.cache.set_many(
            SESSION,
            [NewEntry(key="a:x", value=1), NewEntry(key=KEY, value=1)],
            task_id="t1",
        )
    assert await values(stage.cache, "a:x", KEY) == ["-", "-"]
    await stage.cache.set(SESSION, KEY, 2, task_id="t2")
    await stage.put_task("analysis", "")
    with pytest.raises(PhaseReplaced, match="nobody writes for it"):
        await stage.cache.set(SESSION, KEY, 3, task_id="t2")
    await stage.cache.set(SESSION, KEY, 4)
    assert await values(stage.cache, KEY) == [4]
    await stage.cache.set(SESSION, "other:x", 1, task_id="t1")
    await stage.put_state("running")
    for phase in (None, "never"):
        with pytest.raises(PhaseReplaced):
            await stage.cache.set_many(
                SESSION, [NewEntry(key="other:x", value=2)], task_id="t1", phase=phase
            )


async def test_a_task_is_checked_against_the_phase_it_runs_as(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    await stage.put_task("analysis", "t2")
    await stage.put_task("review", "t1")
    entries = [NewEntry(key=KEY, value=1), NewEntry(key="review:x", value=1)]
    await stage.cache.set_many(SESSION, entries, task_id="t1", phase="review")
    await stage.put_task("review", "")
    entries = [NewEntry(key=KEY, value=2), NewEntry(key="other:x", value=2)]
    with pytest.raises(PhaseReplaced, match="'review'"):
        await stage.cache.set_many(SESSION, entries, task_id="t1", phase="review")
    assert await values(stage.cache, KEY, "review:x", "other:x") == [1, 1, "-"]


async def test_a_corrected_phase_is_read_as_the_phase_that_corrects_it(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    first = [
        NewEntry(key="pass_1:results", value=1),
        NewEntry(key="pass_1:files:a", value=1),
        NewEntry(key="other:results", value=0),
    ]
    await stage.cache.set_many(
        SESSION, [*first, NewEntry(key="pass_2:results", value=2)]
    )
    await stage.put_correction("pass_1", "pass_2")
    asked = ["pass_1:results", "pass_1:files:a", "pass_2:results", "other:results"]
    assert await values(stage.cache, *asked) == [2, "-", 2, 0]
    found = await stage.cache.get(SESSION, "pass_1:results", reader="t1")
    assert (found.value, found.entry.key, found.entry.phase) == (
        2,
        "pass_2:results",
        "pass_2",
    )
    many = await stage.cache.get_many(SESSION, asked, reader="t1")
    assert [one and one.value for one in many] == [2, None, 2, 0]
    assert [entry.hits for entry in await stage.cache.entries(SESSION)] == [0, 0, 1, 1]
    await stage.put_correction("pass_2", "pass_3")
    await stage.cache.set(SESSION, "pass_3:files:a", 3)
    assert await values(stage.cache, *asked) == ["-", 3, "-", 0]


async def test_an_invalidated_phase_loses_its_entries_and_its_writing_task(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    await stage.put_task("analysis", "t1")
    await stage.put_task("review", "t2")
    await stage.cache.set(SESSION, KEY, 1, task_id="t1")
    await stage.cache.set_many(
        SESSION,
        [
            NewEntry(key=name, value=1)
            for name in ("a:x", "a:x:1", "ab:x", "b:x", "c:a")
        ],
    )
    assert await stage.cache.invalidate_phases(
        SESSION, ["a", "c", "analysis", "never"]
    ) == ("a:x", "a:x:1", KEY, "c:a")
    assert [entry.key for entry in await stage.cache.entries(SESSION)] == [
        "ab:x",
        "b:x",
    ]
    with pytest.raises(PhaseReplaced, match="nobody writes for it"):
        await stage.cache.set(SESSION, KEY, 2, task_id="t1")
    await stage.cache.set(SESSION, "review:x", 1, task_id="t2")
    await stage.cache.set(SESSION, "never:x", 1, task_id="t3")


async def test_without_declared_dependencies_younger_phases_depend_on_older(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    await stage.cache.set_many(
        SESSION, [NewEntry(key=name, value=1) for name in ("a:1", "b:1", "c:1", "a:2")]
    )
    assert await stage.cache.invalidate_downstream(SESSION, "unheard-of") == ()
    assert await stage.cache.invalidate_downstream(SESSION, "b") == ("c:1",)
    assert await stage.cache.invalidate_downstream(SESSION, "a") == ("b:1",)


async def test_entries_are_listed_in_order_of_writing_with_their_sizes(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    names = [f"a:x:{number}" for number in range(30)]
    for name in names:
        await stage.cache.set(SESSION, name, "x" * 5_000)
    await stage.cache.set(SESSION, names[0], 1)
    listed = await stage.cache.entries(SESSION)
    assert [entry.key for entry in listed] == [*names[1:], names[0]]
    assert {entry.bytes for entry in listed[:-1]} == {5_002}
    assert max(entry.stored_bytes for entry in listed[:-1]) < 500


async def test_cleanup_removes_expired_entries_and_is_no_update(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    await stage.cache.set_many(
        SESSION, [NewEntry(key=KEY, value=1, ttl=BLINK), NewEntry(key="b:x", value=2)]
    )
    await until_gone(stage.cache)
    before = await stage.cache.root(SESSION)
    assert (before.entries, await stage.count_stored()) == (1, 2)
    assert await stage.cache.cleanup(SESSION) == 1
    assert await stage.cache.cleanup(SESSION) == 0
    after = await stage.cache.root(SESSION)
    assert (after.entries, after.updated_ms) == (1, before.updated_ms)


async def test_sessions_are_listed_newest_first_page_by_page(stage: StoreStage) -> None:
    names = [f"s{number}" for number in range(25)]
    for name in names:
        await stage.cache.create(name)
        await stage.cache.set(name, KEY, 1)
    for name in names[:3]:
        await stage.put_state("failed", name)
    for name in (names[7], names[1]):
        await stage.cache.set(name, "b:x", 1)
    page = await stage.cache.sessions(limit=10)
    listed = []
    while page:
        listed += page
        page = await stage.cache.sessions(limit=10, before=page[-1])
    # Within one millisecond it is the name that decides.
    places = [(root.listed_ms, root.session_id) for root in listed]
    assert places == sorted(places, reverse=True)
    assert sorted(root.session_id for root in listed) == sorted(names)
    last = {root.session_id: root for root in listed}
    assert {
        root.entries for name, root in last.items() if name not in {"s1", "s7"}
    } == {1}
    for name in ("s1", "s7"):
        assert last[name].entries == 2
        assert last[name].listed_ms >= last["s24"].listed_ms
    failed = await stage.cache.sessions(state="failed", limit=2)
    rest = await stage.cache.sessions(state="failed", limit=2, before=failed[-1])
    assert {root.session_id for root in failed + rest} == set(names[:3])


async def test_a_sweep_removes_expired_sessions_and_no_running_one(
    stage: StoreStage,
) -> None:
    for name in ("brief", "running", "open"):
        await stage.cache.create(
            name, ttl=BLINK if name == "brief" else timedelta(hours=1)
        )
    await stage.put_state("running", "running")
    for name in ("running", "open"):
        await stage.cache.set_many(
            name, [NewEntry(key=KEY, value=1, ttl=BLINK), NewEntry(key="b:x", value=2)]
        )
        await until_gone(stage.cache, session_id=name)
    await until_over(stage.cache, "brief")
    assert await stage.cache.sweep() == []
    assert await stage.cache.sweep(grace=timedelta(0)) == ["brief"]
    assert await stage.cache.sweep(grace=timedelta(0)) == []
    left = [root.session_id for root in await stage.cache.sessions()]
    assert {name: await stage.count_stored(name) for name in left} == {
        "running": 2,
        "open": 1,
    }


async def test_a_session_that_is_taken_is_listed_for_nobody_else(
    stage: StoreStage,
) -> None:
    """Forgetting that user would remove it; and it is not listed as updated."""
    assert await stage.cache.create(SESSION, user_id="ada")
    before = await stage.cache.sessions()
    assert not await stage.cache.create(SESSION, user_id="bob")
    assert await stage.cache.of_user("bob") == []
    assert await stage.cache.of_user("ada") == [SESSION]
    after = await stage.cache.sessions()
    assert [one.listed_ms for one in after] == [one.listed_ms for one in before]


async def test_a_session_is_dropped_whole_and_a_running_one_only_by_force(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION, user_id="ada")
    await stage.cache.set(SESSION, KEY, 1)
    await stage.put_state("running")
    with pytest.raises(InvalidInput, match="'s1' runs; cancel it first"):
        await stage.cache.drop(SESSION)
    assert await values(stage.cache, KEY) == [1]
    assert await stage.cache.drop(SESSION, force=True)
    assert not await stage.cache.drop(SESSION)
    assert await stage.cache.root(SESSION) is None
    assert await stage.cache.sessions() == await stage.cache.of_user("ada") == []
    await stage.cache.create(SESSION)
    assert await stage.cache.get(SESSION, KEY) is None


async def test_two_sessions_never_see_each_others_entries(stage: StoreStage) -> None:
    for name, value in ((SESSION, 1), ("s2", 2)):
        await stage.cache.create(name)
        await stage.cache.set_many(
            name,
            [NewEntry(key=KEY, value=value), NewEntry(key="pass_2:map", value=-value)],
        )
    await stage.put_correction("analysis", "pass_2", "s2")
    await stage.cache.get(SESSION, KEY)
    assert await values(stage.cache, KEY, session_id=SESSION) == [1]
    assert await values(stage.cache, KEY, session_id="s2") == [-2]
    assert [entry.hits for entry in await stage.cache.entries("s2")] == [0, 0]
    assert (await stage.cache.clear(SESSION), await stage.cache.clear(SESSION)) == (
        2,
        0,
    )
    assert len(await stage.cache.entries("s2")) == 2
