"""Errors of the paths that clients of OpenAI's API call, in the form that they know."""

import json
import re
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from supervisor.http import problems
from supervisor.http.chat.forms import OpenAiError, OpenAiErrorBody

#: The paths, and what stands below them.
PATHS = ("/v1/chat/completions", "/v1/models")
#: What only OpenAI's clients ask for, below whatever base they were given: they show nobody a problem of another form.
_NEARLY = re.compile(r"/*(v1/+)*((chat/+)?completions|responses|embeddings)/*")
#: Problems by the word that OpenAI has for them.
_CODES = {
    "no-key": "invalid_api_key",
    "rate": "rate_limit_exceeded",
    "share": "rate_limit_exceeded",
    "unusable": "invalid_value",
    "no-json": None,
}
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class OpenAiErrors:
    """Wraps an application: a problem on one of the paths leaves it in OpenAI's form, whoever refused the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but problems."""
        if scope["type"] != "http" or not _is_openais(scope["path"]):
            await self._app(scope, receive, send)
            return
        reforming = _Reforming(send)
        try:
            await self._app(scope, receive, reforming)
        except Exception as error:
            # Whoever catches it further out would tell it in another form.
            await reforming.tell(problems.refusal_of(error))
            raise


def _is_openais(path: str) -> bool:
    return path.startswith(PATHS) or _NEARLY.fullmatch(path) is not None


class _Reforming:
    """Sends a response on, once it is known whether it is a problem."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._has_begun = False

    async def tell(self, refused: problems.Refused) -> None:
        """Answer with *refused*, unless an answer has begun."""
        if not self._has_begun:
            for message in _messages(refused):
                await self(message)

    async def __call__(self, message: Message) -> None:
        self._has_begun = True
        if message["type"] == "http.response.start":
            if MutableHeaders(scope=message).get("content-type", "").startswith(problems.MEDIA_TYPE):
                self._start = message
                return
        elif self._start is not None:
            # A problem is one piece.
            start, self._start = self._start, None
            body = error_body(json.loads(message["body"])).model_dump_json().encode()
            headers = MutableHeaders(scope=start)
            headers["content-type"] = "application/json"
            headers["content-length"] = str(len(body))
            await self._send({**start, "status": _status(start["status"])})
            await self._send({**message, "body": body})
            return
        await self._send(message)


def _messages(refused: problems.Refused) -> tuple[Message, Message]:
    """Return *refused* as what is sent of a problem."""
    headers = [(b"content-type", problems.MEDIA_TYPE.encode())]
    start = {"type": "http.response.start", "status": refused.problem.status, "headers": headers}
    return start, {"type": "http.response.body", "body": refused.problem.model_dump_json().encode()}


def error_body(problem: Mapping[str, Any]) -> OpenAiErrorBody:
    """Return *problem*, as it is sent, in OpenAI's form."""
    kind = str(problem["type"]).rpartition(":")[2]
    status, faults = int(problem["status"]), problem.get("problems") or [{}]
    # OpenAI's clients try a server_error again, and nothing else here.
    named = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return OpenAiErrorBody(
        error=OpenAiError(
            message=str(problem["detail"]), type=named, param=faults[0].get("where"), code=_CODES.get(kind, kind)
        )
    )


def _status(status: int) -> int:
    """Return the status that OpenAI gives: a value that cannot be used is a bad request there."""
    return 400 if status == 422 else status


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors that a route may answer with, for its `responses`: *statuses*, and what any route may."""
    told = problems.answers(*statuses)
    told.pop(422)
    return {status: {"description": one["description"], "model": OpenAiErrorBody} for status, one in told.items()}
