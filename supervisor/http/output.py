"""The feed of a task as server-sent events, from any place on, at any supervisor: its output, and all beside it.

The id of an event is its place in the feed: a client that comes back with the last one that it read gets what follows.
One that leaves stops nothing.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Depends, Header
from starlette.responses import Response

from tasklore.contracts.messages import Progress
from tasklore.supervisor.feed.events import (
    FROM_START,
    PLACE,
    Done,
    FeedPosition,
    TaskEvent,
    Text,
    Value,
)
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.admission.stream_tokens import StreamTokenField
from tasklore.supervisor.http.event_streams import (
    HEARTBEAT,
    EventStream,
    encode_event,
    encode_sign,
)
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.http.responses import EVENTS
from tasklore.supervisor.http.tasks import Sent, TaskId, read_task, to_sent

#: In the id of the last event, behind generation and attempt.
_END = ".end"
#: Milliseconds after which a client that was cut off comes back.
_OPENING = b"retry: 500\n\n"

#: The ids of events: places in the feed, or the end of what was put out.
OUTPUT_ID = rf"({PLACE}|[0-9]{{1,9}}\.[0-9]{{1,9}}\{_END})"
LastOutputId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=f"^{OUTPUT_ID}$",
        description="Events up to this are left out.",
    ),
]


def routes(parts: ApiParts) -> APIRouter:
    """Return the route of the feed of tasks."""
    router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

    @router.get(
        "/{task_id}/output",
        operation_id="tasks_follow",
        summary="Follow what becomes of a task",
        response_class=Response,
        responses={
            200: {"description": "Server-sent events.", "content": EVENTS},
            204: {"description": "The last event was read: there will be no other."},
            **answers(404),
        },
    )
    async def follow(
        task_id: TaskId,
        caller: Annotated[Caller, Depends(require_role("ask"))],
        last_event_id: LastOutputId = None,
        _stream_token: StreamTokenField = None,
    ) -> Response:
        await read_task(parts, caller, task_id)
        has_ended = last_event_id is not None and last_event_id.endswith(_END)
        after = FROM_START
        if last_event_id is not None and not has_ended:
            after = FeedPosition.parse(last_event_id)
        return EventStream.open(
            parts, caller, _events_of(parts, task_id, after), has_ended=has_ended
        )

    return router


async def _events_of(
    parts: ApiParts, task_id: str, after: FeedPosition
) -> AsyncGenerator[bytes, None]:
    yield _OPENING
    feed = parts.feeds.follow(
        task_id, after, leaving=parts.life.draining, beat_s=parts.heartbeat_s
    )
    async with aclosing(feed):
        async for events in feed:
            yield b"".join(map(_encode, events)) or HEARTBEAT


def _encode(event: TaskEvent) -> bytes:
    if isinstance(event, Text):
        return encode_event("text", {"text": event.text}, str(event.at))
    if isinstance(event, Value):
        return encode_event("value", event.value, str(event.at))
    if isinstance(event, Progress):
        return encode_event("progress", event)
    if isinstance(event, Done):
        return _encode_done(event)
    return encode_sign(event, str(event.at))


def _encode_done(done: Done) -> bytes:
    output = done.at.output
    report = done.report
    if report is None:
        sent = Sent(task_id=done.task_id, state="cancelled", status="cancelling")
        return encode_event("done", sent, f"{output.generation}.{output.attempt}{_END}")
    expired = b""
    if done.has_expired:
        place = f"/v1/tasks/{done.task_id}"
        detail = f"the output is no longer stored; the report follows, see {place}"
        expired = encode_event("expired", {"detail": detail}, str(done.at))
    name = f"{report.generation}.{report.attempt}{_END}"
    return expired + encode_event("done", to_sent(report), name)
