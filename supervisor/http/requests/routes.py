"""The routes of requests in plain words: ask, look, listen, cancel."""

import time
from typing import Annotated, ClassVar, Literal

import structlog
from fastapi import APIRouter, Depends, Header, Path
from pydantic import ConfigDict, Field, ValidationError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasklore.contracts.errors import InvalidInput, MemoryUnavailable, TaskloreError
from tasklore.contracts.identifiers import NAME_PATTERN, Name, checked_name, new_id
from tasklore.contracts.messages import PersonRequest
from tasklore.contracts.zones import TimeZone
from tasklore.memory.ledger.requests import RequestRecord, place_of
from tasklore.supervisor.http.admission.keys import CALLER, Caller, require_role
from tasklore.supervisor.http.admission.stream_tokens import StreamTokenField
from tasklore.supervisor.http.event_streams import EventStream, describe_stream
from tasklore.supervisor.http.owners import (
    demand_conversation,
    own_conversation,
    task_place,
)
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers, respond
from tasklore.supervisor.http.requests.events import (
    EVENT_ID,
    RequestEventPlace,
    RequestStreamEvent,
    events_of,
)
from tasklore.supervisor.http.requests.outcome import (
    Lookup,
    RequestPlace,
    begin,
    read_outcome,
    wait_for,
)
from tasklore.supervisor.http.requests.parts import cancel_request
from tasklore.supervisor.http.requests.work import HOLD_MS, is_unstarted
from tasklore.supervisor.http.responses import ACCEPTED, respond_json, while_connected
from tasklore.supervisor.operations.forms import Cancelled, Form, digest_of
from tasklore.supervisor.operations.refusals import Refused, not_found, unavailable

log = structlog.get_logger(__name__)

PATH = "/v1/requests"
#: Milliseconds that a request is waited for in the process that took it; after that the ledger knows its end.
_WAIT_MS = 600_000
#: Seconds within which the words of a request are kept, also where a model reads them.
_KEPT_S = 1.0

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=NAME_PATTERN,
        description="The id of what is asked for: the same again starts nothing twice. Without it each is a new one.",
    ),
]
RequestId = Annotated[
    str,
    Path(pattern=NAME_PATTERN, description="The id of a request: its Idempotency-Key."),
]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=f"^{EVENT_ID}$",
        description="Events up to this are left out.",
    ),
]
_ASKING = Depends(require_role("ask"))


