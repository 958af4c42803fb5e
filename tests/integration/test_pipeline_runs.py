"""The contract of pipeline runs, for the store on real servers and for the fake that stands for it."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import TypeVar

import pytest
from redis.asyncio import Redis

from contracts.errors import InvalidPipeline, PhaseReplaced, RunSetAside, UnknownSession
from contracts.identifiers import user_token
from contracts.pipelines import Phase, Pipeline
from memory import keys
from memory.sessions.pipeline_records import EndState, NewRun, PhaseState, PhaseStatus, Redeclared, RunRecord
from memory.sessions.pipeline_runs import GRACE_MS, PipelineRuns
from memory.sessions.session import SessionCache
from tests.fakes.pipeline_runs import FakePipelineRuns
from tests.servers import PATIENCE_S

Runs = PipelineRuns | FakePipelineRuns
T = TypeVar("T")

RUN = "run-1"
SUPERVISOR = "main"
LEASE_MS = 60_000
#: Milliseconds: long over for whoever asks next.
BLINK_MS = 1
NAMES = ("first", "second", "third")
PIPELINE = Pipeline(
    name="report",
    domain="seo",
    ttl="90s",
    phases=tuple(Phase(name=name, agent="Agent", task="work") for name in NAMES),
)
NEW = NewRun(
    RUN,
    PIPELINE,
    SUPERVISOR,
    inputs={"folder": "/srv", "depth": 3},
    dependencies={"second": ("first",), "third": ("second",)},
    user_id="ada",
)


@pytest.fixture(params=["store", "fake"])
def runs(request: pytest.FixtureRequest, valkey_or_redis: Redis) -> Runs:
    """Return each kind of runs."""
    return PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S) if request.param == "store" else FakePipelineRuns()


async def until(attempt: Callable[[], Awaitable[T | None]]) -> T:
    """Return what *attempt* returns once that is something, as when a lease is over."""
    async with asyncio.timeout(60):
        while True:
            found = await attempt()
            if found:
                return found
            await asyncio.sleep(0)


async def driven(runs: Runs, holder: str = "s1", new: NewRun = NEW) -> int:
    """Make a run and return the number of the lease under which *holder* drives it."""
    assert await runs.create(new)
    fence = await runs.claim(new.session_id, holder, LEASE_MS)
    assert fence is not None
    return fence


async def taken_over(runs: Runs) -> tuple[int, int]:
    """Make a run, let its driver die, and return that one's number and that of the next."""
    assert await runs.create(NEW)
    old = await runs.claim(RUN, "s1", BLINK_MS)
    assert old is not None
    return old, await until(lambda: runs.claim(RUN, "s2", LEASE_MS))


async def known(runs: Runs, session_id: str = RUN) -> RunRecord:
    """Return the run that there must be."""
    record = await runs.read(session_id)
    assert record is not None
    return record


def done(task_id: str | None, status: PhaseStatus = "done") -> PhaseState:
    """Return the end of a phase."""
    return PhaseState(status, 1, task_id, took_ms=1500, attempts=1, memory="miss")


async def test_a_run_is_read_as_it_was_made(runs: Runs) -> None:
    """Every phase waits, in the order of the pipeline."""
    assert await runs.create(NEW)
    record = await known(runs)
    assert record.pipeline == PIPELINE
    assert record.phases == dict.fromkeys(NAMES, PhaseState())
    assert list(record.phases) == list(NAMES)
    assert record.dependencies == {"second": ("first",), "third": ("second",)}
    assert record.created_ms == record.began_ms == record.updated_ms > 0
    assert replace(
        record, pipeline=PIPELINE, phases={}, dependencies={}, created_ms=0, began_ms=0, updated_ms=0
    ) == RunRecord(
        session_id=RUN,
        state="running",
        pipeline=PIPELINE,
        inputs={"folder": "/srv", "depth": 3},
        supervisor_id=SUPERVISOR,
        user_id="ada",
        project="report",
        keep=False,
        run=1,
        phases={},
        dependencies={},
        corrected={},
        created_ms=0,
        updated_ms=0,
    )


async def test_an_id_that_is_taken_is_not_made_again(runs: Runs) -> None:
    """Whoever asks compares what is there."""
    assert await runs.create(NEW)
    assert not await runs.create(replace(NEW, inputs={}))
    assert (await known(runs)).inputs == NEW.inputs


async def test_what_never_was_is_not_read(runs: Runs) -> None:
    """Neither is it due, claimed, cancelled or told of."""
    assert await runs.read("never") is None
    assert await runs.claim("never", "s1", LEASE_MS) is None
    assert await runs.due(SUPERVISOR) == []
    assert not await runs.request_cancel("never", "no")
    assert await runs.cancel_reason("never") is None
    assert await runs.outcome("never") is None
    assert await runs.seen("never") == {}
    with pytest.raises(UnknownSession, match="never"):
        await runs.reset_phases("never", {}, restart=True)


async def test_a_new_run_is_due_until_somebody_drives_it(runs: Runs) -> None:
    """Of its own supervisors only."""
    await runs.create(NEW)
    assert await runs.due(SUPERVISOR) == [RUN]
    assert await runs.due("other") == []
    assert await runs.claim(RUN, "s1", LEASE_MS)
    assert await runs.due(SUPERVISOR) == []


