"""Pipelines: run one, look at its runs, steer them, and make one anew from its evidence."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import structlog
from pydantic import ConfigDict, Field, JsonValue, ValidationError

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.callers import Caller, payer_of, tenant_of
from tasklore.contracts.errors import (
    InvalidInput,
    InvalidPipeline,
    NotPermitted,
)
from tasklore.contracts.faults import fault_of
from tasklore.contracts.identifiers import NAME_PATTERN, Name
from tasklore.contracts.messages import (
    AgentCard,
    PhaseNote,
    PipelineReply,
    PipelineRequest,
)
from tasklore.contracts.pipelines import Pipeline
from tasklore.contracts.session_keys import read_key
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.schedules.store import Schedule
from tasklore.memory.sessions.index import ListPlace
from tasklore.memory.sessions.pipeline_records import RunRecord
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache, SessionRoot
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.feed.runs import RunStanding
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import Form, Later, Lines, View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import (
    Fault,
    Refused,
    not_found,
    unusable,
)
from tasklore.supervisor.operations.schedules import keep_schedule
from tasklore.supervisor.operations.sessions import MOST_EXPORTED
from tasklore.supervisor.operations.table import (
    Operations,
    Shows,
    Unfinished,
    operation,
)
from tasklore.supervisor.pipelines.cost import estimate, sum_up
from tasklore.supervisor.pipelines.declaration.checks import all_problems
from tasklore.supervisor.pipelines.declaration.declarations import pipeline_from
from tasklore.supervisor.pipelines.declaration.files import (
    PipelineSource,
    describe_problems,
)
from tasklore.supervisor.pipelines.declaration.inputs import (
    fill_defaults,
    problems_in_inputs,
    read_typed,
)
from tasklore.supervisor.pipelines.evidence import (
    bundle_of,
    earlier_ends,
    restore,
    restore_entries,
    show_inputs,
)
from tasklore.supervisor.pipelines.requests import PipelineRequests
from tasklore.supervisor.schedules.book import ScheduleBook, make_id, stamps_of

log = structlog.get_logger(__name__)

#: Problems of a declaration that are told at once.
_MOST = 100
#: Sessions that are looked through for one page of runs, a page of them at a time.
_LOOKED_AT = 200
#: Runs that are read in one round trip to find out whose they are: each has its inputs.
_READ_AT_ONCE = 25
_PAGES = 10
_PLACE = re.compile(r"([0-9]{1,16})\.([A-Za-z0-9_-]{1,64})")

SessionId = Annotated[
    str,
    Field(
        pattern=NAME_PATTERN,
        description="A run, by the id of its session.",
        json_schema_extra={"x-cli": {"metavar": "SESSION"}},
    ),
]
Inputs = Annotated[
    dict[str, JsonValue],
    Field(
        description="The inputs of the run.",
        json_schema_extra={"x-cli": {"option": "--input"}},
    ),
]
Declaration = Annotated[
    dict[str, JsonValue],
    Field(
        description="The pipeline, as it is declared.",
        json_schema_extra={"x-cli": {"kind": "pipeline"}},
    ),
]


@dataclass(frozen=True, kw_only=True)
class PipelineStores:
    """The stores of the operations of pipelines; `absent` returns the agents that have no live worker."""

    supervisor_id: str
    runs: PipelineRuns
    sessions: SessionCache
    projects: ProjectMemory
    schedules: ScheduleBook
    budgets: Budgets
    catalogue: Callable[[], Catalogue]
    absent: Callable[[Collection[str]], Awaitable[frozenset[str]]]


@dataclass(frozen=True, kw_only=True)
class PipelineServices(PipelineStores):
    """The stores of the operations of pipelines, and those who drive runs."""

    requests: PipelineRequests


class _Steering(Form):
    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)


class Run(Later):
    """A pipeline, declared as its file says it, with the inputs of this run.

    The same `session_id` again starts nothing twice. `keep` leaves the session there after success. With `at` or
    `after` it begins then, as a schedule that `Location` leads to.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    pipeline: Declaration
    inputs: Inputs = Field(default_factory=dict)
    session_id: Annotated[
        Name | None,
        Field(
            description="Id of the session; repeating it does not start a second run.",
            json_schema_extra={"x-cli": {"option": "--session"}},
        ),
    ] = None
    keep: Annotated[
        bool, Field(description="Keep the session after success, for its time to live.")
    ] = False
    user: Annotated[
        str | None,
        Field(min_length=1, max_length=256, description="Run as this user."),
    ] = None


class DeclaredPipeline(_Steering):
    """A pipeline, declared as its file says it; its inputs are looked at where any are given."""

    pipeline: Declaration
    inputs: Annotated[
        dict[str, JsonValue] | None,
        Field(
            description="Inputs of a run.",
            json_schema_extra={"x-cli": {"option": "--input", "kind": "map"}},
        ),
    ] = None


class Resume(_Steering):
    """How to resume a run: by another declaration when one is given, `inputs` standing for those that are not kept."""

    pipeline: Annotated[
        dict[str, JsonValue] | None,
        Field(
            description="Resume with this declaration; default: the one the run began "
            "with.",
            json_schema_extra={"x-cli": {"option": "--file", "kind": "pipeline"}},
        ),
    ] = None
    inputs: Inputs = Field(default_factory=dict)


