"""The routes of pipelines: start a run, look at it, steer it and listen to it, as over NATS."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Depends, Header, Path, Query
from pydantic import ConfigDict, Field, JsonValue
from starlette.responses import Response

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.identifiers import NAME_PATTERN, Name
from tasklore.contracts.messages import PhaseNote, PipelineReply, PipelineRequest
from tasklore.memory.schedules.store import Schedule
from tasklore.memory.sessions.session import SessionRoot
from tasklore.supervisor.feed.runs import RUN_PLACE, RunPosition
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.admission.stream_tokens import StreamTokenField
from tasklore.supervisor.http.event_streams import EventStream, describe_stream
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.pipeline_runs import (
    RunStreamEvent,
    RunTold,
    claim_run,
    events_of,
    read_run,
    read_standing,
)
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.operations.forms import Form, Later, View
from tasklore.supervisor.operations.refusals import Fault, Refused, unusable
from tasklore.supervisor.operations.schedules import keep_schedule
from tasklore.supervisor.schedules.book import make_id, stamps_of

SessionId = Annotated[
    str, Path(pattern=NAME_PATTERN, description="A run, by the id of its session.")
]
LastRunEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=f"^{RUN_PLACE}$",
        description="Events up to this are left out, and so is how the run stands.",
    ),
]
#: Problems of a declaration that are told at once.
_MOST = 100

_ASKING = Depends(require_role("ask"))
_READING = Depends(require_role("read"))


class _Steering(Form):
    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)


class Run(Later):
    """A pipeline, declared as its file says it, with the inputs of this run.

    The same `session_id` again starts nothing twice. `keep` leaves the session there after success. With `at` or
    `after` it begins then, as a schedule that `Location` leads to.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    pipeline: dict[str, JsonValue]
    inputs: dict[str, JsonValue] = Field(default_factory=dict)
    session_id: Name | None = None
    keep: bool = False
    user: Annotated[str | None, Field(min_length=1, max_length=256)] = None


class Resume(_Steering):
    """How to resume a run: by another declaration when one is given, `inputs` standing for those that are not kept."""

    pipeline: dict[str, JsonValue] | None = None
    inputs: dict[str, JsonValue] = Field(default_factory=dict)


class Rerun(Resume):
    """The phase at which a run begins again."""

    phase: Name


class Cancel(_Steering):
    """The reason of a cancellation."""

    reason: Annotated[str, Field(max_length=1000)] = ""


class AcceptedRun(View):
    """An accepted request: `reused` phases are not run again, `stale` ones no longer hold."""

    session_id: str
    text: str
    stale: tuple[PhaseNote, ...] = ()
    reused: tuple[PhaseNote, ...] = ()


class RunListed(View):
    """One run in a list."""

    session_id: str
    state: str
    project: str | None
    run: int
    updated_at: datetime


