"""The contract of sessions."""

import time
from datetime import timedelta

import pytest
from pydantic import JsonValue
from redis.asyncio import Redis

from contracts.errors import EntryTooLarge, InvalidInput, PhaseReplaced, UnknownSession
from memory.sessions.session import NewEntry, SessionStats
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
    """Return a cache on a server."""
    return StoreStage(valkey_or_redis, max_value_bytes=100_000)


async def test_a_session_is_made_once_and_tells_what_it_is(stage: StoreStage) -> None:
    """The second one of an id changes nothing."""
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
    assert root is not None
    assert (root.session_id, root.version, root.domain, root.state) == (SESSION, "2.0.0", "woodwork", "open")
    assert (root.ttl_ms, root.dependencies) == (300_000, {"report": ("analysis", "context")})
    assert (root.user_id, root.project, root.supervisor_id, root.keep, root.run) == ("Zoë", "bench", None, False, 0)
    assert before < root.created_ms == root.updated_ms < before + 2 * MINUTE_MS
    assert root.expires_in_ms is not None
    assert 0 < root.expires_in_ms <= 300_000
    assert await stage.cache.of_user("Zoë") == [SESSION]


@pytest.mark.parametrize("value", [0, False, None, "", [], {}, 0.0])
async def test_a_falsy_value_is_a_value(stage: StoreStage, value: JsonValue) -> None:
    """It is found, as what it is."""
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, value)
    found = await stage.cache.get(SESSION, KEY)
    assert found is not None
    assert (found.value, type(found.value)) == (value, type(value))


@pytest.mark.parametrize(
    "value",
    ["x", "Zoë 🦊", "half \ud800 pair", 10**30, 1e-300, {"ключ": ["a", {"b": None}]}, ["x" * 9000, "ü" * 3000]],
)
async def test_a_value_comes_back_as_it_went(stage: StoreStage, value: JsonValue) -> None:
    """Large, small and odd."""
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, value)
    assert await values(stage.cache, KEY) == [value]


async def test_an_entry_tells_where_it_comes_from(stage: StoreStage) -> None:
    """Who computed it, how long that took, when, how often it was used, and how large it is."""
    await stage.cache.create(SESSION)
    await stage.cache.set(
        SESSION, "analysis:map:src/a b:{c}.py", "four", phase="analysis", agent="Mapper", computation_ms=120_000
    )
    found = await stage.cache.get(SESSION, "analysis:map:src/a b:{c}.py")
    assert found is not None
    entry = found.entry
    assert (entry.phase, entry.data_type, entry.identifier) == ("analysis", "map", "src/a b:{c}.py")
    assert (entry.agent, entry.computation_ms, entry.hits, entry.bytes) == ("Mapper", 120_000, 1, 6)
    assert (entry.ttl_ms, entry.expires_ms, entry.hidden_by) == (None, None, None)
    root = await stage.cache.root(SESSION)
    assert root is not None
    assert root.created_ms <= entry.created_ms == root.updated_ms


async def test_what_is_not_there_is_none(stage: StoreStage) -> None:
    """Neither an unknown entry nor an unknown session is an error for a reader."""
    assert await stage.cache.get("nowhere", KEY) is None
    assert await stage.cache.get_many("nowhere", [KEY, "a:b"]) == [None, None]
    assert await stage.cache.root("nowhere") is None
    await stage.cache.create(SESSION)
    assert await stage.cache.get(SESSION, KEY) is None
    assert await stage.cache.get_many(SESSION, []) == []


async def test_what_was_never_made_takes_nothing(stage: StoreStage) -> None:
    """Writing names the cure; removing finds nothing to remove."""
    with pytest.raises(UnknownSession, match="tasklore session list"):
        await stage.cache.set("nowhere", KEY, 1)
    with pytest.raises(UnknownSession):
        await stage.cache.export("nowhere")
    assert not await stage.cache.delete("nowhere", KEY)
    assert await stage.cache.invalidate_phases("nowhere", ["analysis"]) == ()
    assert await stage.cache.invalidate_downstream("nowhere", "analysis") == ()
    assert (await stage.cache.clear("nowhere"), await stage.cache.cleanup("nowhere")) == (0, 0)
    assert (await stage.cache.entries("nowhere"), await stage.cache.stats("nowhere")) == ([], SessionStats())
    assert not await stage.cache.drop("nowhere")
    assert await stage.cache.sessions() == []


