"""The feed of a task as server-sent events, from any place on, at any supervisor: its output, and all beside it.

The id of an event is its place in the feed: a client that comes back with the last one that it read gets what follows.
One that leaves stops nothing.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Path
from pydantic import Field, RootModel
from starlette.responses import Response

from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.contracts.messages import EmittedValue, Progress
from tasklore.supervisor.feed.events import (
    FROM_START,
    OUTPUT_END,
    OUTPUT_ID,
    Done,
    FeedPosition,
    TaskEvent,
    TextEmission,
    ValueEmission,
)
from tasklore.supervisor.http.admission.keys import Caller, require
from tasklore.supervisor.http.admission.stream_tokens import StreamTokenField
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.http.event_streams import (
    HEARTBEAT,
    EventStream,
    GapEvent,
    ProgressEvent,
    QuestionEvent,
    RestartedEvent,
    StreamEvent,
    WaitingEvent,
    describe_stream,
    encode_sign,
)
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.operations.audit import Audited
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.sent_tasks import Sent, read_task, to_sent

#: Milliseconds after which a client that was cut off comes back.
_OPENING = b"retry: 500\n\n"

TaskId = Annotated[
    str,
    Path(
        pattern=NAME_PATTERN, description="The id of a task, as the answer to it says."
    ),
]
LastOutputId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=f"^{OUTPUT_ID}$",
        description="Events up to this are left out.",
    ),
]


class OutputText(View):
    """A piece of the text that a task emits, to be appended."""

    text: str


class TextEvent(StreamEvent):
    """A piece of the task's text."""

    event: Literal["text"]
    data: OutputText


class ValueEvent(StreamEvent):
    """A value that the task emitted beside its text, such as a call of a tool."""

    event: Literal["value"]
    data: EmittedValue


class OutputGone(View):
    """Why the output behind `Last-Event-ID` does not follow."""

    detail: str


class ExpiredEvent(StreamEvent):
    """The output is no longer stored; the end follows."""

    event: Literal["expired"]
    data: OutputGone


class TaskDoneEvent(StreamEvent):
    """The end, with the report of the task; nothing follows."""

    event: Literal["done"]
    data: Sent


class TaskStreamEvent(
    RootModel[
        Annotated[
            TextEvent
            | ValueEvent
            | RestartedEvent
            | GapEvent
            | WaitingEvent
            | QuestionEvent
            | ProgressEvent
            | ExpiredEvent
            | TaskDoneEvent,
            Field(discriminator="event"),
        ]
    ]
):
    """One server-sent event of a task; `data` is shown as it is once its JSON is read."""


_FOLLOWED = Audited(id="tasks_follow", roles=("ask",), is_look=True)


def routes(parts: ApiDependencies) -> APIRouter:
    """Return the route of the feed of tasks."""
    router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

    @router.get(
        "/{task_id}/output",
        operation_id=_FOLLOWED.id,
        summary="Follow the events of a task",
        response_class=Response,
        responses={
            200: {
                "description": "Server-sent events.",
                "content": describe_stream(TaskStreamEvent),
            },
            204: {"description": "The last event was read: there will be no other."},
            **answers(404),
        },
    )
    async def follow(
        task_id: TaskId,
        caller: Annotated[Caller, Depends(require(_FOLLOWED.demand_role))],
        last_event_id: LastOutputId = None,
        _stream_token: StreamTokenField = None,
    ) -> Response:
        return await open_output(parts, caller, task_id, last_event_id)

    return router


async def open_output(
    parts: ApiDependencies,
    caller: Caller,
    task_id: str,
    last_event_id: str | None,
    may_go_on: Callable[[], Awaitable[bool]] | None = None,
) -> Response:
    """Return the feed of a task that *caller* may see, behind the event *last_event_id*, an `OUTPUT_ID`.

    It ends once *may_go_on* returns False.

    Raises:
        Refused: 404, there is no such task for them; 429 or 503, too many streams are open.
    """
    with _FOLLOWED.noting(caller) as ending:
        await read_task(parts.for_tasks, caller, task_id)
        has_ended = last_event_id is not None and last_event_id.endswith(OUTPUT_END)
        after = FROM_START
        if last_event_id is not None and not has_ended:
            after = FeedPosition.parse(last_event_id)
        stream = EventStream.open(
            parts,
            caller,
            _events_of(parts, task_id, after),
            audited=_FOLLOWED,
            has_ended=has_ended,
            may_go_on=may_go_on,
        )
        ending.goes_on = isinstance(stream, EventStream)
    return stream


async def _events_of(
    parts: ApiDependencies, task_id: str, after: FeedPosition
) -> AsyncGenerator[bytes, None]:
    yield _OPENING
    feed = parts.feeds.follow(
        task_id, after, leaving=parts.life.draining, beat_s=parts.heartbeat_s
    )
    async with aclosing(feed):
        async for events in feed:
            yield b"".join(map(_encode, events)) or HEARTBEAT


def _encode(event: TaskEvent) -> bytes:
    if isinstance(event, TextEmission):
        piece = OutputText(text=event.text)
        return TextEvent(id=str(event.at), event="text", data=piece).encode()
    if isinstance(event, ValueEmission):
        return ValueEvent(id=str(event.at), event="value", data=event.value).encode()
    if isinstance(event, Progress):
        return ProgressEvent(event="progress", data=event).encode()
    if isinstance(event, Done):
        return _encode_done(event)
    return encode_sign(event, str(event.at))


def _encode_done(done: Done) -> bytes:
    output = done.at.output
    report = done.report
    if report is None:
        sent = Sent(task_id=done.task_id, state="cancelled", status="cancelling")
        name = f"{output.generation}.{output.attempt}{OUTPUT_END}"
        return TaskDoneEvent(id=name, event="done", data=sent).encode()
    expired = b""
    if done.has_expired:
        place = f"/v1/tasks/{done.task_id}"
        detail = f"the output is no longer stored; the report follows, see {place}"
        gone = OutputGone(detail=detail)
        expired = ExpiredEvent(id=str(done.at), event="expired", data=gone).encode()
    name = f"{report.generation}.{report.attempt}{OUTPUT_END}"
    end = TaskDoneEvent(id=name, event="done", data=to_sent(report))
    return expired + end.encode()
