"""Streams of server-sent events: how each event is spelled, and one response that leaves nothing open behind."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Annotated, Any, Literal, Self

import structlog
from pydantic import BaseModel, Field, RootModel
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.messages import Progress
from tasklore.supervisor.approvals.questions import OpenQuestion
from tasklore.supervisor.feed.events import BeganWaiting, Gap, PersonQuestion, Restarted
from tasklore.supervisor.http.admission.keys import Caller
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.http.openapi import SCHEMAS
from tasklore.supervisor.operations.audit import GONE, Audited
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.refusals import over_share, unavailable

log = structlog.get_logger(__name__)

#: Seconds that a client may take to read one event.
_SEND_S = 30.0
#: Seconds between looks at whether a stream may still be read, and those in which its end is told.
_LOOK_S = 3.0
_END_S = 1.0
#: Tells the client, and every proxy between, that the stream goes on.
HEARTBEAT = b": still here\n\n"
_LAST: Message = {"type": "http.response.body", "body": b"", "more_body": False}


class StreamEvent(View):
    """One event of a stream: its place, its word, and its data, which is JSON in one line."""

    id: Annotated[
        str,
        Field(
            description="Event id: a client sends it as `Last-Event-ID` to resume "
            "after it. Omitted if it cannot be resumed from."
        ),
    ] = ""
    event: str
    data: BaseModel

    def encode(self) -> bytes:
        """Return it as it is sent."""
        head = f"id: {self.id}\n" if self.id else ""
        data = self.data.model_dump_json()
        return f"{head}event: {self.event}\ndata: {data}\n\n".encode()


class RestartedRun(View):
    """A new run of a task, by its place; `waited` where the one before ended to wait, and did not break off."""

    generation: int
    attempt: int
    waited: bool


class RestartedEvent(StreamEvent):
    """All output before it is void: a new run of the task has begun."""

    event: Literal["restarted"]
    data: RestartedRun


class LostEvents(View):
    """The numbers of the first and the last event that were lost; `last` is null where it is not known."""

    first: int
    last: int | None


class GapEvent(StreamEvent):
    """Events of the output were lost."""

    event: Literal["gap"]
    data: LostEvents


class TaskWait(RunWait):
    """Why a task waits; see `RunWait`."""

    task_id: str


class WaitingEvent(StreamEvent):
    """A task waits for its next run, which begins by itself."""

    event: Literal["waiting"]
    data: TaskWait


class QuestionEvent(StreamEvent):
    """A task asks a person; the answer is no part of it, nor an event."""

    event: Literal["question"]
    data: OpenQuestion


class ProgressEvent(StreamEvent):
    """How far a running task is; a client that was away misses it."""

    event: Literal["progress"]
    data: Progress


def describe_stream(events: type[RootModel[Any]]) -> dict[str, Any]:
    """Return the content of a response that is a stream of *events*, for the OpenAPI document."""
    return {EventStream.media_type: {"schema": {"$ref": f"{SCHEMAS}{events.__name__}"}}}


def encode_sign(
    event: Restarted | Gap | BeganWaiting | PersonQuestion, name: str
) -> bytes:
    """Return *event* with the id *name*, as every stream of server-sent events spells it."""
    return _to_stream_event(event, name).encode()


def _to_stream_event(
    event: Restarted | Gap | BeganWaiting | PersonQuestion, name: str
) -> StreamEvent:
    if isinstance(event, Restarted):
        output = event.at.output
        run = RestartedRun(
            generation=output.generation,
            attempt=output.attempt,
            waited=event.has_waited,
        )
        return RestartedEvent(id=name, event="restarted", data=run)
    if isinstance(event, Gap):
        lost = LostEvents(first=event.first, last=event.last)
        return GapEvent(id=name, event="gap", data=lost)
    if isinstance(event, BeganWaiting):
        wait = TaskWait.model_validate({"task_id": event.task_id, **event.describe()})
        return WaitingEvent(id=name, event="waiting", data=wait)
    # Without its answer: the event is the same for a client that comes back later.
    asked = OpenQuestion.model_validate(event.question.model_dump())
    return QuestionEvent(id=name, event="question", data=asked)


class EventStream(StreamingResponse):
    """A stream of events that leaves nothing open behind, however it ends.

    It ends within seconds once its key is removed, made anew, or holds another right than when it began, and once
    *may_go_on*, where there is one, returns False.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        parts: ApiDependencies,
        caller: Caller,
        events: AsyncGenerator[bytes, None],
        *,
        audited: Audited | None = None,
        may_go_on: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        super().__init__(
            events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        self._parts = parts
        self._name = caller.name
        self._key = parts.find_key(caller.name)
        self._caller = caller
        self._audited = audited
        self._may_go_on = may_go_on
        self._events = events

    @classmethod
    def open(
        cls,
        parts: ApiDependencies,
        caller: Caller,
        events: AsyncGenerator[bytes, None],
        *,
        audited: Audited | None = None,
        has_ended: bool = False,
        may_go_on: Callable[[], Awaitable[bool]] | None = None,
    ) -> Response | Self:
        """Return the stream of *events*; 204 for a client that has read the last one, which stops its reconnecting.

        How it ends is noted as *audited*; None where the work behind it notes that itself. *may_go_on* is asked every
        few seconds whether its reader still may.

        Raises:
            Refused: 429, the caller has too many open; 503, all together, or the process is about to end.
        """
        if has_ended:
            return Response(status_code=204)
        life = parts.life
        most = parts.limits.streams
        if life.streams >= most or life.draining.is_set():
            raise unavailable(
                "no more event streams can be opened here now; retry, or use another "
                "supervisor"
            )
        if life.streams_of[caller.name] >= (own := parts.share(most)):
            raise over_share(
                f"{own} streams of events are open with this key; close one, or look without a stream"
            )
        return cls(parts, caller, events, audited=audited, may_go_on=may_go_on)

    async def stream_response(self, send: Send) -> None:
        """Send every event, each within its time: a client that does not read would be waited for forever.

        The stream of a key that was removed, or made anew, ends behind the next event.
        """
        if self._audited is None:
            await self._send_all(send)
            return
        with self._audited.noting(self._caller) as ending:
            if not await self._send_all(send):
                ending.status = GONE

    async def _send_all(self, send: Send) -> bool:
        """Send every event; return whether the client read them to the end, and may still."""
        try:
            with self._parts.life.streaming(self._name):
                is_over = True
                async with aclosing(self._events) as events:
                    await send(
                        {
                            "type": "http.response.start",
                            "status": self.status_code,
                            "headers": self.raw_headers,
                        }
                    )
                    async for event in events:
                        if not self._has_same_key():
                            is_over = False
                            break
                        async with asyncio.timeout(_SEND_S):
                            await send(
                                {
                                    "type": "http.response.body",
                                    "body": event,
                                    "more_body": True,
                                }
                            )
                        if not self._has_same_key():
                            is_over = False
                            break
                    await send(_LAST)
        except TimeoutError:
            # Nothing more can be sent to it.
            return False
        return is_over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the protocol's
        """Send until the end, until the client disconnects, or until its reader may no more, or that cannot be told."""
        sending = asyncio.ensure_future(self.stream_response(send))
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        watching = asyncio.ensure_future(self._await_lost_right())
        parts = {sending, leaving, watching}
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_cut = not (sending.done() or leaving.done())
            for one in parts:
                one.cancel()
            for end in await asyncio.gather(*parts, return_exceptions=True):
                if isinstance(end, Exception):
                    # The answer has begun: nothing else can say so.
                    log.error("event_stream_failed", caller=self._name, exc_info=end)
        if is_cut:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_S):
                    await send(_LAST)

    def _has_same_key(self) -> bool:
        return self._parts.find_key(self._name) == self._key

    async def _await_lost_right(self) -> None:
        """Return once its reader may no more."""
        may_go_on = True
        while may_go_on:
            await asyncio.sleep(_LOOK_S)
            may_go_on = self._has_same_key() and (
                self._may_go_on is None or await self._may_go_on()
            )