async def test_runs_are_due_in_the_order_in_which_they_wait(runs: Runs) -> None:
    """And no more of them than are asked for."""
    for name in ("a", "b", "c"):
        await runs.create(replace(NEW, session_id=name))
        # Whoever comes next comes at least a millisecond later.
        last = (await known(runs, name)).created_ms
        for number in itertools.count():
            await runs.create(replace(NEW, session_id=f"{name}-{number}", state="failed"))
            if (await known(runs, f"{name}-{number}")).created_ms > last:
                break
    assert await runs.due(SUPERVISOR) == ["a", "b", "c"]
    assert await runs.due(SUPERVISOR, limit=2) == ["a", "b"]


async def test_one_of_many_claimers_holds_the_run(runs: Runs) -> None:
    """Also when they share a name, and again after the lease was given back."""
    await runs.create(NEW)
    for _ in range(5):
        holders = [f"s{number % 10}" for number in range(20)]
        claims = await asyncio.gather(*(runs.claim(RUN, holder, LEASE_MS) for holder in holders))
        won = [(holder, fence) for holder, fence in zip(holders, claims, strict=True) if fence is not None]
        assert len(won) == 1
        assert (await known(runs)).holder == won[0][0]
        await runs.give_back(RUN, *won[0])
        assert (await known(runs)).holder is None


async def test_the_number_of_a_lease_only_grows(runs: Runs) -> None:
    """Also over a session of the same id that was removed, and made again from what was kept of it."""
    numbers = []
    for number in range(3):
        if number:
            assert await runs.create(replace(NEW, state="failed"))
            assert await runs.reset_phases(RUN, {}, restart=True)
        else:
            assert await runs.create(NEW)
        fence = await runs.claim(RUN, "s1", LEASE_MS)
        assert fence is not None
        await runs.give_back(RUN, "s1", fence)
        again = await runs.claim(RUN, "s1", LEASE_MS)
        assert again is not None
        numbers += [fence, again]
        assert await runs.end(RUN, again, "completed", b"{}", keep=False)
    assert numbers == sorted(set(numbers))


async def test_a_lease_that_lapsed_is_due_and_anybodys(runs: Runs) -> None:
    """Whoever had it cannot renew it, give it back or go on."""
    await runs.create(NEW)
    old = await runs.claim(RUN, "s1", BLINK_MS)
    assert old is not None
    assert await until(lambda: runs.due(SUPERVISOR)) == [RUN]
    assert not await runs.renew(RUN, "s1", old, LEASE_MS)
    new = await runs.claim(RUN, "s2", LEASE_MS)
    assert new is not None
    assert new > old
    await runs.give_back(RUN, "s1", old)
    assert (await known(runs)).holder == "s2"


async def test_a_late_phase_is_known_as_such_until_it_is_reset(runs: Runs) -> None:
    """From the first time that this was noted, which may be before it began; its end changes nothing of it."""
    fence = await driven(runs)
    assert await runs.note_late(RUN, fence, "first")
    late_ms = (await known(runs)).phases["first"].late_ms
    assert await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert await runs.note_late(RUN, fence, "first")
    assert await runs.begin_phase(RUN, fence, "second", "p-2", 1)
    assert not await runs.note_late(RUN, fence + 1, "second")
    record = await known(runs)
    assert (record.phases["first"].late_ms, record.lateness("first")) == (late_ms, "late: second began without it")
    assert await runs.settle_phase(RUN, fence, "first", done("p-1"))
    assert await runs.note_late(RUN, fence, "third")
    assert await runs.note_late(RUN, fence, "first")
    record = await known(runs)
    assert late_ms is not None
    assert [state.late_ms is not None for state in record.phases.values()] == [True, False, True]
    assert record.phases["first"].late_ms == late_ms
    reset = await runs.reset_phases(RUN, {"first": "again"}, restart=False, fence=fence)
    assert reset is not None
    assert reset.lateness("first") == ""


async def test_a_renewed_lease_is_kept(runs: Runs) -> None:
    """Nobody else gets the run, and it is not due."""
    await runs.create(NEW)
    fence = await runs.claim(RUN, "s1", LEASE_MS)
    assert fence is not None
    assert await runs.renew(RUN, "s1", fence, LEASE_MS)
    assert await runs.claim(RUN, "s2", LEASE_MS) is None
    assert await runs.due(SUPERVISOR) == []
    assert not await runs.renew(RUN, "s2", fence, LEASE_MS)
    assert not await runs.renew(RUN, "s1", fence + 1, LEASE_MS)


async def test_a_run_that_is_postponed_is_due_later(runs: Runs) -> None:
    """It is told whose it is, and nobody's when there is none."""
    await runs.create(NEW)
    assert await runs.user_of(RUN) == NEW.user_id
    assert await runs.user_of("nowhere") is None
    await runs.postpone(SUPERVISOR, RUN, 50)
    assert await runs.due(SUPERVISOR) == []
    assert await until(lambda: runs.due(SUPERVISOR)) == [RUN]


async def test_a_lease_that_was_given_back_is_due_at_once(runs: Runs) -> None:
    """A supervisor that leaves does not let its runs wait."""
    fence = await driven(runs)
    await runs.give_back(RUN, "s1", fence)
    assert await runs.due(SUPERVISOR) == [RUN]
    assert await runs.claim(RUN, "s2", LEASE_MS)


