"""Requests that a process of the role `operator` hands over: a supervisor answers them by its own application."""

import asyncio
from urllib.parse import unquote

from starlette.types import ASGIApp

from tasklore.contracts.handed_requests import HandedRequest
from tasklore.supervisor.http.in_process import (
    call_in_process,
    refuse_in_process,
    refuse_stream,
)
from tasklore.supervisor.operations.refusals import Refused, unavailable

#: Doors that are for clients of the API itself: they stream, or are about keys that another process does not know.
_ELSEWHERE = ("/v1/chat/", "/v1/stream-tokens")


class HandedRequests:
    """Answers handed requests by *app*, which is served at *url*, until *draining* is set.

    A publisher there names the caller: the accounts of NATS let the role `operator` do so, and no other.
    """

    def __init__(self, app: ASGIApp, url: str, draining: asyncio.Event) -> None:
        self._app = app
        self._url = url
        self._draining = draining

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
                "the supervisor cannot read what was handed over; are the versions the same?",
            )
            return (await refuse_in_process(unreadable)).encode()
        if unquote(request.path).startswith(_ELSEWHERE):
            return (await refuse_in_process(refuse_stream(self._url))).encode()
        response = await call_in_process(self._app, request, self._url)
        return response.encode()
