"""First readings: each request is read once, by the turns before it, and a repeat is answered by that reading.

The words may mean something else by the time they come again: a model answers otherwise, "the same again" follows newer
turns, another agent is there. The reading stands in the person's turn before any of its tasks is handed over, and of
two processes that read one request at once the first to write counts for both. A reading of a later version that this
one cannot follow stays as it is: to read the words anew would begin tasks beside those that it has begun.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar, Literal, NamedTuple

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import Name
from tasklore.contracts.message_parts import is_none
from tasklore.contracts.messages import ChatTurn, PersonReply, TaskCall
from tasklore.contracts.zones import in_zone
from tasklore.memory.command_batch import Commands
from tasklore.memory.conversations.conversation import KEEP, Conversations
from tasklore.memory.conversations.inbox import is_utterance
from tasklore.runtime import tracing
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.requests.request import Incoming, digest_of
from tasklore.supervisor.understanding.outcome import (
    Interpretation,
    Interpreter,
    Several,
    Single,
    Understood,
    Unfitting,
    is_repeatable,
)

log = structlog.get_logger(__name__)

#: Turns that a reference such as "same history" may reach back to.
LOOK_BACK = 20
#: Seconds of reading after which the words are kept by themselves: a model takes its time, and this process may die in
#: it. Rules are done long before, so that their reading goes into the store together with the words.
_SLOW_S = 0.02
#: Requests whose reading this process remembers, for the time in which the store does not answer.
_MOST_LATELY = 1000
#: Looks at what another supervisor wrote meanwhile; each of them has to be the loss of a race.
_MOST_RACES = 5
#: Turns among which one that is looked up mostly is: a whole conversation may be megabytes.
_NEAR = 50
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


class PartRead(BaseModel):
    """One wish of a request: a `task` to run, a `question` back, or the text when it is `unable`.

    Of a task, *remembered* names parameters that were not said, *computed* says how one was; *approver* must agree.
    *by* says whether a model was asked beside the rules; None where an earlier version read it.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    kind: Literal["task", "question", "unable"]
    text: str = ""
    agent_id: Name | None = None
    task: TaskCall | None = None
    missing: tuple[str, ...] = ()
    remembered: tuple[str, ...] = ()
    computed: dict[str, str] = Field(default_factory=dict)
    approver: str | None = None
    by: Literal["rules", "model"] | None = None


