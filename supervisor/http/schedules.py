"""The routes of schedules: add one, look at them, pause and resume, run and remove."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import ConfigDict, Field, JsonValue

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.identifiers import NAME_PATTERN, Name
from tasklore.memory.schedules.store import KeptSchedule, Schedule
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.card_fit import demand_fit, demand_offer
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import (
    Fault,
    Refused,
    answers,
    not_found,
    unusable,
)
from tasklore.supervisor.http.responses import Later, View
from tasklore.supervisor.schedules.book import (
    ScheduleChange,
    TakenId,
    Unusable,
    make_id,
    stamps_of,
)
from tasklore.supervisor.schedules.ticks import next_five

ScheduleId = Annotated[
    str, Path(pattern=NAME_PATTERN, description="A schedule, by its id.")
]

_ASKING = Depends(require_role("ask"))


class NewSchedule(Later):
    """A task of an agent with its parameters, or a declared pipeline with its inputs as `parameters`, and its times.

    `every` is whole seconds. With `dry_run` nothing is kept: the answer shows the next times. The same `id` again with
    the same content changes nothing. `missed` says which ticks are made up for that passed while nothing ran.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    id: Name | None = None
    agent_id: Name | None = None
    task: Name | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    pipeline: dict[str, JsonValue] | None = None
    user: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    cron: Annotated[
        str | None, Field(description="Five fields, or six with seconds first.")
    ] = None
    every: int | None = None
    time_zone: str = "UTC"
    missed: Literal["skip", "once", "all"] = "once"
    dry_run: bool = False


class ScheduleView(View):
    """A schedule: `next` are its next five times; `missed_ticks` passed while nothing ran and were not made up for.

    `last_task` is the task, or the session of the run, of the tick at `last`; `problem` says why that began nothing.
    """

    id: str
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


