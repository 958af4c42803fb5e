"""The course of a request as server-sent events: from its beginning, however late a client comes, and to its end.

Ids are stages, not counts: `1` accepted, `2` routed, `3` progress and partial, `4` done. A client that comes back with
the id of the last one it read, to any replica, gets those that follow, and of several tasks once more which have ended.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Self

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from pydantic import BaseModel, ValidationError
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tasklore.contracts import subjects
from tasklore.contracts.messages import Progress
from tasklore.supervisor.http.admission.keys import Caller
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import over_share, unavailable
from tasklore.supervisor.http.requests.outcome import Lookup, RequestPlace, read_outcome
from tasklore.supervisor.http.responses import wait_first

ACCEPTED = 1
ROUTED = 2
PROGRESS = 3
DONE = 4
#: Seconds between looks at a request without any news.
_LOOK_S = 1.0
#: Messages of progress that wait for a slow client; older ones are outdated.
_MOST_WAITING = 64
#: Seconds that a client may take to read one event.
_SEND_S = 30.0
_HEARTBEAT = b": still here\n\n"


class EventStream(StreamingResponse):
    """A stream of events that leaves nothing open behind, however it ends."""

    media_type = "text/event-stream"

    def __init__(
        self, parts: ApiParts, name: str, events: AsyncGenerator[bytes, None]
    ) -> None:
        super().__init__(
            events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        self._parts = parts
        self._name = name
        self._key = parts.digest_of_key(name)
        self._events = events

    @classmethod
    def open(
        cls,
        parts: ApiParts,
        caller: Caller,
        events: AsyncGenerator[bytes, None],
        *,
        has_ended: bool = False,
    ) -> Response | Self:
        """Return the stream of *events*; 204 for a client that has read the last one, which stops its reconnecting.

        Raises:
            Refused: 429, the caller has too many open; 503, all together, or the process is about to end.
        """
        if has_ended:
            return Response(status_code=204)
        life = parts.life
        most = parts.limits.streams
        if life.streams >= most or life.draining.is_set():
            raise unavailable(
                "no more streams of events are opened here now; ask again, or elsewhere"
            )
        if life.streams_of[caller.name] >= (own := parts.share(most)):
            raise over_share(
                f"{own} streams of events are open with this key; close one, or look without a stream"
            )
        return cls(parts, caller.name, events)

    async def stream_response(self, send: Send) -> None:
        """Send every event, each within its time: a client that does not read would be waited for forever.

        The stream of a key that was removed, or made anew, ends behind the next event, a heartbeat at the latest.
        """
        try:
            with self._parts.life.streaming(self._name):
                async with aclosing(self._events) as events:
                    await send(
                        {
                            "type": "http.response.start",
                            "status": self.status_code,
                            "headers": self.raw_headers,
                        }
                    )
                    async for event in events:
                        async with asyncio.timeout(_SEND_S):
                            await send(
                                {
                                    "type": "http.response.body",
                                    "body": event,
                                    "more_body": True,
                                }
                            )
                        if self._parts.digest_of_key(self._name) != self._key:
                            break
                    await send(
                        {"type": "http.response.body", "body": b"", "more_body": False}
                    )
        except TimeoutError:
            # Nothing more can be sent to it.
            return

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the protocol's
        """Send until the end, or until the client disconnects."""
        sending = asyncio.ensure_future(self.stream_response(send))
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)


async def events_of(
    parts: ApiParts, place: RequestPlace, task_id: str, after: int
) -> AsyncGenerator[bytes, None]:
    """Yield the events of the request at *place*, which becomes *task_id*, beyond the stage *after*."""
    reached = after
    loop = asyncio.get_running_loop()
    beat_at = loop.time() + parts.heartbeat_s
    async with _listen(parts, task_id) as listener:
        ended: set[str] = set()
        while True:
            # Taken first: a change from now on is seen in the next round.
            signs = [listener.news, parts.life.draining]
            if (underway := parts.work.find(place.key)) is not None:
                signs.append(underway.changed)
            asked = await read_outcome(parts, place)
            await listener.listen(
                *(part.task_id for part in asked.parts if asked.state == "running")
            )
            for stage, event in _stages(asked):
                if stage > reached or stage == DONE:
                    yield event
                    reached = max(reached, stage)
            if asked.state == "done" or parts.life.draining.is_set():
                return
            for progress in listener.take():
                yield _event(
                    PROGRESS,
                    "progress" if progress.fraction is not None else "partial",
                    progress,
                )
            for part in asked.parts:
                if part.reply is not None and part.task_id not in ended:
                    ended.add(part.task_id)
                    yield _event(PROGRESS, "partial", part.reply)
            await wait_first(
                *(sign.wait() for sign in signs),
                within_s=min(_LOOK_S, parts.heartbeat_s),
            )
            if loop.time() >= beat_at:
                beat_at += parts.heartbeat_s
                yield _HEARTBEAT


class _ProgressListener:
    """Collects the progress of the tasks of a request."""

    def __init__(self, parts: ApiParts) -> None:
        self.news = asyncio.Event()
        self._parts = parts
        self._subscriptions: dict[str, Subscription] = {}
        self._waiting: deque[Progress] = deque(maxlen=_MOST_WAITING)

    async def listen(self, *task_ids: str) -> None:
        """Listen to more tasks, once to each."""
        for task_id in task_ids:
            if task_id not in self._subscriptions:
                subject = subjects.progress(self._parts.supervisor_id, task_id)
                self._subscriptions[task_id] = await self._parts.client.subscribe(
                    subject, cb=self.hear
                )

    async def close(self) -> None:
        """End every subscription."""
        if not self._parts.client.is_closed:
            for subscription in self._subscriptions.values():
                await subscription.unsubscribe()

    async def hear(self, message: Msg) -> None:
        try:
            self._waiting.append(Progress.model_validate_json(message.data))
        except ValidationError:
            return
        self.news.set()

    def take(self) -> list[Progress]:
        self.news.clear()
        taken = list(self._waiting)
        self._waiting.clear()
        return taken


@asynccontextmanager
async def _listen(parts: ApiParts, task_id: str) -> AsyncIterator[_ProgressListener]:
    listener = _ProgressListener(parts)
    try:
        await listener.listen(task_id)
        yield listener
    finally:
        await listener.close()


def _stages(asked: Lookup) -> list[tuple[int, bytes]]:
    """Return the stages that *asked* has reached, in order, each with its event."""
    first = asked.model_copy(
        update={
            "state": "accepted",
            "reply": None,
            "agent_id": None,
            "task": None,
            "parts": (),
        }
    )
    stages = [(ACCEPTED, _event(ACCEPTED, "accepted", first))]
    if asked.parts or (asked.agent_id is not None and asked.task_id is not None):
        going = tuple(part.model_copy(update={"reply": None}) for part in asked.parts)
        routed = asked.model_copy(
            update={"state": "running", "reply": None, "parts": going}
        )
        stages.append((ROUTED, _event(ROUTED, "routed", routed)))
    if asked.state == "done":
        stages.append((DONE, _event(DONE, "done", asked)))
    return stages


def _event(stage: int, name: str, body: BaseModel) -> bytes:
    return f"id: {stage}\nevent: {name}\ndata: {body.model_dump_json()}\n\n".encode()
