"""Runs of pipelines on a real store: leases, phases, resets, ends, and who may write."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import (
    InvalidPipeline,
    PhaseReplaced,
    RunSetAside,
    UnknownSession,
)
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.sessions.pipeline_records import (
    EndState,
    NewRun,
    PhaseState,
    PhaseStatus,
    Redeclared,
    RunRecord,
)
from tasklore.memory.sessions.pipeline_runs import GRACE_MS, PipelineRuns
from tasklore.memory.sessions.session import SessionCache
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
    session_id=RUN,
    pipeline=PIPELINE,
    supervisor_id=SUPERVISOR,
    inputs={"folder": "/srv", "depth": 3},
    dependencies={"second": ("first",), "third": ("second",)},
    user_id="ada",
)


@pytest.fixture
def runs(valkey_or_redis: Redis) -> PipelineRuns:
    return PipelineRuns(valkey_or_redis, deadline_s=PATIENCE_S)


async def until(attempt: Callable[[], Awaitable[T | None]]) -> T:
    """Return what *attempt* returns once that is something, as when a lease is over."""
    async with asyncio.timeout(60):
        while True:
            found = await attempt()
            if found:
                return found
            await asyncio.sleep(0)


async def driven(runs: PipelineRuns, holder: str = "s1", new: NewRun = NEW) -> int:
    """Make a run and return the number of the lease under which *holder* drives it."""
    assert await runs.create(new)
    fence = await runs.claim(new.session_id, holder, LEASE_MS)
    assert fence is not None
    return fence


async def taken_over(runs: PipelineRuns) -> tuple[int, int]:
    """Make a run, let its driver die, and return that one's number and that of the next."""
    assert await runs.create(NEW)
    old = await runs.claim(RUN, "s1", BLINK_MS)
    assert old is not None
    return old, await until(lambda: runs.claim(RUN, "s2", LEASE_MS))


async def known(runs: PipelineRuns, session_id: str = RUN) -> RunRecord:
    """Return the run that there must be."""
    record = await runs.read(session_id)
    assert record is not None
    return record


def done(task_id: str | None, status: PhaseStatus = "done") -> PhaseState:
    """Return the end of a phase."""
    return PhaseState(status, 1, task_id, took_ms=1500, attempts=1, memory="miss")


async def test_a_run_is_created_once_and_read_as_it_was_made(
    runs: PipelineRuns,
) -> None:
    assert await runs.create(NEW)
    assert not await runs.create(replace(NEW, inputs={}))
    record = await known(runs)
    assert (record.pipeline, record.inputs, record.dependencies) == (
        PIPELINE,
        NEW.inputs,
        NEW.dependencies,
    )
    assert list(record.phases.items()) == [(name, PhaseState()) for name in NAMES]
    assert (record.state, record.supervisor_id, record.user_id, record.project) == (
        "running",
        "main",
        "ada",
        "report",
    )
    assert (record.keep, record.run, record.corrected, record.holder) == (
        False,
        1,
        {},
        None,
    )
    assert record.created_ms == record.began_ms == record.updated_ms > 0


async def test_a_session_that_is_taken_is_listed_for_its_own_user_alone(
    runs: PipelineRuns, valkey_or_redis: Redis
) -> None:
    """Also once its outcome alone is there."""
    sessions = SessionCache(valkey_or_redis, deadline_s=PATIENCE_S)
    fence = await driven(runs)
    for other in (
        replace(NEW, user_id="bob"),
        replace(NEW, user_id="bob", state="failed"),
        NEW,
    ):
        assert not await runs.create(other)
    assert await sessions.of_user("bob") == []
    assert await sessions.of_user("ada") == [RUN]
    await runs.end(RUN, fence, "completed", b"{}", keep=False)
    for other in (replace(NEW, user_id="bob"), NEW):
        assert not await runs.create(other)
    assert await sessions.of_user("bob") == []
    assert await sessions.of_user("ada") == [RUN]