async def test_many_are_found_in_the_order_asked_for(stage: StoreStage) -> None:
    """With None for each that is not there."""
    await stage.cache.create(SESSION)
    await stage.cache.set_many(SESSION, [NewEntry("a:x", 1), NewEntry("b:x", 2)])
    found = await stage.cache.get_many(SESSION, ["b:x", "c:x", "a:x", "d:x"])
    assert [one and one.value for one in found] == [2, None, 1, None]


async def test_every_use_is_counted_unless_its_reader_was_counted_before(stage: StoreStage) -> None:
    """Also of an entry of which nothing is known; looking counts nothing."""
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, 0)
    for reader in (None, None, "t1", "t1", "t2", "t1"):
        await stage.cache.get(SESSION, KEY, reader=reader)
    await stage.cache.peek(SESSION, [KEY])
    found = await stage.cache.get(SESSION, KEY, reader="t2")
    assert found is not None
    assert found.entry.hits == 4
    assert [entry.hits for entry in await stage.cache.entries(SESSION)] == [4]


async def test_a_new_value_begins_with_no_uses(stage: StoreStage) -> None:
    """And who used the old one is counted again."""
    await stage.cache.create(SESSION)
    for value in (1, 2):
        await stage.cache.set(SESSION, KEY, value)
        for _ in range(2):
            found = await stage.cache.get(SESSION, KEY, reader="t1")
            assert found is not None
            assert (found.value, found.entry.hits) == (value, 1)
    await stage.cache.delete(SESSION, KEY)
    await stage.cache.set(SESSION, KEY, 3)
    found = await stage.cache.get(SESSION, KEY, reader="t1")
    assert found is not None
    assert found.entry.hits == 1


async def test_an_entry_outlives_neither_its_own_time_nor_its_sessions(stage: StoreStage) -> None:
    """The entry goes, the session stays; then the session goes with what is in it."""
    await stage.cache.create(SESSION)
    await stage.cache.set_many(SESSION, [NewEntry(KEY, 1, ttl=BLINK), NewEntry("b:x", 2, ttl=timedelta(days=9))])
    await until_gone(stage.cache)
    assert await stage.cache.get(SESSION, KEY) is None
    assert [(entry.key, entry.ttl_ms) for entry in await stage.cache.entries(SESSION)] == [("b:x", 777_600_000)]
    assert not await stage.cache.delete(SESSION, KEY)
    assert await values(stage.cache, "b:x") == [2]
    await stage.cache.create("brief", ttl=BLINK)
    await until_over(stage.cache, "brief")
    assert await stage.cache.get("brief", "b:x") is None


async def test_a_session_that_is_over_begins_anew(stage: StoreStage) -> None:
    """Nothing of the first one is in the second."""
    await stage.cache.create(SESSION, ttl=BLINK, dependencies={"b": ("a",)})
    await until_over(stage.cache)
    with pytest.raises(UnknownSession):
        await stage.cache.set(SESSION, KEY, 1)
    assert await stage.cache.create(SESSION)
    root = await stage.cache.root(SESSION)
    assert root is not None
    assert (root.entries, root.dependencies, await stage.cache.entries(SESSION)) == (0, {}, [])


async def test_a_running_session_never_expires(stage: StoreStage) -> None:
    """It begins to age once its pipeline has ended."""
    await stage.cache.create(SESSION, ttl=timedelta(minutes=5))
    await stage.put_state("running")
    await stage.cache.set(SESSION, KEY, 1)
    await stage.cache.get(SESSION, KEY, reader="t1")
    root = await stage.cache.root(SESSION)
    assert root is not None
    assert (root.state, root.expires_in_ms) == ("running", None)
    await stage.put_state("failed")
    await stage.cache.set(SESSION, KEY, 1)
    root = await stage.cache.root(SESSION)
    assert root is not None
    assert root.expires_in_ms is not None


async def test_a_key_that_breaks_the_rule_is_refused_everywhere(stage: StoreStage) -> None:
    """Nothing is written, not even what came with it."""
    await stage.cache.create(SESSION)
    for key in ("analysis", "analysis:", ":map", "a b:map", "analysis:map:", "a:b:\n"):
        with pytest.raises(InvalidInput, match=r"naming rule|identifier"):
            await stage.cache.set_many(SESSION, [NewEntry("a:x", 1), NewEntry(key, 1)])
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


