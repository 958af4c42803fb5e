"""Operations as routes: the one place that reads their signatures, and FastAPI does it."""

import inspect
import json
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
)
from contextlib import aclosing
from dataclasses import asdict
from types import UnionType
from typing import Annotated, Any, Never, Union, get_args, get_origin

from fastapi import APIRouter, Depends, Header, Path, Query
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from tasklore.contracts.callers import Caller
from tasklore.contracts.manifest import LINES
from tasklore.supervisor.http.admission.body_text import find_unkeepable
from tasklore.supervisor.http.admission.cross_origin import USUAL_PORTS
from tasklore.supervisor.http.admission.keys import require
from tasklore.supervisor.http.admission.middleware import is_local
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.http.responses import ACCEPTED, respond_json, while_connected
from tasklore.supervisor.operations.forms import Lines, Tagged, Text, View
from tasklore.supervisor.operations.refusals import Fault, Refused, unusable
from tasklore.supervisor.operations.table import (
    BoundOperation,
    Operation,
    Operations,
    Services,
    Unfinished,
    bind,
)

#: The parameter of an operation that is the header of a repeat.
_IDEMPOTENCY_KEY = "idempotency_key"
#: The parameter that is the address under which the client reached this door, with a slash at its end.
_BASE_URL = "base_url"

_Parameter = inspect.Parameter

_IF_NONE_MATCH = "if_none_match"
#: The header by which a reader names what it has of a view that may be kept.
_KEPT = _Parameter(
    _IF_NONE_MATCH,
    _Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        str | None, Header(description="An `ETag`: 304 while that is still the state.")
    ],
)


def mount(services: Services, operations: Operations[Services]) -> APIRouter:
    """Return the routes of the operations of one noun, which work with *services*."""
    return mount_bound(bind(services, operations))


def mount_bound(bound: Iterable[BoundOperation]) -> APIRouter:
    """Return the routes of operations that have their services."""
    router = APIRouter()
    for one in bound:
        _add(router, one)
    return router


def read_views(operation: Operation[Never, ..., Any]) -> tuple[Any, Any]:
    """Return the type of the view that *operation* returns, and that of work of its that goes on; None for none."""
    signature = inspect.signature(operation.function, eval_str=True)
    view, _line, later = _parts_of(signature.return_annotation)
    return view, later


def _add(router: APIRouter, bound: BoundOperation) -> None:
    operation = bound.operation
    signature = inspect.signature(operation.function, eval_str=True)
    summary, _, description = (inspect.getdoc(operation.function) or "").partition("\n")
    method, _, path = operation.http.partition(" ")
    parts = _parts_of(signature.return_annotation)
    view, line, later = parts
    responses = answers(*operation.problems)
    if later is not None:
        responses[202] = {**ACCEPTED, "model": later}
    if _returns(signature, Tagged):
        responses |= _kept_responses(operation.status)
    if view is not None and _returns(signature, Text):
        text = {"text/*": {"schema": {"type": "string"}}}
        responses.setdefault(operation.status, {})["content"] = text
    if line is not None:
        responses[operation.status] = {
            "description": "One JSON object a line.",
            # The document says it as `x-line`: the answer as a whole is no JSON.
            "model": line,
            "content": {LINES: {"schema": {"type": "string"}}},
        }
    extra: dict[str, Any] = {"x-tasklore": _describe(operation)}
    if any(one.annotation is Lines for one in signature.parameters.values()):
        # None at all is a body too: of no lines.
        extra["requestBody"] = {"content": {LINES: {"schema": {"type": "string"}}}}
    router.add_api_route(
        path,
        _route_of(bound, signature),
        methods=[method],
        operation_id=operation.id,
        tags=[operation.noun],
        summary=summary.rstrip("."),
        description=_without_errors(description),
        status_code=operation.status,
        response_model=view,
        responses=responses,
        openapi_extra=extra,
    )


def _describe(operation: Operation[Any, ..., Any]) -> dict[str, Any]:
    """Return what readers of the document need of *operation* that OpenAPI has no word for."""
    return {
        "noun": operation.noun,
        "verb": operation.verb,
        "roles": operation.roles,
        "mounted": operation.mounted,
        **({"waits": True} if operation.waits else {}),
    } | {name: value for name, value in asdict(operation.shows).items() if value}


