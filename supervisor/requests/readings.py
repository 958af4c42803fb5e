"""What each request asks for: read once, by what was said before it, and kept with its words for whoever repeats it."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import structlog
from pydantic import ValidationError

from contracts.errors import MemoryUnavailable
from contracts.messages import ChatTurn, PersonReply
from contracts.zones import told_in
from memory.conversations.conversation import KEEP, Conversations
from memory.conversations.inbox import is_utterance
from runtime import tracing
from supervisor.catalogue import Catalogue
from supervisor.requests.first_readings import (
    FirstReading,
    HeardTurn,
    earlier_reading,
    first_heard,
    keep_reading,
    keep_words,
    reading_of,
)
from supervisor.requests.incoming import Incoming, digest_of
from supervisor.understanding.outcome import Interpreter, is_repeatable

log = structlog.get_logger(__name__)

#: Turns that a reference such as "same history" may reach back to.
LOOK_BACK = 20
#: Seconds of reading after which the words are kept by themselves: a model takes its time, and this process may die in
#: it. Rules are done long before, so that their reading goes into the store together with the words.
_SLOW_S = 0.02
#: Requests of which this process knows what it read, for the time in which the store does not answer.
_MOST_LATELY = 1000
#: Why nothing is begun.
Why = Literal["other words", "forgotten", "memory away", "another version", "not kept"]

_TEXTS: dict[Why, str] = {
    "other words": "came with other words before. Use a new one for another question.",
    "forgotten": "came before, and what was said under it has been forgotten since. Use a new one to ask again.",
    "memory away": (
        "came before, and the memory does not tell now what it became. Ask again in a moment with the same one."
    ),
    "another version": (
        "came before, and what it was read as is kept by another version of the supervisor, which this one cannot"
        " follow. Ask again with the same one when a supervisor of that version is there."
    ),
    "not kept": (
        "was read with the help of a language model, and the memory that would keep what it was read as does not"
        " answer. Ask again in a moment with the same one."
    ),
}


class _Lately(NamedTuple):
    """What this process read: of which words, by their digest, and whether the store has it."""

    words: str
    reading: FirstReading
    is_kept: bool


class RequestReadings:
    """Reads requests by *interpreter*; *publish* hands a person's turn on to whoever learns from it, and returns.

    *time_zone* is where those are who do not say it.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        catalogue: Callable[[], Catalogue],
        conversations: Conversations,
        publish: Callable[[ChatTurn], None],
        now: Callable[[], datetime],
        time_zone: str = "UTC",
    ) -> None:
        self._interpreter = interpreter
        self._catalogue = catalogue
        self._conversations = conversations
        self._publish = publish
        self._now = now
        self._time_zone = time_zone
        #: By turn. Forgetting is up to the store, so what that has counts here only while it is away.
        self._lately: dict[str, _Lately] = {}

    async def of(self, asked: Incoming, before: Sequence[ChatTurn] | None) -> FirstReading | PersonReply:
        """Return what *asked* asks for, as it was read first, or why nothing is begun for it.

        *before* is what was said earlier; None: what the store holds of the conversation.
        """
        stored = []
        if before is None:
            stored = await stored_turns(self._conversations, asked.conversation_id, LOOK_BACK)
        return await self._among(stored, asked, before)

    async def _among(
        self, stored: Sequence[ChatTurn], asked: Incoming, before: Sequence[ChatTurn] | None
    ) -> FirstReading | PersonReply:
        """Return what *asked* asks for; of its conversation the *stored* turns, the last ones, are looked at."""
        turn_id = asked.turn_id("person")
        own = next((place for place, turn in enumerate(stored) if turn.turn_id == turn_id), None)
        words = None
        if own is not None:
            try:
                found = await first_heard(self._conversations, asked.conversation_id, turn_id)
            except MemoryUnavailable as error:
                return _untold(asked, error)
            if found is None or found[1].text != asked.request.text or found[1].is_read:
                return self._as_first(asked, found[1] if found is not None else None)
            words = found[0]
        # Neither what was said since a request was first heard nor the hour may change what a repeat of it means.
        turn = asked.turn("person", asked.request.text, stored[own].at if own is not None else self._now())
        previous = before if before is not None else _theirs(stored[:own], asked)
        if self._had_other_words(turn, while_kept=False):
            return _refused(asked, "other words")
        self._publish(turn)
        reading, is_first = await self._read(asked, turn, previous, words)
        if not isinstance(reading, FirstReading):
            return _refused(asked, reading)
        if is_first:
            return reading
        try:
            if words is None and before is None and await self._was_unread_before(previous, asked):
                # What it refers to is what was said before it was first heard, however far back that is.
                stored = await stored_turns(self._conversations, asked.conversation_id, KEEP)
                return await self._among(stored, asked, None)
            return self._as_first(asked, await earlier_reading(self._conversations, turn, reading))
        except MemoryUnavailable as error:
            return _untold(asked, error)

    async def _was_unread_before(self, turns: Sequence[ChatTurn], asked: Incoming) -> bool:
        """Return whether *asked* was heard before one of *turns* was said, and nobody read it to its end."""
        found = await first_heard(self._conversations, asked.conversation_id, asked.turn_id("person"))
        if found is None or found[1].is_read or found[1].text != asked.request.text:
            return False
        return any(turn.at > found[1].at for turn in turns)

    async def _read(
        self, asked: Incoming, turn: ChatTurn, previous: Sequence[ChatTurn], words: bytes | None
    ) -> tuple[FirstReading | Why, bool]:
        """Return what *turn* is read as, once that is kept; False when its id was there before.

        What cannot be kept counts where it would be read so again, here or by another supervisor; else why not.
        """
        keeping: list[asyncio.Task[bytes | None]] = []
        slow = None
        if words is None:
            loop = asyncio.get_running_loop()
            slow = loop.call_later(_SLOW_S, lambda: keeping.append(loop.create_task(self._keep_words(turn, asked))))
        now = told_in(turn.at, asked.request.time_zone or self._time_zone)
        try:
            # The span tells what came of the words, and not one of them.
            with tracing.span("interpret") as span:
                found = await self._interpreter.interpret(
                    turn.text, catalogue=self._catalogue(), previous=previous, user_id=turn.user_id, now=now
                )
                span.note({"tasklore.interpretation": type(found).__name__.lower()})
        finally:
            if slow is not None:
                slow.cancel()
            kept = await asyncio.gather(*keeping) if keeping else []
        before = self._lately.get(turn.turn_id)
        if before is not None and before.words != digest_of(turn.text):
            before = None
        reading = before.reading if before is not None and not before.is_kept else reading_of(found, asked.task_id)
        try:
            is_first = await keep_reading(
                self._conversations, turn, reading, kept[0] if kept else words, asked.alongside.words
            )
        except MemoryUnavailable as error:
            log.warning("reading_not_kept", error=str(error))
            if self._had_other_words(turn, while_kept=True):
                return "other words", True
            if before is None and not is_repeatable(found):
                return "not kept", True
            return self._note(turn, before.reading if before is not None else reading, is_kept=False), True
        return (self._note(turn, reading, is_kept=True) if is_first else reading), is_first

    def _had_other_words(self, turn: ChatTurn, *, while_kept: bool) -> bool:
        """Return whether *turn* was read here with other words that the store has not, or with *while_kept* has."""
        before = self._lately.get(turn.turn_id)
        return before is not None and before.is_kept <= while_kept and before.words != digest_of(turn.text)

    def _note(self, turn: ChatTurn, reading: FirstReading, *, is_kept: bool) -> FirstReading:
        self._lately[turn.turn_id] = _Lately(digest_of(turn.text), reading, is_kept)
        while len(self._lately) > _MOST_LATELY:
            del self._lately[next(iter(self._lately))]
        return reading

    async def _keep_words(self, turn: ChatTurn, asked: Incoming) -> bytes | None:
        try:
            return await keep_words(self._conversations, turn, asked.alongside.words)
        except MemoryUnavailable as error:
            log.warning("words_not_kept", error=str(error))
            return None

    def _as_first(self, asked: Incoming, first: HeardTurn | None) -> FirstReading | PersonReply:
        """Return what *first*, an earlier turn of the same id, was read as, or why nobody can tell."""
        if first is None:
            return _refused(asked, "forgotten")
        if first.text != asked.request.text:
            return _refused(asked, "other words")
        if first.read_as is None:
            return _refused(asked, "another version")
        self._publish(asked.turn("person", first.text, first.at))
        return first.read_as


