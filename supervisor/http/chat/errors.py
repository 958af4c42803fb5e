"""Errors in OpenAI's form, on the paths that clients of its API call."""

import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

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


def is_openai(path: str) -> bool:
    """Return whether clients of OpenAI's API ask for *path*."""
    return path.startswith(PATHS) or _NEARLY.fullmatch(path) is not None


def as_openai(problem: Mapping[str, Any]) -> Response:
    """Return the answer that says *problem*, as it is sent, in OpenAI's form."""
    # An unusable value is a bad request for OpenAI.
    status = 400 if problem["status"] == 422 else problem["status"]
    return Response(
        error_body(problem).model_dump_json(), status, media_type="application/json"
    )


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
