"""An answer in OpenAI's form: whole, or as a stream of chunks."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from tasklore.contracts.messages import PersonReply, ReplyPart, Usage
from tasklore.supervisor.feed.beats import Heartbeat, wait_first
from tasklore.supervisor.feed.tasks import Feeds
from tasklore.supervisor.http.chat.errors import error_body
from tasklore.supervisor.http.chat.forms import (
    MODEL,
    About,
    AssistantMessage,
    ChatChoice,
    ChatUsage,
    Completion,
)
from tasklore.supervisor.operations.refusals import Refused, refusal_of
from tasklore.supervisor.replies.combined import BETWEEN, number_part
from tasklore.supervisor.replies.live_text import Delta, LiveText
from tasklore.supervisor.requests.request import Ended, Routed

log = structlog.get_logger(__name__)

#: Characters from which on a piece of the answer is sent: a few words.
_PIECE = 24
_WORDS = re.compile(r"\s*\S+\s?|\s+")
#: Tells the client, and every proxy between, that the answer is still on its way.
_HEARTBEAT = b": still at it\n\n"
_END = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A reply, the usage of models for understanding the question, and when it was given, in seconds since 1970.

    *message* has its words, or the JSON that was asked for.
    """

    reply: PersonReply
    understanding: Usage
    at: int
    message: AssistantMessage

    @property
    def usage(self) -> ChatUsage:
        """The usage in all, by the agents too."""
        reports = [self.reply.report, *(part.report for part in self.reply.parts)]
        spent = [
            self.understanding,
            *(report.usage for report in reports if report is not None),
        ]
        read = sum(one.input_tokens for one in spent)
        written = sum(one.output_tokens for one in spent)
        return ChatUsage(
            prompt_tokens=read, completion_tokens=written, total_tokens=read + written
        )


@dataclass(frozen=True, slots=True)
class PendingAnswer:
    """An answer that `begin` works out; *at* is when it was asked for, as in `ChatAnswer`.

    The arguments of `begin` are called with each of several parts once it is answered, and with each task once it is
    handed over. *feeds* follow them. *model* is the one that was asked.
    """

    begin: Callable[[Ended, Routed], Coroutine[Any, Any, ChatAnswer]]
    request_id: str
    at: int
    feeds: Feeds
    model: str = MODEL


def complete(answer: ChatAnswer, model: str = MODEL) -> Completion:
    """Return *answer* of *model* as one body."""
    reply = answer.reply
    return Completion(
        id=f"chatcmpl-{reply.request_id}",
        created=answer.at,
        model=model,
        choices=(ChatChoice(message=answer.message),),
        usage=answer.usage,
        tasklore=_about(reply),
    )


async def stream_chunks(
    pending: PendingAnswer, *, with_usage: bool, beat_s: float
) -> AsyncGenerator[bytes, None]:
    """Yield an answer as events, the first one at once, and a heartbeat every *beat_s* seconds.

    What the task emits follows as it comes, and then what the answer says beside that. Each of several parts follows
    once it and all before it are answered. An error is the last event, in OpenAI's form: the status was sent long
    before.
    """
    head: dict[str, Any] = {
        "id": f"chatcmpl-{pending.request_id}",
        "object": "chat.completion.chunk",
    }
    head |= {"created": pending.at, "model": pending.model}

    def chunk(
        delta: dict[str, str],
        finish_reason: str | None = None,
        about: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": None,
            "finish_reason": finish_reason,
        }
        return _event(
            head | {"choices": [choice]} | ({"tasklore": about} if about else {})
        )

    yield chunk({"role": "assistant", "content": ""})
    ordered = _OrderedParts()
    live = LiveText(pending.feeds)
    beat = Heartbeat(beat_s)
    task = asyncio.ensure_future(pending.begin(ordered.note, live.note))
    try:
        while not task.done():
            await wait_first(
                asyncio.shield(task),
                ordered.news.wait(),
                live.wait(beat.due_in_s),
                within_s=beat.due_in_s,
            )
            deltas = [
                Delta(piece) for piece in split_pieces(ordered.take())
            ] + await live.take()
            for words, about in deltas:
                yield chunk({"content": words} if words else {}, about=about)
            if not task.done() and beat.take():
                yield _HEARTBEAT
        answer = task.result()
        reply = answer.reply.model_copy(update={"text": answer.message.content or ""})
        rest = ordered.take_rest(reply)
        deltas = [Delta(rest)] if ordered.has_given else await live.take_rest(reply)
    except Exception as error:
        refused = refusal_of(error)
        if refused.problem.status >= 500 and not isinstance(error, Refused):
            log.exception("chat_failed")
        yield _event(error_body(refused.problem.model_dump()).model_dump())
        return
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await live.close()
    for words, about in deltas:
        for piece in split_pieces(words) if about is None else [words]:
            yield chunk({"content": piece} if piece else {}, about=about)
    refusal = answer.message.refusal
    last = {} if refusal is None else {"refusal": refusal}
    yield chunk(last, finish_reason="stop", about=_about(answer.reply).model_dump())
    if with_usage:
        yield _event(head | {"choices": [], "usage": answer.usage.model_dump()})
    yield _END


class _OrderedParts:
    """The parts of an answer as they come, given out in the order in which they were asked for."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._answered: dict[int, ReplyPart] = {}
        self._given = 0

    @property
    def has_given(self) -> bool:
        """Whether a part was given out before the whole was there."""
        return self._given > 0

    def note(self, place: int, part: ReplyPart) -> None:
        """Take note of *part*, unless its words may still change."""
        if part.report is not None or part.kind in ("question", "unable"):
            self._answered[place] = part
            self.news.set()

    def take(self) -> str:
        """Return the words that come next; "" when the next part has not been answered."""
        self.news.clear()
        words = ""
        while (part := self._answered.get(self._given + 1)) is not None:
            words += self._next(part)
        return words

    def take_rest(self, reply: PersonReply) -> str:
        """Return the words of *reply*, the whole answer, that have not been given out."""
        if not self._given:
            return reply.text
        return "".join(self._next(part) for part in reply.parts[self._given :])

    def _next(self, part: ReplyPart) -> str:
        self._given += 1
        return (BETWEEN if self._given > 1 else "") + number_part(self._given, part)


def split_pieces(text: str) -> Iterator[str]:
    """Yield *text* a few words at a time."""
    piece = ""
    for word in _WORDS.findall(text):
        piece += word
        if len(piece) >= _PIECE:
            yield piece
            piece = ""
    if piece:
        yield piece


def _event(body: Mapping[str, Any]) -> bytes:
    return (
        b"data: "
        + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        + b"\n\n"
    )


def _about(reply: PersonReply) -> About:
    return About(
        conversation_id=reply.conversation_id,
        request_id=reply.request_id,
        kind=reply.kind,
        agent_id=reply.agent_id,
        task=reply.task.name if reply.task is not None else None,
        memory=reply.report.memory.outcome if reply.report is not None else None,
        heading=reply.heading,
        origin=reply.origin,
        taken=reply.taken,
        read_by_rules=reply.read_by_rules,
    )