class FirstReading(BaseModel):
    """All wishes of a request, in the order said; `task_id` is that of its one task, or of the whole.

    A version that means something else by any of this counts `form` up, so that an older one starts nothing by it: a
    reading of form 2 has an approver. `is_repeat` is True where it was kept by an earlier request of the same id.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    form: Literal[1, 2] = 1
    task_id: Name
    parts: tuple[PartRead, ...] = Field(min_length=1)
    is_repeat: bool = Field(default=False, exclude=True)


class HeardTurn(ChatTurn):
    """A person's turn in the store, with its reading; None before it has been read to its end.

    `is_legible` is False when it has been read to its end, and this version cannot parse the reading.
    """

    read_as: FirstReading | None = None
    is_legible: bool = Field(default=True, exclude=True)

    @property
    def is_read(self) -> bool:
        """Whether it has been read to its end, and must not be read anew."""
        return self.read_as is not None or not self.is_legible


class ShownTurn(ChatTurn):
    """An assistant's turn in the store. `asked_as` is what rules said, where a model said it in other words.

    `shown` are the words that the person was shown, of a turn whose `text` is that of the rules.
    """

    asked_as: str | None = Field(default=None, exclude_if=is_none)
    shown: str | None = Field(default=None, exclude=True)


class _Lately(NamedTuple):
    """A reading of this process: of words with this digest, and whether the store has it."""

    words: str
    reading: FirstReading
    is_kept: bool


class RequestReadings:
    """Reads requests by *interpreter*; *publish* sends a person's turn to the memory workers, and returns.

    *time_zone* is that of people who do not say theirs.
    """

    def __init__(
        self,
        *,
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
        #: By turn. Forgetting is up to the store: a reading that it has counts here only while it is away.
        self._lately: dict[str, _Lately] = {}

    async def of(
        self, asked: Incoming, before: Sequence[ChatTurn] | None
    ) -> FirstReading | PersonReply:
        """Return the first reading of *asked*, or a reply that says why nothing is begun for it.

        *before* is the turns before it; None: those that the store holds of the conversation.
        """
        stored = []
        if before is None:
            stored = await read_turns(
                self._conversations, asked.conversation_id, LOOK_BACK
            )
        return await self._read_among(stored, asked, before)

    async def _read_among(
        self,
        stored: Sequence[ChatTurn],
        asked: Incoming,
        before: Sequence[ChatTurn] | None,
    ) -> FirstReading | PersonReply:
        """Return the first reading of *asked*, by *stored*, the last turns of its conversation."""
        turn_id = asked.turn_id("person")
        own = next(
            (place for place, turn in enumerate(stored) if turn.turn_id == turn_id),
            None,
        )
        words = None
        if own is not None:
            try:
                found = await find_turn(
                    self._conversations, asked.conversation_id, turn_id
                )
            except MemoryUnavailable as error:
                return _refuse_unknown(asked, error)
            if found is None or found[1].text != asked.request.text or found[1].is_read:
                return self._answer_repeat(
                    asked, found[1] if found is not None else None
                )
            words = found[0]
        # Neither turns since a request first came nor the hour may change the meaning of a repeat.
        turn = asked.turn(
            "person",
            asked.request.text,
            stored[own].at if own is not None else self._now(),
        )
        if before is not None:
            previous = before
        else:
            # Values of one user in an answer to them must not become values for another.
            users = (None, asked.request.user_id)
            others = (one for one in stored[:own] if one.request_id != asked.request_id)
            previous = [one for one in others if one.user_id in users]
        if self._had_other_words(turn, while_kept=False):
            return _refuse(asked, "other words")
        self._publish(turn)
        reading, is_first = await self._read(asked, turn, previous, words)
        if not isinstance(reading, FirstReading):
            return _refuse(asked, reading)
        if is_first:
            return reading
        try:
            if (
                words is None
                and before is None
                and await self._came_unread_before(previous, asked)
            ):
                # It refers to the turns before it first came, however far back they are.
                stored = await read_turns(
                    self._conversations, asked.conversation_id, KEEP
                )
                return await self._read_among(stored, asked, None)
            return self._answer_repeat(
                asked, await settle_reading(self._conversations, turn, reading)
            )
        except MemoryUnavailable as error:
            return _refuse_unknown(asked, error)

    async def _came_unread_before(
        self, turns: Sequence[ChatTurn], asked: Incoming
    ) -> bool:
        """Return whether *asked* came before one of *turns*, and has not been read to its end."""
        found = await find_turn(
            self._conversations, asked.conversation_id, asked.turn_id("person")
        )
        if found is None or found[1].is_read or found[1].text != asked.request.text:
            return False
        return any(turn.at > found[1].at for turn in turns)

    async def _read(
        self,
        asked: Incoming,
        turn: ChatTurn,
        previous: Sequence[ChatTurn],
        words: bytes | None,
    ) -> tuple[FirstReading | Why, bool]:
        """Return the reading of *turn*, once that is kept; False when its id was there before.

        A reading that cannot be kept counts where the next one would be the same; else the reason is returned.
        """
        keeping: list[asyncio.Task[bytes | None]] = []
        slow = None
        if words is None:
            loop = asyncio.get_running_loop()
            slow = loop.call_later(
                _SLOW_S,
                lambda: keeping.append(loop.create_task(self._keep_words(turn, asked))),
            )
        now = in_zone(turn.at, asked.request.time_zone or self._time_zone)
        try:
            # The span has the kind of the outcome, and none of the words.
            with tracing.span("interpret") as span:
                found = await self._interpreter.interpret(
                    turn.text,
                    catalogue=asked.among or self._catalogue(),
                    previous=previous,
                    user_id=turn.user_id,
                    now=now,
                )
                span.note({"tasklore.interpretation": type(found).__name__.lower()})
        finally:
            if slow is not None:
                slow.cancel()
            kept = await asyncio.gather(*keeping) if keeping else []
        before = self._lately.get(turn.turn_id)
        if before is not None and before.words != digest_of(turn.text):
            before = None
        reading = (
            before.reading
            if before is not None and not before.is_kept
            else make_reading(found, asked.task_id)
        )
        try:
            is_first = await keep_reading(
                self._conversations,
                turn=turn,
                reading=reading,
                words=kept[0] if kept else words,
                beside=asked.alongside.words,
            )
        except MemoryUnavailable as error:
            log.warning("reading_not_kept", error=str(error))
            if self._had_other_words(turn, while_kept=True):
                return "other words", True
            if before is None and not is_repeatable(found):
                return "not kept", True
            return self._note(
                turn, before.reading if before is not None else reading, is_kept=False
            ), True
        return (
            self._note(turn, reading, is_kept=True) if is_first else reading
        ), is_first

    def _had_other_words(self, turn: ChatTurn, *, while_kept: bool) -> bool:
        """Return whether *turn* was read here with other words that the store has not, or with *while_kept* has."""
        before = self._lately.get(turn.turn_id)
        return (
            before is not None
            and before.is_kept <= while_kept
            and before.words != digest_of(turn.text)
        )

    def _note(
        self, turn: ChatTurn, reading: FirstReading, *, is_kept: bool
    ) -> FirstReading:
        self._lately[turn.turn_id] = _Lately(digest_of(turn.text), reading, is_kept)
        while len(self._lately) > _MOST_LATELY:
            del self._lately[next(iter(self._lately))]
        return reading

    async def _keep_words(self, turn: ChatTurn, asked: Incoming) -> bytes | None:
        """Keep the words of *turn* before they are read, and return them as they are kept."""
        body = turn.model_dump_json(exclude_none=True).encode()
        try:
            await self._conversations.append(
                turn.conversation_id,
                body,
                turn.turn_id,
                user_id=turn.user_id,
                beside=asked.alongside.words,
            )
        except MemoryUnavailable as error:
            log.warning("words_not_kept", error=str(error))
            return None
        return body

    def _answer_repeat(
        self, asked: Incoming, first: HeardTurn | None
    ) -> FirstReading | PersonReply:
        """Return the reading of *first*, an earlier turn of the same id, or why it has none for *asked*."""
        if first is None:
            return _refuse(asked, "forgotten")
        if first.text != asked.request.text:
            return _refuse(asked, "other words")
        if first.read_as is None:
            return _refuse(asked, "another version")
        self._publish(asked.turn("person", first.text, first.at))
        return first.read_as.model_copy(update={"is_repeat": True})


def make_reading(found: Interpretation, task_id: str) -> FirstReading:
    """Return *found* as it is kept."""
    parts = tuple(
        map(_make_part, found.parts if isinstance(found, Several) else (found,))
    )
    return FirstReading(
        form=2 if any(part.approver for part in parts) else 1,
        task_id=task_id,
        parts=parts,
    )


def _make_part(found: Single) -> PartRead:
    if isinstance(found, Unfitting):
        return PartRead(kind="unable", text=found.text)
    if isinstance(found, Understood):
        return PartRead(
            kind="task",
            agent_id=found.agent_id,
            task=found.task,
            remembered=tuple(sorted(found.remembered)),
            computed=dict(found.computed),
            approver=found.approver,
            by="model" if found.by_model else "rules",
        )
    return PartRead(
        kind="question",
        text=found.question,
        agent_id=found.agent_id,
        task=found.call,
        missing=found.missing,
    )


async def keep_reading(
    store: Conversations,
    turn: ChatTurn,
    reading: FirstReading,
    words: bytes | None,
    beside: Commands = (),
) -> bool:
    """Keep *reading* with *turn* and return True; False when that turn was there before.

    *words* is the turn as it was kept before it was read, None when it was not: then *beside* is kept, too.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    body = _add_reading(turn, reading)
    if words is not None:
        return await store.replace(turn.conversation_id, words, body)
    return await store.append(
        turn.conversation_id, body, turn.turn_id, user_id=turn.user_id, beside=beside
    )


