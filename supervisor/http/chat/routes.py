"""The supervisor as a model that any client of OpenAI's API can talk to."""

import asyncio
import hashlib
import time
from collections.abc import Coroutine, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header
from starlette.requests import Request
from starlette.responses import Response

from contracts.identifiers import new_id
from contracts.messages import ChatTurn, PersonReply, PersonRequest
from contracts.zones import TimeZone
from memory.ledger.requests import RequestRecord, place_of
from supervisor.http.admission.keys import Caller, allowed
from supervisor.http.chat.errors import answers
from supervisor.http.chat.forms import (
    MODEL,
    ChatRequest,
    Completion,
    Model,
    ModelList,
    demand_served,
    refused,
)
from supervisor.http.chat.history import Recollection, derived_conversation
from supervisor.http.chat.stream import Answer, Answering, chunks, completion
from supervisor.http.owners import demand_conversation
from supervisor.http.parts import Parts
from supervisor.http.problems import Refused, unavailable
from supervisor.http.replies import digest_of
from supervisor.http.requests.events import EventStream
from supervisor.http.requests.routes import is_new
from supervisor.http.requests.work import is_unstarted
from supervisor.requests.incoming import Ended, unheard
from supervisor.understanding.model import counting

#: Milliseconds that an answer is waited for: OpenAI's clients give up after ten minutes.
_WAIT_MS = 590_000

ConversationHeader = Annotated[
    str | None,
    Header(
        alias="X-Conversation-Id",
        min_length=1,
        max_length=256,
        description="The conversation; without it, it is found by how it begins.",
    ),
]
RepeatHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=256,
        description="The same again finds the answer to the first, and starts nothing twice.",
    ),
]
ZoneHeader = Annotated[
    TimeZone | None,
    Header(
        alias="X-Time-Zone",
        description="Where the person is, by IANA's name, for clients that cannot send the field `time_zone`.",
    ),
]
_ASKING = Depends(allowed("ask"))


def routes(parts: Parts) -> APIRouter:
    """Return the routes of chat completions and models."""
    router = APIRouter(prefix="/v1", tags=["chat"])
    chat, since = _Chat(parts), int(time.time())

    @router.post(
        "/chat/completions",
        summary="Answer a conversation, in OpenAI's form",
        response_model=Completion,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **answers(404, 409, 504)},
    )
    async def complete(
        body: ChatRequest,
        request: Request,
        caller: Annotated[Caller, _ASKING],
        conversation_id: ConversationHeader = None,
        idempotency_key: RepeatHeader = None,
        time_zone: ZoneHeader = None,
    ) -> Response:
        zoned = body.model_copy(update={"time_zone": body.time_zone or time_zone})
        asked, before = await chat.read(zoned, caller, conversation_id, idempotency_key)
        if body.stream:
            with_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            said = Answering(lambda ended: chat.answer(asked, before, ended), asked.request_id or "", int(time.time()))
            return EventStream.of(parts, caller, chunks(said, with_usage=with_usage, beat_s=parts.heartbeat_s))
        answer = await _unless_gone(request, chat.answer(asked, before))
        if answer is None:
            return Response(status_code=204)
        return Response(completion(answer).model_dump_json(), media_type="application/json")

    @router.get("/models", summary="What can be asked, in OpenAI's form", responses=answers())
    async def models(_caller: Annotated[Caller, _ASKING]) -> ModelList:
        return ModelList(data=(Model(id=MODEL, created=since),))

    @router.get("/models/{model}", summary="One model, in OpenAI's form", responses=answers(404))
    async def model(model: str, _caller: Annotated[Caller, _ASKING]) -> Model:
        if model != MODEL:
            raise refused(404, "model_not_found", "model", f"there is no such model; the one there is is {MODEL!r}")
        return Model(id=MODEL, created=since)

    return router


