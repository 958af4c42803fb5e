"""Problems: every error of the API as `application/problem+json` (RFC 9457), with a sentence that says the cure."""

import re
from collections.abc import Collection, Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import compile_path

from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.faults import complaint_of
from tasklore.contracts.identifiers import SCOPES
from tasklore.supervisor.operations.refusals import (
    Fault,
    Refused,
    not_found,
    refusal_of,
    unusable,
)

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
#: Place of the schema of a problem in the OpenAPI document.
SCHEMA = "#/components/schemas/Problem"

#: Faults of one body in a problem, characters of one of them, and of a path from which on it is no typing error.
_MOST_FAULTS = 20
_LONGEST = 500
_LONGEST_PATH = 300
_RETRY_HEADER = {
    "Retry-After": {
        "description": "Seconds.",
        "schema": {"type": "integer", "minimum": 1},
    }
}
#: Meaning of each status, for the OpenAPI document.
_MEANINGS = {
    400: "The body is not valid JSON, or the request is not valid HTTP.",
    401: "The API key is missing or unknown.",
    403: "The key lacks the role, or is for another user.",
    404: "Not found, or not visible to this caller.",
    405: "The path has other methods.",
    408: "The body did not come in time.",
    409: "It conflicts with what is stored.",
    413: "The body is larger than is taken.",
    415: "The body is not JSON.",
    422: "A value is invalid; `problems` names the field and the fix.",
    429: "Too many requests with this key, or from this address without one, or too "
    "much is stored for the key; `Retry-After` says when to retry.",
    500: "The fault is the supervisor's.",
    502: "What was asked for was tried and failed.",
    503: "A server behind it does not answer, or too much waits; `Retry-After` says when to ask again.",
    504: "What was asked for did not come about in time.",
}
#: Statuses of every route behind the admission; the document leaves out those that need a body the route has not.
ALWAYS = (400, 401, 403, 408, 413, 415, 422, 429, 500, 503)
_HEALTH = "health and metrics are on a port of their own, TASKLORE_HTTP_PORT"
_OPENAI = "of OpenAI's API there are /v1/chat/completions and /v1/models"
#: Paths that people look for here, and where these are.
_ELSEWHERE = dict.fromkeys(
    ("/healthz", "/readyz", "/metrics"), _HEALTH
) | dict.fromkeys(("/v1/responses", "/v1/completions", "/v1/embeddings"), _OPENAI)