async def lapse(runs: Runs, *holders: str) -> None:
    """Let each of *holders* claim the run and die over it."""
    for holder in holders:
        assert await until(lambda: runs.claim(RUN, holder, BLINK_MS))  # noqa: B023 - awaited here
    assert await until(lambda: runs.due(SUPERVISOR)) == [RUN]


async def test_a_run_over_which_three_drivers_died_is_set_aside(runs: Runs) -> None:
    """It has failed and says why, nobody claims it, and it goes on once it is resumed."""
    await runs.create(NEW)
    await lapse(runs, "s1", "s2", "s3")
    with pytest.raises(RunSetAside, match="resume"):
        await runs.claim(RUN, "s4", LEASE_MS)
    record = await known(runs)
    assert (record.state, record.is_set_aside, record.holder) == ("failed", True, None)
    assert b"set aside" in (await runs.outcome(RUN) or b"")
    assert await runs.claim(RUN, "s4", LEASE_MS) is None
    assert await runs.due(SUPERVISOR) == []
    assert await runs.set_aside(SUPERVISOR) == [RUN]
    assert await runs.reset_phases(RUN, {}, restart=True)
    assert await runs.set_aside(SUPERVISOR) == []
    await lapse(runs, "s4", "s5", "s6")


async def test_a_claim_that_blames_nobody_counts_no_lapse(runs: Runs) -> None:
    """However many leases lapsed while the store was away."""
    await runs.create(NEW)
    for number in range(5):
        assert await until(lambda: runs.claim(RUN, f"s{number}", BLINK_MS, 0))  # noqa: B023 - awaited here
        assert await until(lambda: runs.due(SUPERVISOR)) == [RUN]
    await lapse(runs, *["s4"] * 2, "s5", "s6")


async def test_a_settled_phase_counts_anew_who_died_over_a_run(runs: Runs) -> None:
    """What goes on is not what kills."""
    await runs.create(NEW)
    await lapse(runs, "s1", "s2")
    fence = await runs.claim(RUN, "s3", LEASE_MS)
    assert fence is not None
    assert await runs.settle_phase(RUN, fence, "first", done(None, "skipped"))
    await runs.give_back(RUN, "s3", fence)
    await lapse(runs, "s4", "s5", "s6")


async def test_who_gives_a_run_back_or_claims_it_again_has_not_died_over_it(runs: Runs) -> None:
    """Restarts, and a store that was away for longer than a lease."""
    await runs.create(NEW)
    for number in range(4):
        fence = await runs.claim(RUN, f"s{number}", LEASE_MS)
        assert fence is not None
        await runs.give_back(RUN, f"s{number}", fence)
    await lapse(runs, *["same"] * 5)
    old = await until(lambda: runs.claim(RUN, "same", BLINK_MS))
    assert await until(lambda: runs.due(SUPERVISOR)) == [RUN]
    # Too late for the lease, and a sign of life all the same.
    await runs.give_back(RUN, "same", old)
    await lapse(runs, "s1", "s2", "s3")


async def test_a_run_that_was_set_aside_outlives_its_time_to_live(valkey_or_redis: Redis) -> None:
    """Somebody has to look at it first."""
    runs = PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S)
    await runs.create(NEW)
    await lapse(runs, "s1", "s2", "s3")
    with pytest.raises(RunSetAside):
        await runs.claim(RUN, "s4", LEASE_MS)
    assert await valkey_or_redis.pttl(keys.session(RUN).root) > 6 * 24 * 3600 * 1000


async def test_a_phase_begins_and_ends(runs: Runs) -> None:
    """With its task, its times and what its report said."""
    fence = await driven(runs)
    assert await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    running = (await known(runs)).phases["first"]
    assert (running.status, running.run, running.task_id, running.ended_ms) == ("running", 1, "p-1", None)
    assert running.since_ms is not None
    assert await runs.settle_phase(RUN, fence, "first", done("p-1"))
    ended = (await known(runs)).phases["first"]
    assert ended == replace(done("p-1"), since_ms=running.since_ms, ended_ms=ended.ended_ms)
    assert ended.ended_ms is not None
    assert ended.ended_ms >= running.since_ms


async def test_repeating_a_step_changes_nothing(runs: Runs) -> None:
    """A reply may be lost at any of them."""
    fence = await driven(runs)
    assert await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    begun = await known(runs)
    assert await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert (await known(runs)).phases == begun.phases
    assert await runs.settle_phase(RUN, fence, "first", done("p-1"))
    settled = await known(runs)
    assert await runs.settle_phase(RUN, fence, "first", done("p-1"))
    assert await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert (await known(runs)).phases == settled.phases
    assert await runs.end(RUN, fence, "failed", b"outcome", keep=False, error="no")
    assert await runs.end(RUN, fence, "failed", b"outcome", keep=False, error="no")
    assert not await runs.end(RUN, fence, "failed", b"other", keep=False)


