"""The events of a run over HTTP; all else that is asked of pipelines is `tasklore.supervisor.operations.pipelines`."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import partial
from typing import Annotated, Literal

import structlog
from fastapi import APIRouter, Depends, Header, Path
from pydantic import Field, RootModel
from starlette.responses import Response

from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.contracts.messages import PipelineEvent, PipelineEventKind
from tasklore.supervisor.feed.runs import (
    RUN_PLACE,
    RunFeedEvent,
    RunPosition,
    RunStep,
    follow_run,
)
from tasklore.supervisor.http.admission.keys import Caller, require
from tasklore.supervisor.http.admission.stream_tokens import StreamTokenField
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.http.event_streams import (
    HEARTBEAT,
    EventStream,
    StreamEvent,
    describe_stream,
)
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.operations import pipelines
from tasklore.supervisor.operations.audit import Audited
from tasklore.supervisor.operations.pipelines import (
    PipelineServices,
    RunView,
    read_standing,
    view_run,
)
from tasklore.supervisor.operations.refusals import Refused

log = structlog.get_logger(__name__)

SessionId = Annotated[
    str, Path(pattern=NAME_PATTERN, description="A run, by the id of its session.")
]
LastRunEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=f"^{RUN_PLACE}$",
        description="Events up to this are left out, and so is the status of the run.",
    ),
]


class RunStepEvent(StreamEvent):
    """A step of a run, as its driver says it."""

    event: PipelineEventKind
    data: PipelineEvent


class RunStateEvent(StreamEvent):
    """The current state of the run: the first event of a client that resumes from no event."""

    event: Literal["state"]
    data: RunView


class RunDoneEvent(StreamEvent):
    """The final state of the run; nothing follows."""

    event: Literal["done"]
    data: RunView


class RunStreamEvent(
    RootModel[
        Annotated[
            RunStateEvent | RunStepEvent | RunDoneEvent, Field(discriminator="event")
        ]
    ]
):
    """One server-sent event of a run; `data` is shown as it is once its JSON is read."""


_FOLLOWED = Audited(id="pipelines_follow", roles=("ask",), is_look=True)


def routes(parts: ApiDependencies) -> APIRouter:
    """Return the route of the events of a run; every other one of pipelines is an operation."""
    services = pipelines.for_supervisor(parts)
    router = APIRouter(prefix="/v1/pipelines", tags=["pipelines"])

    @router.get(
        "/{session_id}/events",
        operation_id=_FOLLOWED.id,
        summary="Follow the events of a run",
        response_class=Response,
        responses={
            200: {
                "description": "Server-sent events.",
                "content": describe_stream(RunStreamEvent),
            },
            204: {"description": "The end has been received: no other event follows."},
            **answers(404),
        },
    )
    async def hear(
        session_id: SessionId,
        caller: Annotated[Caller, Depends(require(_FOLLOWED.demand_role))],
        last_event_id: LastRunEventId = None,
        _stream_token: StreamTokenField = None,
    ) -> Response:
        with _FOLLOWED.noting(caller) as ending:
            now = (await read_standing(services, caller, session_id)).place
            after = None if last_event_id is None else RunPosition.parse(last_event_id)
            events = events_of(parts, services, caller, session_id, after=after)
            has_ended = after == now and now.end != ""
            stream = EventStream.open(
                parts, caller, events, audited=_FOLLOWED, has_ended=has_ended
            )
            ending.goes_on = isinstance(stream, EventStream)
        return stream

    return router


async def events_of(
    parts: ApiDependencies,
    services: PipelineServices,
    caller: Caller,
    session_id: str,
    *,
    after: RunPosition | None,
) -> AsyncGenerator[bytes, None]:
    """Yield the state of a run, or what happened behind *after*; its steps; and its state once it is over."""
    sources = parts.feeds.demand_sources()
    feed = follow_run(
        sources.link,
        session_id,
        look=partial(read_standing, services, caller, session_id),
        after=after,
        leaving=parts.life.draining,
        beat_s=parts.heartbeat_s,
    )
    try:
        async with aclosing(feed):
            async for events in feed:
                # The inputs of a run are masked anew in each.
                yield await asyncio.to_thread(_encode_all, events) or HEARTBEAT
    except (Refused, TaskloreError) as error:
        # It is no longer known, or the store does not answer: a client that comes back is told.
        log.info("run_not_followed", session=session_id, error=str(error))


def _encode_all(events: Iterable[RunFeedEvent]) -> bytes:
    return b"".join(map(_encode, events))


def _encode(event: RunFeedEvent) -> bytes:
    name = "" if event.at is None else str(event.at)
    if isinstance(event, RunStep):
        step = RunStepEvent(id=name, event=event.event.kind, data=event.event)
        return step.encode()
    run = view_run(event.standing)
    if event.is_end:
        return RunDoneEvent(id=name, event="done", data=run).encode()
    return RunStateEvent(id=name, event="state", data=run).encode()