async def settle_reading(
    store: Conversations, turn: ChatTurn, reading: FirstReading
) -> HeardTurn | None:
    """Return the earlier turn with the id of *turn*; where it has not been read to its end, by *reading*.

    It may have other words, and then maybe no reading, or one of another version. None: they are forgotten.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    for _ in range(_MOST_RACES):
        found = await find_turn(store, turn.conversation_id, turn.turn_id)
        if found is None:
            return None
        words, earlier = found
        if earlier.is_read or earlier.text != turn.text:
            return earlier
        if await store.replace(
            turn.conversation_id, words, _add_reading(earlier, reading)
        ):
            return earlier.model_copy(update={"read_as": reading})
    raise MemoryUnavailable(
        "what a request was read as kept changing while it was looked at; ask again"
    )


async def find_turn(
    store: Conversations, conversation_id: str, turn_id: str
) -> tuple[bytes, HeardTurn] | None:
    """Return the turn *turn_id* as it is kept, and parsed; None when there is none, or it is forgotten.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    name = turn_id.encode()
    for count in (_NEAR, KEEP):
        bodies = await store.recent(conversation_id, count)
        for body in [one for one in bodies if name in one]:
            turn = parse_turn(body)
            if turn is not None and turn.turn_id == turn_id:
                return body, turn
        if len(bodies) < count:
            break
    return None