class RunList(View):
    """Runs whose sessions are there, the last updated first; one that was completed is not, unless it was kept."""

    runs: tuple[RunListed, ...]


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes below `/v1/pipelines`."""
    router = APIRouter(prefix="/v1/pipelines", tags=["pipelines"])
    _add_reading(router, parts)
    _add_steering(router, parts)
    return router


def _add_reading(router: APIRouter, parts: ApiParts) -> None:
    @router.get(
        "", operation_id="pipelines_list", summary="List runs", responses=answers()
    )
    async def runs(
        caller: Annotated[Caller, _READING],
        state: Annotated[
            Literal["running", "failed", "completed", "cancelled"] | None,
            Query(description="How they stand, or ended; all, when left out."),
        ] = None,
        limit: Annotated[
            int, Query(ge=1, le=200, description="How many are looked at, at most.")
        ] = 50,
    ) -> RunList:
        found = [
            root
            for root in await parts.sessions.sessions(state=state, limit=limit)
            if root.run
        ]
        if caller.user is not None:
            found = await _own(parts, caller.user, limit, state)
        return RunList(runs=tuple(map(_view_run, found)))

    @router.get(
        "/{session_id}",
        operation_id="pipelines_show",
        summary="See how far a run is, or how it ended",
        responses=answers(404),
    )
    async def run(session_id: SessionId, caller: Annotated[Caller, _ASKING]) -> RunTold:
        return await read_run(parts, caller, session_id)

    @router.get(
        "/{session_id}/events",
        operation_id="pipelines_follow",
        summary="Hear what becomes of a run",
        response_class=Response,
        responses={
            200: {
                "description": "Server-sent events.",
                "content": describe_stream(RunStreamEvent),
            },
            204: {"description": "The end was heard: there will be no other event."},
            **answers(404),
        },
    )
    async def hear(
        session_id: SessionId,
        caller: Annotated[Caller, _ASKING],
        last_event_id: LastRunEventId = None,
        _stream_token: StreamTokenField = None,
    ) -> Response:
        now = (await read_standing(parts, caller, session_id)).place
        after = RunPosition.parse(last_event_id) if last_event_id is not None else None
        events = events_of(parts, caller, session_id, after)
        return EventStream.open(
            parts, caller, events, has_ended=after == now and now.end != ""
        )


def _add_steering(router: APIRouter, parts: ApiParts) -> None:
    located = {"Location": {"description": "The run.", "schema": {"type": "string"}}}
    taken: dict[str, Any] = {
        "status_code": 202,
        "response_model": AcceptedRun,
        "responses": {
            202: {"model": AcceptedRun, "headers": located},
            **answers(404, 409),
        },
    }

    @router.post("", operation_id="pipelines_run", summary="Run a pipeline", **taken)
    async def start(body: Run, caller: Annotated[Caller, _ASKING]) -> Response:
        _demand_json(body)
        if (starts_at := body.find_start(parts.schedules.now())) is not None:
            return await _begin_later(parts, caller, body, starts_at)
        request = PipelineRequest(
            action="run",
            session_id=body.session_id,
            pipeline=body.pipeline,
            inputs=body.inputs,
            keep=body.keep,
            user_id=caller.demand_user(body.user),
            caller=caller,
        )
        reply = await parts.pipelines.take_up(request, from_door=True)
        if reply.kind == "accepted" and reply.session_id is not None:
            await claim_run(parts, caller, reply.session_id)
        is_taken = (
            reply.kind != "accepted"
            and body.session_id is not None
            and await _is_known(parts, body.session_id)
        )
        return _respond(reply, 409 if is_taken else 422)

    @router.post(
        "/{session_id}/resume",
        operation_id="pipelines_resume",
        summary="Go on with a run that is over",
        **taken,
    )
    async def resume(
        session_id: SessionId, body: Resume, caller: Annotated[Caller, _ASKING]
    ) -> Response:
        _demand_json(body)
        request = PipelineRequest(
            action="resume",
            session_id=session_id,
            pipeline=body.pipeline,
            inputs=body.inputs,
            caller=caller,
        )
        return await _steer(parts, caller, request, is_running=False)

    @router.post(
        "/{session_id}/rerun",
        operation_id="pipelines_rerun",
        summary="Begin a run again at a phase",
        **taken,
    )
    async def rerun(
        session_id: SessionId, body: Rerun, caller: Annotated[Caller, _ASKING]
    ) -> Response:
        _demand_json(body)
        request = PipelineRequest(
            action="rerun",
            session_id=session_id,
            pipeline=body.pipeline,
            inputs=body.inputs,
            phase=body.phase,
            caller=caller,
        )
        return await _steer(parts, caller, request, is_running=False)

    @router.post(
        "/{session_id}/cancel",
        operation_id="pipelines_cancel",
        summary="End a run",
        **taken,
    )
    async def cancel(
        session_id: SessionId,
        caller: Annotated[Caller, _ASKING],
        body: Cancel | None = None,
    ) -> Response:
        reason = (
            body.reason if body is not None else ""
        ) or f"cancelled by {caller.name}"
        request = PipelineRequest(action="cancel", session_id=session_id, reason=reason)
        return await _steer(parts, caller, request, is_running=True)


async def _begin_later(
    parts: ApiParts, caller: Caller, body: Run, starts_at: datetime
) -> Response:
    """Schedule the run that *body* asks for, and return the response, with the session that it will have.

    Raises:
        Refused: 422, it names a session, or cannot be kept.
        InvalidPipeline: it cannot run.
    """
    if body.session_id is not None:
        words = "a run that begins later has the one that the answer says; leave it out"
        raise unusable([Fault(where="session_id", message=words)])
    await parts.pipelines.demand_sound(body.pipeline, body.inputs)
    now = parts.schedules.now()
    schedule = Schedule(
        id=make_id(str(body.pipeline.get("name"))),
        timing=Timing(at=starts_at),
        pipeline=body.pipeline,
        parameters=body.inputs,
        keep=body.keep,
        user_id=caller.demand_user(body.user),
        caller=caller,
        anchor=now,
        **stamps_of(caller.name, now),
    )
    await keep_schedule(parts.schedules, schedule)
    session_id = schedule.tick_id(parts.supervisor_id, starts_at)
    await claim_run(parts, caller, session_id)
    taken = AcceptedRun(
        session_id=session_id,
        text=f"it begins at {starts_at.isoformat(timespec='seconds')}",
    )
    headers = {"Location": f"/v1/schedules/{schedule.id}", "Cache-Control": "no-store"}
    return Response(
        taken.model_dump_json(),
        status_code=202,
        headers=headers,
        media_type="application/json",
    )


def _demand_json(body: Run | Resume) -> None:
    """Return when the declaration and inputs of *body* can be kept as JSON.

    Raises:
        Refused: 422, there is a number that is none, or half of a surrogate pair.
    """
    try:
        json.dumps(
            [body.pipeline, body.inputs], allow_nan=False, ensure_ascii=False
        ).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(
            422, "unusable", "pipeline, inputs: only JSON in valid Unicode can be kept"
        ) from error


async def _steer(
    parts: ApiParts, caller: Caller, request: PipelineRequest, *, is_running: bool
) -> Response:
    """Return the response to *request*, which is for a run that is, or is not, running.

    Raises:
        Refused: 404, there is no such run; 409, it is in another state, or its session is gone.
    """
    session_id = request.session_id or ""
    state = (await read_run(parts, caller, session_id)).state
    is_there = await parts.runs.read(session_id) is not None
    fits = is_there and (state == "running") == is_running
    return _respond(await parts.pipelines.take_up(request), 422 if fits else 409)


def _respond(reply: PipelineReply, refused: int) -> Response:
    if reply.kind != "accepted" or reply.session_id is None:
        faults = [
            Fault(where="pipeline", message=problem[:500])
            for problem in reply.problems[:_MOST]
        ]
        detail = reply.text or "the pipeline cannot run"
        raise Refused(refused, "refused", detail, faults=faults)
    body = AcceptedRun(
        session_id=reply.session_id,
        text=reply.text,
        stale=reply.stale,
        reused=reply.reused,
    )
    headers = {
        "Location": f"/v1/pipelines/{reply.session_id}",
        "Cache-Control": "no-store",
    }
    return Response(
        body.model_dump_json(),
        status_code=202,
        headers=headers,
        media_type="application/json",
    )


async def _is_known(parts: ApiParts, session_id: str) -> bool:
    return (
        await parts.runs.read(session_id) is not None
        or await parts.runs.outcome(session_id) is not None
    )


async def _own(
    parts: ApiParts, user_id: str, limit: int, state: str | None
) -> list[SessionRoot]:
    """Return the runs of one user, however many others have been updated since."""
    roots = [
        await parts.sessions.root(session_id)
        for session_id in await parts.sessions.of_user(user_id)
    ]
    own = [
        root
        for root in roots
        if root is not None and root.run and state in (None, root.state)
    ]
    return sorted(own, key=lambda root: root.updated_ms, reverse=True)[:limit]


def _view_run(root: SessionRoot) -> RunListed:
    updated = datetime.fromtimestamp(root.updated_ms / 1000, UTC)
    return RunListed(
        session_id=root.session_id,
        state=root.state,
        project=root.project,
        run=root.run,
        updated_at=updated,
    )