async def test_a_phase_writes_under_its_own_name(stage: StoreStage) -> None:
    """The refusal says which name that is."""
    await stage.cache.create(SESSION)
    with pytest.raises(InvalidInput, match=r"'analysis:map' belongs to phase 'analysis'.*'review:map'"):
        await stage.cache.set(SESSION, KEY, 1, phase="review")
    await stage.cache.set(SESSION, KEY, 1, phase="analysis")
    assert await values(stage.cache, KEY) == [1]


async def test_a_value_over_the_limit_is_refused(stage: StoreStage) -> None:
    """With its key, its size, the limit and what to do; and nothing that came with it is written."""
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, "x" * 99_998)
    with pytest.raises(EntryTooLarge, match=r"'a:b'.*100001 bytes.*100000.*reference.*'a:b:part-1'"):
        await stage.cache.set_many(SESSION, [NewEntry("a:x", 1), NewEntry("a:b", "x" * 99_999)])
    assert await values(stage.cache, "a:x", KEY) == ["-", "x" * 99_998]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object(), b"x"])
async def test_what_is_no_json_is_refused(stage: StoreStage, value: JsonValue) -> None:
    """Rather than kept as something else."""
    await stage.cache.create(SESSION)
    with pytest.raises(InvalidInput, match="'analysis:map' is no JSON"):
        await stage.cache.set(SESSION, KEY, value)


async def test_a_time_to_live_has_to_be_one(stage: StoreStage) -> None:
    """None at all, and one that nobody can count, are refused."""
    for ttl in (timedelta(0), timedelta(seconds=-1), timedelta(microseconds=1), timedelta.max):
        with pytest.raises(InvalidInput, match="time to live"):
            await stage.cache.create(SESSION, ttl=ttl)
    await stage.cache.create(SESSION)
    with pytest.raises(InvalidInput, match="'analysis:map'"):
        await stage.cache.set(SESSION, KEY, 1, ttl=timedelta(0))


async def test_what_is_there_can_be_left_as_it_is(stage: StoreStage) -> None:
    """With its uses; what is past its time to live is not there."""
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, "first")
    await stage.cache.get(SESSION, KEY)
    await stage.cache.set_many(SESSION, [NewEntry(KEY, "second", if_absent=True)])
    found = await stage.cache.get(SESSION, KEY)
    assert found is not None
    assert (found.value, found.entry.hits) == ("first", 2)
    await stage.cache.set(SESSION, KEY, "brief", ttl=BLINK)
    await until_gone(stage.cache)
    await stage.cache.set_many(SESSION, [NewEntry(KEY, "third", if_absent=True)])
    assert await values(stage.cache, KEY) == ["third"]


async def test_a_task_that_was_replaced_writes_nothing(stage: StoreStage) -> None:
    """All or nothing, for each phase of what it writes; without a task nothing is asked."""
    await stage.cache.create(SESSION)
    await stage.put_task("analysis", "t2")
    with pytest.raises(PhaseReplaced, match=r"'analysis' of session 's1'.*'t2'.*'t1'"):
        await stage.cache.set_many(SESSION, [NewEntry("a:x", 1), NewEntry(KEY, 1)], task_id="t1")
    assert await values(stage.cache, "a:x", KEY) == ["-", "-"]
    await stage.cache.set(SESSION, KEY, 2, task_id="t2")
    await stage.put_task("analysis", "")
    with pytest.raises(PhaseReplaced, match="nobody writes for it"):
        await stage.cache.set(SESSION, KEY, 3, task_id="t2")
    await stage.cache.set(SESSION, KEY, 4)
    assert await values(stage.cache, KEY) == [4]


