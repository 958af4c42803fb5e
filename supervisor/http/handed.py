"""Requests that a process of the role `operator` hands over: a supervisor answers them by its own application."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from starlette.types import ASGIApp

from tasklore.contracts.handed_requests import HandedRequest
from tasklore.supervisor.http.in_process import (
    call_in_process,
    refuse_in_process,
    refuse_stream,
)
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.operations.refusals import Refused, unavailable

#: Doors that are for clients of the API itself: they stream, or are about keys that another process does not know.
_ELSEWHERE = ("/v1/chat/", "/v1/stream-tokens")


_GIVEN_UP = unavailable(
    "the client had disconnected before the request was processed; retry"
)
#: Requests that were given up and have not come yet, which a process remembers: more than are answered at once.
_MOST_LEFT = 10_000


class HandedRequests:
    """Answers handed requests by *app*, which is served at *url*, until *draining* is set.

    One that was given up is as one whose client closed its connection: an operation that waits ends, and any other
    one comes to its end.

    A publisher there names the caller: the accounts of NATS let the role `operator` do so, and no other. A key that
    *makers* do not know is one of that process alone, and what is made with it is bound to no key here.
    """

    def __init__(
        self,
        app: ASGIApp,
        url: str,
        draining: asyncio.Event,
        makers: Makers | None = None,
    ) -> None:
        self._app = app
        self._makers = makers or Makers()
        self._url = url
        self._draining = draining
        self._underway: dict[str, asyncio.Event] = {}
        self._left: OrderedDict[str, None] = OrderedDict()
        self._late: set[asyncio.Task[None]] = set()

    def note_left(self, request_id: str) -> None:
        """Take notice that the request *request_id* was given up, here or elsewhere, come or to come."""
        left = self._underway.get(request_id)
        if left is not None:
            left.set()
            return
        self._left[request_id] = None
        while len(self._left) > _MOST_LEFT:
            self._left.popitem(last=False)

    async def answer_bytes(self, message: bytes) -> bytes:
        """Return the response to the request in *message*, both in the form of a message."""
        if self._draining.is_set():
            leaving = await refuse_in_process(
                unavailable("the supervisor that was asked is about to end; ask again")
            )
            return leaving.model_copy(update={"is_leaving": True}).encode()
        try:
            request = HandedRequest.decode(message)
        except ValueError:
            unreadable = Refused(
                400,
                "unreadable",
                "the supervisor cannot read the forwarded request; are the versions "
                "the same?",
            )
            return (await refuse_in_process(unreadable)).encode()
        is_handed = self._makers.is_foreign(request.caller)
        caller = request.caller.model_copy(update={"is_handed": is_handed})
        request = request.model_copy(update={"caller": caller})
        if unquote(request.path).startswith(_ELSEWHERE):
            return (await refuse_in_process(refuse_stream(self._url))).encode()
        if request.id in self._left:
            del self._left[request.id]
            return (await refuse_in_process(_GIVEN_UP)).encode()
        with self._underway_as(request.id) as left:
            response = await call_in_process(
                self._app, request, self._url, left=left, keep=self._keep
            )
        return response.encode()

    @contextmanager
    def _underway_as(self, request_id: str) -> Iterator[asyncio.Event]:
        """Yield the event of the request's client leaving."""
        left = asyncio.Event()
        if not request_id:
            yield left
            return
        self._underway[request_id] = left
        try:
            yield left
        finally:
            del self._underway[request_id]

    def _keep(self, answering: asyncio.Task[None]) -> None:
        """Let a late response come to its end."""
        self._late.add(answering)
        answering.add_done_callback(self._late.discard)