class Begun(View):
    """A run that was asked for: its task, or the session of its pipeline."""

    task_id: str


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes below `/v1/schedules`."""
    router = APIRouter(prefix="/v1/schedules", tags=["schedules"])
    _add_reading(router, parts)
    _add_changes(router, parts)
    return router


def _add_reading(router: APIRouter, parts: ApiParts) -> None:
    book = parts.schedules

    @router.get("", summary="List schedules", responses=answers())
    async def list_all(
        caller: Annotated[Caller, _ASKING],
        after: Annotated[
            str, Query(max_length=64, description="The `after` of the page before.")
        ] = "",
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> ScheduleList:
        found = await book.store.list(caller.user, after=after, limit=limit)
        views = tuple(view_schedule(one, book.now()) for one in found)
        return ScheduleList(
            schedules=views, after=views[-1].id if len(views) == limit else None
        )

    @router.get(
        "/{schedule_id}",
        summary="See a schedule and its next times",
        responses=answers(404),
    )
    async def see(
        schedule_id: ScheduleId, caller: Annotated[Caller, _ASKING]
    ) -> ScheduleView:
        return view_schedule(await _demand(parts, schedule_id, caller), book.now())


def _add_changes(router: APIRouter, parts: ApiParts) -> None:
    book = parts.schedules

    @router.post(
        "", summary="Add a schedule", status_code=201, responses=answers(404, 409)
    )
    async def add(
        body: NewSchedule, caller: Annotated[Caller, _ASKING]
    ) -> ScheduleView:
        schedule = read_schedule(body, caller, parts)
        if body.pipeline is not None:
            await parts.pipelines.demand_sound(body.pipeline, body.parameters)
        return view_schedule(
            await keep_schedule(parts, schedule, dry_run=body.dry_run), book.now()
        )

    @router.post(
        "/{schedule_id}/pause", summary="Let no tick come", responses=answers(404)
    )
    async def pause(
        schedule_id: ScheduleId, caller: Annotated[Caller, _ASKING]
    ) -> ScheduleView:
        await _demand(parts, schedule_id, caller)
        return await _conclude(
            parts, await book.set_paused(schedule_id, caller.name, paused=True)
        )

    @router.post(
        "/{schedule_id}/resume", summary="Let ticks come again", responses=answers(404)
    )
    async def resume(
        schedule_id: ScheduleId, caller: Annotated[Caller, _ASKING]
    ) -> ScheduleView:
        await _demand(parts, schedule_id, caller)
        return await _conclude(
            parts, await book.set_paused(schedule_id, caller.name, paused=False)
        )

    @router.post(
        "/{schedule_id}/run",
        summary="Run it once more, now",
        status_code=202,
        responses=answers(404),
    )
    async def run(schedule_id: ScheduleId, caller: Annotated[Caller, _ASKING]) -> Begun:
        return Begun(
            task_id=await parts.ticks.run_now(
                (await _demand(parts, schedule_id, caller)).schedule, caller
            )
        )

    @router.delete(
        "/{schedule_id}", summary="Remove a schedule", responses=answers(404)
    )
    async def remove(
        schedule_id: ScheduleId, caller: Annotated[Caller, _ASKING]
    ) -> ScheduleView:
        await _demand(parts, schedule_id, caller)
        return await _conclude(parts, await book.remove(schedule_id))


async def _demand(parts: ApiParts, schedule_id: str, caller: Caller) -> KeptSchedule:
    """Return a schedule that *caller* may see.

    Raises:
        Refused: 404, there is none.
    """
    kept = (await parts.schedules.store.read(schedule_id))[0]
    if kept is None or not caller.may_hear(kept.schedule.user_id):
        raise not_found(
            f"there is no schedule {schedule_id!r}; GET /v1/schedules lists them"
        )
    return kept


async def _conclude(parts: ApiParts, changed: ScheduleChange | None) -> ScheduleView:
    """Withdraw the tick ahead of a changed schedule, and return it."""
    if changed is None:
        raise not_found("this schedule is gone; GET /v1/schedules lists them")
    await parts.ticks.withdraw(changed.withdrawn)
    return view_schedule(changed.kept, parts.schedules.now())


def read_schedule(body: NewSchedule, caller: Caller, parts: ApiParts) -> Schedule:
    """Return the schedule that *caller* asks for in *body*.

    Raises:
        Refused: 403, it is for another user; 404, there is no such task; 422, its parameters or times do not fit.
    """
    now = parts.schedules.now()
    name = body.task or "pipeline"
    if body.pipeline is None and body.agent_id and body.task:
        demand_fit(
            demand_offer(parts.catalogue(), body.agent_id, body.task).task,
            body.parameters,
        )
    return Schedule(
        id=body.id or make_id(name),
        timing=Timing(
            cron=body.cron,
            every_s=body.every,
            at=body.find_start(now),
            time_zone=body.time_zone,
            missed=body.missed,
        ),
        agent_id=body.agent_id,
        task=body.task,
        parameters=body.parameters,
        pipeline=body.pipeline,
        user_id=caller.demand_user(body.user),
        caller=caller,
        anchor=now,
        **stamps_of(caller.name, now),
    )


async def keep_schedule(
    parts: ApiParts, schedule: Schedule, *, dry_run: bool = False
) -> KeptSchedule:
    """Keep *schedule*, with *dry_run* only check it; return it with its first tick.

    Raises:
        OwnerFull: its user or its maker has too many.
        QueueFull: all places are taken.
        Refused: 422, it cannot be kept; 409, its id is taken.
    """
    try:
        return (
            KeptSchedule(schedule, parts.schedules.check(schedule))
            if dry_run
            else await parts.schedules.add(schedule)
        )
    except Unusable as error:
        raise unusable(
            [Fault(where=where, message=words) for where, words in error.faults]
        ) from error
    except TakenId as error:
        raise Refused(409, "taken", str(error)) from error


def view_schedule(kept: KeptSchedule, now: datetime) -> ScheduleView:
    """Return *kept* with its next times."""
    schedule, state = kept
    after = max(now, state.last or now)
    pipeline: Any = None if schedule.pipeline is None else schedule.pipeline.get("name")
    names = (
        "id",
        "agent_id",
        "task",
        "parameters",
        "timing",
        "paused",
        "declared",
        "version",
    )
    changes = ("created_by", "created_at", "changed_by", "changed_at")
    return ScheduleView(
        **{name: getattr(schedule, name) for name in (*names, *changes)},
        pipeline=pipeline if isinstance(pipeline, str) else None,
        user=schedule.user_id,
        next=()
        if schedule.paused
        else tuple(next_five(schedule.timing, after, schedule.anchor)),
        last=state.last,
        last_task=state.task_id,
        missed_ticks=state.missed,
        problem=state.problem,
    )