async def test_a_task_is_asked_for_by_the_phase_it_runs_as(stage: StoreStage) -> None:
    """Whichever phases the entries are of."""
    await stage.cache.create(SESSION)
    await stage.put_task("analysis", "t2")
    await stage.put_task("review", "t1")
    entries = [NewEntry(KEY, 1), NewEntry("review:x", 1)]
    await stage.cache.set_many(SESSION, entries, task_id="t1", phase="review")
    await stage.put_task("review", "")
    entries = [NewEntry(KEY, 2), NewEntry("other:x", 2)]
    with pytest.raises(PhaseReplaced, match="'review'"):
        await stage.cache.set_many(SESSION, entries, task_id="t1", phase="review")
    assert await values(stage.cache, KEY, "review:x", "other:x") == [1, 1, "-"]
    await stage.put_state("running")
    with pytest.raises(PhaseReplaced, match="'never'"):
        await stage.cache.set_many(SESSION, entries, task_id="t1", phase="never")


async def test_in_a_pipeline_only_a_task_that_was_begun_writes(stage: StoreStage) -> None:
    """A phase that nobody began has no task; without a pipeline any task writes."""
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, 1, task_id="t1")
    await stage.put_state("running")
    with pytest.raises(PhaseReplaced):
        await stage.cache.set(SESSION, KEY, 2, task_id="t1")


async def test_a_corrected_phase_is_hidden_everywhere(stage: StoreStage) -> None:
    """Who asks for its entries gets those of the phase that corrects it, which may be corrected in turn."""
    await stage.cache.create(SESSION)
    first = [NewEntry("pass_1:results", 1), NewEntry("pass_1:files:a", 1), NewEntry("other:results", 0)]
    await stage.cache.set_many(SESSION, [*first, NewEntry("pass_2:results", 2)])
    await stage.put_correction("pass_1", "pass_2")
    wanted = ["pass_1:results", "pass_1:files:a", "pass_2:results", "other:results"]
    assert await values(stage.cache, *wanted) == [2, "-", 2, 0]
    found = await stage.cache.get(SESSION, "pass_1:results", reader="t1")
    assert found is not None
    assert (found.value, found.entry.key, found.entry.phase) == (2, "pass_2:results", "pass_2")
    many = await stage.cache.get_many(SESSION, wanted, reader="t1")
    assert [one and one.value for one in many] == [2, None, 2, 0]
    hidden = {entry.key: (entry.hidden_by, entry.hits) for entry in await stage.cache.entries(SESSION)}
    assert hidden == {
        "pass_1:results": ("pass_2", 0),
        "pass_1:files:a": ("pass_2", 0),
        "other:results": (None, 1),
        "pass_2:results": (None, 1),
    }
    assert set((await stage.cache.export(SESSION))["cache"]) == {"pass_2:results", "other:results"}
    await stage.put_correction("pass_2", "pass_3")
    await stage.cache.set(SESSION, "pass_3:files:a", 3)
    assert await values(stage.cache, *wanted) == ["-", 3, "-", 0]


async def test_deleting_and_clearing_remove_only_what_is_meant(stage: StoreStage) -> None:
    """Of one session; a second time there is nothing left."""
    for name in (SESSION, "s2"):
        await stage.cache.create(name)
        await stage.cache.set_many(name, [NewEntry("a:x", 1), NewEntry("a:x:y", 2), NewEntry("b:x", 3)])
    assert await stage.cache.delete(SESSION, "a:x")
    assert not await stage.cache.delete(SESSION, "a:x")
    assert await values(stage.cache, "a:x", "a:x:y", "b:x") == ["-", 2, 3]
    assert await stage.cache.clear(SESSION) == 2
    assert await stage.cache.clear(SESSION) == 0
    assert await values(stage.cache, "a:x", "a:x:y", "b:x", session_id="s2") == [1, 2, 3]


async def test_a_phase_is_invalidated_as_a_whole_and_alone(stage: StoreStage) -> None:
    """Not the phase whose name it begins."""
    await stage.cache.create(SESSION)
    names = ["a:x", "a:x:1", "a:y", "ab:x", "b:x", "c:a"]
    await stage.cache.set_many(SESSION, [NewEntry(name, name) for name in names])
    assert await stage.cache.invalidate_phases(SESSION, []) == ()
    assert await stage.cache.invalidate_phases(SESSION, ["a", "c", "unheard-of"]) == ("a:x", "a:x:1", "a:y", "c:a")
    assert [entry.key for entry in await stage.cache.entries(SESSION)] == ["ab:x", "b:x"]