async def test_a_session_that_is_taken_is_written_to_by_nobody_else(
    runs: PipelineRuns, valkey_or_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever died in between would leave it listed for a user whose forgetting removes it, and as due elsewhere."""
    sent: list[Command] = []
    whole = CommandBatch.run

    async def record(
        self: CommandBatch, commands: Sequence[Command], **told: Any
    ) -> list[Any]:
        sent.extend(commands)
        return await whole(self, commands, **told)

    sessions = SessionCache(valkey_or_redis, deadline_s=PATIENCE_S)
    fence = await driven(runs)
    before = await sessions.sessions()
    others = (
        replace(NEW, user_id="bob", supervisor_id="elsewhere"),
        replace(NEW, user_id="bob", state="failed"),
    )
    monkeypatch.setattr(CommandBatch, "run", record)
    for other in others:
        assert not await runs.create(other)
    monkeypatch.undo()
    after = await sessions.sessions()
    assert [one.listed_ms for one in after] == [one.listed_ms for one in before]
    await runs.end(RUN, fence, "completed", b"{}", keep=False)
    monkeypatch.setattr(CommandBatch, "run", record)
    assert not await runs.create(others[0])
    assert {str(command[0]) for command in sent} == {"TYPE", "EXISTS"}
    monkeypatch.undo()
    assert await sessions.sessions() == []
    assert await runs.due("elsewhere") == []


async def test_an_unknown_run_is_neither_read_nor_due_nor_claimed(
    runs: PipelineRuns,
) -> None:
    assert await runs.read("never") is None
    assert await runs.claim("never", "s1", LEASE_MS) is None
    assert await runs.due(SUPERVISOR) == []
    assert not await runs.request_cancel("never", "no")
    assert await runs.cancel_reason("never") is None
    assert await runs.outcome("never") is None
    assert await runs.seen("never") == {}
    with pytest.raises(UnknownSession, match="never"):
        await runs.reset_phases("never", {}, restart=True)


async def test_a_run_is_due_for_its_supervisor_while_no_lease_is_held(
    runs: PipelineRuns,
) -> None:
    await runs.create(NEW)
    assert await runs.due(SUPERVISOR) == [RUN]
    assert await runs.due("other") == []
    fence = await runs.claim(RUN, "s1", LEASE_MS)
    assert await runs.renew(RUN, "s1", fence, LEASE_MS)
    assert not await runs.renew(RUN, "s2", fence, LEASE_MS)
    assert not await runs.renew(RUN, "s1", fence + 1, LEASE_MS)
    assert await runs.due(SUPERVISOR) == []
    assert await runs.claim(RUN, "s2", LEASE_MS) is None
    await runs.give_back(RUN, "s1", fence)
    assert await runs.due(SUPERVISOR) == [RUN]
    assert await runs.claim(RUN, "s2", LEASE_MS)


async def test_runs_are_due_in_the_order_in_which_they_wait(runs: PipelineRuns) -> None:
    for name in ("a", "b", "c"):
        before_ms = await runs.now_ms()
        await until(lambda: later(runs, before_ms))  # noqa: B023 - awaited here
        await runs.create(replace(NEW, session_id=name))
    assert await runs.due(SUPERVISOR) == ["a", "b", "c"]
    assert await runs.due(SUPERVISOR, limit=2) == ["a", "b"]


async def later(runs: PipelineRuns, than_ms: int) -> bool:
    """Return whether another millisecond has begun by the clock of the store."""
    return await runs.now_ms() > than_ms


async def test_one_of_many_claimers_holds_the_run(runs: PipelineRuns) -> None:
    await runs.create(NEW)
    for _ in range(5):
        holders = [f"s{number % 10}" for number in range(20)]
        claims = await asyncio.gather(
            *(runs.claim(RUN, holder, LEASE_MS) for holder in holders)
        )
        won = [
            (holder, fence)
            for holder, fence in zip(holders, claims, strict=True)
            if fence is not None
        ]
        assert len(won) == 1
        assert (await known(runs)).holder == won[0][0]
        await runs.give_back(RUN, *won[0])
        assert (await known(runs)).holder is None


async def test_the_number_of_a_lease_only_grows(runs: PipelineRuns) -> None:
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


async def test_a_lapsed_lease_is_worth_nothing_and_the_run_is_due(
    runs: PipelineRuns,
) -> None:
    await runs.create(NEW)
    old = await runs.claim(RUN, "s1", BLINK_MS)
    assert await until(lambda: runs.due(SUPERVISOR)) == [RUN]
    assert not await runs.renew(RUN, "s1", old, LEASE_MS)
    assert not await runs.begin_phase(RUN, old, "first", "p-1", 1)
    assert not await runs.end(RUN, old, "completed", b"{}", keep=False)
    new = await runs.claim(RUN, "s2", LEASE_MS)
    assert new > old
    await runs.give_back(RUN, "s1", old)
    assert (await known(runs)).holder == "s2"


async def test_a_phase_stays_late_until_it_is_reset(runs: PipelineRuns) -> None:
    fence = await driven(runs)
    assert await runs.note_late(RUN, fence, "first")
    late_ms = (await known(runs)).phases["first"].late_ms
    assert await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert await runs.note_late(RUN, fence, "first")
    assert await runs.begin_phase(RUN, fence, "second", "p-2", 1)
    assert not await runs.note_late(RUN, fence + 1, "second")
    record = await known(runs)
    assert (record.phases["first"].late_ms, record.lateness("first")) == (
        late_ms,
        "late: second began without it",
    )
    assert await runs.settle_phase(RUN, fence, "first", done("p-1"))
    assert await runs.note_late(RUN, fence, "third")
    assert await runs.note_late(RUN, fence, "first")
    record = await known(runs)
    assert late_ms is not None
    assert [state.late_ms is not None for state in record.phases.values()] == [
        True,
        False,
        True,
    ]
    assert record.phases["first"].late_ms == late_ms
    reset = await runs.reset_phases(RUN, {"first": "again"}, restart=False, fence=fence)
    assert reset.lateness("first") == ""


async def test_a_run_that_is_postponed_is_due_later(runs: PipelineRuns) -> None:
    await runs.create(NEW)
    assert await runs.user_of(RUN) == NEW.user_id
    assert await runs.user_of("nowhere") is None
    await runs.postpone(SUPERVISOR, RUN, 50)
    assert await runs.due(SUPERVISOR) == []
    assert await until(lambda: runs.due(SUPERVISOR)) == [RUN]


async def lapse(runs: PipelineRuns, *holders: str) -> None:
    """Let each of *holders* claim the run and die over it."""
    for holder in holders:
        assert await until(lambda: runs.claim(RUN, holder, BLINK_MS))  # noqa: B023 - awaited here
    assert await until(lambda: runs.due(SUPERVISOR)) == [RUN]


async def test_a_run_over_which_three_drivers_died_is_set_aside(
    runs: PipelineRuns,
) -> None:
    await runs.create(NEW)
    await lapse(runs, "s1", "s2", "s3")
    with pytest.raises(RunSetAside, match="resume"):
        await runs.claim(RUN, "s4", LEASE_MS)
    record = await known(runs)
    assert (record.state, record.is_set_aside, record.holder) == ("failed", True, None)
    assert b"quarantined" in (await runs.outcome(RUN) or b"")
    assert await runs.claim(RUN, "s4", LEASE_MS) is None
    assert await runs.due(SUPERVISOR) == []
    assert await runs.set_aside(SUPERVISOR) == [RUN]
    assert await runs.reset_phases(RUN, {}, restart=True)
    assert await runs.set_aside(SUPERVISOR) == []
    await lapse(runs, "s4", "s5", "s6")


async def test_a_claim_without_blame_counts_no_lapse(runs: PipelineRuns) -> None:
    await runs.create(NEW)
    for number in range(5):
        assert await until(lambda: runs.claim(RUN, f"s{number}", BLINK_MS, 0))  # noqa: B023 - awaited here
        assert await until(lambda: runs.due(SUPERVISOR)) == [RUN]
    await lapse(runs, *["s4"] * 2, "s5", "s6")


async def test_giving_a_run_back_claiming_it_again_or_settling_a_phase_is_no_lapse(
    runs: PipelineRuns,
) -> None:
    """Restarts, and a store that was away for longer than a lease."""
    await runs.create(NEW)
    for number in range(4):
        fence = await runs.claim(RUN, f"s{number}", LEASE_MS)
        await runs.give_back(RUN, f"s{number}", fence)
    await lapse(runs, *["same"] * 5)
    old = await until(lambda: runs.claim(RUN, "same", BLINK_MS))
    assert await until(lambda: runs.due(SUPERVISOR)) == [RUN]
    # Too late for the lease, and a sign of life all the same.
    await runs.give_back(RUN, "same", old)
    await lapse(runs, "s1", "s2")
    fence = await runs.claim(RUN, "s3", LEASE_MS)
    assert await runs.settle_phase(RUN, fence, "first", done(None, "skipped"))
    await runs.give_back(RUN, "s3", fence)
    await lapse(runs, "s4", "s5", "s6")


async def test_a_run_that_was_set_aside_is_kept_for_days(
    runs: PipelineRuns, valkey_or_redis: Redis
) -> None:
    await runs.create(NEW)
    await lapse(runs, "s1", "s2", "s3")
    with pytest.raises(RunSetAside):
        await runs.claim(RUN, "s4", LEASE_MS)
    assert await valkey_or_redis.pttl(keys.session(RUN).root) > 6 * 24 * 3600 * 1000


async def test_a_phase_begins_and_ends_with_its_task_and_times(
    runs: PipelineRuns,
) -> None:
    fence = await driven(runs)
    assert await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    running = (await known(runs)).phases["first"]
    assert (running.status, running.run, running.task_id, running.ended_ms) == (
        "running",
        1,
        "p-1",
        None,
    )
    assert await runs.settle_phase(RUN, fence, "first", done("p-1"))
    ended = (await known(runs)).phases["first"]
    assert ended == replace(
        done("p-1"), since_ms=running.since_ms, ended_ms=ended.ended_ms
    )
    assert ended.ended_ms >= running.since_ms
    assert await runs.settle_phase(
        RUN, fence, "second", PhaseState("skipped", why="`when` is false")
    )
    skipped = (await known(runs)).phases["second"]
    assert (skipped.status, skipped.run, skipped.task_id, skipped.why) == (
        "skipped",
        0,
        None,
        "`when` is false",
    )
    assert skipped.is_over


async def test_a_phase_ends_once_and_repeating_a_step_changes_nothing(
    runs: PipelineRuns,
) -> None:
    """A reply may be lost at any step."""
    fence = await driven(runs)
    assert not await runs.settle_phase(RUN, fence, "first", done("p-0"))
    assert not await runs.begin_phase(RUN, fence, "unheard-of", "p-9", 1)
    assert await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    begun = await known(runs)
    assert await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert (await known(runs)).phases == begun.phases
    assert not await runs.settle_phase(RUN, fence, "first", done("p-0"))
    assert await runs.settle_phase(RUN, fence, "first", done("p-1", "failed"))
    settled = await known(runs)
    assert await runs.settle_phase(RUN, fence, "first", done("p-1", "failed"))
    assert not await runs.settle_phase(RUN, fence, "first", done("p-1"))
    assert await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert (await known(runs)).phases == settled.phases
    for _ in range(2):
        assert await runs.end(RUN, fence, "failed", b"outcome", keep=False, error="no")
    assert not await runs.end(RUN, fence, "failed", b"other", keep=False)


async def test_a_replaced_driver_changes_nothing(runs: PipelineRuns) -> None:
    old, new = await taken_over(runs)
    assert await runs.begin_phase(RUN, new, "first", "p-1", 1)
    before = await known(runs)
    assert not await runs.begin_phase(RUN, old, "second", "p-2", 1)
    assert not await runs.settle_phase(RUN, old, "first", done("p-1"))
    assert not await runs.note_seen(RUN, old, "first", {"a": "1"})
    for state in ("completed", "failed", "cancelled"):
        assert not await runs.end(RUN, old, state, b"{}", keep=False)
    assert (
        await runs.reset_phases(RUN, {"first": "why"}, restart=False, fence=old) is None
    )
    assert await known(runs) == before
    assert await runs.seen(RUN) == {}
    assert await runs.outcome(RUN) is None


async def test_a_completed_run_is_gone_with_its_session(runs: PipelineRuns) -> None:
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


@pytest.mark.parametrize(
    ("state", "keep"), [("completed", True), ("failed", False), ("cancelled", False)]
)
async def test_a_failed_cancelled_or_kept_run_stays_readable(
    runs: PipelineRuns, state: EndState, keep: bool
) -> None:
    fence = await driven(runs)
    await runs.settle_phase(RUN, fence, "first", done(None))
    assert await runs.end(RUN, fence, state, b"{}", keep=keep, error="third: no")
    record = await known(runs)
    assert (record.state, record.error, record.holder) == (state, "third: no", None)
    assert record.phases["first"].status == "done"
    assert await runs.due(SUPERVISOR) == []
    assert await runs.claim(RUN, "s1", LEASE_MS) is None
    assert not await runs.settle_phase(RUN, fence, "second", done(None))


@pytest.mark.parametrize(
    ("state", "error_type"), [("cancelled", "TaskCancelled"), ("failed", "RunEnded")]
)
async def test_phases_that_still_ran_when_the_run_ended_have_failed(
    runs: PipelineRuns, state: EndState, error_type: str
) -> None:
    fence = await driven(runs)
    for phase in NAMES[:2]:
        await runs.begin_phase(RUN, fence, phase, f"p-{phase}", 1)
    await runs.settle_phase(RUN, fence, "first", done("p-first"))
    before = await known(runs)
    assert await runs.end(
        RUN, fence, state, b"{}", keep=False, error='no "longer" wanted'
    )
    after = await known(runs)
    ended = after.phases["second"]
    assert (ended.status, ended.error_type, ended.error) == (
        "failed",
        error_type,
        'no "longer" wanted',
    )
    assert (ended.run, ended.task_id, ended.since_ms) == (
        1,
        "p-second",
        before.phases["second"].since_ms,
    )
    assert ended.ended_ms is not None
    assert (after.phases["first"], after.phases["third"]) == (
        before.phases["first"],
        before.phases["third"],
    )


async def test_reset_phases_are_pending_and_the_run_goes_on_once_it_is_restarted(
    runs: PipelineRuns,
) -> None:
    """Their number of runs stays, so that their next task is another one."""
    fence = await driven(runs)
    for phase in NAMES[:2]:
        await runs.begin_phase(RUN, fence, phase, f"p-{phase}", 1)
    await runs.settle_phase(RUN, fence, "first", done("p-first"))
    await runs.settle_phase(RUN, fence, "second", done("p-second", "failed"))
    await runs.end(RUN, fence, "failed", b"{}", keep=False, error="second: no")
    waiting = await runs.reset_phases(RUN, {"second": "a file changed"}, restart=False)
    assert (waiting.state, waiting.run) == ("failed", 1)
    assert waiting.phases["second"] == PhaseState(run=1, why="a file changed")
    assert await runs.due(SUPERVISOR) == []
    assert await runs.outcome(RUN) == b"{}"
    record = await runs.reset_phases(
        RUN,
        {"second": "it failed"},
        restart=True,
        expected_run=1,
        inputs={"folder": "/home"},
    )
    assert (record.state, record.run, record.error, record.inputs) == (
        "running",
        2,
        "",
        {"folder": "/home"},
    )
    assert record.phases["first"].status == "done"
    assert record.phases["second"] == PhaseState(run=1, why="it failed")
    assert await runs.outcome(RUN) is None
    assert await runs.due(SUPERVISOR) == [RUN]
    assert await runs.claim(RUN, "s2", LEASE_MS) > fence


def redeclared(*names: str) -> Redeclared:
    """Return another declaration, with phases called *names*."""
    phases = tuple(Phase(name=name, agent="Agent", task="work") for name in names)
    pipeline = Pipeline(name="report", domain="ios", ttl="120s", phases=phases)
    return Redeclared(pipeline, {"new": ("first",)}, "shop")


async def test_a_run_goes_on_by_another_declaration(runs: PipelineRuns) -> None:
    """In one step: new phases are pending, removed ones gone, and the rest is as it was; a late reset changes none."""
    fence = await driven(runs)
    for phase in NAMES[:2]:
        await runs.begin_phase(RUN, fence, phase, f"p-{phase}", 1)
    await runs.settle_phase(RUN, fence, "first", done("p-first"))
    await runs.settle_phase(RUN, fence, "second", done("p-second"), corrects="first")
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    before = await known(runs)
    declared = redeclared("new", "first")
    why = {"new": "it is new", "second": "it was removed", "third": "it was removed"}
    assert (
        await runs.reset_phases(
            RUN, why, restart=True, expected_run=7, declared=declared
        )
        is None
    )
    assert await known(runs) == before
    record = await runs.reset_phases(
        RUN, why, restart=True, expected_run=1, declared=declared
    )
    assert record.pipeline == declared.pipeline
    assert list(record.phases.items()) == [
        ("new", PhaseState(why="it is new")),
        ("first", before.phases["first"]),
    ]
    assert (record.dependencies, record.project, record.corrected) == (
        {"new": ("first",)},
        "shop",
        {},
    )
    assert record == await runs.read(RUN)


async def test_a_phase_that_is_declared_again_goes_on_counting_its_runs(
    runs: PipelineRuns,
) -> None:
    fence = await driven(runs)
    await runs.begin_phase(RUN, fence, "third", "p-3", 4)
    await runs.settle_phase(RUN, fence, "third", replace(done("p-3"), run=4))
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    for names in (("first",), NAMES):
        declared = redeclared(*names)
        record = await runs.reset_phases(
            RUN, {"third": "changed"}, restart=False, declared=declared
        )
    assert record.phases["third"] == PhaseState(run=4, why="changed")


async def test_only_the_driver_of_a_run_resets_its_phases(runs: PipelineRuns) -> None:
    fence = await driven(runs)
    await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    assert await runs.reset_phases(RUN, {"first": "why"}, restart=True) is None
    assert (await known(runs)).phases["first"].status == "running"
    record = await runs.reset_phases(RUN, {"first": "why"}, restart=False, fence=fence)
    assert record.phases["first"].status == "pending"
    assert not await runs.settle_phase(RUN, fence, "first", done("p-1"))
    assert await runs.begin_phase(RUN, fence, "first", "p-2", 2)


async def test_of_several_resumes_at_once_one_succeeds(runs: PipelineRuns) -> None:
    fence = await driven(runs)
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    resumed = await asyncio.gather(
        *(
            runs.reset_phases(RUN, {"third": str(number)}, restart=True, expected_run=1)
            for number in range(5)
        )
    )
    assert sum(record is not None for record in resumed) == 1
    assert (await known(runs)).run == 2


async def test_a_successful_correction_holds_until_its_phase_is_reset(
    runs: PipelineRuns,
) -> None:
    fence = await driven(runs)
    await runs.settle_phase(
        RUN, fence, "third", PhaseState("skipped"), corrects="first"
    )
    await runs.begin_phase(RUN, fence, "second", "p-2", 1)
    await runs.settle_phase(
        RUN, fence, "second", done("p-2", "failed"), corrects="first"
    )
    assert (await known(runs)).corrected == {}
    await runs.reset_phases(RUN, {"second": ""}, restart=False, fence=fence)
    await runs.begin_phase(RUN, fence, "second", "p-3", 2)
    await runs.settle_phase(RUN, fence, "second", done("p-3"), corrects="first")
    await runs.reset_phases(RUN, {"third": ""}, restart=False, fence=fence)
    assert (await known(runs)).corrected == {"first": "second"}
    await runs.reset_phases(RUN, {"second": ""}, restart=False, fence=fence)
    assert (await known(runs)).corrected == {}


async def test_a_cancel_request_keeps_its_first_reason_until_a_resume(
    runs: PipelineRuns,
) -> None:
    fence = await driven(runs)
    assert await runs.cancel_reason(RUN) is None
    assert await runs.request_cancel(RUN, "too late")
    assert await runs.request_cancel(RUN, "too dear")
    assert (
        await runs.cancel_reason(RUN) == (await known(runs)).cancel_reason == "too late"
    )
    assert await runs.end(RUN, fence, "cancelled", b"{}", keep=False, error="too late")
    assert not await runs.request_cancel(RUN, "again")
    record = await runs.reset_phases(RUN, {}, restart=True)
    assert record.cancel_reason is None


async def test_files_seen_by_a_phase_are_kept_until_it_is_reset(
    runs: PipelineRuns,
) -> None:
    fence = await driven(runs)
    assert await runs.note_seen(
        RUN, fence, "first", {"src/a.py": "1f", "src/ü.py": "2e"}
    )
    assert await runs.note_seen(RUN, fence, "second", {})
    assert await runs.seen(RUN) == {
        "first": {"src/a.py": "1f", "src/ü.py": "2e"},
        "second": {},
    }
    await runs.reset_phases(RUN, {"first": ""}, restart=False, fence=fence)
    assert await runs.seen(RUN) == {"second": {}}


async def test_a_run_restored_as_failed_is_resumed(runs: PipelineRuns) -> None:
    phases = {
        "first": done("p-1"),
        "second": PhaseState("failed", 2, "p-2", error_type="GiveUp", error="no"),
    }
    new = replace(
        NEW, state="failed", phases=phases, corrected={"first": "second"}, run=2
    )
    assert await runs.create(new)
    assert await runs.due(SUPERVISOR) == []
    assert await runs.claim(RUN, "s1", LEASE_MS) is None
    record = await known(runs)
    assert record.phases == {**phases, "third": PhaseState()}
    assert (record.run, record.corrected) == (2, {"first": "second"})
    resumed = await runs.reset_phases(
        RUN, {"second": "it failed"}, restart=True, expected_run=2
    )
    assert resumed.phases["second"].run == 2
    assert await runs.due(SUPERVISOR) == [RUN]


async def test_an_error_of_any_text_is_kept(runs: PipelineRuns) -> None:
    fence = await driven(runs)
    for phase, text in zip(
        NAMES,
        ("ünïcode \u2028 \x00", 'quotes "and" \\ {}', "half a pair \ud800"),
        strict=True,
    ):
        await runs.begin_phase(RUN, fence, phase, f"p-{phase}", 1)
        state = replace(
            done(f"p-{phase}", "failed"), error_type="ValueError", error=text
        )
        assert await runs.settle_phase(RUN, fence, phase, state)
        kept = (await known(runs)).phases[phase].error
        assert kept.replace("\ud800", "?") == text.replace("\ud800", "?")


@pytest.mark.parametrize(
    "seed",
    [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 12))],
)
async def test_random_steps_of_drivers_do_to_the_store_what_they_do_to_a_model(
    runs: PipelineRuns, seed: int
) -> None:
    """Drivers are right, late, wrong and repeat themselves; the model is the double of the unit tests."""
    both: tuple[Runs, Runs] = runs, FakePipelineRuns()
    random = Random(seed)
    fences = [[0, 0]]
    for _ in range(150):
        kind = random.choice(STEPS)
        phase = random.choice(NAMES)
        old = random.choice(fences[-3:])
        task = f"p-{random.randrange(3)}"
        keep = random.random() < 0.3
        found = [
            await take_step(one, kind, fence, phase, task, keep)
            for one, fence in zip(both, old, strict=True)
        ]
        if kind == "claim":
            assert (found[0] is None) == (found[1] is None)
            if all(found):
                fences.append(found)
        else:
            assert found[0] == found[1], kind
        assert await seen_of(both[0]) == await seen_of(both[1]), kind


async def seen_of(runs: Runs) -> object:
    """Return all that can be seen of the run but times and numbers."""
    record = await runs.read(RUN)
    rest = (
        await runs.outcome(RUN),
        await runs.cancel_reason(RUN),
        await runs.seen(RUN),
        await runs.due(SUPERVISOR),
    )
    if record is None:
        return rest
    phases = {
        name: replace(state, since_ms=None, late_ms=state.late_ms and 1, ended_ms=None)
        for name, state in record.phases.items()
    }
    return replace(
        record, phases=phases, created_ms=0, began_ms=0, updated_ms=0, fence=0
    ), rest


STEPS = (
    *(
        "make",
        "claim",
        "claim",
        "renew",
        "leave",
        "begin",
        "begin",
        "begin",
        "settle",
        "settle",
    ),
    *("skip", "reset", "redeclare", "end", "cancel", "note", "late"),
)


async def take_step(
    runs: Runs, kind: str, fence: int, phase: str, task: str, keep: bool
) -> object:
    """Do one thing to the run and return the answer; *keep* and *task* choose between ways to do it."""
    new = replace(NEW, state="failed", phases={phase: done("p-1")}) if keep else NEW
    corrects = {"third": "first", "second": "first"}.get(phase)
    state: EndState = {"first": "completed", "second": "failed", "third": "cancelled"}[
        phase
    ]
    names = [name for name in NAMES if keep or name != phase]
    own_fence = fence if task == "p-1" else None
    steps: dict[str, Callable[[], Awaitable[object]]] = {
        "make": lambda: runs.create(new),
        "claim": lambda: runs.claim(RUN, f"s-{task}", LEASE_MS),
        "renew": lambda: runs.renew(RUN, f"s-{task}", fence, LEASE_MS),
        "leave": lambda: runs.give_back(RUN, f"s-{task}", fence),
        "begin": lambda: runs.begin_phase(RUN, fence, phase, task, int(task[-1]) + 1),
        "settle": lambda: runs.settle_phase(
            RUN, fence, phase, done(task, "failed" if keep else "done"), corrects
        ),
        "skip": lambda: runs.settle_phase(
            RUN, fence, phase, PhaseState("skipped", why="no")
        ),
        "end": lambda: runs.end(
            RUN, fence, state, phase.encode(), keep=keep, error=phase
        ),
        "cancel": lambda: runs.request_cancel(RUN, task),
        "note": lambda: runs.note_seen(RUN, fence, phase, {task: "1"}),
        "late": lambda: runs.note_late(RUN, fence, phase),
        "reset": lambda: runs.reset_phases(
            RUN, {phase: task}, restart=keep, fence=own_fence, inputs={"task": task}
        ),
        "redeclare": lambda: runs.reset_phases(
            RUN,
            dict.fromkeys({*names[:1], phase}, task),
            restart=task == "p-0",
            fence=own_fence,
            declared=redeclared(*names),
        ),
    }
    try:
        answer = await steps[kind]()
    except UnknownSession:
        return "unknown"
    return answer is not None if kind.startswith("re") and kind != "renew" else answer


async def test_keys_of_a_run_expire_after_its_end_and_a_completed_run_leaves_its_outcome_and_owner(
    runs: PipelineRuns, valkey_or_redis: Redis
) -> None:
    fence = await driven(runs)
    assert await valkey_or_redis.zscore(keys.index("sessions"), RUN)
    owner = keys.user_sessions(user_token("ada"))
    assert await valkey_or_redis.smembers(owner) == {RUN.encode()}
    await runs.begin_phase(RUN, fence, "first", "p-1", 1)
    await runs.settle_phase(RUN, fence, "first", done("p-1"), corrects="second")
    await runs.note_seen(RUN, fence, "first", {"a": "1"})
    mine = keys.session(RUN)
    kept = (mine.root, mine.phases, mine.tasks, mine.corrected, mine.seen)
    assert [await valkey_or_redis.pttl(key) for key in kept] == [-1] * 5
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    assert all([0 < await valkey_or_redis.pttl(key) <= 90_000 for key in kept])
    await runs.reset_phases(RUN, {"second": ""}, restart=True)
    assert await valkey_or_redis.pttl(mine.root) == -1
    fence = await runs.claim(RUN, "s2", LEASE_MS)
    await runs.end(RUN, fence, "completed", b"{}", keep=False)
    assert set(await valkey_or_redis.keys("*")) == {
        keys.run(RUN).encode(),
        owner.encode(),
    }
    assert 0 < await valkey_or_redis.pttl(keys.run(RUN)) <= 86_400_000


async def test_only_the_task_of_the_phase_may_write(
    runs: PipelineRuns, valkey_or_redis: Redis
) -> None:
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


async def test_another_declaration_changes_the_session_and_removes_old_phases(
    runs: PipelineRuns, valkey_or_redis: Redis
) -> None:
    cache = SessionCache(valkey_or_redis, deadline_s=PATIENCE_S)
    fence = await driven(runs)
    for phase in NAMES[:2]:
        await runs.begin_phase(RUN, fence, phase, f"p-{phase}", 1)
        await cache.set(RUN, f"{phase}:results", phase, task_id=f"p-{phase}")
    await runs.end(RUN, fence, "failed", b"{}", keep=False)
    why = {"second": "it was removed", "third": "it was removed"}
    await runs.reset_phases(RUN, why, restart=False, declared=redeclared("first"))
    root = await cache.root(RUN)
    assert (root.domain, root.ttl_ms, root.project) == ("ios", 120_000, "shop")
    assert 90_000 < await valkey_or_redis.pttl(keys.session(RUN).root) <= 120_000
    assert [entry.key for entry in await cache.entries(RUN)] == ["first:results"]
    with pytest.raises(PhaseReplaced):
        await cache.set(RUN, "second:results", 1, task_id="p-second")


async def test_a_reset_removes_the_entries_of_its_phase(
    runs: PipelineRuns, valkey_or_redis: Redis
) -> None:
    fence = await driven(runs)
    mine = keys.session(RUN)
    for key in (
        b"first:results",
        b"first:results:x",
        b"firstly:results",
        b"second:results",
    ):
        await valkey_or_redis.hset(
            mine.entries, mapping={key: b"1", b":" + key: b"0:1:1:{}"}
        )
        await valkey_or_redis.hset(mine.hits, key, 3)
    await runs.reset_phases(RUN, {"first": ""}, restart=False, fence=fence)
    left = {b"firstly:results", b"second:results"}
    assert set(await valkey_or_redis.hkeys(mine.entries)) == left | {
        b":" + key for key in left
    }
    assert set(await valkey_or_redis.hkeys(mine.hits)) == left


async def test_a_listed_session_that_does_not_run_is_removed_after_a_grace(
    runs: PipelineRuns, valkey_or_redis: Redis
) -> None:
    index = keys.running(SUPERVISOR)
    seconds, micros = await valkey_or_redis.time()
    now = seconds * 1000 + micros // 1000
    await valkey_or_redis.zadd(index, {"young": now - 1, "old": now - GRACE_MS - 1})
    assert await runs.due(SUPERVISOR) == []
    assert await valkey_or_redis.zrange(index, 0, -1) == [b"young"]


async def test_a_driven_session_in_the_index_is_due_at_the_end_of_its_lease(
    runs: PipelineRuns, valkey_or_redis: Redis
) -> None:
    await driven(runs)
    index = keys.running(SUPERVISOR)
    await valkey_or_redis.zadd(index, {RUN: 1})
    assert await runs.due(SUPERVISOR) == []
    assert float(await valkey_or_redis.zscore(index, RUN) or 0) > 1


async def test_a_root_without_a_pipeline_or_of_a_newer_version_is_no_run(
    runs: PipelineRuns, valkey_or_redis: Redis
) -> None:
    await valkey_or_redis.hset(keys.session(RUN).root, "state", "open")
    assert await runs.read(RUN) is None
    with pytest.raises(UnknownSession):
        await runs.reset_phases(RUN, {"first": ""}, restart=True)
    await valkey_or_redis.flushdb()
    await driven(runs)
    await valkey_or_redis.hset(
        keys.session(RUN).root, "pipeline", b'{"name": "report", "novelty": 1}'
    )
    with pytest.raises(InvalidPipeline, match="run-1"):
        await runs.read(RUN)
