"""Schedules: add one, look at them, pause and resume, run and remove."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.callers import Caller, tenant_of
from tasklore.contracts.identifiers import NAME_PATTERN, Name
from tasklore.contracts.moments import describe_time
from tasklore.memory.schedules.store import KeptSchedule, Schedule
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.makers import HELD
from tasklore.supervisor.operations.card_fit import demand_fit, demand_offer
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import Later, Seconds, View, begin_at
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import (
    Fault,
    Refused,
    not_found,
    unusable,
)
from tasklore.supervisor.operations.table import Operations, Shows, operation
from tasklore.supervisor.pipelines.requests import PipelineRequests
from tasklore.supervisor.schedules.book import (
    ScheduleBook,
    ScheduleChange,
    TakenId,
    Unusable,
    make_id,
    stamps_of,
)
from tasklore.supervisor.schedules.scheduler import describe_hold
from tasklore.supervisor.schedules.tick_maker import TickMaker
from tasklore.supervisor.schedules.ticks import next_five

ScheduleId = Annotated[
    str, Field(pattern=NAME_PATTERN, description="A schedule, by its id.")
]


@dataclass(frozen=True, kw_only=True)
class ScheduleLooks:
    """What looks at schedules work with."""

    book: ScheduleBook


@dataclass(frozen=True, kw_only=True)
class ScheduleServices(ScheduleLooks):
    """What the operations of schedules work with."""

    ticks: TickMaker
    pipelines: PipelineRequests
    catalogue: Callable[[], Catalogue]


class NewSchedule(Later):
    """A task of an agent with its parameters, or a declared pipeline with its inputs as `parameters`, and its times.

    With `dry_run` nothing is kept: the answer shows the next times. The same `id` again with the same content changes
    nothing. `missed` says which ticks are made up for that passed while nothing ran.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    agent_id: Annotated[Name | None, Field(description="The agent.")] = None
    task: Annotated[Name | None, Field(description="The task to run.")] = None
    parameters: Annotated[
        dict[str, JsonValue],
        Field(
            description="Its parameters, or the inputs of a pipeline.",
            json_schema_extra={"x-cli": {"option": "--parameter", "short": "-p"}},
        ),
    ] = Field(default_factory=dict)
    pipeline: Annotated[
        dict[str, JsonValue] | None,
        Field(
            description="A pipeline instead, as it is declared.",
            json_schema_extra={"x-cli": {"kind": "pipeline"}},
        ),
    ] = None
    at: Annotated[
        datetime | None,
        begin_at(
            "Run once at this time (RFC 3339; in `time_zone` if it has no offset)."
        ),
    ] = None
    cron: Annotated[
        str | None, Field(description="Five fields, or six with seconds first.")
    ] = None
    every: Annotated[
        Seconds | None, Field(description="Whole seconds, such as 90s or 6h.")
    ] = None
    time_zone: Annotated[str, Field(description="Time zone of the times.")] = "UTC"
    missed: Annotated[
        Literal["skip", "once", "all"],
        Field(
            description="Policy for missed runs: `skip` drops them, `once` runs the "
            "last, `all` runs each."
        ),
    ] = "once"
    id: Annotated[
        Name | None, Field(description="Id of the schedule; default: a new one.")
    ] = None
    user: Annotated[
        str | None,
        Field(min_length=1, max_length=256, description="Run as this user."),
    ] = None
    dry_run: Annotated[
        bool, Field(description="Only show the next times; add nothing.")
    ] = False


class ScheduleView(View):
    """A schedule: `next` are its next five times; `missed_ticks` passed while nothing ran and were not made up for.

    `target` and `when` are for people. `last_task` is the task, or the session of the run, of the tick at `last`;
    `problem` says why that began nothing, or why it is paused as the key of its maker is not there.
    """

    id: str
    target: str
    when: str
    agent_id: str | None
    task: str | None
    pipeline: str | None
    parameters: dict[str, JsonValue]
    user: str | None
    timing: Timing
    paused: bool
    declared: bool
    created_by: str
    created_at: datetime
    changed_by: str
    changed_at: datetime
    version: int
    next: tuple[datetime, ...]
    last: datetime | None
    last_task: str | None
    missed_ticks: int
    problem: str


class ScheduleList(View):
    """A page of schedules; `after` is what to ask for the next page with, None at the end."""

    schedules: tuple[ScheduleView, ...]
    after: str | None


class ScheduledRun(View):
    """A run that was asked for: its task, or the session of its pipeline."""

    task_id: str


