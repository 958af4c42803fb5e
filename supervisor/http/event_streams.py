"""Streams of server-sent events: how each event is spelled, and one response that leaves nothing open behind."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Self

from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tasklore.supervisor.feed.events import BeganWaiting, Gap, Question, Restarted
from tasklore.supervisor.http.admission.keys import Caller
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.operations.refusals import over_share, unavailable

#: Seconds that a client may take to read one event.
_SEND_S = 30.0
#: Tells the client, and every proxy between, that the stream goes on.
HEARTBEAT = b": still here\n\n"


def encode_event(kind: str, body: Any, name: str = "") -> bytes:
    """Return one event with *body* as its data; *name* is its id, left out where no client goes on behind it."""
    data = (
        body.model_dump_json()
        if isinstance(body, BaseModel)
        else json.dumps(body, ensure_ascii=False)
    )
    head = f"id: {name}\n" if name else ""
    return f"{head}event: {kind}\ndata: {data}\n\n".encode()


def encode_sign(event: Restarted | Gap | BeganWaiting | Question, name: str) -> bytes:
    """Return *event* with the id *name*, as every stream of server-sent events spells it."""
    if isinstance(event, Restarted):
        output = event.at.output
        run = {"generation": output.generation, "attempt": output.attempt}
        return encode_event("restarted", {**run, "waited": event.has_waited}, name)
    if isinstance(event, Gap):
        return encode_event("gap", {"first": event.first, "last": event.last}, name)
    if isinstance(event, BeganWaiting):
        body = {"task_id": event.task_id, **event.describe()}
        return encode_event("waiting", body, name)
    # Its answer is not part of it: the event is the same for a client that comes back later.
    since = {"state", "answer", "refused", "refused_left_out"}
    return encode_event(
        "question", event.question.model_dump(mode="json", exclude=since), name
    )


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
