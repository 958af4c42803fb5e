"""Problems in another form than that of programs, on the paths of those who read another."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasklore.supervisor.http.problems import MEDIA_TYPE, respond
from tasklore.supervisor.operations.refusals import refusal_of


class ProblemFormMiddleware:
    """Sends every problem of some paths in a form of their own, whichever layer refused the request.

    *is_theirs* says which paths; *form* makes the answer of a problem as it is sent, whose other headers stay.
    """

    def __init__(
        self,
        app: ASGIApp,
        is_theirs: Callable[[str], bool],
        form: Callable[[Mapping[str, Any]], Response],
    ) -> None:
        self._app = app
        self._is_theirs = is_theirs
        self._form = form

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but problems."""
        if scope["type"] != "http" or not self._is_theirs(scope.get("path", "")):
            await self._app(scope, receive, send)
            return
        held: Message | None = None
        has_begun = False

        async def reform(message: Message) -> None:
            nonlocal held, has_begun
            has_begun = True
            if message["type"] == "http.response.start":
                if (
                    MutableHeaders(scope=message)
                    .get("content-type", "")
                    .startswith(MEDIA_TYPE)
                ):
                    held = message
                    return
            elif held is not None:
                # A problem is one piece.
                start = held
                held = None
                formed = self._form(json.loads(message["body"]))
                MutableHeaders(scope=start).update(formed.headers)
                await send({**start, "status": formed.status_code})
                await send({**message, "body": formed.body})
                return
            await send(message)

        try:
            await self._app(scope, receive, reform)
        except Exception as error:
            # A handler further out would send it in another form.
            if not has_begun:
                await respond(refusal_of(error))(scope, receive, reform)
            raise