class _Chat:
    """Reads what clients send, and has it answered."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._recollection = Recollection(parts)

    async def read(
        self, body: ChatRequest, caller: Caller, header: str | None, repeat: str | None
    ) -> tuple[PersonRequest, Sequence[ChatTurn] | None]:
        """Return what is asked, and what was said before; None when only the store knows that.

        Raises:
            Refused: it is not served, or is another user's, or came with the key of another request.
        """
        text, user_id = demand_served(body), caller.demand_user(body.user)
        named = (body.metadata or {}).get("conversation_id") or header
        if named is not None and len(named) > 256:
            told = "a conversation_id may have 256 characters"
            raise refused(400, "invalid_value", "metadata.conversation_id", told)
        await demand_conversation(self._parts, caller, named)
        earlier = body.messages[:-1]
        conversation_id = named or derived_conversation((caller.name, user_id), body.messages)
        is_told = named is None or any(message.role in ("user", "assistant") for message in earlier)
        before = await self._recollection.before(conversation_id, user_id, earlier) if is_told else None
        request_id = _request_id(caller, repeat)
        if repeat is not None:
            await self._note(body, caller, request_id, repeat)
        request = PersonRequest(
            text=text,
            request_id=request_id,
            conversation_id=conversation_id,
            user_id=user_id,
            wait_ms=_WAIT_MS,
            time_zone=body.time_zone,
        )
        return request, before

    async def _note(self, body: ChatRequest, caller: Caller, request_id: str, repeat: str) -> None:
        """Note what is asked under *repeat*.

        Raises:
            Refused: 409, something else was.
        """
        record = RequestRecord(
            digest=digest_of(body.model_dump(mode="json", exclude={"stream", "stream_options"})),
            task_id=request_id,
            at_ms=time.time_ns() // 1_000_000,
        )
        await is_new(self._parts, place_of(caller.space, "chat", request_id), record, repeat)

    async def answer(self, asked: PersonRequest, before: Sequence[ChatTurn] | None, ended: Ended = unheard) -> Answer:
        """Return the answer to *asked*; *ended* hears of each of several parts once it is answered.

        Raises:
            Refused: 503, it could not be handed over; 504, it takes longer than anybody waits.
        """
        with counting() as spent:
            answering = self._parts.service.answer(asked, before=before, ended=ended)
            reply = await _while_serving(self._parts.life.leaving, answering)
        _demand_answered(reply)
        return Answer(reply, spent.usage.as_usage(), int(time.time()))


def _demand_answered(reply: PersonReply) -> None:
    """Return when *reply* answers; that a task failed is an answer, too, and a turn of the conversation."""
    if is_unstarted(reply):
        raise unavailable(reply.text)
    if reply.kind == "pending":
        busy = [part.agent_id for part in reply.parts if part.kind == "pending"] or [reply.agent_id]
        told = (
            f"{', '.join(map(str, busy))} is still at it; the same with the same Idempotency-Key finds its answer later"
        )
        # OpenAI's clients would ask twice more, ten minutes each.
        raise Refused(504, "still_running", told, headers={"x-should-retry": "false"})


def _request_id(caller: Caller, repeat: str | None) -> str:
    """Return an id for the request: the same for the same *repeat* of one caller."""
    if repeat is None:
        return new_id(time.time_ns() // 1_000_000)
    named = f"{caller.name} {caller.space} {repeat}"
    return f"chat-{hashlib.blake2b(named.encode(), digest_size=16).hexdigest()}"


async def _unless_gone(request: Request, answering: Coroutine[Any, Any, Answer]) -> Answer | None:
    """Return the answer, or None when whoever asked has gone: nothing here waits for it any more then."""
    answer, gone = asyncio.ensure_future(answering), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else None
    finally:
        answer.cancel()
        gone.cancel()
        await asyncio.gather(answer, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        # What is left of the body, if anything.
        continue


async def _while_serving(leaving: asyncio.Event, answering: Coroutine[Any, Any, PersonReply]) -> PersonReply:
    """Return the reply, unless it does not come before this process has to leave.

    Raises:
        Refused: 503, the process leaves; another one can be asked.
    """
    reply, left = asyncio.ensure_future(answering), asyncio.ensure_future(leaving.wait())
    try:
        await asyncio.wait({reply, left}, return_when=asyncio.FIRST_COMPLETED)
        if not reply.done():
            raise unavailable("this process is about to leave; ask again, another one is there or will be")
        return reply.result()
    finally:
        reply.cancel()
        left.cancel()
        await asyncio.gather(reply, left, return_exceptions=True)