async def test_a_phase_ends_only_once(runs: Runs) -> None:
    """What comes second, or of another task, is refused."""
    fence = await driven(runs)
    assert not await runs.settle_phase(RUN, fence, "first", done("p-0"))
    await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert not await runs.settle_phase(RUN, fence, "first", done("p-0"))
    assert await runs.settle_phase(RUN, fence, "first", done("p-1", "failed"))
    assert not await runs.settle_phase(RUN, fence, "first", done("p-1"))
    assert (await known(runs)).phases["first"].status == "failed"
    assert not await runs.begin_phase(RUN, fence, "unheard-of", "p-9", 1)


async def test_a_phase_can_be_left_out(runs: Runs) -> None:
    """It never had a task."""
    fence = await driven(runs)
    assert await runs.settle_phase(RUN, fence, "second", PhaseState("skipped", why="`when` is false"))
    left_out = (await known(runs)).phases["second"]
    assert (left_out.status, left_out.run, left_out.task_id, left_out.why) == ("skipped", 0, None, "`when` is false")
    assert left_out.is_over


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
async def test_nothing_is_taken_from_a_driver_that_was_replaced(runs: Runs, state: EndState) -> None:
    """Whatever it still believes: it can neither begin, settle, reset, note nor end."""
    old, new = await taken_over(runs)
    assert await runs.begin_phase(RUN, new, "first", "p-1", 1)
    before = await known(runs)
    assert not await runs.begin_phase(RUN, old, "second", "p-2", 1)
    assert not await runs.settle_phase(RUN, old, "first", done("p-1"))
    assert not await runs.note_seen(RUN, old, "first", {"a": "1"})
    assert not await runs.end(RUN, old, state, b"{}", keep=False)
    assert await runs.reset_phases(RUN, {"first": "why"}, restart=False, fence=old) is None
    assert await known(runs) == before
    assert await runs.seen(RUN) == {}
    assert await runs.outcome(RUN) is None


async def test_a_lapsed_lease_is_worth_nothing_even_when_nobody_took_it(runs: Runs) -> None:
    """Somebody may be about to."""
    await runs.create(NEW)
    old = await runs.claim(RUN, "s1", BLINK_MS)
    assert old is not None
    await until(lambda: runs.due(SUPERVISOR))
    assert not await runs.begin_phase(RUN, old, "first", "p-1", 1)
    assert not await runs.end(RUN, old, "completed", b"{}", keep=False)


async def test_a_completed_run_is_gone_with_its_session(runs: Runs) -> None:
    """Only its outcome is told; as long as that is so its id is taken, so that no repeat runs it once more."""
    fence = await driven(runs)
    await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert await runs.end(RUN, fence, "completed", b'{"result": 1}', keep=False)
    assert await runs.end(RUN, fence, "completed", b'{"result": 1}', keep=False)
    assert await runs.read(RUN) is None
    assert await runs.due(SUPERVISOR) == []
    assert await runs.outcome(RUN) == b'{"result": 1}'
    assert not await runs.begin_phase(RUN, fence, "second", "p-2", 1)
    assert not await runs.create(NEW)
    assert await runs.outcome(RUN) == b'{"result": 1}'
    assert await runs.create(replace(NEW, state="failed"))
    assert await runs.outcome(RUN) is None
    assert (await known(runs)).phases["first"] == PhaseState()


@pytest.mark.parametrize(("state", "keep"), [("completed", True), ("failed", False), ("cancelled", False)])
async def test_a_run_that_is_looked_at_later_is_kept(runs: Runs, state: EndState, keep: bool) -> None:
    """Without anybody driving it, and without being due."""
    fence = await driven(runs)
    await runs.settle_phase(RUN, fence, "first", done(None))
    assert await runs.end(RUN, fence, state, b"{}", keep=keep, error="third: no")
    record = await known(runs)
    assert (record.state, record.error, record.holder) == (state, "third: no", None)
    assert record.phases["first"].status == "done"
    assert await runs.due(SUPERVISOR) == []
    assert await runs.claim(RUN, "s1", LEASE_MS) is None
    assert not await runs.settle_phase(RUN, fence, "second", done(None))


@pytest.mark.parametrize(("state", "error_type"), [("cancelled", "TaskCancelled"), ("failed", "RunEnded")])
async def test_what_still_ran_when_its_run_ended_has_failed(runs: Runs, state: EndState, error_type: str) -> None:
    """With the time of that and the reason; what had ended or never began stays as it is."""
    fence = await driven(runs)
    for phase in NAMES[:2]:
        await runs.begin_phase(RUN, fence, phase, f"p-{phase}", 1)
    await runs.settle_phase(RUN, fence, "first", done("p-first"))
    before = await known(runs)
    assert await runs.end(RUN, fence, state, b"{}", keep=False, error='no "longer" wanted')
    after = await known(runs)
    ended = after.phases["second"]
    assert (ended.status, ended.error_type, ended.error) == ("failed", error_type, 'no "longer" wanted')
    assert (ended.run, ended.task_id, ended.since_ms) == (1, "p-second", before.phases["second"].since_ms)
    assert ended.ended_ms is not None
    assert (after.phases["first"], after.phases["third"]) == (before.phases["first"], before.phases["third"])


