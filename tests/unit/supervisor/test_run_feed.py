"""The feed of a run whose phases a test settles: which steps a client hears, from any place on."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.memory.sessions.pipeline_records import (
    PhaseState,
    PhaseStatus,
    RunRecord,
    RunState,
)
from tasklore.supervisor.feed.runs import (
    RunFeedEvent,
    RunPosition,
    RunSeen,
    RunStanding,
    RunStep,
    follow_run,
)


def a_standing(
    *states: PhaseState, run: int = 1, state: RunState = "running"
) -> RunStanding:
    """Return how run *run* stands, whose phases `a`, `b`, ... are in these *states*."""
    names = "abcdefgh"[: len(states)]
    phases = tuple(Phase(name=name, agent="EchoAgent", task="echo") for name in names)
    record = RunRecord(
        session_id="session",
        state=state,
        pipeline=Pipeline(name="naps", version=1, phases=phases),
        inputs={},
        supervisor_id="s1",
        user_id=None,
        project="",
        keep=False,
        run=run,
        phases=dict(zip(names, states, strict=True)),
        dependencies={},
        corrected={},
        created_ms=1,
        updated_ms=1,
    )
    return RunStanding("session", record, None)


def running(run: int) -> PhaseState:
    return PhaseState("running", run, f"t{run}", since_ms=10 * run)


def over(run: int, status: PhaseStatus = "done") -> PhaseState:
    return replace(running(run), status=status, ended_ms=10 * run + 5)


def left_out(run: int, status: PhaseStatus = "skipped") -> PhaseState:
    """Return the end of a phase that was dispatched *run* times, though not for this."""
    return PhaseState(status, run, ended_ms=10 * run + 7)


async def follow(
    *standings: RunStanding, after: RunPosition | None = None
) -> list[RunFeedEvent]:
    """Return the events for a client at *after* while the run stands as *standings* say, one a look."""

    async def listen(_subject: str, _hear: object) -> object:
        return object()

    async def unlisten(_subscription: object) -> None:
        pass

    left = list(standings)
    leaving = asyncio.Event()

    async def look() -> RunStanding:
        standing = left.pop(0)
        if not left:
            leaving.set()
        return standing

    link = cast("Any", SimpleNamespace(listen=listen, unlisten=unlisten))
    feed = follow_run(
        link, "session", look=look, after=after, leaving=leaving, beat_s=60.0
    )
    return [event async for events in feed for event in events]


def steps_in(events: list[RunFeedEvent]) -> list[tuple[str, str | None]]:
    """Return kind and phase of each step."""
    return [
        (event.event.kind, event.event.phase)
        for event in events
        if isinstance(event, RunStep)
    ]


@pytest.mark.parametrize(
    ("status", "kind"), [("skipped", "phase_skipped"), ("failed", "phase_failed")]
)
async def test_a_phase_that_ends_in_a_rerun_without_its_task_says_so(
    status: PhaseStatus, kind: str
) -> None:
    """It was done in the first run; none of its tasks begins in the second."""
    reset = a_standing(PhaseState(run=1), run=2)
    ended = a_standing(left_out(1, status), run=2)
    assert steps_in(await follow(ended, after=reset.place)) == [(kind, "a")]
    assert steps_in(await follow(ended, after=ended.place)) == []


async def test_a_phase_that_is_reset_within_a_run_tells_its_next_steps() -> None:
    """Whatever it reached before: left out, its end, or its beginning."""
    again = [("phase_started", "a"), ("phase_done", "a")]
    for before in (left_out(1), over(1), running(1)):
        seen = a_standing(before).place
        assert steps_in(await follow(a_standing(over(2)), after=seen)) == again
    seen = a_standing(over(1)).place
    skipped = a_standing(left_out(1))
    assert steps_in(await follow(skipped, after=seen)) == [("phase_skipped", "a")]


@pytest.mark.parametrize("order", ["abc", "bac", "cba"])
async def test_a_phase_ends_before_the_one_begins_that_waited_for_it(
    order: str,
) -> None:
    """Though all that is within a millisecond, the second takes none, and names say nothing of who waits for whom."""
    waited = PhaseState("done", 1, "t1", since_ms=10, ended_ms=15)
    quick = PhaseState("done", 1, "t2", since_ms=15, ended_ms=15)
    last = PhaseState("running", 1, "t3", since_ms=15)
    named = dict(zip(order, (waited, quick, last), strict=True))
    now = a_standing(*(named[name] for name in sorted(named)))
    unseen = a_standing(PhaseState(), PhaseState(), PhaseState()).place
    first, second, third = order
    assert steps_in(await follow(now, after=unseen)) == [
        ("phase_started", first),
        ("phase_done", first),
        ("phase_started", second),
        ("phase_done", second),
        ("phase_started", third),
    ]


async def test_a_phase_tells_its_steps_however_often_it_began() -> None:
    for run in (17, 18, 400, 10**6):
        seen = a_standing(PhaseState(run=run - 1), PhaseState()).place
        now = a_standing(over(run), PhaseState())
        events = await follow(now, after=RunPosition.parse(str(seen)))
        assert steps_in(events) == [("phase_started", "a"), ("phase_done", "a")]
        assert isinstance(events[-1], RunStep)
        assert events[-1].at == now.place


@pytest.mark.parametrize("phases", [1, 2])
async def test_a_client_that_was_slow_goes_on_with_how_the_next_run_stands(
    phases: int,
) -> None:
    """It was in a run that failed and runs again, by the same declaration or by one of a phase more."""
    first = a_standing(running(1))
    others = [PhaseState()] * (phases - 1)
    rerun = a_standing(PhaseState(run=1), *others, run=2)
    later = a_standing(running(2), *others, run=2)
    events = await follow(first, rerun, later)
    assert [type(event) for event in events] == [RunSeen, RunSeen, RunStep]
    assert [event.at for event in events] == [first.place, rerun.place, later.place]


async def test_a_client_that_comes_back_to_a_run_that_is_over_hears_its_end() -> None:
    ended = a_standing(over(1), state="failed")
    events = await follow(ended, after=a_standing(running(1)).place)
    assert steps_in(events) == [("phase_done", "a"), ("failed", None)]
    assert events[-1] == RunSeen(ended.place, ended, is_end=True)
    last = await follow(ended, after=ended.place)
    assert [event.at for event in last] == [ended.place]