def _without_errors(description: str) -> str:
    """Return the text of a docstring without its errors, which the responses name."""
    return description.partition("\nRaises:\n")[0].strip()


def _parts_of(returned: Any) -> tuple[Any, Any, Any]:
    """Return the view in an annotation of results, that of each line of a stream, and that of unfinished work."""
    kinds = (
        get_args(returned)
        if get_origin(returned) in (Union, UnionType)
        else (returned,)
    )
    later = [get_args(one)[0] for one in kinds if get_origin(one) is Unfinished]
    views = [
        get_args(one)[0] if get_origin(one) is Tagged else one
        for one in kinds
        if get_origin(one) is not Unfinished
    ]
    for one in views:
        if get_origin(one) in (AsyncIterator, AsyncGenerator):
            return None, get_args(one)[0], None
    models = [one for one in views if one is not Text]
    view: Any = None
    for one in models:
        view = one if view is None else view | one
    return view, None, later[0] if later else None


def _returns(signature: inspect.Signature, kind: type) -> bool:
    """Return whether what *signature* returns is, or may be, a *kind*."""
    returned = signature.return_annotation
    return any(
        kind in (one, get_origin(one)) for one in (returned, *get_args(returned))
    )


def _kept_responses(status: int) -> dict[int | str, dict[str, Any]]:
    """Return the responses of what its reader may keep, by status."""
    etag = {"schema": {"type": "string"}, "description": "Of which state it is."}
    return {
        status: {"headers": {"ETag": etag}},
        304: {"description": "It is still the one that `If-None-Match` names."},
    }


def _route_of(
    bound: BoundOperation, signature: inspect.Signature
) -> Callable[..., Awaitable[Any]]:
    """Return the function of a route: with the operation's own values, and the caller by the key of the request."""
    operation = bound.operation

    async def route(request: Request, caller: Caller, **given: Any) -> object:
        kept = given.pop(_IF_NONE_MATCH, None)
        work = bound.run(caller, **given)
        found = await (
            while_connected(request.receive, work) if operation.waits else work
        )
        return respond_to(found, operation.status, kept)

    own = [
        _bind(one, operation.http) for one in list(signature.parameters.values())[2:]
    ]
    # A wrong role is told before a wrong body: the framework asks this before it reads one.
    caller = Annotated[Caller, Depends(require(operation.demand_role))]
    fixed = [
        _Parameter("request", _Parameter.KEYWORD_ONLY, annotation=Request),
        _Parameter("caller", _Parameter.KEYWORD_ONLY, annotation=caller),
    ]
    kept_header = [_KEPT] if _returns(signature, Tagged) else []
    route.__signature__ = signature.replace(  # type: ignore[attr-defined]  # what the framework reads
        parameters=[*fixed, *own, *kept_header],
        return_annotation=inspect.Signature.empty,
    )
    return route


def _bind(parameter: _Parameter, http: str) -> _Parameter:
    """Return *parameter* of an operation at *http* as the framework reads it: a form is the query of what is read."""
    annotation = parameter.annotation
    if annotation is Lines:
        annotation = Annotated[Lines, Depends(_read_lines)]
    elif parameter.name == _BASE_URL:
        annotation = Annotated[str, Depends(_read_base_url)]
        parameter = parameter.replace(default=_Parameter.empty)
    elif parameter.name == _IDEMPOTENCY_KEY:
        header = Header(
            alias="Idempotency-Key",
            description=_said_of(annotation)[0],
            json_schema_extra=_extra_of(annotation),
        )
        annotation = Annotated[annotation, header]
    elif not _is_body(annotation):
        # A convertor may stand behind the name.
        is_in_path = f"{{{parameter.name}" in re.findall(r"\{\w+", http)
        place = Path if is_in_path else Query
        help_, alias = _said_of(annotation)
        said = place(
            description=help_, alias=alias, json_schema_extra=_extra_of(annotation)
        )
        annotation = Annotated[annotation, said]
    elif http.startswith("GET "):
        annotation = Annotated[annotation, Query()]
    return parameter.replace(kind=_Parameter.KEYWORD_ONLY, annotation=annotation)