async def test_phases_are_reset_and_the_run_goes_on(runs: Runs) -> None:
    """Their number stays, so that their next task is another one."""
    fence = await driven(runs)
    for phase in NAMES[:2]:
        await runs.begin_phase(RUN, fence, phase, f"p-{phase}", 1)
    await runs.settle_phase(RUN, fence, "first", done("p-first"))
    await runs.settle_phase(RUN, fence, "second", done("p-second", "failed"))
    await runs.end(RUN, fence, "failed", b"{}", keep=False, error="second: no")
    record = await runs.reset_phases(
        RUN, {"second": "it failed"}, restart=True, expected_run=1, inputs={"folder": "/home"}
    )
    assert record is not None
    assert (record.state, record.run, record.error, record.inputs) == ("running", 2, "", {"folder": "/home"})
    assert record.phases["first"].status == "done"
    assert record.phases["second"] == PhaseState(run=1, why="it failed")
    assert await runs.outcome(RUN) is None
    assert await runs.due(SUPERVISOR) == [RUN]
    again = await runs.claim(RUN, "s2", LEASE_MS)
    assert again is not None
    assert again > fence


def a_declaration(*names: str) -> Pipeline:
    """Return another declaration of the run."""
    phases = tuple(Phase(name=name, agent="Agent", task="work") for name in names)
    return Pipeline(name="report", domain="ios", ttl="120s", phases=phases)


def redeclared(pipeline: Pipeline) -> Redeclared:
    """Return *pipeline* as the one that counts from now on."""
    return Redeclared(pipeline, {"new": ("first",)}, "shop")


async def test_a_run_goes_on_by_another_declaration(runs: Runs) -> None:
    """In one step: what is new is pending, what is gone is gone, and the rest is as it was."""
    fence = await driven(runs)
    for phase in NAMES[:2]:
        await runs.begin_phase(RUN, fence, phase, f"p-{phase}", 1)
    await runs.settle_phase(RUN, fence, "first", done("p-first"))
    await runs.settle_phase(RUN, fence, "second", done("p-second"), corrects="first")
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    first = (await known(runs)).phases["first"]
    pipeline = a_declaration("new", "first")
    why = {"new": "it is new", "second": "it was removed", "third": "it was removed"}
    record = await runs.reset_phases(RUN, why, restart=True, expected_run=1, declared=redeclared(pipeline))
    assert record is not None
    assert record.pipeline == pipeline
    assert list(record.phases.items()) == [("new", PhaseState(why="it is new")), ("first", first)]
    assert (record.dependencies, record.project, record.corrected) == ({"new": ("first",)}, "shop", {})
    assert record == await runs.read(RUN)


async def test_a_phase_that_comes_back_into_the_declaration_goes_on_counting(runs: Runs) -> None:
    """Otherwise its next task would have the id, and so the report, of an earlier one."""
    fence = await driven(runs)
    await runs.begin_phase(RUN, fence, "third", "p-3", 4)
    await runs.settle_phase(RUN, fence, "third", replace(done("p-3"), run=4))
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    for names in (("first",), NAMES):
        declared = redeclared(a_declaration(*names))
        record = await runs.reset_phases(RUN, {"third": "changed"}, restart=False, declared=declared)
    assert record is not None
    assert record.phases["third"] == PhaseState(run=4, why="changed")


async def test_another_declaration_is_refused_with_the_reset(runs: Runs) -> None:
    """Whoever comes too late changes nothing at all."""
    fence = await driven(runs)
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    before = await known(runs)
    declared = redeclared(a_declaration("new"))
    assert await runs.reset_phases(RUN, {"new": ""}, restart=True, expected_run=7, declared=declared) is None
    assert await known(runs) == before


async def test_what_is_only_invalidated_does_not_run(runs: Runs) -> None:
    """It is pending until somebody resumes the run."""
    fence = await driven(runs)
    await runs.settle_phase(RUN, fence, "first", done(None))
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    record = await runs.reset_phases(RUN, {"first": "a file changed"}, restart=False)
    assert record is not None
    assert (record.state, record.run) == ("failed", 1)
    assert record.phases["first"] == PhaseState(run=1, why="a file changed")
    assert await runs.due(SUPERVISOR) == []
    assert await runs.outcome(RUN) == b"{}"


async def test_nobody_resets_what_somebody_drives(runs: Runs) -> None:
    """But whoever drives it does."""
    fence = await driven(runs)
    await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert await runs.reset_phases(RUN, {"first": "why"}, restart=True) is None
    assert (await known(runs)).phases["first"].status == "running"
    record = await runs.reset_phases(RUN, {"first": "why"}, restart=False, fence=fence)
    assert record is not None
    assert record.phases["first"].status == "pending"
    assert not await runs.settle_phase(RUN, fence, "first", done("p-1"))
    assert await runs.begin_phase(RUN, fence, "first", "p-2", 2)


async def test_of_two_who_resume_one_does(runs: Runs) -> None:
    """The other one finds it running."""
    fence = await driven(runs)
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    resumed = await asyncio.gather(
        *(runs.reset_phases(RUN, {"third": str(number)}, restart=True, expected_run=1) for number in range(5))
    )
    assert sum(record is not None for record in resumed) == 1
    assert (await known(runs)).run == 2


