"""The stream of a request in plain words, and the short path of asking."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput, TaskloreError
from tasklore.contracts.identifiers import NAME_PATTERN, Name, checked_name
from tasklore.supervisor.feed.events import REQUEST_EVENT_ID
from tasklore.supervisor.http.admission.keys import CALLER, require
from tasklore.supervisor.http.admission.stream_tokens import StreamTokenField
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.http.event_streams import EventStream, describe_stream
from tasklore.supervisor.http.mount import respond_to
from tasklore.supervisor.http.problems import answers, respond
from tasklore.supervisor.http.requests.events import (
    RequestEventPlace,
    RequestStreamEvent,
    events_of,
)
from tasklore.supervisor.http.responses import while_connected
from tasklore.supervisor.operations.audit import Audited
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.requests import (
    Ask,
    ask,
    demand_request,
    request_place,
)

PATH = "/v1/requests"

RequestId = Annotated[
    str,
    Path(pattern=NAME_PATTERN, description="Request id: its Idempotency-Key."),
]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=f"^{REQUEST_EVENT_ID}$",
        description="Events up to this are left out.",
    ),
]
_FOLLOWED = Audited(id="requests_follow", roles=("ask",), is_look=True)


def routes(parts: ApiDependencies) -> APIRouter:
    """Return the route of the events of a request."""
    router = APIRouter(prefix=PATH, tags=["requests"])
    services = parts.for_requests

    @router.get(
        "/{request_id}/events",
        operation_id=_FOLLOWED.id,
        summary="Follow the events of a request",
        response_class=Response,
        responses={
            200: {
                "description": "Server-sent events.",
                "content": describe_stream(RequestStreamEvent),
            },
            204: {"description": "The last event has been received: no other follows."},
            **answers(404),
        },
    )
    async def hear(
        request_id: RequestId,
        caller: Annotated[Caller, Depends(require(_FOLLOWED.demand_role))],
        last_event_id: LastEventId = None,
        _stream_token: StreamTokenField = None,
    ) -> Response:
        with _FOLLOWED.noting(caller) as ending:
            record = await demand_request(services, caller, request_id)
            after = RequestEventPlace.parse(last_event_id)
            place = request_place(caller, request_id)
            events = events_of(parts, place, record.task_id, after)
            stream = EventStream.open(
                parts, caller, events, audited=_FOLLOWED, has_ended=after.has_ended
            )
            ending.goes_on = isinstance(stream, EventStream)
        return stream

    return router


class ShortPathMiddleware:
    """Answers a request in words without the framework, when it can be read as it stands.

    Any other goes on to the application, whose route does the same and explains its faults.
    """

    def __init__(self, app: ASGIApp, parts: ApiDependencies) -> None:
        self._app = app
        self._services = parts.for_requests
        self._route = Route(PATH, self, methods=["POST"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request in words; pass everything else on."""
        if (
            scope["type"] != "http"
            or scope["path"] != PATH
            or scope["method"] != "POST"
        ):
            await self._app(scope, receive, send)
            return
        try:
            first = await receive()
            asked = _parse(scope, first)
            if asked is not None:
                scope["route"] = self._route
                caller, new, chosen = asked
                work = ask(self._services, caller, new, idempotency_key=chosen)
                response = respond_to(await while_connected(receive, work))
        except (ClientDisconnect, Refused, TaskloreError) as error:
            await respond(error)(scope, receive, send)
            return
        if asked is not None:
            await response(scope, receive, send)
            return
        unread = [first]

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        await self._app(scope, replay, send)


def _parse(scope: Scope, message: Message) -> tuple[Caller, Ask, Name | None] | None:
    """Return caller, body and Idempotency-Key; None for a request that the framework is to read, or refuse."""
    caller = scope.get(CALLER)
    ids = Headers(scope=scope).getlist("idempotency-key")
    if not isinstance(caller, Caller) or len(ids) > 1:
        return None
    try:
        chosen = checked_name(ids[0], "Idempotency-Key") if ids else None
        return caller, Ask.model_validate_json(message.get("body", b"")), chosen
    except (Refused, InvalidInput, ValidationError):
        return None