def _is_body(annotation: Any) -> bool:
    kinds = get_args(annotation) or (annotation,)
    return any(isinstance(one, type) and issubclass(one, BaseModel) for one in kinds)


def _said_of(annotation: Any) -> tuple[str | None, str | None]:
    """Return the description of a parameter, and its name on the wire where Python has no such name."""
    fields = [one for one in get_args(annotation) if isinstance(one, FieldInfo)]
    described = (one.description for one in fields if one.description)
    aliases = (one.alias for one in fields if one.alias)
    return next(described, None), next(aliases, None)


def _extra_of(annotation: Any) -> Any:
    """Return what the schema of a parameter says beside its type, such as its option at a command line."""
    fields = [one for one in get_args(annotation) if isinstance(one, FieldInfo)]
    return next(
        (one.json_schema_extra for one in fields if one.json_schema_extra), None
    )


async def _read_base_url(request: Request) -> str:
    """Return the address that *request* came to, for links that are given to persons.

    The client chooses the `Host` of a request: it counts for the ways to this machine, through a tunnel, too.
    Else the address is that of the connection.
    """
    server = request.scope.get("server")
    if server is None or is_local(request.headers.get("host", "")):
        return str(request.base_url)
    host, port = server
    scheme = request.url.scheme
    named = f"[{host}]" if ":" in host else host
    behind = "" if port == USUAL_PORTS.get(scheme) else f":{port}"
    return f"{scheme}://{named}{behind}/"


async def _read_lines(request: Request) -> Lines:
    """Return the JSON lines of a body.

    Raises:
        Refused: 400, a line is no JSON; 422, one holds what nothing can keep; names the first.
    """
    values = []
    for number, line in enumerate((await request.body()).splitlines(), 1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise Refused(
                400, "no-json", f"line {number} of the body is not valid JSON: {error}"
            ) from error
        if fault := find_unkeepable(line):
            raise unusable(
                [
                    Fault(
                        where=f"line {number}", message=f"{fault.where} {fault.message}"
                    )
                ]
            )
    return Lines(tuple(values))


def respond_to(found: object, status: int = 200, kept: str | None = None) -> Response:
    """Return the result of an operation as a response, with *status* where it is done.

    A view is checked and has its shape: it is written as it is, which the framework would check and copy first.
    *kept* names what the reader has already.
    """
    match found:
        case Tagged():
            headers = {"ETag": found.etag, "Cache-Control": "private, no-cache"}
            if kept is not None and found.etag in map(str.strip, kept.split(",")):
                return Response(status_code=304, headers=headers)
            return Response(
                _write(found.view),
                media_type="application/json",
                headers=headers,
            )
        case BaseModel():
            return _respond_json(_write(found), status)
        case Unfinished():
            return respond_json(found.view, found.location, is_done=False)
        case Text():
            return Response(
                found.text,
                media_type=found.media_type,
                headers={"Cache-Control": "no-store"},
            )
        case AsyncIterator():
            return _LinesResponse(
                _encode_lines(found),
                media_type=LINES,
                headers={"Cache-Control": "no-store"},
            )
        case None:
            return Response(status_code=status)
    return _respond_json(to_json(found, inf_nan_mode="null"), status)


def _respond_json(body: str | bytes, status: int) -> Response:
    return Response(
        body,
        status_code=status,
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


class _LinesResponse(StreamingResponse):
    """A response of JSON lines, which closes its source when its client leaves."""

    def __init__(self, lines: AsyncGenerator[bytes, None], **more: Any) -> None:
        super().__init__(lines, **more)
        self._lines = lines

    async def stream_response(self, send: Send) -> None:
        """Send every line."""
        async with aclosing(self._lines):
            await super().stream_response(send)


async def _encode_lines(views: AsyncIterator[BaseModel]) -> AsyncGenerator[bytes, None]:
    try:
        async for view in views:
            yield _write(view).encode() + b"\n"
    finally:
        if isinstance(views, AsyncGenerator):
            await views.aclose()


def _write(view: BaseModel) -> str:
    """Return *view* as JSON, by the names that it has outside."""
    is_short = isinstance(view, View) and view.is_without_defaults
    return view.model_dump_json(by_alias=True, exclude_defaults=is_short)
