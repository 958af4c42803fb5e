"""Problems: every error of the API as `application/problem+json` (RFC 9457), with a sentence that says the cure."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from contracts.errors import (
    InvalidInput,
    MessageTooLarge,
    NotAccepted,
    TaskloreError,
    UnknownSession,
    UnknownStory,
    Unreachable,
)
from contracts.faults import complaint_of
from supervisor.http.paths import cure_of, methods_of

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
#: Where the schema of a problem lies in the OpenAPI document.
SCHEMA = "#/components/schemas/Problem"

#: Faults of one body that are told at once, and characters of one of them.
_MOST_FAULTS, _LONGEST = 20, 500
#: What is said when the fault is ours.
_APOLOGY = "something went wrong here, not with what you asked; ask again, and see the supervisor's log if it stays"
#: Seconds after which a server that was away may be asked again.
_RETRY_AFTER_S = 1
#: What each status that any route may answer with means, for the OpenAPI document.
_MEANINGS = {
    400: "The body is no JSON, or the request makes no sense as HTTP.",
    401: "No API key, or none that is known.",
    403: "The key has not the role, or is for another user.",
    404: "There is no such thing, or it is not the caller's.",
    405: "The path has other methods.",
    408: "The body did not come in time.",
    409: "It contradicts what is there already.",
    413: "The body is larger than is taken.",
    415: "The body is not JSON.",
    422: "A value cannot be used; `problems` names the field and the cure.",
    429: "Too many requests with this key, or from this address without one; `Retry-After` says when to go on.",
    500: "The fault is the supervisor's.",
    502: "What was asked for was tried and failed.",
    503: "A server behind it does not answer, or too much waits; `Retry-After` says when to ask again.",
    504: "What was asked for did not come about in time.",
}
#: What every route behind the door may answer, beside its own; the document leaves out what takes a body it has not.
ALWAYS = (400, 401, 403, 408, 413, 415, 422, 429, 500, 503)


class Fault(BaseModel):
    """One fault of a request: where it is, as a path with dots, and what is wrong with it."""

    model_config = ConfigDict(frozen=True)

    where: str
    message: str


class Problem(BaseModel):
    """What went wrong, for programs by `type` and `status`, for people by `detail`, which says the cure."""

    model_config = ConfigDict(frozen=True)

    type: str = Field(examples=["urn:tasklore:problem:not-found"])
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    problems: tuple[Fault, ...] = ()


class Refused(Exception):
    """Raised by a route to answer with a problem: *kind* is a word for programs, *detail* names field and cure."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        faults: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(
            type=f"urn:tasklore:problem:{kind}",
            title=HTTPStatus(status).phrase,
            status=status,
            detail=detail,
            problems=tuple(faults),
        )
        self.headers = dict(headers or {})


def not_found(detail: str) -> Refused:
    """Return the refusal of something that is not there."""
    return Refused(404, "not-found", detail)


def unavailable(detail: str, retry_after_s: float = _RETRY_AFTER_S) -> Refused:
    """Return the refusal while something behind the API does not answer; nothing is wrong with the request."""
    return Refused(503, "unavailable", detail, headers={"Retry-After": str(max(1, round(retry_after_s)))})


def crowded(detail: str) -> Refused:
    """Return the refusal of a key, or of an address, that has its share of what is served at once."""
    return Refused(429, "share", detail, headers={"Retry-After": str(_RETRY_AFTER_S)})