@operation(
    "schedules",
    "list",
    "GET /v1/schedules",
    roles=("ask",),
    shows=Shows(
        rows="schedules",
        columns=("id", "target", "when", "next", "paused", "user", "problem"),
        example="schedules list --user ann",
    ),
)
async def list_schedules(
    services: ScheduleLooks,
    caller: Caller,
    *,
    user: Annotated[
        str | None,
        Field(min_length=1, max_length=256, description="Only of this user."),
    ] = None,
    after: Annotated[
        str,
        Field(
            max_length=64,
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = "",
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number.")] = 50,
) -> ScheduleList:
    """List schedules with their next times."""
    book = services.book
    user_id = caller.demand_user(user)
    found: list[KeptSchedule] = []
    place = after
    while True:
        page = await book.store.list(user_id, after=place, limit=limit)
        found += [one for one in page if _may_see(caller, one)]
        if len(page) < limit or len(found) >= limit:
            break
        place = page[-1].schedule.id
    views = tuple(view_schedule(book, one) for one in found[:limit])
    return ScheduleList(
        schedules=views, after=views[-1].id if len(views) == limit else None
    )


@operation(
    "schedules",
    "show",
    "GET /v1/schedules/{schedule_id}",
    roles=("ask",),
    problems=(404,),
    shows=Shows(example="schedules show nightly"),
)
async def show_schedule(
    services: ScheduleLooks, caller: Caller, schedule_id: ScheduleId
) -> ScheduleView:
    """Show a schedule, its next five times, and its last run."""
    kept = await _demand(services, schedule_id, caller)
    return view_schedule(services.book, kept)


@operation(
    "schedules",
    "add",
    "POST /v1/schedules",
    roles=("ask",),
    status=201,
    problems=(404, 409),
    shows=Shows(
        arguments=("agent_id", "task"),
        confirm="Keep this schedule?",
        example="schedules add ReportAgent write --every 6h --parameter kind=sales",
    ),
)
async def add_schedule(
    services: ScheduleServices, caller: Caller, new: NewSchedule
) -> ScheduleView:
    """Add a schedule; with `dry_run` only show its next times."""
    schedule = read_schedule(services, caller, new)
    if new.pipeline is not None:
        await services.pipelines.demand_sound(new.pipeline, new.parameters)
    kept = await keep_schedule(services.book, schedule, dry_run=new.dry_run)
    return view_schedule(services.book, kept)


@operation(
    "schedules",
    "pause",
    "POST /v1/schedules/{schedule_id}/pause",
    roles=("ask",),
    problems=(404,),
    shows=Shows(example="schedules pause nightly"),
)
async def pause_schedule(
    services: ScheduleServices, caller: Caller, schedule_id: ScheduleId
) -> ScheduleView:
    """Pause a schedule. One that is defined in the code of an agent stays paused across deployments."""
    await _demand(services, schedule_id, caller)
    return await _conclude(
        services, await services.book.set_paused(schedule_id, caller, paused=True)
    )


@operation(
    "schedules",
    "resume",
    "POST /v1/schedules/{schedule_id}/resume",
    roles=("ask",),
    problems=(404,),
    shows=Shows(example="schedules resume nightly"),
)
async def resume_schedule(
    services: ScheduleServices, caller: Caller, schedule_id: ScheduleId
) -> ScheduleView:
    """Resume a schedule; runs missed during the pause are not made up for.

    If the key of its creator was removed, or has lost the role `ask`, the schedule is
    yours from then on.
    """
    await _demand(services, schedule_id, caller)
    return await _conclude(
        services, await services.book.set_paused(schedule_id, caller, paused=False)
    )


@operation(
    "schedules",
    "run",
    "POST /v1/schedules/{schedule_id}/run",
    roles=("ask",),
    status=202,
    problems=(404,),
    shows=Shows(example="schedules run nightly"),
)
async def run_schedule(
    services: ScheduleServices, caller: Caller, schedule_id: ScheduleId
) -> ScheduledRun:
    """Run it once more, now, and return the id of the task or session."""
    kept = await _demand(services, schedule_id, caller)
    return ScheduledRun(task_id=await services.ticks.run_now(kept.schedule, caller))


@operation(
    "schedules",
    "remove",
    "DELETE /v1/schedules/{schedule_id}",
    roles=("ask",),
    problems=(404,),
    shows=Shows(example="schedules remove nightly"),
)
async def remove_schedule(
    services: ScheduleServices, caller: Caller, schedule_id: ScheduleId
) -> ScheduleView:
    """Remove a schedule, and its next task if that is already queued."""
    await _demand(services, schedule_id, caller)
    return await _conclude(services, await services.book.remove(schedule_id))


#: Those that change nothing.
OPERATOR_OPERATIONS = (list_schedules, show_schedule)
OPERATIONS: Operations[ScheduleServices] = (
    *OPERATOR_OPERATIONS,
    add_schedule,
    pause_schedule,
    resume_schedule,
    run_schedule,
    remove_schedule,
)


def _may_see(caller: Caller, kept: KeptSchedule) -> bool:
    schedule = kept.schedule
    # One of 0.2 names the key that made it, and no caller.
    is_own = schedule.caller is None and schedule.created_by == caller.name
    tenant = caller.own_tenant if is_own else tenant_of(schedule.caller)
    return caller.may_see(schedule.user_id, tenant)


async def _demand(
    services: ScheduleLooks, schedule_id: str, caller: Caller
) -> KeptSchedule:
    """Return a schedule that *caller* may see.

    Raises:
        Refused: 404, there is none.
    """
    kept = (await services.book.store.read(schedule_id))[0]
    if kept is None or not _may_see(caller, kept):
        raise not_found(
            f"there is no schedule {schedule_id!r}; GET /v1/schedules lists them"
        )
    return kept


async def _conclude(
    services: ScheduleServices, changed: ScheduleChange | None
) -> ScheduleView:
    """Withdraw the tick ahead of a changed schedule, and return it."""
    if changed is None:
        raise not_found("this schedule is gone; GET /v1/schedules lists them")
    await services.ticks.withdraw(changed.withdrawn)
    return view_schedule(services.book, changed.kept)


def read_schedule(
    services: ScheduleServices, caller: Caller, new: NewSchedule
) -> Schedule:
    """Return the schedule that *caller* asks for in *new*.

    Raises:
        Refused: 403, it is for another user; 404, there is no such task; 422, its parameters or times do not fit.
    """
    now = services.book.now()
    name = new.task or "pipeline"
    if new.pipeline is None and new.agent_id and new.task:
        demand_fit(
            demand_offer(services.catalogue(), new.agent_id, new.task).task,
            new.parameters,
        )
    return Schedule(
        id=new.id or make_id(name),
        timing=Timing(
            cron=new.cron,
            every_s=_whole_seconds(new.every),
            at=new.find_start(now, new.time_zone),
            time_zone=new.time_zone,
            missed=new.missed,
        ),
        agent_id=new.agent_id,
        task=new.task,
        parameters=new.parameters,
        pipeline=new.pipeline,
        user_id=caller.demand_user(new.user),
        caller=caller,
        anchor=now,
        **stamps_of(caller.name, now),
    )


def _whole_seconds(every: float | None) -> int | None:
    """Return the seconds between two ticks.

    Raises:
        Refused: 422, they are not whole.
    """
    if every is None:
        return None
    if not every.is_integer():
        raise unusable(
            [Fault(where="every", message="must be a whole number of seconds")]
        )
    return int(every)


async def keep_schedule(
    book: ScheduleBook, schedule: Schedule, *, dry_run: bool = False
) -> KeptSchedule:
    """Keep *schedule*, with *dry_run* only check it; return it with its first tick.

    Raises:
        OwnerFull: its user or its maker has too many.
        QueueFull: all places are taken.
        Refused: 422, it cannot be kept; 409, its id is taken.
    """
    try:
        return (
            KeptSchedule(schedule, book.check(schedule))
            if dry_run
            else await book.add(schedule)
        )
    except Unusable as error:
        raise unusable(
            [Fault(where=where, message=words) for where, words in error.faults]
        ) from error
    except TakenId as error:
        raise Refused(409, "taken", str(error)) from error


def view_schedule(book: ScheduleBook, kept: KeptSchedule) -> ScheduleView:
    """Return *kept* with its next times."""
    schedule, state = kept
    now = book.now()
    loss = book.makers.find_loss(schedule.caller, "ask")
    problem = state.problem if loss is None else describe_hold(schedule.id, loss)
    is_paused = schedule.paused or problem.startswith(HELD)
    after = max(now, state.last or now)
    pipeline: Any = None if schedule.pipeline is None else schedule.pipeline.get("name")
    names = (
        "id",
        "agent_id",
        "task",
        "parameters",
        "timing",
        "declared",
        "version",
    )
    changes = ("created_by", "created_at", "changed_by", "changed_at")
    return ScheduleView(
        **{name: getattr(schedule, name) for name in (*names, *changes)},
        paused=is_paused,
        target=schedule.target,
        when=_spell_timing(schedule.timing),
        pipeline=pipeline if isinstance(pipeline, str) else None,
        user=schedule.user_id,
        next=()
        if is_paused
        else tuple(next_five(schedule.timing, after, schedule.anchor)),
        last=state.last,
        last_task=state.task_id,
        missed_ticks=state.missed,
        problem=problem,
    )


def _spell_timing(timing: Timing) -> str:
    """Return when a schedule runs, for people."""
    if timing.every_s is not None:
        return f"every {describe_time(timing.every_s * 1000)}"
    return f"{timing.cron} ({timing.time_zone})" if timing.cron is not None else "once"


def for_supervisor(parts: SupervisorDependencies) -> ScheduleServices:
    """Return the services of operations of schedules in a supervisor."""
    return ScheduleServices(
        book=parts.schedules,
        ticks=parts.ticks,
        pipelines=parts.pipelines,
        catalogue=parts.catalogue,
    )


def for_operator(parts: OperatorDependencies) -> ScheduleLooks:
    """Return the services of looks at schedules by the rights of an operator."""
    return ScheduleLooks(book=parts.schedules)


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(for_supervisor, OPERATIONS),
    operator=serve(for_operator, OPERATOR_OPERATIONS),
)
