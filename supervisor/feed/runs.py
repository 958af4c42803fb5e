"""The feed of a run of a pipeline: how it stands, each step since, and its end.

Steps come from comparing how the run stands with how far the client is, at any supervisor and as long as it is known
how the run ended; drivers' own events only say when to look, and nothing is kept of those that are no step.
"""

import asyncio
import math
import re
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.messages import PipelineEvent, PipelineEventKind
from tasklore.contracts.pipelines import MOST_PHASES
from tasklore.memory.sessions.pipeline_records import RunRecord
from tasklore.supervisor.feed.beats import Heartbeat
from tasklore.supervisor.pipelines.outcome import describe_outcome

if TYPE_CHECKING:
    from tasklore.runtime.messaging.link import Arrival, Link

#: Seconds between looks at a run without any news, and until it is looked at again whose step is not stored yet.
_LOOK_S = 1.0
_STORED_S = 0.02
#: Events that wait for a slow client; how the run stands makes up for those that it missed.
_MOST_WAITING = 256
#: Between the stages of two phases.
_NEXT = "-"
#: A place as clients send it: the number of the run, a stage a phase, and how much of its end is known.
RUN_PLACE = (
    rf"[0-9]{{1,9}}\.[0-9]{{1,12}}({_NEXT}[0-9]{{1,12}}){{0,{MOST_PHASES - 1}}}"
    r"(\.over|\.end)?"
)
#: Stages that a phase passes each time it began: begun, over, pending again, and over without having begun again.
_STAGES = 4
#: Events of drivers that tell no step of a phase, and are handed on as they come.
_BESIDE: frozenset[PipelineEventKind] = frozenset(
    ("accepted", "phase_progress", "phase_reused", "phase_stale", "other")
)
_KINDS: Mapping[str, PipelineEventKind] = {
    "done": "phase_done",
    "failed": "phase_failed",
    "skipped": "phase_skipped",
}


class RunPosition(NamedTuple):
    """How far a client is: in which run of the session, how far in each phase by name, and how much it has of the end.

    *end* is "over" once it knows that the run is over, "end" once it knows how the run stands then; "" before.
    """

    run: int
    stages: tuple[int, ...]
    end: str = ""

    def __str__(self) -> str:
        """Return it as clients send it, such as `1.5-4-0` or `1.5-5-3.end`."""
        stages = _NEXT.join(map(str, self.stages))
        return f"{self.run}.{stages}{'.' if self.end else ''}{self.end}"

    @classmethod
    def parse(cls, text: str) -> "RunPosition":
        """Return the place that *text* spells.

        Raises:
            ValueError: it spells none.
        """
        if re.fullmatch(RUN_PLACE, text) is None:
            raise ValueError(f"{text!r} is not a position in the events of a run")
        run, stages, *end = text.split(".")
        return cls(int(run), tuple(map(int, stages.split(_NEXT))), *end)


class PhaseStanding(NamedTuple):
    """How one phase stands; `run` is how often it began, in all runs of the session."""

    phase: str
    status: str
    run: int
    agent_id: str | None
    task_id: str | None
    since_ms: int | None
    ended_ms: int | None
    took_ms: int
    text: str

    @property
    def begun(self) -> int:
        """The stage at which it began the last time."""
        return _STAGES * self.run

    @property
    def has_begun(self) -> bool:
        """Whether it began since it was last made pending: one that is left out, or fails before that, has not."""
        return self.status == "running" or self.since_ms is not None

    @property
    def stage(self) -> int:
        """How far it is, 0 at first; within a run of the session it only grows, but for one left out more than once."""
        if self.status == "pending":
            return self.begun + 2 if self.run else 0
        if self.status in _KINDS:
            return self.begun + (1 if self.has_begun else 3)
        return self.begun