def refusal_of(error: Exception) -> Refused:
    """Return *error* as what is told of it; of one that nobody foresaw nothing is told."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, NotAccepted):
        return unavailable(str(error), error.retry_after_s)
    if isinstance(error, Unreachable):
        return unavailable(str(error))
    if isinstance(error, MessageTooLarge):
        return Refused(413, "too-large", str(error))
    if isinstance(error, UnknownSession | UnknownStory):
        return not_found(str(error))
    if isinstance(error, InvalidInput):
        return Refused(422, "unusable", str(error))
    if isinstance(error, TaskloreError):
        return unavailable(str(error))
    return Refused(500, "internal", _APOLOGY)


def response_of(refused: Refused) -> Response:
    """Return *refused* as a response."""
    return Response(
        refused.problem.model_dump_json(exclude_defaults=True),
        status_code=refused.problem.status,
        headers={"Cache-Control": "no-store", **refused.headers},
        media_type=MEDIA_TYPE,
    )


def response_of_error(error: Exception) -> Response:
    """Return the response to a request that ended with *error*."""
    if isinstance(error, ClientDisconnect):
        # Nobody hears it; the status is for whoever stands between.
        return Response(status_code=499)
    return response_of(refusal_of(error))


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems that a route may answer with, for its `responses`: *statuses*, and what any route may."""
    content = {MEDIA_TYPE: {"schema": {"$ref": SCHEMA}}}
    told: dict[int | str, dict[str, Any]] = {}
    for status in sorted({*statuses, *ALWAYS}):
        told[status] = {"description": _MEANINGS[status], "content": content}
        if status in (429, 503):
            told[status]["headers"] = {
                "Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}
            }
    return told


def install(app: FastAPI) -> None:
    """Let *app* answer every error with a problem."""

    async def refuse(_request: Request, error: Exception) -> Response:
        return response_of_error(error)

    async def apologise(request: Request, error: Exception) -> Response:
        log.error("http_request_failed", route=_route_of(request), exc_info=error)
        return response_of_error(error)

    async def explain(_request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - for the types
        return response_of(_unusable(error))

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - for the types
        refused = _of_http(request, error)
        if request.method == "OPTIONS" and "Allow" in refused.headers:
            # An answer, and no more: what a browser would have to be told to go on is not in it.
            return Response(status_code=HTTPStatus.NO_CONTENT, headers=refused.headers)
        return response_of(refused)

    app.add_exception_handler(ClientDisconnect, refuse)
    app.add_exception_handler(Refused, refuse)
    app.add_exception_handler(TaskloreError, refuse)
    app.add_exception_handler(RequestValidationError, explain)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(Exception, apologise)


def _told_fault(details: Mapping[str, Any]) -> Fault:
    """Return one of pydantic's errors as a fault; what was sent stands nowhere in it."""
    where = ".".join(str(part) for part in details["loc"] if part != "body") or "body"
    return Fault(where=where[:_LONGEST], message=complaint_of(details)[:_LONGEST])


def _unusable(error: RequestValidationError) -> Refused:
    details = error.errors()
    if any(one["type"] == "json_invalid" for one in details):
        return Refused(400, "no-json", f"the body is no JSON: {details[0].get('ctx', {}).get('error', 'unreadable')}")
    faults = [_told_fault(one) for one in details[:_MOST_FAULTS]]
    told = "; ".join(f"{fault.where}: {fault.message}" for fault in faults)
    return Refused(422, "unusable", told, faults=faults)


def _of_http(request: Request, error: HTTPException) -> Refused:
    if isinstance(error.__cause__, Refused):
        # Raised while the framework read the body, which it calls unreadable then.
        return error.__cause__
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(sorted(methods_of(request.scope["path"], request.app.openapi()["paths"])))
        detail = f"{request.method} is not for this path; use {allowed}"
        return Refused(405, "method", detail, headers={"Allow": allowed})
    if error.status_code == HTTPStatus.NOT_FOUND:
        return not_found(f"there is no such path; {cure_of(request.scope['path'], request.app.openapi()['paths'])}")
    if error.status_code == HTTPStatus.BAD_REQUEST and isinstance(error.__cause__, UnicodeDecodeError):
        return Refused(400, "no-json", "the body is no text in UTF-8, as JSON is; send it as that")
    kind = re.sub(r"[^a-z]+", "-", HTTPStatus(error.status_code).phrase.lower())
    return Refused(error.status_code, kind, str(error.detail), headers=error.headers)


def _route_of(request: Request) -> str:
    """Return the path as it is declared: one that was sent may hold whose memory was asked for."""
    return str(getattr(request.scope.get("route"), "path", "unknown"))
