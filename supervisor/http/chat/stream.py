"""An answer in OpenAI's form: whole, or as a stream of chunks."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from contracts.messages import PersonReply, ReplyPart
from contracts.messages import Usage as Spending
from supervisor.http.chat.errors import error_body
from supervisor.http.chat.forms import MODEL, About, Choice, Completion, Said, Usage
from supervisor.http.problems import Refused, refusal_of
from supervisor.replies.combined import BETWEEN, numbered
from supervisor.requests.incoming import Ended

log = structlog.get_logger(__name__)

#: Characters from which on a piece of the answer is sent: a few words.
_PIECE = 24
_WORDS = re.compile(r"\s*\S+\s?|\s+")
#: What tells a client, and whatever lies between, that the answer is still worked at.
_HEARTBEAT = b": still at it\n\n"
_END = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, what understanding the question spent on models, and when it was given, in seconds since 1970."""

    reply: PersonReply
    understanding: Spending
    at: int

    @property
    def usage(self) -> Usage:
        """What was spent in all, by the agents too."""
        reports = [self.reply.report, *(part.report for part in self.reply.parts)]
        spent = [self.understanding, *(report.usage for report in reports if report is not None)]
        said = sum(one.input_tokens for one in spent)
        heard = sum(one.output_tokens for one in spent)
        return Usage(prompt_tokens=said, completion_tokens=heard, total_tokens=said + heard)


@dataclass(frozen=True, slots=True)
class Answering:
    """An answer that is still to be worked at: `begin` does so. `at` is when it was asked for, as in `Answer`.

    What `begin` is given hears of each of several parts once it is answered.
    """

    begin: Callable[[Ended], Coroutine[Any, Any, Answer]]
    request_id: str
    at: int


def completion(answer: Answer) -> Completion:
    """Return *answer* as one body."""
    reply = answer.reply
    return Completion(
        id=_id(reply.request_id),
        created=answer.at,
        model=MODEL,
        choices=(Choice(message=Said(content=reply.text)),),
        usage=answer.usage,
        tasklore=_about(reply),
    )


async def chunks(answering: Answering, *, with_usage: bool, beat_s: float) -> AsyncGenerator[bytes, None]:
    """Yield an answer as events, the first one at once, and a sign of life when nothing was told for *beat_s* seconds.

    Of several parts each is told once it and all before it are answered. What goes wrong is the last event, in OpenAI's
    form: the status was sent long before.
    """
    yield _chunk(answering, {"role": "assistant", "content": ""})
    heard = _InOrder()
    task = asyncio.ensure_future(answering.begin(heard.note))
    try:
        while not task.done():
            await _either(task, heard.news, beat_s)
            for piece in pieces(told := heard.taken()):
                yield _chunk(answering, {"content": piece})
            if not task.done() and not told:
                yield _HEARTBEAT
        answer = task.result()
    except Exception as error:  # noqa: BLE001 - whatever it is, the client is told in its own form
        yield _told(error)
        return
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    for piece in pieces(heard.rest(answer.reply)):
        yield _chunk(answering, {"content": piece})
    yield _chunk(answering, {}, finish_reason="stop", tasklore=_about(answer.reply).model_dump())
    if with_usage:
        yield _event(_head(answering) | {"choices": [], "usage": answer.usage.model_dump()})
    yield _END


class _InOrder:
    """The parts of an answer as they are answered, told in the order in which they were asked for."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._answered: dict[int, ReplyPart] = {}
        self._told = 0

    def note(self, place: int, part: ReplyPart) -> None:
        """Take note of *part*, unless it may still be told otherwise."""
        if part.report is not None or part.kind in ("question", "unable"):
            self._answered[place] = part
            self.news.set()

    def taken(self) -> str:
        """Return the words that come next; "" when the part whose turn it is has not been answered."""
        self.news.clear()
        words = ""
        while (part := self._answered.get(self._told + 1)) is not None:
            words += self._next(part)
        return words

    def rest(self, reply: PersonReply) -> str:
        """Return the words of *reply*, the whole answer, that have not been told."""
        if not self._told:
            return reply.text
        return "".join(self._next(part) for part in reply.parts[self._told :])

    def _next(self, part: ReplyPart) -> str:
        self._told += 1
        return (BETWEEN if self._told > 1 else "") + numbered(self._told, part)


async def _either(task: asyncio.Future[Any], news: asyncio.Event, within_s: float) -> None:
    """Return when *task* has ended or there are *news*, after *within_s* seconds at the latest."""
    waiting = asyncio.ensure_future(news.wait())
    try:
        await asyncio.wait({task, waiting}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def _chunk(answering: Answering, delta: dict[str, str], finish_reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _event(_head(answering) | {"choices": [choice]} | more)


def _head(answering: Answering) -> dict[str, Any]:
    kind = "chat.completion.chunk"
    return {"id": _id(answering.request_id), "object": kind, "created": answering.at, "model": MODEL}


def pieces(text: str) -> Iterator[str]:
    """Yield *text* a few words at a time; together they are the whole of it."""
    piece = ""
    for word in _WORDS.findall(text):
        piece += word
        if len(piece) >= _PIECE:
            yield piece
            piece = ""
    if piece:
        yield piece


def _told(error: Exception) -> bytes:
    refused = refusal_of(error)
    if refused.problem.status >= 500 and not isinstance(error, Refused):
        log.error("chat_failed", exc_info=error)
    return _event(error_body(refused.problem.model_dump()).model_dump())


def _event(body: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def _about(reply: PersonReply) -> About:
    return About(
        conversation_id=reply.conversation_id,
        request_id=reply.request_id,
        kind=reply.kind,
        agent_id=reply.agent_id,
        task=reply.task.name if reply.task is not None else None,
        memory=reply.report.memory.outcome if reply.report is not None else None,
    )


def _id(request_id: str) -> str:
    return f"chatcmpl-{request_id}"