def _untold(asked: Incoming, error: MemoryUnavailable) -> PersonReply:
    log.warning("reading_not_found", error=str(error))
    return _refused(asked, "memory away")


def _refused(asked: Incoming, why: Why) -> PersonReply:
    """Return the reply to a request of which nothing is begun: it names the request id and what to do next."""
    text = f"The request id {asked.request_id} {_TEXTS[why]} Nothing was started now."
    return PersonReply(request_id=asked.request_id, conversation_id=asked.conversation_id, kind="failed", text=text)


def _theirs(turns: Sequence[ChatTurn], asked: Incoming) -> list[ChatTurn]:
    """Return those of *turns* that were said to and by whoever asks now, or to nobody known.

    What is known of one user may stand in an answer to them; it must not become a value for another.
    """
    theirs = (None, asked.request.user_id)
    return [turn for turn in turns if turn.request_id != asked.request_id and turn.user_id in theirs]


async def stored_turns(store: Conversations, conversation_id: str, count: int) -> list[ChatTurn]:
    """Return those among the last *count* entries, oldest first; none when the store does not answer in time."""
    try:
        stored = await store.recent(conversation_id, count)
    except MemoryUnavailable as error:
        log.warning("conversation_away", error=str(error))
        return []
    turns = []
    for body in stored:
        if is_utterance(body):
            continue
        try:
            turns.append(ChatTurn.model_validate_json(body))
        except ValidationError:
            log.warning("unreadable_turn")
    return turns
