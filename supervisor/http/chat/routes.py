"""The supervisor, and each agent, as models that any client of OpenAI's API can talk to."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import (
    ChatTurn,
    PersonReply,
    PersonRequest,
    ReplyPart,
)
from tasklore.contracts.zones import TimeZone
from tasklore.memory.ledger.requests import RequestRecord, place_of
from tasklore.runtime.task_caller import ignore_task
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.admission.keys import Caller, require, require_role
from tasklore.supervisor.http.chat.errors import answers
from tasklore.supervisor.http.chat.forms import (
    MODEL,
    AssistantMessage,
    ChatModel,
    ChatRequest,
    Completion,
    ModelList,
    demand_served,
    refuse_field,
)
from tasklore.supervisor.http.chat.history import ChatHistory, derive_conversation
from tasklore.supervisor.http.chat.models import demand_model, list_models
from tasklore.supervisor.http.chat.stream import (
    ChatAnswer,
    PendingAnswer,
    complete,
    stream_chunks,
)
from tasklore.supervisor.http.chat.structured import AnswerFormat
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.http.event_streams import EventStream
from tasklore.supervisor.http.responses import while_connected
from tasklore.supervisor.operations.audit import Audited
from tasklore.supervisor.operations.forms import digest_of
from tasklore.supervisor.operations.idempotency import claim_record, demand_room
from tasklore.supervisor.operations.owners import demand_conversation
from tasklore.supervisor.operations.refusals import Refused, unavailable
from tasklore.supervisor.requests.request import Ended, Routed, ignore_part
from tasklore.supervisor.requests.work import is_unstarted
from tasklore.supervisor.understanding.model import counting

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
        description="A repeat finds the answer to the first, and does not start it "
        "again.",
    ),
]
ZoneHeader = Annotated[
    TimeZone | None,
    Header(
        alias="X-Time-Zone",
        description="Time zone of the person (IANA name), for clients that cannot send "
        "the field `time_zone`.",
    ),
]
PreferHeader = Annotated[
    str | None,
    Header(
        alias="Prefer",
        max_length=256,
        description="`handling=strict` refuses messages of roles that are not read, such as `system`.",
    ),
]
#: In an answer: the roles of messages that were sent and not read.
_UNREAD = "X-Tasklore-Unread"
_ASKING = Depends(require_role("ask"))
_COMPLETED = Audited(id="chat_complete", roles=("ask",), is_look=False)


def routes(parts: ApiDependencies) -> APIRouter:
    """Return the routes of chat completions and models."""
    router = APIRouter(prefix="/v1", tags=["chat"])
    chat = _Chat(parts)
    since = int(time.time())

    @router.post(
        "/chat/completions",
        operation_id=_COMPLETED.id,
        summary="Answer a conversation, in OpenAI's form",
        response_model=Completion,
        responses={
            200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
            **answers(404, 409, 504),
        },
    )
    async def complete_chat(
        body: ChatRequest,
        request: Request,
        caller: Annotated[Caller, Depends(require(_COMPLETED.demand_role))],
        conversation_id: ConversationHeader = None,
        idempotency_key: RepeatHeader = None,
        time_zone: ZoneHeader = None,
        prefer: PreferHeader = None,
    ) -> Response:
        unread = {_UNREAD: body.unread_roles} if body.unread_roles else {}
        zoned = body.model_copy(update={"time_zone": body.time_zone or time_zone})
        # What follows is noted where the answer ends.
        with _COMPLETED.noting(caller) as ending:
            _refuse_unread(body, prefer)
            among = demand_model(parts.catalogue(), body.model)
            form = await chat.read_format(body, caller)
            asked, before = await chat.read(
                zoned, caller, conversation_id, repeat=idempotency_key, among=among
            )
            answer = partial(chat.answer, asked, before=before, form=form, among=among)
            begin = partial(_note_answer, caller, answer)
            ending.goes_on = True
        if body.stream:
            with_usage = body.stream_options is not None and bool(
                body.stream_options.include_usage
            )
            request_id = asked.request_id or ""
            now = int(time.time())
            pending = PendingAnswer(
                begin, request_id, now, feeds=parts.feeds, model=body.model
            )
            chunks = stream_chunks(
                pending, with_usage=with_usage, beat_s=parts.heartbeat_s
            )
            with _COMPLETED.noting(caller) as ending:
                stream = EventStream.open(parts, caller, chunks)
                ending.goes_on = True
            stream.headers.update(unread)
            return stream
        try:
            answered = await while_connected(request.receive, begin())
        except ClientDisconnect:
            return Response(status_code=204)
        return Response(
            complete(answered, body.model).model_dump_json(),
            media_type="application/json",
            headers=unread,
        )

    @router.get(
        "/models",
        operation_id="models_list",
        summary="What can be asked, in OpenAI's form",
        responses=answers(),
    )
    async def models(_caller: Annotated[Caller, _ASKING]) -> ModelList:
        known = list_models(parts.catalogue())
        return ModelList(data=tuple(ChatModel(id=one, created=since) for one in known))

    @router.get(
        "/models/{model:path}",
        operation_id="models_show",
        summary="One model, in OpenAI's form",
        responses=answers(404),
    )
    async def model(
        model: Annotated[str, Path(description="An id that `GET /v1/models` lists.")],
        _caller: Annotated[Caller, _ASKING],
    ) -> ChatModel:
        demand_model(parts.catalogue(), model)
        return ChatModel(id=model, created=since)

    return router


async def _note_answer(
    caller: Caller,
    answer: Callable[[Ended, Routed], Coroutine[Any, Any, ChatAnswer]],
    ended: Ended = ignore_part,
    routed: Routed = ignore_task,
) -> ChatAnswer:
    """Return what *answer* returns; how it ended is a line of the audit, also in a stream, whose status is sent before.

    Raises:
        Refused: as *answer* does.
    """
    with _COMPLETED.noting(caller):
        return await answer(ended, routed)


def _refuse_unread(body: ChatRequest, prefer: str | None) -> None:
    """Raise Refused where the client asks for strict handling and sends messages that no agent reads."""
    if (
        body.unread_roles
        and "handling=strict" in (prefer or "").replace(" ", "").lower()
    ):
        detail = f"messages of {body.unread_roles} are not read: agents have instructions of their own; leave them out"
        raise refuse_field(400, "unsupported_content", "messages", detail)


class _Chat:
    """Reads the bodies of clients, and has them answered."""

    def __init__(self, parts: ApiDependencies) -> None:
        self._parts = parts
        self._history = ChatHistory(parts)

    async def read(
        self,
        body: ChatRequest,
        caller: Caller,
        header: str | None,
        repeat: str | None,
        among: Catalogue | None,
    ) -> tuple[PersonRequest, Sequence[ChatTurn] | None]:
        """Return the request of *body*, and the turns before it; None when only the store knows them.

        *among* is the part of the catalogue that answers, None all of it.

        Raises:
            Refused: it is not served, or is another user's, or came with the key of another request.
        """
        text = demand_served(body)
        user_id = caller.demand_user(body.user)
        named = (body.metadata or {}).get("conversation_id") or header
        if named is not None and len(named) > 256:
            detail = "a conversation_id may have 256 characters"
            raise refuse_field(400, "invalid_value", "metadata.conversation_id", detail)
        await demand_conversation(self._parts.conversations, caller, named)
        earlier = body.messages[:-1]
        # Each agent has conversations of its own: clients ask several models the same at once.
        model = () if body.model == MODEL else (body.model,)
        conversation_id = named or derive_conversation(
            (caller.name, user_id, *model), body.messages
        )
        is_sent = named is None or any(
            message.role in ("user", "assistant") for message in earlier
        )
        before = (
            await self._history.read(conversation_id, user_id, earlier, among)
            if is_sent
            else None
        )
        request_id = new_id(time.time_ns() // 1_000_000)
        if repeat is not None:
            # The same for the same key of one caller.
            name = f"{caller.name} {caller.space} {repeat}"
            request_id = (
                f"chat-{hashlib.blake2b(name.encode(), digest_size=16).hexdigest()}"
            )
        request = PersonRequest(
            text=text,
            request_id=request_id,
            conversation_id=conversation_id,
            user_id=user_id,
            caller=caller,
            wait_ms=_WAIT_MS,
            time_zone=body.time_zone,
        )
        key = place_of(caller.space, "chat", request_id)
        await demand_room(
            self._parts.dispatch,
            self._parts.records,
            request,
            None if repeat is None else key,
        )
        if repeat is not None:
            record = RequestRecord(
                digest=digest_of(
                    body.model_dump(mode="json", exclude={"stream", "stream_options"})
                ),
                task_id=request_id,
                at_ms=time.time_ns() // 1_000_000,
                tenant=caller.tenant,
            )
            await claim_record(self._parts.records, key, record, repeat)
        return request, before

    async def read_format(
        self, body: ChatRequest, caller: Caller
    ) -> AnswerFormat | None:
        """Return what the answer to *body* is to fit, None when it is words.

        Raises:
            Refused: 400, its schema is none.
        """
        asked = body.response_format
        return (
            None
            if asked is None or asked.type == "text"
            else await AnswerFormat.read(asked, self._parts.schemas, caller.name)
        )

    async def answer(
        self,
        asked: PersonRequest,
        ended: Ended = ignore_part,
        routed: Routed = ignore_task,
        *,
        before: Sequence[ChatTurn] | None,
        form: AnswerFormat | None,
        among: Catalogue | None,
    ) -> ChatAnswer:
        """Return the answer to *asked* by the agents *among* which it is, in words without a *form*.

        In words, *ended* is called with each of several parts once it is answered, and *routed* with each task once it
        is handed over.

        Raises:
            Refused: 400, it does not fit *form*; 503, it could not be handed over, or the process leaves; 504, it takes
                longer than clients wait.
        """
        with counting() as spent:
            heard = (ended, routed) if form is None else (ignore_part, ignore_task)
            reply = await self._answer_before_leaving(
                partial(self._parts.service.answer, asked, before=before, among=among),
                *heard,
            )
        if is_unstarted(reply):
            raise unavailable(reply.text)
        unfinished = [
            one
            for one in reply.parts or (reply,)
            if one.kind == "pending" and one.approval_id is None
        ]
        if unfinished:
            stands = "; ".join(dict.fromkeys(map(_describe_unfinished, unfinished)))
            later = "repeating it with the same Idempotency-Key finds the answer later"
            detail = f"{stands}; {later}"
            # OpenAI's clients would ask twice more, ten minutes each.
            raise Refused(
                504, "still_running", detail, headers={"x-should-retry": "false"}
            )
        content = reply.text if form is None else await form.write(reply)
        message = AssistantMessage(
            content=content, refusal=reply.text if content is None else None
        )
        return ChatAnswer(reply, spent.usage.as_usage(), int(time.time()), message)

    async def _answer_before_leaving(
        self,
        answering: Callable[..., Coroutine[Any, Any, PersonReply]],
        ended: Ended,
        routed: Routed,
    ) -> PersonReply:
        """Return the reply, unless it does not come before this process leaves.

        Raises:
            Refused: 503, the process leaves; another one can be asked.
        """
        reply = asyncio.ensure_future(answering(ended=ended, routed=routed))
        leaving = asyncio.ensure_future(self._parts.life.leaving.wait())
        try:
            await asyncio.wait({reply, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not reply.done():
                raise unavailable(
                    "this process is shutting down; retry, another one is or will be "
                    "available"
                )
            return reply.result()
        finally:
            reply.cancel()
            leaving.cancel()
            await asyncio.gather(reply, leaving, return_exceptions=True)


def _describe_unfinished(answer: PersonReply | ReplyPart) -> str:
    if answer.waits_for == "worker":
        return f"no worker of {answer.agent_id} is running; the task waits for one"
    return f"{answer.agent_id} is still working on it"