def parse_turn(body: bytes) -> HeardTurn | None:
    """Return the turn in *body*, with its reading where this version can parse it; None when it is no turn."""
    try:
        return HeardTurn.model_validate_json(body)
    except ValidationError:
        log.warning("unreadable_reading")
    try:
        return HeardTurn.model_validate(
            {**dict(ChatTurn.model_validate_json(body)), "is_legible": False}
        )
    except ValidationError:
        return None


async def read_turns(
    store: Conversations, conversation_id: str, count: int
) -> list[ShownTurn]:
    """Return the turns among the last *count* entries, oldest first; none when the store does not answer in time.

    A question has the words of the rules, by which its answer is read.
    """
    try:
        stored = await store.recent(conversation_id, count)
    except MemoryUnavailable as error:
        log.warning("conversation_away", error=str(error))
        return []
    turns = []
    for body in (one for one in stored if not is_utterance(one)):
        try:
            turn = ShownTurn.model_validate_json(body)
        except ValidationError:
            log.warning("unreadable_turn")
            continue
        if turn.asked_as is not None:
            said = {"text": turn.asked_as, "asked_as": None, "shown": turn.text}
            turn = turn.model_copy(update=said)
        turns.append(turn)
    return turns


def _add_reading(turn: ChatTurn, reading: FirstReading) -> bytes:
    heard = HeardTurn.model_construct(**{**dict(turn), "read_as": reading})
    return heard.model_dump_json(exclude_none=True).encode()


def _refuse_unknown(asked: Incoming, error: MemoryUnavailable) -> PersonReply:
    log.warning("reading_not_found", error=str(error))
    return _refuse(asked, "memory away")


def _refuse(asked: Incoming, why: Why) -> PersonReply:
    """Return the reply to a request of which nothing is begun: it names the request id and the next step."""
    text = f"The request id {asked.request_id} {_TEXTS[why]} Nothing was started now."
    return PersonReply(
        request_id=asked.request_id,
        conversation_id=asked.conversation_id,
        kind="failed",
        text=text,
    )