async def test_a_task_of_an_invalidated_phase_writes_nothing_any_more(stage: StoreStage) -> None:
    """What it would write rests on what was taken out; where no task was begun nobody is kept from writing."""
    await stage.cache.create(SESSION)
    await stage.put_task("analysis", "t1")
    await stage.put_task("review", "t2")
    await stage.cache.set(SESSION, KEY, 1, task_id="t1")
    assert await stage.cache.invalidate_phases(SESSION, ["analysis", "never"]) == (KEY,)
    with pytest.raises(PhaseReplaced, match="nobody writes for it"):
        await stage.cache.set(SESSION, KEY, 2, task_id="t1")
    await stage.cache.set(SESSION, "review:x", 1, task_id="t2")
    await stage.cache.set(SESSION, "never:x", 1, task_id="t3")


async def test_invalidating_downstream_follows_what_was_declared(stage: StoreStage) -> None:
    """Over entries and phases that wrote nothing, in whatever order they ran."""
    direct = {"b": ("a",), "c": ("b",), "d": ("c", "x"), "e": ("x",), "f": ("d",)}
    await stage.cache.create(SESSION, dependencies=direct)
    await stage.cache.set_many(SESSION, [NewEntry(f"{phase}:r", 1) for phase in "fedxba"])
    assert await stage.cache.invalidate_downstream(SESSION, "a") == ("b:r", "d:r", "f:r")
    assert await values(stage.cache, "a:r", "x:r", "e:r") == [1, 1, 1]


async def test_without_declared_dependencies_what_is_younger_depends(stage: StoreStage) -> None:
    """By each phase's first entry; who has none has nothing that depends on it."""
    await stage.cache.create(SESSION)
    await stage.cache.set_many(SESSION, [NewEntry(name, 1) for name in ("a:1", "b:1", "c:1", "a:2")])
    assert await stage.cache.invalidate_downstream(SESSION, "unheard-of") == ()
    assert await stage.cache.invalidate_downstream(SESSION, "b") == ("c:1",)
    assert await stage.cache.invalidate_downstream(SESSION, "a") == ("b:1",)


async def test_entries_are_listed_in_the_order_in_which_they_were_written(stage: StoreStage) -> None:
    """A new value is a new entry."""
    await stage.cache.create(SESSION)
    names = [f"a:x:{number}" for number in range(30)]
    for name in names:
        await stage.cache.set(SESSION, name, "x" * 5_000)
    await stage.cache.set(SESSION, names[0], 1)
    listed = await stage.cache.entries(SESSION)
    assert [entry.key for entry in listed] == [*names[1:], names[0]]
    assert {entry.bytes for entry in listed[:-1]} == {5_002}
    assert max(entry.stored_bytes for entry in listed[:-1]) < 500


async def test_a_session_without_entries_has_saved_nothing(stage: StoreStage) -> None:
    """Every number is 0, also the average age."""
    await stage.cache.create(SESSION)
    assert await stage.cache.stats(SESSION) == SessionStats()


async def test_what_is_saved_is_the_time_of_each_use(stage: StoreStage) -> None:
    """And it is told what was not worth keeping, and what should have been kept."""
    await stage.cache.create(SESSION)
    times = {"a:slow": 120_000, "a:unused": 50_000, "b:quick": 999, "c:enough": 1_000}
    for key, ms in times.items():
        await stage.cache.set(SESSION, key, 0, computation_ms=ms)
    for key, uses in {"a:slow": 3, "b:quick": 2, "c:enough": 1}.items():
        for _ in range(uses):
            await stage.cache.get(SESSION, key)
    for phase, took_ms in {"a": 170_000, "d": 10_001, "e": 10_000, "f": 60_000}.items():
        await stage.put_time(phase, took_ms)
    stats = await stage.cache.stats(SESSION)
    assert (stats.total_entries, stats.total_hits) == (4, 6)
    assert stats.total_saved_time_ms == 3 * 120_000 + 2 * 999 + 1_000
    assert 0 <= stats.avg_entry_age_ms < MINUTE_MS
    assert (stats.not_worth_caching, stats.uncached_phases) == (("b:quick",), ("d", "f"))