async def test_a_correction_holds_until_the_correcting_phase_is_reset(runs: Runs) -> None:
    """Resetting another phase leaves it."""
    fence = await driven(runs)
    await runs.begin_phase(RUN, fence, "second", "p-2", 1)
    assert (await known(runs)).corrected == {}
    await runs.settle_phase(RUN, fence, "second", done("p-2"), corrects="first")
    assert (await known(runs)).corrected == {"first": "second"}
    await runs.reset_phases(RUN, {"third": ""}, restart=False, fence=fence)
    assert (await known(runs)).corrected == {"first": "second"}
    await runs.reset_phases(RUN, {"second": ""}, restart=False, fence=fence)
    assert (await known(runs)).corrected == {}


async def test_a_failed_or_skipped_correction_replaces_nothing(runs: Runs) -> None:
    """Pass one is still what there is."""
    fence = await driven(runs)
    await runs.begin_phase(RUN, fence, "second", "p-2", 1)
    await runs.settle_phase(RUN, fence, "second", done("p-2", "failed"), corrects="first")
    await runs.settle_phase(RUN, fence, "third", PhaseState("skipped"), corrects="first")
    assert (await known(runs)).corrected == {}


async def test_a_running_one_can_be_wished_cancelled(runs: Runs) -> None:
    """The first reason counts, and a resumed run forgets it."""
    fence = await driven(runs)
    assert await runs.cancel_reason(RUN) is None
    assert await runs.request_cancel(RUN, "too late")
    assert await runs.request_cancel(RUN, "too dear")
    assert await runs.cancel_reason(RUN) == (await known(runs)).cancel_reason == "too late"
    assert await runs.end(RUN, fence, "cancelled", b"{}", keep=False, error="too late")
    assert not await runs.request_cancel(RUN, "again")
    record = await runs.reset_phases(RUN, {}, restart=True)
    assert record is not None
    assert record.cancel_reason is None


async def test_what_a_phase_saw_is_kept_until_it_is_reset(runs: Runs) -> None:
    """Each phase's for itself."""
    fence = await driven(runs)
    assert await runs.note_seen(RUN, fence, "first", {"src/a.py": "1f", "src/ü.py": "2e"})
    assert await runs.note_seen(RUN, fence, "second", {})
    assert await runs.seen(RUN) == {"first": {"src/a.py": "1f", "src/ü.py": "2e"}, "second": {}}
    await runs.reset_phases(RUN, {"first": ""}, restart=False, fence=fence)
    assert await runs.seen(RUN) == {"second": {}}


async def test_a_run_is_made_anew_as_failed_and_then_resumed(runs: Runs) -> None:
    """As from its evidence: nobody drives it before everything is in its place."""
    phases = {"first": done("p-1"), "second": PhaseState("failed", 2, "p-2", error_type="GiveUp", error="no")}
    new = replace(NEW, state="failed", phases=phases, corrected={"first": "second"}, run=2)
    assert await runs.create(new)
    assert await runs.due(SUPERVISOR) == []
    assert await runs.claim(RUN, "s1", LEASE_MS) is None
    record = await known(runs)
    assert record.phases == {**phases, "third": PhaseState()}
    assert (record.run, record.corrected) == (2, {"first": "second"})
    resumed = await runs.reset_phases(RUN, {"second": "it failed"}, restart=True, expected_run=2)
    assert resumed is not None
    assert resumed.phases["second"].run == 2
    assert await runs.due(SUPERVISOR) == [RUN]


@pytest.mark.parametrize("text", ["ünïcode \u2028 \x00", 'quotes "and" \\ {}', "half a pair \ud800"])
async def test_whatever_an_error_says_is_kept(runs: Runs, text: str) -> None:
    """Agents raise what they like."""
    fence = await driven(runs)
    await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    state = replace(done("p-1", "failed"), error_type="ValueError", error=text)
    assert await runs.settle_phase(RUN, fence, "first", state)
    told = (await known(runs)).phases["first"].error
    assert told is not None
    assert told.replace("\ud800", "?") == text.replace("\ud800", "?")


@pytest.mark.parametrize("seed", range(12))
async def test_the_fake_does_whatever_the_store_does(valkey_or_redis: Redis, seed: int) -> None:
    """Over random steps of drivers that are right, late, wrong and repeat themselves."""
    both: tuple[Runs, Runs] = PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S), FakePipelineRuns()
    random = Random(seed)
    fences = [[0, 0]]
    for _ in range(150):
        step, phase, old = random.choice(STEPS), random.choice(NAMES), random.choice(fences[-3:])
        task = f"p-{random.randrange(3)}"
        keep = random.random() < 0.3
        told = [await step(one, fence, phase, task, keep) for one, fence in zip(both, old, strict=True)]
        if step is claim:
            assert (told[0] is None) == (told[1] is None)
            if all(told):
                fences.append(told)
        else:
            assert told[0] == told[1], step.__name__
        assert [await _seen_of(one) for one in both[:1]] == [await _seen_of(one) for one in both[1:]], step.__name__


async def _seen_of(runs: Runs) -> object:
    """Return all that can be seen of the run but times and numbers."""
    record = await runs.read(RUN)
    rest = await runs.outcome(RUN), await runs.cancel_reason(RUN), await runs.seen(RUN), await runs.due(SUPERVISOR)
    if record is None:
        return rest
    phases = {
        name: replace(state, since_ms=None, late_ms=state.late_ms and 1, ended_ms=None)
        for name, state in record.phases.items()
    }
    return replace(record, phases=phases, created_ms=0, began_ms=0, updated_ms=0, fence=0), rest


