"""Problems in another form than that of programs, on the paths of those who read another."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasklore.supervisor.http.problems import MEDIA_TYPE, respond
from tasklore.supervisor.operations.refusals import refusal_of

#: The least status of a problem.
_LEAST_STATUS = 400


class ProblemForm(NamedTuple):
    """A form of problems: *is_theirs* says on which paths; *make* makes the answer of a problem as it is sent."""

    is_theirs: Callable[[str], bool]
    make: Callable[[Mapping[str, Any]], Response]


class ProblemFormMiddleware:
    """Sends every problem of some paths in a form of their own, whichever layer refused the request.

    Its other headers stay. Which of *forms* it is, in their order, is asked when there is a problem.
    """

    def __init__(self, app: ASGIApp, forms: Sequence[ProblemForm]) -> None:
        self._app = app
        self._forms = forms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but problems."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        held: tuple[Message, ProblemForm] | None = None
        has_begun = False

        async def reform(message: Message) -> None:
            nonlocal held, has_begun
            has_begun = True
            if held is not None:
                # A problem is one piece.
                start, form = held
                held = None
                formed = form.make(json.loads(message["body"]))
                MutableHeaders(scope=start).update(formed.headers)
                await send({**start, "status": formed.status_code})
                await send({**message, "body": formed.body})
                return
            theirs = self._form_of(scope["path"]) if _is_problem(message) else None
            if theirs is None:
                await send(message)
            else:
                held = message, theirs

        try:
            await self._app(scope, receive, reform)
        except Exception as error:
            # A handler further out would send it in another form.
            if not has_begun and self._form_of(scope["path"]) is not None:
                await respond(refusal_of(error))(scope, receive, reform)
            raise

    def _form_of(self, path: str) -> ProblemForm | None:
        return next((one for one in self._forms if one.is_theirs(path)), None)


def _is_problem(message: Message) -> bool:
    if message["type"] != "http.response.start" or message["status"] < _LEAST_STATUS:
        return False
    kind = MutableHeaders(scope=message).get("content-type", "")
    return kind.startswith(MEDIA_TYPE)
