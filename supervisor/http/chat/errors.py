"""Errors in OpenAI's form, on the paths that clients of its API call."""

import json
import re
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasklore.supervisor.http import problems
from tasklore.supervisor.http.chat.forms import OpenAiError, OpenAiErrorBody

#: The paths, and everything below them.
PATHS = ("/v1/chat/completions", "/v1/models")
#: Paths that only OpenAI's clients ask for, with any base URL; they show no problem of another form to a person.
_NEARLY = re.compile(r"/*(v1/+)*((chat/+)?completions|responses|embeddings)/*")
#: Kinds of problems by OpenAI's word for them.
_CODES = {
    "no-key": "invalid_api_key",
    "rate": "rate_limit_exceeded",
    "share": "rate_limit_exceeded",
    "unusable": "invalid_value",
    "no-json": None,
}
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class OpenAiErrorMiddleware:
    """Sends every problem of these paths in OpenAI's form, whichever layer refused the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but problems."""
        path = scope.get("path", "")
        if scope["type"] != "http" or not (
            path.startswith(PATHS) or _NEARLY.fullmatch(path)
        ):
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
                    .startswith(problems.MEDIA_TYPE)
                ):
                    held = message
                    return
            elif held is not None:
                # A problem is one piece; an unusable value is a bad request for OpenAI.
                start = held
                held = None
                body = (
                    error_body(json.loads(message["body"])).model_dump_json().encode()
                )
                headers = MutableHeaders(scope=start)
                headers["content-type"] = "application/json"
                headers["content-length"] = str(len(body))
                await send(
                    {
                        **start,
                        "status": 400 if start["status"] == 422 else start["status"],
                    }
                )
                await send({**message, "body": body})
                return
            await send(message)

        try:
            await self._app(scope, receive, reform)
        except Exception as error:
            # A handler further out would send it in another form.
            if not has_begun:
                await problems.respond(problems.refusal_of(error))(
                    scope, receive, reform
                )
            raise


def error_body(problem: Mapping[str, Any]) -> OpenAiErrorBody:
    """Return *problem*, as it is sent, in OpenAI's form."""
    kind = str(problem["type"]).rpartition(":")[2]
    status = int(problem["status"])
    faults = problem.get("problems") or [{}]
    # OpenAI's clients repeat a request after a server_error, and after nothing else here.
    named = _TYPES.get(
        status, "invalid_request_error" if status < 500 else "server_error"
    )
    return OpenAiErrorBody(
        error=OpenAiError(
            message=str(problem["detail"]),
            type=named,
            param=faults[0].get("where"),
            code=_CODES.get(kind, kind),
        )
    )


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors of a route, for its `responses`, as `problems.answers` does."""
    found = problems.answers(*statuses)
    found.pop(422)
    return {
        status: {"description": one["description"], "model": OpenAiErrorBody}
        for status, one in found.items()
    }