async def make(runs: Runs, _fence: int, phase: str, _task: str, keep: bool) -> object:
    """Make the run, new or out of its evidence."""
    if keep:
        return await runs.create(replace(NEW, state="failed", phases={phase: done("p-1")}))
    return await runs.create(NEW)


async def claim(runs: Runs, _fence: int, _phase: str, task: str, _keep: bool) -> object:
    """Claim the run under one of a few names."""
    return await runs.claim(RUN, f"s-{task}", LEASE_MS)


async def hold(runs: Runs, fence: int, _phase: str, task: str, _keep: bool) -> object:
    """Renew, perhaps under another's name."""
    return await runs.renew(RUN, f"s-{task}", fence, LEASE_MS)


async def leave(runs: Runs, fence: int, _phase: str, task: str, _keep: bool) -> object:
    """Give back, perhaps under another's name."""
    return await runs.give_back(RUN, f"s-{task}", fence)


async def begin(runs: Runs, fence: int, phase: str, task: str, _keep: bool) -> object:
    """Begin a phase."""
    return await runs.begin_phase(RUN, fence, phase, task, int(task[-1]) + 1)


async def settle(runs: Runs, fence: int, phase: str, task: str, keep: bool) -> object:
    """Let it be done, and correct another one, or fail."""
    corrects = {"third": "first", "second": "first"}.get(phase)
    return await runs.settle_phase(RUN, fence, phase, done(task, "failed" if keep else "done"), corrects)


async def skip(runs: Runs, fence: int, phase: str, _task: str, _keep: bool) -> object:
    """Leave a phase out."""
    return await runs.settle_phase(RUN, fence, phase, PhaseState("skipped", why="no"))


async def reset(runs: Runs, fence: int, phase: str, task: str, keep: bool) -> object:
    """Reset a phase, from within or from without."""
    try:
        record = await runs.reset_phases(
            RUN, {phase: task}, restart=keep, fence=fence if task == "p-1" else None, inputs={"task": task}
        )
    except UnknownSession:
        return "unknown"
    return record is not None


async def redeclare(runs: Runs, fence: int, phase: str, task: str, keep: bool) -> object:
    """Leave a phase out of the declaration, or put all in again."""
    names = [name for name in NAMES if keep or name != phase]
    pipeline = a_declaration(*names)
    why = dict.fromkeys({*names[:1], phase}, task)
    try:
        record = await runs.reset_phases(
            RUN, why, restart=task == "p-0", fence=fence if task == "p-1" else None, declared=redeclared(pipeline)
        )
    except UnknownSession:
        return "unknown"
    return record is not None


async def end(runs: Runs, fence: int, phase: str, _task: str, keep: bool) -> object:
    """End the run."""
    state: EndState = "completed" if phase == "first" else "failed" if phase == "second" else "cancelled"
    return await runs.end(RUN, fence, state, phase.encode(), keep=keep, error=phase)


async def wish(runs: Runs, _fence: int, _phase: str, task: str, _keep: bool) -> object:
    """Ask for its end."""
    return await runs.request_cancel(RUN, task)


async def note(runs: Runs, fence: int, phase: str, task: str, _keep: bool) -> object:
    """Note what a phase saw."""
    return await runs.note_seen(RUN, fence, phase, {task: "1"})


async def late(runs: Runs, fence: int, phase: str, _task: str, _keep: bool) -> object:
    """Note that a phase is late."""
    return await runs.note_late(RUN, fence, phase)


STEPS = (make, claim, claim, hold, leave, begin, begin, begin, settle, settle, skip, reset, redeclare, end, wish)
STEPS += (note, late)


async def test_a_session_that_runs_never_ends_by_time(valkey_or_redis: Redis) -> None:
    """Its time to live begins with its end, and covers all of it."""
    runs = PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S)
    fence = await driven(runs)
    await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    await runs.settle_phase(RUN, fence, "first", done("p-1"), corrects="second")
    await runs.note_seen(RUN, fence, "first", {"a": "1"})
    mine = keys.session(RUN)
    kept = (mine.root, mine.phases, mine.tasks, mine.corrected, mine.seen)
    assert [await valkey_or_redis.pttl(key) for key in kept] == [-1] * 5
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    left = [await valkey_or_redis.pttl(key) for key in kept]
    assert all(0 < ms <= 90_000 for ms in left)
    await runs.reset_phases(RUN, {"first": ""}, restart=True)
    assert await valkey_or_redis.pttl(mine.root) == -1


async def test_a_removed_session_leaves_nothing_behind(valkey_or_redis: Redis) -> None:
    """But how it ended, for a day, and whose it was: forgetting them has to find that."""
    runs = PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S)
    fence = await driven(runs)
    assert await valkey_or_redis.zscore(keys.index("sessions"), RUN)
    assert await valkey_or_redis.smembers(keys.user_sessions(user_token("ada"))) == {RUN.encode()}
    await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    await runs.settle_phase(RUN, fence, "first", done("p-1"), corrects="second")
    await runs.note_seen(RUN, fence, "first", {"a": "1"})
    await runs.end(RUN, fence, "completed", b"{}", keep=False)
    left = {keys.run(RUN).encode(), keys.user_sessions(user_token("ada")).encode()}
    assert set(await valkey_or_redis.keys("*")) == left
    assert 0 < await valkey_or_redis.pttl(keys.run(RUN)) <= 86_400_000