@dataclass(frozen=True, slots=True)
class RunStanding:
    """A run as its session has it, None where that is gone, and as its outcome has it, None while there is none."""

    session_id: str
    record: RunRecord | None
    outcome: dict[str, Any] | None

    @property
    def state(self) -> str:
        """The state of the run."""
        if self.record is not None:
            return self.record.state
        return str((self.outcome or {}).get("state"))

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.state != "running"

    @property
    def pipeline(self) -> str:
        """The name of the pipeline."""
        if self.record is not None:
            return self.record.pipeline.name
        return str((self.outcome or {}).get("pipeline"))

    @property
    def phases(self) -> list[PhaseStanding]:
        """The phases, by name."""
        if self.record is not None:
            found = _phases_of_record(self.record)
        else:
            found = [_phase_of_outcome(one) for one in (self.outcome or {})["phases"]]
        return sorted(found)

    @property
    def place(self) -> RunPosition:
        """The place of a client that knows all of this."""
        run = self.record.run if self.record is not None else self.outcome["run"]  # type: ignore[index]  # it has one
        stages = tuple(one.stage for one in self.phases)
        return RunPosition(run, stages, "end" if self.is_over else "")


class RunSeen(NamedTuple):
    """How a run stands, for a client that begins to listen, or at its end."""

    at: RunPosition
    standing: RunStanding
    is_end: bool = False


class RunStep(NamedTuple):
    """A step of a run; *at* is None for one that no client goes on behind."""

    at: RunPosition | None
    event: PipelineEvent


RunFeedEvent = RunSeen | RunStep


class _StepTaken(NamedTuple):
    """A step of the phase with a number, and from when to when this runs, in the order in which steps are told."""

    at_ms: int
    since_ms: int
    until_ms: float
    number: int
    stage: int
    kind: PipelineEventKind


async def follow_run(
    link: "Link",
    session_id: str,
    *,
    look: Callable[[], Awaitable[RunStanding]],
    after: RunPosition | None,
    leaving: asyncio.Event,
    beat_s: float,
) -> AsyncGenerator[list[RunFeedEvent], None]:
    """Yield how a run stands and every step from then on, or each step behind *after*; its end is the last.

    How it stands is yielded again where it runs anew, and *after* is left out where that is of another run. Nothing at
    all is yielded every *beat_s* seconds. It ends without the end of the run once the process is *leaving*. Errors of
    *look* are raised.
    """
    async with _hear(link, session_id) as heard:
        at = after
        pause_s = _LOOK_S
        beat = Heartbeat(beat_s)
        while True:
            heard.news.clear()
            standing = await look()
            events: list[RunFeedEvent] = []
            if at is None or not _is_before(at, standing.place):
                at = standing.place._replace(end="over" if standing.is_over else "")
                events.append(RunSeen(at, standing))
            steps = _steps_between(at, standing)
            if steps:
                at = steps[-1].at or at
                pause_s = _LOOK_S
            events += steps
            events += [RunStep(None, event) for event in heard.take()]
            if standing.is_over:
                yield [*events, *_end_of(at, standing)]
                return
            if events:
                yield events
            if leaving.is_set():
                return
            try:
                async with asyncio.timeout(min(pause_s, beat.due_in_s)):
                    await heard.news.wait()
                # The step may not be stored yet of which was heard.
                pause_s = _STORED_S
            except TimeoutError:
                pause_s = min(_LOOK_S, 2 * pause_s)
            if beat.take():
                yield []


class _Heard:
    """The events of drivers that are waiting for a client."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._waiting: deque[PipelineEvent] = deque(maxlen=_MOST_WAITING)

    def hear(self, arrival: "Arrival") -> None:
        """Take one."""
        try:
            event = PipelineEvent.model_validate_json(arrival.body)
        except ValidationError:
            return
        if event.kind in _BESIDE:
            self._waiting.append(event)
        self.news.set()

    def take(self) -> list[PipelineEvent]:
        """Return those that came since the last call."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken


@asynccontextmanager
async def _hear(link: "Link", session_id: str) -> AsyncIterator[_Heard]:
    heard = _Heard()
    subscription = await link.listen(subjects.run_events(session_id), heard.hear)
    try:
        yield heard
    finally:
        await link.unlisten(subscription)


def _is_before(at: RunPosition, now: RunPosition) -> bool:
    """Return whether *at* is a place in the run that is at *now*."""
    return at.run == now.run and len(at.stages) == len(now.stages)