class Ask(Form):
    """A person's wish, in plain words; `wait_seconds` 0 does not wait for the answer.

    `time_zone`, by IANA's name, is where the person is, so that "tomorrow" is their day.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    text: Annotated[str, Field(min_length=1, max_length=20_000)]
    user: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    conversation: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    memory: Literal["use", "refresh", "bypass"] = "use"
    wait_seconds: Annotated[float, Field(ge=0, le=600)] = 30.0
    time_zone: TimeZone | None = None


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes below `/v1/requests`."""
    router = APIRouter(prefix=PATH, tags=["requests"])

    @router.post(
        "",
        operation_id="requests_ask",
        summary="Ask in plain words",
        response_model=Lookup,
        responses={202: {"model": Lookup, **ACCEPTED}, **answers(409)},
    )
    async def ask(
        body: Ask,
        request: Request,
        caller: Annotated[Caller, _ASKING],
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        return await _answer(
            parts,
            receive=request.receive,
            caller=caller,
            body=body,
            chosen=idempotency_key,
        )

    @router.get(
        "/{request_id}",
        operation_id="requests_show",
        summary="See what became of a request",
        responses=answers(404),
    )
    async def see(request_id: RequestId, caller: Annotated[Caller, _ASKING]) -> Lookup:
        return await read_outcome(parts, _place(caller, request_id))

    @router.get(
        "/{request_id}/events",
        operation_id="requests_follow",
        summary="Hear what becomes of a request",
        response_class=Response,
        responses={
            200: {
                "description": "Server-sent events.",
                "content": describe_stream(RequestStreamEvent),
            },
            204: {"description": "The last event was heard: there will be no other."},
            **answers(404),
        },
    )
    async def hear(
        request_id: RequestId,
        caller: Annotated[Caller, _ASKING],
        last_event_id: LastEventId = None,
        _stream_token: StreamTokenField = None,
    ) -> Response:
        place = _place(caller, request_id)
        record = await demand_request(parts, caller, request_id)
        after = RequestEventPlace.parse(last_event_id)
        events = events_of(parts, place, record.task_id, after)
        return EventStream.open(parts, caller, events, has_ended=after.has_ended)

    @router.delete(
        "/{request_id}",
        operation_id="requests_cancel",
        summary="Cancel a request",
        responses=answers(404),
    )
    async def cancel(
        request_id: RequestId, caller: Annotated[Caller, _ASKING]
    ) -> Cancelled:
        record = await demand_request(parts, caller, request_id)
        return await cancel_request(
            parts, record.task_id, f"cancelled by {caller.name}"
        )

    return router


class ShortPathMiddleware:
    """Answers a request in words without the framework, when it can be read as it stands.

    Any other goes on to the application, whose route does the same and explains its faults.
    """

    def __init__(self, app: ASGIApp, parts: ApiParts) -> None:
        self._app = app
        self._parts = parts
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
                response = await _answer(self._parts, receive, *asked)
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
        caller.demand_role("ask")
        chosen = checked_name(ids[0], "Idempotency-Key") if ids else None
        return caller, Ask.model_validate_json(message.get("body", b"")), chosen
    except (Refused, InvalidInput, ValidationError):
        return None


async def _answer(
    parts: ApiParts, receive: Receive, caller: Caller, body: Ask, chosen: Name | None
) -> Response:
    """Return the answer to *body*, or where to ask for it later.

    Raises:
        ClientDisconnect: the client left.
        Refused: as `accept`; 503, nothing was started, or it goes on and could not be found; 500, the fault is ours.
    """
    place, record = await accept(parts, caller, body, chosen)

    async def keep() -> None:
        hold_ms = HOLD_MS if parts.work.find(place.key) is not None else 0
        await demand_kept(parts, place.key, record, hold_ms)
        if caller.user is not None:
            await demand_kept(parts, task_place(caller, record.task_id), record)

    asked = await while_connected(
        receive, wait_for(parts, place, body.wait_seconds, text=body.text, keep=keep)
    )
    if asked.reply is not None and is_unstarted(asked.reply):
        raise unavailable(asked.reply.text)
    return respond_json(
        asked, f"{PATH}/{place.request_id}", is_done=asked.state == "done"
    )


async def accept(
    parts: ApiParts, caller: Caller, body: Ask, chosen: Name | None
) -> tuple[RequestPlace, RequestRecord]:
    """Begin the request in *body*, once for an id that was *chosen*, and return its place and the record of it.

    Raises:
        OwnerFull: the caller keeps too much; nothing was kept.
        Refused: 403, it is another user's; 409, another body came under that id.
    """
    user_id = caller.demand_user(body.user)
    request_id = chosen or new_id(time.time_ns() // 1_000_000)
    conversation_id = body.conversation or own_conversation(caller, request_id)
    await demand_conversation(parts, caller, body.conversation)
    request = PersonRequest(
        text=body.text,
        request_id=request_id,
        conversation_id=conversation_id,
        user_id=user_id,
        caller=caller,
        memory=body.memory,
        wait_ms=_WAIT_MS,
        time_zone=body.time_zone,
    )
    record = RequestRecord(
        digest=digest_of(request.model_dump(mode="json", exclude={"caller"})),
        task_id=parts.service.task_id_of(request),
        at_ms=time.time_ns() // 1_000_000,
        conversation_id=conversation_id,
        memory=body.memory,
        time_zone=body.time_zone,
    )
    place = _place(caller, request_id)
    await demand_room(parts, request, place.key if chosen is not None else None)
    # With an id and a conversation of its own, both made here, it is kept and held at once: no other process knows it.
    is_fresh = chosen is None and body.conversation is None
    if is_fresh and caller.user is None and body.wait_seconds >= _KEPT_S:
        # Nor does its sender for a while, so that the store takes the record together with the words.
        await begin(
            parts,
            place,
            request,
            is_new=True,
            claim=parts.records.claiming(place.key, record, HOLD_MS),
        )
    elif await claim_record(
        parts,
        key=place.key,
        record=record,
        chosen=chosen,
        hold_ms=HOLD_MS if is_fresh else 0,
    ):
        if caller.user is not None:
            # Its task is looked for under its own id, too.
            await claim_record(parts, task_place(caller, record.task_id), record, None)
        await begin(parts, place, request, is_new=is_fresh)
    else:
        asked = await read_outcome(parts, place, body.text)
        is_unstarted_yet = asked.reply is not None and is_unstarted(asked.reply)
        if is_unstarted_yet:
            await parts.work.forget_end(place.key)
        if is_unstarted_yet or asked.state == "accepted":
            await begin(parts, place, request)
    return place, record


async def demand_room(parts: ApiParts, request: PersonRequest, key: str | None) -> None:
    """Count *request* to its caller; a repeat of the one at *key* takes no room, None for a new one.

    Raises:
        OwnerFull: the caller keeps too much; nothing was kept.
    """
    if key is None or not await is_known(parts, key):
        await parts.dispatch.bounds.demand_words(request)


async def is_known(parts: ApiParts, key: str) -> bool:
    """Return whether a request is kept at *key*; False where the store does not answer."""
    try:
        return (await parts.records.find(key)).record is not None
    except MemoryUnavailable as error:
        log.info("request_not_found", error=str(error))
        return False


async def claim_record(
    parts: ApiParts,
    key: str,
    record: RequestRecord,
    chosen: str | None,
    hold_ms: int = 0,
) -> bool:
    """Keep *record* and return True; False when the same request is there already. *hold_ms* as in `claim`.

    Raises:
        Refused: 409, another one came under the id that was *chosen*.
    """
    try:
        earlier = await parts.records.claim(key, record, hold_ms)
    except MemoryUnavailable as error:
        # Without the store it is still asked and answered; only a later look at it has to wait.
        log.warning("request_not_kept", error=str(error))
        return True
    if earlier is not None and earlier.digest != record.digest:
        detail = f"the Idempotency-Key {chosen!r} was used with another body; use a new one for another request"
        raise Refused(409, "other-body", detail)
    return earlier is None


async def demand_kept(
    parts: ApiParts, key: str, record: RequestRecord, hold_ms: int = 0
) -> None:
    """Return when *record* is kept, so that a promised task is found; it is tried again where it failed before.

    Raises:
        Refused: 503, the store does not answer: the work goes on, and nothing promises that it is found.
    """
    try:
        await parts.records.claim(key, record, hold_ms)
    except MemoryUnavailable as error:
        log.warning("request_not_kept", error=str(error))
        raise unavailable(
            "it may go on, but its id could not be kept, so that nothing would be found by it; send it again with the "
            "same Idempotency-Key (without one it is another request)"
        ) from error


async def demand_request(
    parts: ApiParts, caller: Caller, request_id: str
) -> RequestRecord:
    """Return the record of a request that *caller* sent.

    Raises:
        Refused: 404, there is none.
        MemoryUnavailable: the store does not answer.
    """
    record = (await parts.records.find(_place(caller, request_id).key)).record
    if record is None:
        raise not_found(
            f"there is no request {request_id!r}, or it is more than a day old"
        )
    return record


def _place(caller: Caller, request_id: str) -> RequestPlace:
    return RequestPlace(
        place_of(caller.space, "request", request_id), request_id, caller
    )
