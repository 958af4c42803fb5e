"""Records of a run of a pipeline: the state of each phase and of the whole run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Literal

from pydantic import JsonValue

from tasklore.contracts.callers import Caller
from tasklore.contracts.pipelines import Pipeline

#: How far a phase is. `failed` and `skipped` are ends as `done` is.
PhaseStatus = Literal["pending", "running", "done", "failed", "skipped"]
#: How far a run is; `open` is a session that no pipeline runs in.
RunState = Literal["open", "running", "failed", "completed", "cancelled"]
#: How a run can end.
EndState = Literal["failed", "completed", "cancelled"]

#: The statuses that a phase leaves only by a reset.
ENDED: Final[frozenset[PhaseStatus]] = frozenset({"done", "failed", "skipped"})

#: Drivers in turn that may freeze or die over a run before a phase is settled.
MOST_LAPSES = 3
#: Why a run has failed over which three holders of its lease in turn froze or died.
SET_ASIDE = (
    "quarantined: three supervisors hung or crashed while running it; check their "
    "logs, then resume it with `tasklore pipelines resume SESSION`"
)


@dataclass(frozen=True, slots=True)
class PhaseState:
    """How far one phase is.

    `run` tells how often it was dispatched, over all runs of the session; it outlives a reset, so that no task id comes
    again. `task_id` is the task of that run, None when none was. `since_ms`, `late_ms` and `ended_ms` are ms since 1970
    by the server's clock, None while they have not come; whoever settles a phase need not fill them. `took_ms` is how
    long it took, `computed_ms` for how long its tasks computed, all together and without what they waited for others to
    compute; None where that is the same. `attempts` is how many runs its worker began. `error_type` and `error` are
    None unless it failed. `why` says why it is stale, was skipped or was reused; `memory` what the long-term memory had
    to do with it, a `MemoryOutcome` or "".
    """

    status: PhaseStatus = "pending"
    run: int = 0
    task_id: str | None = None
    since_ms: int | None = None
    late_ms: int | None = None
    ended_ms: int | None = None
    took_ms: int = 0
    computed_ms: int | None = None
    attempts: int = 0
    error_type: str | None = None
    error: str | None = None
    why: str = ""
    memory: str = ""

    @property
    def computing_ms(self) -> int:
        """For how long its tasks computed."""
        return self.took_ms if self.computed_ms is None else self.computed_ms

    @property
    def is_over(self) -> bool:
        """Whether it is done, failed or left out."""
        return self.status in ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run to be made, with its session.

    `dependencies` names for each phase the phases it directly depends on. `phases` holds what is known of some phases
    already, `corrected` which of them are replaced by which, and `seen` what each read beside the session: for a run
    that is made anew from its evidence, as `failed`, and then resumed. Phases not named there are pending. `inputs` are
    kept as they are: leave out what must not be. `caller` is who asked for it, whose
    its tasks are. `project` None is the pipeline's own. `trace` is the trace context
    that the request for it came with, "" for none.
    """

    session_id: str
    pipeline: Pipeline
    supervisor_id: str
    inputs: Mapping[str, JsonValue] = field(default_factory=dict)
    dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    user_id: str | None = None
    project: str | None = None
    keep: bool = False
    state: Literal["running", "failed"] = "running"
    phases: Mapping[str, PhaseState] = field(default_factory=dict)
    corrected: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    run: int = 1
    trace: str = ""
    caller: Caller | None = None


@dataclass(frozen=True, slots=True)
class Redeclared:
    """Another declaration for a run that there is; `dependencies` as in `NewRun`, `project` is noted in from now on."""

    pipeline: Pipeline
    dependencies: Mapping[str, tuple[str, ...]]
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as it is kept; `phases` has every phase of the pipeline, in its order.

    `run` is 1 and one more with each resume or rerun; it began at `began_ms`. Times are ms since 1970 by the server's
    clock. A session id may be used again, so `created_ms` belongs into every id that is made of
    it. `corrected` maps a phase to the one whose entries replace its own. `holder` is the supervisor process that
    drives it or None, `fence` the number of the last lease, 0 before the first. `cancel_reason` is why it is to be
    cancelled, None unless that was requested. `error` is why it failed, "" unless it did. `trace` is that of `NewRun`.
    `caller` is who asked for it, or last let it go on; None where that is not known, and in a run of 0.2. `held` says
    why no phase of it begins although it runs, "" where they do.
    """

    session_id: str
    state: RunState
    pipeline: Pipeline
    inputs: dict[str, JsonValue]
    supervisor_id: str
    user_id: str | None
    project: str
    keep: bool
    run: int
    phases: dict[str, PhaseState]
    dependencies: dict[str, tuple[str, ...]]
    corrected: dict[str, str]
    created_ms: int
    updated_ms: int
    holder: str | None = None
    fence: int = 0
    cancel_reason: str | None = None
    error: str = ""
    trace: str = ""
    began_ms: int = 0
    caller: Caller | None = None
    held: str = ""

    def lateness(self, phase: str) -> str:
        """Return that *phase* was late, and the phases that began without it; "" unless it was."""
        late = self.phases[phase]
        if late.late_ms is None:
            return ""
        # Before the end of a phase only its lateness lets others begin.
        began = [
            (name, self.phases[name].since_ms)
            for name, on in self.dependencies.items()
            if phase in on
        ]
        names = [
            name
            for name, at in began
            if at is not None and (late.ended_ms is None or at < late.ended_ms)
        ]
        return f"late: {', '.join(names)} began without it" if names else "late"

    @property
    def is_set_aside(self) -> bool:
        """Whether it has failed because those who drove it froze or died."""
        return self.state == "failed" and is_set_aside(self.error)


def is_set_aside(error: str) -> bool:
    """Return whether *error* is that of a run that was set aside, also in the words of an earlier version."""
    return error.startswith(SET_ASIDE.partition(":")[0] + ":")


def error_type_of(state: EndState) -> str:
    """Return the type of the error with which a phase failed that was running when its run ended in *state*."""
    return "TaskCancelled" if state == "cancelled" else "RunEnded"


def phase_in(spelled: bytes) -> PhaseState:
    """Return the state that the hash `phases` holds as *spelled*; what a newer writer added is passed over."""
    known = {one.name for one in fields(PhaseState)}
    return PhaseState(
        **{name: value for name, value in json.loads(spelled).items() if name in known}
    )