def _steps_between(at: RunPosition, standing: RunStanding) -> list[RunStep]:
    """Return the steps from *at* to how the run stands, in the order of their times.

    Of those in one millisecond the steps of whichever phase began first come first, and then of the one that ended
    first: a phase ends before the one begins that waited for it.
    """
    phases = standing.phases
    steps: list[_StepTaken] = []
    for number, (seen, phase) in enumerate(zip(at.stages, phases, strict=True)):
        stage = phase.stage
        begun = phase.begun
        has_ended = phase.status in _KINDS
        ended_ms = phase.ended_ms or phase.since_ms or 0
        since_ms = phase.since_ms or ended_ms
        until_ms = ended_ms if has_ended else math.inf
        if begun > seen and phase.has_begun:
            started = _StepTaken(
                at_ms=since_ms,
                since_ms=since_ms,
                until_ms=until_ms,
                number=number,
                stage=begun,
                kind="phase_started",
            )
            steps.append(started)
        if stage > seen and has_ended:
            ended = _StepTaken(
                at_ms=ended_ms,
                since_ms=since_ms,
                until_ms=until_ms,
                number=number,
                stage=stage,
                kind=_KINDS[phase.status],
            )
            steps.append(ended)
    through = _count_through(phases)
    stages = list(at.stages)
    found = []
    for step in sorted(steps):
        phase = phases[step.number]
        stages[step.number] = step.stage
        event = PipelineEvent(
            session_id=standing.session_id,
            pipeline=standing.pipeline,
            kind=step.kind,
            phase=phase.phase,
            agent_id=phase.agent_id,
            task_id=phase.task_id,
            text="" if step.kind == "phase_started" else phase.text,
            run_ms=None
            if step.kind in ("phase_started", "phase_skipped")
            else phase.took_ms,
            through=through,
            total=len(phases),
            at=datetime.fromtimestamp(step.at_ms / 1000, UTC),
        )
        found.append(RunStep(RunPosition(at.run, tuple(stages)), event))
    return found


def _end_of(at: RunPosition, standing: RunStanding) -> list[RunFeedEvent]:
    """Return that the run is over, unless that is known *at* the place of the client, and how it stands then."""
    seen = RunSeen(standing.place, standing, is_end=True)
    if at.end:
        return [seen]
    outcome = standing.outcome
    record = standing.record
    event = PipelineEvent(
        session_id=standing.session_id,
        pipeline=standing.pipeline,
        kind=cast("PipelineEventKind", standing.state),
        text=describe_outcome(outcome) if outcome else record.error if record else "",
        run_ms=outcome and outcome["took_ms"],
        through=_count_through(standing.phases),
        total=len(standing.phases),
        at=outcome["ended_at"] if outcome else datetime.now(UTC),
    )
    return [RunStep(standing.place._replace(end="over"), event), seen]


def _count_through(phases: Sequence[PhaseStanding]) -> int:
    return sum(phase.status in ("done", "skipped") for phase in phases)


def _phases_of_record(record: RunRecord) -> list[PhaseStanding]:
    agents = {phase.name: phase.agent for phase in record.pipeline.phases}
    return [
        PhaseStanding(
            phase=name,
            status=state.status,
            run=state.run,
            agent_id=agents.get(name),
            task_id=state.task_id,
            since_ms=state.since_ms,
            ended_ms=state.ended_ms,
            took_ms=state.took_ms,
            text=_text_of(state.error_type, state.error, state.why),
        )
        for name, state in record.phases.items()
    ]


def _phase_of_outcome(one: Mapping[str, Any]) -> PhaseStanding:
    status = str(one["status"])
    return PhaseStanding(
        phase=one["phase"],
        status="running" if status == "cancelled" else status,
        run=one["run"],
        agent_id=one["agent"],
        task_id=one.get("task_id"),
        since_ms=one.get("since_ms"),
        ended_ms=one.get("ended_ms"),
        took_ms=one["took_ms"],
        text=_text_of(one["error_type"], one["error"], one["why"]),
    )


def _text_of(error_type: str | None, error: str | None, why: str) -> str:
    return f"{error_type}: {error}" if error_type is not None else why