class Rerun(Resume):
    """The phase at which a run begins again."""

    phase: Annotated[
        Name,
        Field(
            description="The phase to begin with.",
            json_schema_extra={"x-cli": {"option": "--from"}},
        ),
    ]


class Invalidation(_Steering):
    """The stale parts of a run; without any of these those whose files, standards or decisions changed."""

    phase: Annotated[Name | None, Field(description="The phase.")] = None
    keys: Annotated[
        tuple[str, ...],
        Field(
            strict=False,
            max_length=1000,
            description="Phases that wrote these entries.",
            json_schema_extra={"x-cli": {"option": "--key", "metavar": "KEY"}},
        ),
    ] = ()
    changed: Annotated[
        tuple[str, ...],
        Field(
            strict=False,
            max_length=1000,
            description="Phases that read these files.",
            json_schema_extra={"x-cli": {"metavar": "FILE"}},
        ),
    ] = ()
    standards: Annotated[
        tuple[str, ...],
        Field(
            strict=False,
            max_length=1000,
            description="Phases that read standards with these tags.",
            json_schema_extra={"x-cli": {"option": "--standard", "metavar": "TAG"}},
        ),
    ] = ()
    design: Annotated[
        tuple[str, ...],
        Field(
            strict=False,
            max_length=1000,
            description="Phases that read decisions with these tags.",
            json_schema_extra={"x-cli": {"metavar": "TAG"}},
        ),
    ] = ()


class Cancel(_Steering):
    """The reason of a cancellation."""

    reason: Annotated[
        str,
        Field(
            max_length=1000,
            description="Reason; kept with the run.",
            json_schema_extra={"x-cli": {"metavar": "TEXT"}},
        ),
    ] = ""


class AcceptedRun(View):
    """An accepted request: `reused` phases are not run again, `stale` ones no longer hold.

    `without_worker` are agents of the phases to run that have no live worker: the phases wait for one.
    """

    session_id: str
    text: str
    without_worker: tuple[str, ...] = ()
    stale: tuple[PhaseNote, ...] = ()
    reused: tuple[PhaseNote, ...] = ()


class PhaseView(View):
    """The state of one phase; see docs/reference/pipelines.md for the words.

    `after` are the phases that it directly depends on.
    """

    phase: str
    status: str
    run: int
    agents: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    task_id: str | None = None
    began_at: datetime | None = None
    took_ms: int = 0
    computed_ms: int | None = None
    attempts: int = 0
    error_type: str | None = None
    error: str | None = None
    why: str = ""
    late: str = ""
    memory: str = ""
    saved_ms: int = 0


class RunView(View):
    """A run: `phases` while its session is there, `outcome` for a day after its end, with its result.

    `inputs` are masked where they are secret, or look as if they were. `is_driven` is True while a supervisor
    drives it. `held` says why no phase of it begins although it runs, "" where they do. `cancel_reason` is set once it
    is to be cancelled. `without_worker` are agents of its running
    phases that have no live worker.
    """

    session_id: str
    state: str
    pipeline: str | None = None
    version: int | None = None
    run: int | None = None
    project: str | None = None
    user: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    keep: bool = False
    is_driven: bool = False
    held: str = ""
    cancel_reason: str | None = None
    without_worker: tuple[str, ...] = ()
    inputs: dict[str, JsonValue] = Field(default_factory=dict)
    corrected: dict[str, str] = Field(default_factory=dict)
    phases: tuple[PhaseView, ...] = ()
    outcome: dict[str, JsonValue] | None = None


class RunListed(View):
    """One run in a list; its session is there for `expires_in_ms`, None while it runs.

    `held` says why no phase of it begins although it runs, "" where they do.
    """

    session_id: str
    state: str
    project: str | None
    run: int
    created_at: datetime
    updated_at: datetime
    expires_in_ms: int | None
    held: str = ""


class RunList(View):
    """Runs whose sessions are there, the last updated first; one that was completed is not, unless it was kept.

    `after` leads to the next page, None at the end. A page may have fewer runs than were asked for.
    """

    runs: tuple[RunListed, ...]
    after: str | None


class RunEvidence(View):
    """A run as one document with secrets masked; a run can be restored from it.

    `session` is the session in the form of its own files. `masked` names the parts that
    are incomplete: `inputs` by name, `entries` by key, which count as missing,
    `pipeline` as places in the declaration.
    """

    format: str
    made_at: str
    session_id: str
    state: str
    run: int
    error: str
    pipeline: dict[str, JsonValue]
    inputs: dict[str, JsonValue]
    user_id: str | None
    caller: dict[str, JsonValue] | None
    project: str | None
    keep: bool
    phases: dict[str, JsonValue]
    corrected: dict[str, str]
    seen: dict[str, dict[str, str]]
    timeline: tuple[dict[str, str], ...]
    session: dict[str, JsonValue]
    masked: dict[str, tuple[str, ...]]