async def test_cleaning_up_removes_what_is_over(stage: StoreStage) -> None:
    """It was not shown before; this is no update of the session."""
    await stage.cache.create(SESSION)
    await stage.cache.set_many(SESSION, [NewEntry(KEY, 1, ttl=BLINK), NewEntry("b:x", 2)])
    await until_gone(stage.cache)
    before = await stage.cache.root(SESSION)
    assert before is not None
    assert before.entries == 2
    assert await stage.cache.cleanup(SESSION) == 1
    assert await stage.cache.cleanup(SESSION) == 0
    after = await stage.cache.root(SESSION)
    assert after is not None
    assert (after.entries, after.updated_ms) == (1, before.updated_ms)


async def test_sessions_are_listed_newest_first_page_by_page(stage: StoreStage) -> None:
    """Each once, by its last update, also of one state only."""
    names = [f"s{number}" for number in range(25)]
    for name in names:
        await stage.cache.create(name)
        await stage.cache.set(name, KEY, 1)
    for name in names[:3]:
        await stage.put_state("failed", name)
    for name in (names[7], names[1]):
        await stage.cache.set(name, "b:x", 1)
    page, listed = await stage.cache.sessions(limit=10), []
    while page:
        listed += page
        page = await stage.cache.sessions(limit=10, before=page[-1])
    # Within one millisecond it is the name that decides.
    places = [(root.listed_ms, root.session_id) for root in listed]
    assert places == sorted(places, reverse=True)
    assert sorted(root.session_id for root in listed) == sorted(names)
    last = {root.session_id: root for root in listed}
    assert {root.entries for name, root in last.items() if name not in {"s1", "s7"}} == {1}
    for name in ("s1", "s7"):
        assert last[name].entries == 2
        assert last[name].listed_ms >= last["s24"].listed_ms
    failed = await stage.cache.sessions(state="failed", limit=2)
    rest = await stage.cache.sessions(state="failed", limit=2, before=failed[-1])
    assert {root.session_id for root in failed + rest} == set(names[:3])


async def test_sweeping_forgets_what_is_gone_and_never_a_running_session(stage: StoreStage) -> None:
    """Expired entries of others go, too."""
    for name in ("brief", "running", "open"):
        await stage.cache.create(name, ttl=BLINK if name == "brief" else timedelta(hours=1))
    await stage.put_state("running", "running")
    for name in ("running", "open"):
        await stage.cache.set_many(name, [NewEntry(KEY, 1, ttl=BLINK), NewEntry("b:x", 2)])
        await until_gone(stage.cache, session_id=name)
    await until_over(stage.cache, "brief")
    assert await stage.cache.sweep() == []
    assert await stage.cache.sweep(grace=timedelta(0)) == ["brief"]
    assert await stage.cache.sweep(grace=timedelta(0)) == []
    left = {root.session_id: root.entries for root in await stage.cache.sessions()}
    assert left == {"running": 2, "open": 1}


async def test_a_session_is_dropped_with_everything_in_it(stage: StoreStage) -> None:
    """Not one that runs, unless somebody insists."""
    await stage.cache.create(SESSION, user_id="ada")
    await stage.cache.set(SESSION, KEY, 1)
    await stage.put_state("running")
    with pytest.raises(InvalidInput, match="'s1' runs; cancel it first"):
        await stage.cache.drop(SESSION)
    assert await values(stage.cache, KEY) == [1]
    assert await stage.cache.drop(SESSION, force=True)
    assert not await stage.cache.drop(SESSION)
    assert (await stage.cache.root(SESSION), await stage.cache.sessions(), await stage.cache.of_user("ada")) == (
        None,
        [],
        [],
    )
    await stage.cache.create(SESSION)
    assert await stage.cache.get(SESSION, KEY) is None


async def test_two_sessions_never_see_each_others_entries(stage: StoreStage) -> None:
    """Nor what the other hides or counts."""
    for name, value in ((SESSION, 1), ("s2", 2)):
        await stage.cache.create(name)
        await stage.cache.set_many(name, [NewEntry(KEY, value), NewEntry("pass_2:map", -value)])
    await stage.put_correction("analysis", "pass_2", "s2")
    await stage.cache.get(SESSION, KEY)
    assert await values(stage.cache, KEY, session_id=SESSION) == [1]
    assert await values(stage.cache, KEY, session_id="s2") == [-2]
    assert [entry.hits for entry in await stage.cache.entries("s2")] == [0, 0]