async def test_only_the_task_of_the_phase_may_write(valkey_or_redis: Redis) -> None:
    """Once the phase is reset, or has failed, nobody may."""
    runs = PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S)
    fence = await driven(runs)
    tasks = keys.session(RUN).tasks
    await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert await valkey_or_redis.hget(tasks, "first") == b"p-1"
    await runs.settle_phase(RUN, fence, "first", done("p-1", "failed"))
    assert await valkey_or_redis.hget(tasks, "first") == b""
    await runs.reset_phases(RUN, {"first": ""}, restart=False, fence=fence)
    await runs.begin_phase(RUN, fence, "first", "p-2", 2)
    await runs.begin_phase(RUN, fence, "second", "p-3", 1)
    await runs.reset_phases(RUN, {"first": ""}, restart=False, fence=fence)
    assert await valkey_or_redis.hget(tasks, "first") == b""
    await runs.end(RUN, fence, "cancelled", b"{}", keep=False)
    assert await valkey_or_redis.hget(tasks, "second") == b""


async def test_another_declaration_changes_the_session_and_removes_what_is_gone(valkey_or_redis: Redis) -> None:
    """Its time to live and domain count from now on, and no task of a phase that is gone writes any more."""
    runs, cache = (
        PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S),
        SessionCache(valkey_or_redis, deadline_s=PATIENCE_S),
    )
    fence = await driven(runs)
    for phase in NAMES[:2]:
        await runs.begin_phase(RUN, fence, phase, f"p-{phase}", 1)
        await cache.set(RUN, f"{phase}:results", phase, task_id=f"p-{phase}")
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    why = {"second": "it was removed", "third": "it was removed"}
    await runs.reset_phases(RUN, why, restart=False, declared=redeclared(a_declaration("first")))
    root = await cache.root(RUN)
    assert root is not None
    assert (root.domain, root.ttl_ms, root.project) == ("ios", 120_000, "shop")
    assert 90_000 < await valkey_or_redis.pttl(keys.session(RUN).root) <= 120_000
    assert [entry.key for entry in await cache.entries(RUN)] == ["first:results"]
    with pytest.raises(PhaseReplaced):
        await cache.set(RUN, "second:results", 1, task_id="p-second")


async def test_entries_of_a_phase_that_is_reset_are_gone(valkey_or_redis: Redis) -> None:
    """In the same step, with all that was counted of them; those of others stay."""
    runs = PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S)
    fence = await driven(runs)
    mine = keys.session(RUN)
    for key in (b"first:results", b"first:results:x", b"firstly:results", b"second:results"):
        await valkey_or_redis.hset(mine.entries, mapping={key: b"1", b":" + key: b"0:1:1:{}"})
        await valkey_or_redis.hset(mine.hits, key, 3)
    await runs.reset_phases(RUN, {"first": ""}, restart=False, fence=fence)
    assert set(await valkey_or_redis.hkeys(mine.entries)) == {
        b"firstly:results",
        b":firstly:results",
        b"second:results",
        b":second:results",
    }
    assert set(await valkey_or_redis.hkeys(mine.hits)) == {b"firstly:results", b"second:results"}


async def test_a_listed_session_that_does_not_run_is_taken_out_in_time(valkey_or_redis: Redis) -> None:
    """Not at once: somebody may be about to make it run."""
    runs = PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S)
    index = keys.running(SUPERVISOR)
    seconds, micros = await valkey_or_redis.time()
    now = seconds * 1000 + micros // 1000
    await valkey_or_redis.zadd(index, {"young": now - 1, "old": now - GRACE_MS - 1})
    assert await runs.due(SUPERVISOR) == []
    assert await valkey_or_redis.zrange(index, 0, -1) == [b"young"]


async def test_a_driven_session_that_looks_due_is_listed_for_the_end_of_its_lease(valkey_or_redis: Redis) -> None:
    """Whoever claimed it may have died before saying so there."""
    runs = PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S)
    await driven(runs)
    index = keys.running(SUPERVISOR)
    await valkey_or_redis.zadd(index, {RUN: 1})
    assert await runs.due(SUPERVISOR) == []
    assert float(await valkey_or_redis.zscore(index, RUN) or 0) > 1


async def test_a_session_without_a_pipeline_is_no_run(valkey_or_redis: Redis) -> None:
    """Nor can its phases be reset here."""
    runs = PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S)
    await valkey_or_redis.hset(keys.session(RUN).root, "state", "open")
    assert await runs.read(RUN) is None
    with pytest.raises(UnknownSession):
        await runs.reset_phases(RUN, {"first": ""}, restart=True)


async def test_a_pipeline_of_a_newer_version_is_refused_by_name(valkey_or_redis: Redis) -> None:
    """Not taken for something else."""
    runs = PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S)
    await driven(runs)
    await valkey_or_redis.hset(keys.session(RUN).root, "pipeline", b'{"name": "report", "novelty": 1}')
    with pytest.raises(InvalidPipeline, match="run-1"):
        await runs.read(RUN)