class RestoredRun(View):
    """A restored run, as failed, with its number of `entries`; `masked` and `expired` ones are recomputed."""

    session_id: str
    entries: int
    masked: tuple[str, ...]
    expired: tuple[str, ...]


class PipelineProblems(View):
    """The problems of a pipeline with the agents that are known now: a sentence each, with its place."""

    pipeline: str
    phases: int
    problems: tuple[str, ...]


class PhaseCostView(View):
    """The cost of a phase in US dollars, of one task; None where no cost is known.

    `runs` are the reports that this rests on. The phase is `fewest` to `most` tasks; `most` None is not known before.
    """

    phase: str
    task: str
    runs: int
    mean_usd: float | None
    largest_usd: float | None
    fewest: int
    most: int | None


class PipelineCost(View):
    """The cost of the next run in US dollars; retries do not count, a list of unknown length counts as one item."""

    pipeline: str
    mean_usd: float | None
    largest_usd: float | None
    phases: tuple[PhaseCostView, ...]


@operation(
    "pipelines",
    "list",
    "GET /v1/pipelines",
    roles=("read",),
    shows=Shows(
        rows="runs",
        columns=("session_id", "project", "state", "run", "updated_at", "held"),
        example="pipelines list --state failed",
    ),
)
async def list_runs(
    services: PipelineStores,
    caller: Caller,
    *,
    state: Annotated[
        Literal["running", "failed", "completed", "cancelled"] | None,
        Field(description="Status; default: all."),
    ] = None,
    after: Annotated[
        str,
        Field(
            max_length=128,
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = "",
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number.")] = 50,
) -> RunList:
    """List runs whose sessions still exist, most recently updated first; a key for one user or tenant sees only theirs.

    Raises:
        Refused: 422, `after` is none of a page.
    """
    place = _read_place(after)
    if caller.user is not None:
        own = await _visible(
            services, caller, await _own(services, caller.user, state, place)
        )
        found = own[:limit]
        last = _place_of(found[-1]) if len(own) > limit else None
    else:
        found, last = await _look_for_runs(
            services, caller, state, place=place, limit=limit
        )
    running = [root.session_id for root in found if root.state == "running"]
    holds = await services.runs.read_holds(running)
    listed = (_view_listed(one, holds.get(one.session_id, "")) for one in found)
    return RunList(runs=tuple(listed), after=last)


@operation(
    "pipelines",
    "status",
    "GET /v1/pipelines/{session_id}",
    roles=("ask",),
    problems=(404,),
    shows=Shows(picture="run", example="pipelines status health-3f9a2c71d0"),
)
async def show_run(
    services: PipelineStores, caller: Caller, session_id: SessionId
) -> RunView:
    """Show the progress or the end of a run; for a day even after its session is gone."""
    standing = await read_standing(services, caller, session_id)
    away = await services.absent(_running_agents(standing))
    return await asyncio.to_thread(view_run, standing, away)


@operation(
    "pipelines",
    "run",
    "POST /v1/pipelines",
    roles=("ask",),
    status=202,
    problems=(404, 409),
    shows=Shows(arguments=("pipeline",)),
)
async def run_pipeline(
    services: PipelineServices, caller: Caller, new: Run
) -> Unfinished[AcceptedRun]:
    """Run a pipeline, now or later; `Location` leads to the run.

    Raises:
        Refused: 409, the session is there with another run; 422, the pipeline cannot run.
    """
    _demand_json(new.pipeline, new.inputs)
    if (starts_at := new.find_start(services.schedules.now())) is not None:
        return await _begin_later(services, caller, new, starts_at)
    request = PipelineRequest(
        action="run",
        session_id=new.session_id,
        pipeline=new.pipeline,
        inputs=new.inputs,
        keep=new.keep,
        user_id=caller.demand_user(new.user),
        caller=caller,
    )
    reply = await services.requests.take_up(request, from_door=True)
    is_taken = (
        reply.kind != "accepted"
        and new.session_id is not None
        and await _is_known(services, new.session_id)
    )
    return await _lead(services, _accept(reply, 409 if is_taken else 422))


@operation(
    "pipelines",
    "check",
    "POST /v1/pipelines/check",
    roles=("ask",),
    shows=Shows(arguments=("pipeline",)),
)
async def check_pipeline(
    services: PipelineServices,
    caller: Caller,  # noqa: ARG001 - an operation has one
    declared: DeclaredPipeline,
) -> PipelineProblems:
    """Check whether a pipeline can run with the agents known now; runs nothing."""
    cards = dict(services.catalogue().cards)
    return await asyncio.to_thread(_find_problems, declared, cards)


@operation(
    "pipelines",
    "cost",
    "POST /v1/pipelines/cost",
    roles=("operate",),
    shows=Shows(
        picture="run_cost",
        arguments=("pipeline",),
        example="pipelines cost health.toml",
    ),
)
async def estimate_cost(
    services: PipelineStores,
    caller: Caller,
    declared: DeclaredPipeline,
) -> PipelineCost:
    """Estimate the next run by the cost in the last reports of its tasks, of all users.

    Raises:
        NotPermitted: the key is for one user or tenant.
        Refused: 422, the declaration cannot be read.
    """
    caller.demand_unbound()
    pipeline = await asyncio.to_thread(_read_pipeline, declared.pipeline)
    costs = await estimate(pipeline, declared.inputs or {}, services.budgets)
    mean_usd, largest_usd = sum_up(costs)
    return PipelineCost(
        pipeline=pipeline.name,
        mean_usd=mean_usd,
        largest_usd=largest_usd,
        phases=tuple(PhaseCostView.model_validate(one) for one in costs),
    )


@operation(
    "pipelines",
    "resume",
    "POST /v1/pipelines/{session_id}/resume",
    roles=("ask",),
    status=202,
    problems=(404, 409),
    shows=Shows(example="pipelines resume health-3f9a2c71d0"),
)
async def resume_run(
    services: PipelineServices, caller: Caller, session_id: SessionId, how: Resume
) -> Unfinished[AcceptedRun]:
    """Resume a run that has ended: only failed and missing phases, and their dependents, run.

    A run that is paused because the API key of its creator was removed continues as
    yours.

    An input may be the text of a value of its declared type.
    """
    _demand_json(how.pipeline, how.inputs)
    record = await _demand_record(services, caller, session_id)
    request = PipelineRequest(
        action="resume",
        session_id=session_id,
        pipeline=how.pipeline,
        inputs=await asyncio.to_thread(_read_inputs, record, how),
        caller=caller,
    )
    return await _lead(
        services, await _steer(services, record, request, is_running=False)
    )


@operation(
    "pipelines",
    "rerun",
    "POST /v1/pipelines/{session_id}/rerun",
    roles=("ask",),
    status=202,
    problems=(404, 409),
    shows=Shows(example="pipelines rerun health-3f9a2c71d0 --from analysis"),
)
async def rerun_run(
    services: PipelineServices, caller: Caller, session_id: SessionId, how: Rerun
) -> Unfinished[AcceptedRun]:
    """Run a phase again with its dependents; everything else is reused.

    The session must still exist: it was kept, or the run failed.
    """
    _demand_json(how.pipeline, how.inputs)
    record = await _demand_record(services, caller, session_id)
    if how.pipeline is None:
        _demand_phase(record.pipeline, how.phase, "phase")
    request = PipelineRequest(
        action="rerun",
        session_id=session_id,
        pipeline=how.pipeline,
        inputs=await asyncio.to_thread(_read_inputs, record, how),
        phase=how.phase,
        caller=caller,
    )
    return await _lead(
        services, await _steer(services, record, request, is_running=False)
    )


@operation(
    "pipelines",
    "invalidate",
    "POST /v1/pipelines/{session_id}/invalidate",
    roles=("ask",),
    problems=(404, 409),
    shows=Shows(
        picture="stale",
        example="pipelines invalidate health-3f9a2c71d0 --changed workers/agent.py",
    ),
)
async def invalidate_run(
    services: PipelineServices,
    caller: Caller,
    session_id: SessionId,
    what: Invalidation,
) -> AcceptedRun:
    """Mark phases stale, with their dependents, and return them with the reason; the next resume runs them again.

    Default: phases whose files, standards or decisions have changed since they read
    them.

    Raises:
        Refused: 422, there is no such phase or entry.
    """
    record = await _demand_record(services, caller, session_id)
    if what.phase is not None:
        _demand_phase(record.pipeline, what.phase, "phase")
    await _demand_entries(services, record, what.keys)
    request = PipelineRequest(
        action="invalidate",
        session_id=session_id,
        phase=what.phase,
        keys=what.keys,
        changed=what.changed,
        standards=what.standards,
        design=what.design,
        caller=caller,
    )
    return await _steer(services, record, request, is_running=False)


@operation(
    "pipelines",
    "cancel",
    "POST /v1/pipelines/{session_id}/cancel",
    roles=("ask",),
    status=202,
    problems=(404, 409),
    shows=Shows(
        picture="run_cancelled",
        example='pipelines cancel health-3f9a2c71d0 --reason "wrong folder"',
    ),
)
async def cancel_run(
    services: PipelineServices,
    caller: Caller,
    session_id: SessionId,
    why: Cancel | None = None,
) -> Unfinished[AcceptedRun]:
    """Cancel a run: its running tasks are cancelled and no further phase starts; results are kept."""
    reason = (why.reason if why is not None else "") or f"cancelled by {caller.name}"
    record = await _demand_record(services, caller, session_id)
    request = PipelineRequest(
        action="cancel", session_id=session_id, reason=reason, caller=caller
    )
    return await _lead(
        services, await _steer(services, record, request, is_running=True)
    )


@operation(
    "pipelines",
    "evidence",
    "GET /v1/pipelines/{session_id}/evidence",
    roles=("operate",),
    problems=(404, 413),
    shows=Shows(example="pipelines evidence health-3f9a2c71d0"),
)
async def export_evidence(
    services: PipelineStores, caller: Caller, session_id: SessionId
) -> RunEvidence:
    """Return a run as one document: inputs, entries, reports, errors and times, secrets masked.

    A failed run also writes such a file on the machine of its supervisor.
    """
    record = await _demand_record(services, caller, session_id)
    size = sum(one.bytes for one in await services.sessions.entries(session_id))
    if size > MOST_EXPORTED:
        told = (
            f"the session of run {session_id!r} has {size:,} bytes of JSON, its evidence at most {MOST_EXPORTED:,}; "
            "read its entries one by one, or take the file that a failed run leaves where its supervisor runs"
        )
        raise Refused(413, "too-large", told)
    session = await services.sessions.export(session_id)
    seen = await services.runs.seen(session_id)
    earlier = await earlier_ends(services.projects, record)

    def make() -> RunEvidence:
        bundle = bundle_of(
            record,
            phases=record.phases,
            corrected=record.corrected,
            session=session,
            seen=seen,
            error=record.error,
            made_at=datetime.now(UTC),
            earlier=earlier,
        )
        return RunEvidence.model_validate(bundle)

    return await asyncio.to_thread(make)


@operation(
    "pipelines",
    "restore",
    "POST /v1/pipelines/{session_id}/restore",
    roles=("operate",),
    problems=(404, 409),
)
async def restore_run(
    services: PipelineStores, caller: Caller, session_id: SessionId, lines: Lines
) -> RestoredRun:
    """Recreate a run, as failed, from its evidence, so that it can be resumed.

    The first line is `{"evidence": {...}, "inputs": {...}}`: the evidence, with or
    without entries in its session, and the inputs that are masked in it. Further ones,
    also of later requests, are entries of it: `{"key": "...", "entry": {...}}`, but for
    those that its `masked` names. Repeating the same lines is safe. The run belongs to
    its creator if an operator restores it, else to the caller.

    Raises:
        Refused: 404, entries come without the run; 409, the session is there with another run; 422, a line is neither.
    """
    found = RestoredRun(session_id=session_id, entries=0, masked=(), expired=())
    entries: dict[str, JsonValue] = {}
    for number, line in enumerate(lines.values, 1):
        match line:
            case {"evidence": dict(bundle), **rest}:
                given = rest.get("inputs", {})
                made = await _make_anew(
                    services, caller, session_id, bundle=bundle, inputs=given
                )
                found = _sum(found, made)
            case {"key": str(key), "entry": dict(entry)}:
                entries[key] = entry
            case _:
                raise unusable(
                    [
                        Fault(
                            where=f"line {number}",
                            message="is neither the evidence nor an entry",
                        )
                    ]
                )
    if entries:
        record = await _demand_record(services, caller, session_id)
        if record.state != "failed":
            raise Refused(
                409, "refused", f"run {session_id!r} is {record.state}, not restored"
            )
        root = await services.sessions.root(session_id)
        if root is None:
            raise not_found(f"the session {session_id!r} is gone; restore it again")
        put = await restore_entries(root, entries, services.sessions)
        found = _sum(found, RestoredRun.model_validate(put))
    return found


#: Those that no driver of runs is asked for.
BY_STORES = (list_runs, show_run, estimate_cost, export_evidence, restore_run)
OPERATIONS: Operations[PipelineServices] = (
    list_runs,
    show_run,
    run_pipeline,
    check_pipeline,
    estimate_cost,
    resume_run,
    rerun_run,
    invalidate_run,
    cancel_run,
    export_evidence,
    restore_run,
)


async def read_standing(
    services: PipelineStores, caller: Caller, session_id: str
) -> RunStanding:
    """Return how a run stands.

    Raises:
        Refused: 404, there is none, or it is another user's or tenant's.
        MemoryUnavailable: the store did not answer in time.
    """
    record = await services.runs.read(session_id)
    # An outcome may be of an earlier run of the same session; only a run that has ended is asked for it.
    is_running = record is not None and record.state == "running"
    outcome = None if is_running else await services.runs.outcome(session_id)
    left: dict[str, Any] | None = json.loads(outcome) if outcome is not None else None
    # An end as earlier versions wrote it names no owner: it is for keys of no user and no tenant.
    owner = (left or {}).pop("owner", None) or {}
    is_own = (
        _may_see(caller, record)
        if record is not None
        else caller.may_see(owner.get("user"), owner.get("tenant"))
    )
    if not is_own or (record is None and left is None):
        raise not_found(
            f"no run {session_id!r} is known, or it has expired; GET /v1/pipelines "
            "lists them"
        )
    return RunStanding(session_id, record, left)


def _may_see(caller: Caller, record: RunRecord) -> bool:
    return caller.may_see(record.user_id, tenant_of(record.caller))


def view_run(standing: RunStanding, away: Collection[str] = ()) -> RunView:
    """Return *standing* as it is shown; *away* are agents without a live worker."""
    record = standing.record
    if record is None:
        return RunView(
            session_id=standing.session_id,
            state=standing.state,
            outcome=standing.outcome,
        )
    agents = {phase.name: tuple(phase.agents) for phase in record.pipeline.phases}
    return RunView(
        session_id=standing.session_id,
        state=record.state,
        pipeline=record.pipeline.name,
        version=record.pipeline.version,
        run=record.run,
        project=record.project,
        user=record.user_id,
        created_at=_time(record.created_ms),
        updated_at=_time(record.updated_ms),
        keep=record.keep,
        is_driven=record.holder is not None,
        held=record.held,
        cancel_reason=record.cancel_reason,
        without_worker=tuple(sorted(away)),
        inputs=show_inputs(record),
        corrected=record.corrected,
        phases=tuple(
            PhaseView(
                phase=name,
                late=record.lateness(name),
                agents=agents.get(name, ()),
                after=record.dependencies.get(name, ()),
                began_at=None if state.since_ms is None else _time(state.since_ms),
                **asdict(state),
            )
            for name, state in record.phases.items()
        ),
        outcome=standing.outcome,
    )


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _running_agents(standing: RunStanding) -> frozenset[str]:
    record = standing.record
    if record is None or record.state != "running":
        return frozenset()
    return frozenset(
        agent
        for phase in record.pipeline.phases
        if record.phases[phase.name].status == "running"
        for agent in phase.agents
    )


async def _begin_later(
    services: PipelineServices, caller: Caller, new: Run, starts_at: datetime
) -> Unfinished[AcceptedRun]:
    """Schedule the run that *new* asks for, and return the session that it will have, and the place of the schedule.

    Raises:
        Refused: 422, it names a session, or cannot be kept.
        InvalidPipeline: it cannot run.
    """
    if new.session_id is not None:
        words = "a run that begins later has the one that the answer says; leave it out"
        raise unusable([Fault(where="session_id", message=words)])
    await services.requests.demand_sound(new.pipeline, new.inputs)
    now = services.schedules.now()
    schedule = Schedule(
        id=make_id(str(new.pipeline.get("name"))),
        timing=Timing(at=starts_at),
        pipeline=new.pipeline,
        parameters=new.inputs,
        keep=new.keep,
        user_id=caller.demand_user(new.user),
        caller=caller,
        anchor=now,
        **stamps_of(caller.name, now),
    )
    await keep_schedule(services.schedules, schedule)
    session_id = schedule.tick_id(services.supervisor_id, starts_at)
    taken = AcceptedRun(
        session_id=session_id,
        text=f"it begins at {starts_at.isoformat(timespec='seconds')}",
    )
    return Unfinished(view=taken, location=f"/v1/schedules/{schedule.id}")


def _demand_json(
    pipeline: Mapping[str, JsonValue] | None, inputs: Mapping[str, JsonValue]
) -> None:
    """Return when a declaration and inputs can be kept as JSON.

    Raises:
        Refused: 422, there is a number that is none, or half of a surrogate pair.
    """
    try:
        json.dumps([pipeline, inputs], allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(
            422, "unusable", "pipeline, inputs: only JSON in valid Unicode can be kept"
        ) from error


def _find_problems(
    declared: DeclaredPipeline, cards: Mapping[str, AgentCard]
) -> PipelineProblems:
    try:
        pipeline = pipeline_from(declared.pipeline)
    except InvalidPipeline as error:
        name = declared.pipeline.get("name")
        return PipelineProblems(
            pipeline=name if isinstance(name, str) else "",
            phases=0,
            problems=tuple(error.problems[:_MOST]),
        )
    flaws = all_problems(pipeline, cards)
    if declared.inputs is not None:
        given = fill_defaults(pipeline, declared.inputs)
        flaws += problems_in_inputs(pipeline, given)
    return PipelineProblems(
        pipeline=pipeline.name,
        phases=len(pipeline.phases),
        problems=tuple(describe_problems(flaws, PipelineSource(pipeline))[:_MOST]),
    )


def _read_pipeline(declared: Mapping[str, JsonValue]) -> Pipeline:
    try:
        return pipeline_from(declared)
    except InvalidPipeline as error:
        raise unusable(_faults_of(error.problems)) from error


def _read_inputs(record: RunRecord, how: Resume) -> dict[str, JsonValue]:
    """Return the inputs of *how*, with texts read by the types that the run declares, or its new declaration.

    Raises:
        Refused: 422, a text cannot be read.
    """
    if not how.inputs:
        return {}
    pipeline = record.pipeline if how.pipeline is None else _read_pipeline(how.pipeline)
    try:
        return read_typed(pipeline, how.inputs)
    except InvalidInput as error:
        raise unusable([Fault(where="inputs", message=str(error))]) from error


def _demand_phase(pipeline: Pipeline, phase: str, where: str) -> None:
    """Return when *pipeline* has a phase of that name.

    Raises:
        Refused: 422, it has not; the message names those it has.
    """
    names = [one.name for one in pipeline.phases]
    if phase not in names:
        words = (
            f"{phase!r} is not a phase of {pipeline.name!r}; it has {', '.join(names)}"
        )
        raise unusable([Fault(where=where, message=words)])


async def _demand_entries(
    services: PipelineServices, record: RunRecord, keys: Sequence[str]
) -> None:
    """Return when each of *keys* is an entry, or will be one once its phase has run.

    Raises:
        Refused: 422, one is not; the message names those of its phase.
    """
    entries = await services.sessions.entries(record.session_id) if keys else ()
    known = {
        f"{phase.name}:{entry}"
        for phase in record.pipeline.phases
        for entry in phase.writes
    }
    known |= {entry.key for entry in entries}
    for key in keys:
        phase = read_key(key).phase
        _demand_phase(record.pipeline, phase, "keys")
        if key not in known:
            its = sorted(one for one in known if read_key(one).phase == phase)
            words = f"{key!r} is not an entry of this run; phase {phase!r} writes {', '.join(its)}"
            raise unusable([Fault(where="keys", message=words)])


async def _demand_record(
    services: PipelineStores, caller: Caller, session_id: str
) -> RunRecord:
    """Return the run, whose session is there.

    Raises:
        Refused: 404, there is none, or it is another user's; 409, its session is gone.
    """
    standing = await read_standing(services, caller, session_id)
    if standing.record is not None:
        return standing.record
    left = (standing.outcome or {}).get("evidence")
    cure = (
        f"what it left is in {left}, where its supervisor ran: restore it from that"
        if left
        else "run the pipeline again"
    )
    raise Refused(
        409,
        "refused",
        f"the run {session_id!r} is {standing.state} and its session is gone; {cure}",
    )


async def _steer(
    services: PipelineServices,
    record: RunRecord,
    request: PipelineRequest,
    *,
    is_running: bool,
) -> AcceptedRun:
    """Return the accepted *request*, which is for a run that is, or is not, running.

    Raises:
        Refused: 409, it is in another state; 422, it cannot be done.
    """
    fits = (record.state == "running") == is_running
    return _accept(await services.requests.take_up(request), 422 if fits else 409)


def _accept(reply: PipelineReply, refused: int) -> AcceptedRun:
    """Return *reply* where it accepts.

    Raises:
        Refused: with the status *refused*, it does not.
    """
    if reply.kind != "accepted" or reply.session_id is None:
        detail = reply.text or "the pipeline cannot run"
        raise Refused(refused, "refused", detail, faults=_faults_of(reply.problems))
    return AcceptedRun(
        session_id=reply.session_id,
        text=reply.text,
        stale=reply.stale,
        reused=reply.reused,
    )


def _faults_of(problems: Sequence[str]) -> list[Fault]:
    return [
        Fault(where="pipeline", message=problem[:500]) for problem in problems[:_MOST]
    ]


async def _lead(
    services: PipelineServices, taken: AcceptedRun
) -> Unfinished[AcceptedRun]:
    """Return *taken* with the agents that its run will wait for, and the place of the run."""
    record = await services.runs.read(taken.session_id)
    away: frozenset[str] = frozenset()
    if record is not None and record.state == "running":
        away = await services.absent(
            {
                agent
                for phase in record.pipeline.phases
                if not record.phases[phase.name].is_over
                for agent in phase.agents
            }
        )
    led = taken.model_copy(update={"without_worker": tuple(sorted(away))})
    return Unfinished(view=led, location=f"/v1/pipelines/{taken.session_id}")


async def _is_known(services: PipelineServices, session_id: str) -> bool:
    return (
        await services.runs.read(session_id) is not None
        or await services.runs.outcome(session_id) is not None
    )


async def _make_anew(
    services: PipelineStores,
    caller: Caller,
    session_id: str,
    *,
    bundle: Mapping[str, Any],
    inputs: Any,
) -> RestoredRun:
    """Make the run of *bundle*, as one that *caller* may make.

    Raises:
        Refused: 409, the session is there with another run; 422, the evidence is broken, or an input is missing.
        NotPermitted: it is another user's.
    """
    if bundle.get("session_id") != session_id:
        words = f"the evidence is of session {bundle.get('session_id')!r:.80}, not of {session_id!r}"
        raise unusable([Fault(where="session_id", message=words)])
    user_id = bundle.get("user_id")
    if not caller.may_hear(user_id if isinstance(user_id, str) else None):
        raise NotPermitted(
            "the run in this evidence is of another user than this key is for",
            "other-user",
        )
    if not isinstance(inputs, dict):
        raise unusable([Fault(where="inputs", message="must be an object")])
    session = bundle.get("session")
    pipeline = bundle.get("pipeline")
    whole = {
        **bundle,
        "session": {"cache": {}, **session} if isinstance(session, dict) else session,
        "caller": _maker_of(caller, bundle),
    }
    try:
        if inputs and isinstance(pipeline, dict):
            inputs = await asyncio.to_thread(_type_inputs, pipeline, inputs)
        made = await restore(
            whole,
            services.runs,
            services.sessions,
            inputs,
            supervisor_id=services.supervisor_id,
            may_see=partial(_may_see, caller),
        )
    except InvalidPipeline as error:
        raise unusable(_faults_of(error.problems)) from error
    return RestoredRun.model_validate(made)


def _type_inputs(
    declared: Mapping[str, JsonValue], inputs: dict[str, JsonValue]
) -> dict[str, JsonValue]:
    return read_typed(pipeline_from(declared), inputs)


def _maker_of(caller: Caller, bundle: Mapping[str, Any]) -> JsonValue:
    """Return the caller of the restored run: *caller*, but the one in the evidence for an unbound administrator.

    Raises:
        Refused: 422, the one in the evidence is none.
    """
    told = bundle.get("caller")
    is_unbound = caller.user is None and caller.own_tenant is None
    maker: Caller | None = caller
    if "admin" in caller.roles and is_unbound and isinstance(told, dict):
        try:
            maker = payer_of(caller, Caller.model_validate(told))
        except ValidationError as error:
            words = f"is invalid ({fault_of(error.errors()[0])}); use the evidence file unchanged"
            raise unusable([Fault(where="caller", message=words)]) from error
    return None if maker is None else maker.model_dump(mode="json")


def _sum(one: RestoredRun, other: RestoredRun) -> RestoredRun:
    return RestoredRun(
        session_id=one.session_id,
        entries=one.entries + other.entries,
        masked=(*one.masked, *other.masked),
        expired=(*one.expired, *other.expired),
    )


def _read_place(after: str) -> ListPlace | None:
    if not after:
        return None
    if (found := _PLACE.fullmatch(after)) is None:
        raise unusable(
            [Fault(where="after", message="must be the `after` of a page, or left out")]
        )
    return ListPlace(int(found[1]), found[2])


def _place_of(root: SessionRoot) -> str:
    return f"{root.listed_ms or root.updated_ms}.{root.session_id}"


async def _look_for_runs(
    services: PipelineStores,
    caller: Caller,
    state: Literal["running", "failed", "completed", "cancelled"] | None,
    *,
    place: ListPlace | None,
    limit: int,
) -> tuple[list[SessionRoot], str | None]:
    """Return runs among the sessions behind *place*, and the place behind them, None at the end."""
    found: list[SessionRoot] = []
    for _ in range(_PAGES):
        page = await services.sessions.sessions(
            state=state, limit=_LOOKED_AT, before=place
        )
        for root in await _visible(services, caller, page):
            if root.run:
                found.append(root)
            if len(found) == limit:
                return found, _place_of(root)
        if len(page) < _LOOKED_AT:
            return found, None
        place = ListPlace(page[-1].listed_ms, page[-1].session_id)
    return found, None if place is None else f"{place.listed_ms}.{place.session_id}"


async def _visible(
    services: PipelineStores, caller: Caller, roots: list[SessionRoot]
) -> list[SessionRoot]:
    """Return those of *roots* that are not of another tenant than *caller* is."""
    if caller.own_tenant is None:
        return roots
    found = []
    with_runs = [root for root in roots if root.run]
    for first in range(0, len(with_runs), _READ_AT_ONCE):
        page = with_runs[first : first + _READ_AT_ONCE]
        records = await services.runs.read_many([root.session_id for root in page])
        for root, record in zip(page, records, strict=True):
            if isinstance(record, InvalidPipeline):
                # A newer version made it: nobody knows here whose it is.
                log.info("run_not_listed", session=root.session_id, error=str(record))
            elif record is not None and _may_see(caller, record):
                found.append(root)
    return found


async def _own(
    services: PipelineStores,
    user_id: str,
    state: str | None,
    place: ListPlace | None,
) -> list[SessionRoot]:
    """Return the runs of one user behind *place*, however many others have been updated since."""
    roots = [
        await services.sessions.root(session_id)
        for session_id in await services.sessions.of_user(user_id)
    ]
    own = [
        root
        for root in roots
        if root is not None
        and root.run
        and state in (None, root.state)
        and (place is None or (root.updated_ms, root.session_id) < place)
    ]
    return sorted(
        own, key=lambda root: (root.updated_ms, root.session_id), reverse=True
    )


def _view_listed(root: SessionRoot, held: str) -> RunListed:
    return RunListed(
        session_id=root.session_id,
        state=root.state,
        project=root.project,
        run=root.run,
        created_at=_time(root.created_ms),
        updated_at=_time(root.updated_ms),
        expires_in_ms=root.expires_in_ms,
        held=held,
    )


def for_supervisor(parts: SupervisorDependencies) -> PipelineServices:
    """Return the services of operations of pipelines in a supervisor."""
    return PipelineServices(
        supervisor_id=parts.supervisor_id,
        requests=parts.pipelines,
        runs=parts.runs,
        sessions=parts.sessions,
        projects=ProjectMemory(parts.redis),
        schedules=parts.schedules,
        budgets=Budgets(parts.redis),
        catalogue=parts.catalogue,
        absent=parts.attendance.absent,
    )


def for_operator(parts: OperatorDependencies) -> PipelineStores:
    """Return the stores of operations of pipelines by the rights of an operator."""
    redis = parts.redis
    most = parts.settings.session_value_max_bytes
    return PipelineStores(
        supervisor_id=parts.settings.supervisor_id,
        runs=PipelineRuns(redis),
        sessions=SessionCache(redis, max_value_bytes=most),
        projects=ProjectMemory(redis),
        schedules=parts.schedules,
        budgets=Budgets(redis),
        catalogue=lambda: parts.cards.catalogue,
        absent=parts.attendance.absent,
    )


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(for_supervisor, OPERATIONS),
    operator=serve(for_operator, BY_STORES),
)