def respond(error: Exception) -> Response:
    """Return the response to a request that ended with *error*."""
    if isinstance(error, ClientDisconnect):
        # The client is gone; the status is for proxies before it.
        return Response(status_code=499)
    refused = refusal_of(error)
    return Response(
        refused.problem.model_dump_json(exclude_defaults=True),
        status_code=refused.problem.status,
        headers={"Cache-Control": "no-store", **refused.headers},
        media_type=MEDIA_TYPE,
    )


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems of a route, for its `responses`: *statuses*, and those of any route."""
    content = {MEDIA_TYPE: {"schema": {"$ref": SCHEMA}}}
    return {
        status: {"description": _MEANINGS[status], "content": content}
        | ({"headers": _RETRY_HEADER} if status in (429, 503) else {})
        for status in sorted({*statuses, *ALWAYS})
    }


def install(app: FastAPI) -> None:
    """Let *app* answer every error with a problem."""

    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, RequestValidationError):
            return respond(_read_faults(error))
        if isinstance(error, HTTPException):
            refused = _read_http(request, error)
            if request.method == "OPTIONS" and "Allow" in refused.headers:
                # Without the headers that would let a page from elsewhere go on.
                return Response(
                    status_code=HTTPStatus.NO_CONTENT, headers=refused.headers
                )
            return respond(refused)
        if not isinstance(error, ClientDisconnect | Refused | TaskloreError):
            # The route as it is declared: a path that was sent may name a person.
            route = getattr(request.scope.get("route"), "path", "unknown")
            log.error("http_request_failed", route=route, exc_info=error)
        return respond(error)

    for kind in (
        ClientDisconnect,
        Refused,
        TaskloreError,
        RequestValidationError,
        HTTPException,
        Exception,
    ):
        app.add_exception_handler(kind, answer)


def _read_faults(error: RequestValidationError) -> Refused:
    """Return *error* as a refusal, which repeats nothing of the body."""
    details = error.errors()
    if any(one["type"] == "json_invalid" for one in details):
        return Refused(
            400,
            "no-json",
            "the body is not valid JSON: "
            f"{details[0].get('ctx', {}).get('error', 'unreadable')}",
        )
    faults = []
    for one in details[:_MOST_FAULTS]:
        where = ".".join(str(part) for part in one["loc"] if part != "body") or "body"
        faults.append(
            Fault(where=where[:_LONGEST], message=complaint_of(one)[:_LONGEST])
        )
    return unusable(faults)


def _read_http(request: Request, error: HTTPException) -> Refused:
    path = request.scope["path"]
    status = error.status_code
    if isinstance(error.__cause__, Refused):
        # Raised while the framework read the body, which it calls unreadable then.
        return error.__cause__
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(sorted(_methods_of(path, request.app.openapi()["paths"])))
        return Refused(
            405,
            "method",
            f"{request.method} is not for this path; use {allowed}",
            headers={"Allow": allowed},
        )
    if status == HTTPStatus.NOT_FOUND:
        known = request.app.openapi()["paths"]
        if (fault := _find_slash(request, known)) is not None:
            return unusable([fault])
        return not_found(f"there is no such path; {_cure_path(path, known)}")
    if status == HTTPStatus.BAD_REQUEST and isinstance(
        error.__cause__, UnicodeDecodeError
    ):
        return Refused(400, "no-json", "the body is not UTF-8 text; send JSON in UTF-8")
    kind = re.sub(r"[^a-z]+", "-", HTTPStatus(status).phrase.lower())
    return Refused(status, kind, str(error.detail), headers=error.headers)


def _find_slash(
    request: Request, known: Mapping[str, Mapping[str, Any]]
) -> Fault | None:
    """Return the fault of a value in a path that has a slash in it (%2F), which separates values; None without one."""
    raw = request.scope["raw_path"].decode("ascii", "replace")
    given = [unquote(one) for one in raw.split("/")]
    for template, methods in known.items():
        names = template.split("/")
        if len(names) != len(given) or request.method.lower() not in methods:
            continue
        pairs = list(zip(names, given, strict=True))
        if all(name.startswith("{") or name == value for name, value in pairs):
            for name, value in pairs:
                if "/" in value:
                    options = methods[request.method.lower()].get("parameters", ())
                    message = _word_slash(value, {one["name"] for one in options})
                    return Fault(where=name.strip("{}"), message=message)
    return None


def _word_slash(value: str, options: Collection[str]) -> str:
    scope, _, name = value.partition("/")
    if scope in SCOPES and "scope" in options:
        return f"{value!r} has a slash; say {name!r}, and {scope!r} as `scope`"
    return f"{value!r} has a slash, which no name in a path has"


def _cure_path(path: str, known: Iterable[str]) -> str:
    """Return what to do about *path*, which is none of *known*, paths with their parameters in braces."""
    if (elsewhere := _ELSEWHERE.get(path.rstrip("/"))) is not None:
        return elsewhere
    # Paths without a parameter come before those that have one in the same place.
    templates = sorted(known, key=lambda one: one.count("{"))
    patterns = [
        re.compile(compile_path(one)[0].pattern, re.IGNORECASE) for one in templates
    ]
    slim = re.sub(r"/{2,}", "/", path[:_LONGEST_PATH]).rstrip("/")
    # A base URL may lack the version, or have it twice.
    for likely in (slim, f"/v1{slim}", re.sub(r"^/v1", "", slim, flags=re.IGNORECASE)):
        for template, pattern in zip(templates, patterns, strict=True):
            if match := pattern.match(likely):
                return f"did you mean {template.format(**match.groupdict())!r}?"
    return "GET /docs lists them all"


def _methods_of(path: str, paths: dict[str, dict[str, object]]) -> set[str]:
    """Return every method of *path* by the OpenAPI document's *paths*; the framework knows those of one route only."""
    found = [one for one in paths if compile_path(one)[0].match(path)]
    nearest = min(found, key=lambda one: one.count("{"), default=None)
    methods = (
        {method.upper() for method in paths[nearest]}
        if nearest is not None
        else {"GET"}
    )
    return methods | ({"HEAD"} if "GET" in methods else set())
