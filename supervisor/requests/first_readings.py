"""What a request was read as when it was first heard, kept with its words: a repeat is answered by that, not read anew.

The words may mean something else by the time they come again: a model answers otherwise, "the same again" follows newer
turns, another agent is there. The reading stands in the person's turn before any of its tasks is handed over, and of
two who read one request at once the first to write counts for both. A reading of a later version that this one cannot
follow stays as it is: to read the words anew would begin tasks beside those that it has begun.
"""

from typing import ClassVar, Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contracts.errors import MemoryUnavailable
from contracts.identifiers import Name
from contracts.messages import ChatTurn, TaskCall
from memory.command_batch import Commands
from memory.conversations.conversation import KEEP, Conversations
from supervisor.understanding.outcome import Interpretation, Several, Single, Understood, Unfitting

log = structlog.get_logger(__name__)

#: Looks at what another supervisor wrote meanwhile; each of them has to be the loss of a race.
_MOST_RACES = 5
#: Turns among which one that is looked up mostly is: a whole conversation may be megabytes.
_NEAR = 50


class PartRead(BaseModel):
    """One thing that a request asks for: a `task` to run, a `question` back, or what to say when it is `unable`.

    Of a task, *remembered* names the parameters that the person did not say, and *computed* says what was reckoned.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    kind: Literal["task", "question", "unable"]
    text: str = ""
    agent_id: Name | None = None
    task: TaskCall | None = None
    missing: tuple[str, ...] = ()
    remembered: tuple[str, ...] = ()
    computed: dict[str, str] = Field(default_factory=dict)


class FirstReading(BaseModel):
    """All that a request asks for, in the order it was said; `task_id` is that of its one task, or of the whole.

    A version that means something else by any of this counts `form` up, so that an older one starts nothing by it.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    form: Literal[1] = 1
    task_id: Name
    parts: tuple[PartRead, ...] = Field(min_length=1)


class HeardTurn(ChatTurn):
    """A person's turn as the store has it, with what it was read as; None while nobody has read it to its end.

    `is_legible` is False when it was read to its end, but this version cannot tell as what.
    """

    read_as: FirstReading | None = None
    is_legible: bool = Field(default=True, exclude=True)

    @property
    def is_read(self) -> bool:
        """Whether somebody has read it to its end: nobody may read it anew then."""
        return self.read_as is not None or not self.is_legible


def reading_of(found: Interpretation, task_id: str) -> FirstReading:
    """Return *found* as it is kept."""
    parts = found.parts if isinstance(found, Several) else (found,)
    return FirstReading(task_id=task_id, parts=tuple(map(_part_of, parts)))


async def keep_words(store: Conversations, turn: ChatTurn, beside: Commands = ()) -> bytes:
    """Keep the words of *turn*, and what is *beside* them, before they are read; return them as they are kept.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    body = turn.model_dump_json(exclude_none=True).encode()
    await store.append(turn.conversation_id, body, turn.turn_id, user_id=turn.user_id, beside=beside)
    return body


async def keep_reading(
    store: Conversations, turn: ChatTurn, reading: FirstReading, words: bytes | None, beside: Commands = ()
) -> bool:
    """Keep *reading* with *turn* and return True; False when that turn was there before.

    *words* is the turn as `keep_words` kept it, None when it was not: then what is *beside* them is kept, too.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    body = _with_reading(turn, reading)
    if words is not None:
        return await store.replace(turn.conversation_id, words, body)
    return await store.append(turn.conversation_id, body, turn.turn_id, user_id=turn.user_id, beside=beside)


async def earlier_reading(store: Conversations, turn: ChatTurn, reading: FirstReading) -> HeardTurn | None:
    """Return what the id of *turn* came with before, read; where nobody has read it to its end, by *reading*.

    It may have other words, and then maybe no reading, or one of another version. None: they are forgotten.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    for _ in range(_MOST_RACES):
        found = await first_heard(store, turn.conversation_id, turn.turn_id)
        if found is None:
            return None
        words, earlier = found
        if earlier.is_read or earlier.text != turn.text:
            return earlier
        if await store.replace(turn.conversation_id, words, _with_reading(earlier, reading)):
            return earlier.model_copy(update={"read_as": reading})
    raise MemoryUnavailable("what a request was read as kept changing while it was looked at; ask again")


async def first_heard(store: Conversations, conversation_id: str, turn_id: str) -> tuple[bytes, HeardTurn] | None:
    """Return the turn *turn_id* as it is kept, and what it says; None when there is none, or it is forgotten.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    wanted = turn_id.encode()
    for count in (_NEAR, KEEP):
        bodies = await store.recent(conversation_id, count)
        for body in [one for one in bodies if wanted in one]:
            turn = heard_turn(body)
            if turn is not None and turn.turn_id == turn_id:
                return body, turn
        if len(bodies) < count:
            break
    return None


def _with_reading(turn: ChatTurn, reading: FirstReading) -> bytes:
    # Of a turn that was validated when it was made.
    heard = HeardTurn.model_construct(**{**dict(turn), "read_as": reading})
    return heard.model_dump_json(exclude_none=True).encode()


def heard_turn(body: bytes) -> HeardTurn | None:
    """Return the turn that *body* is, with what it was read as where this version can tell; None when it is no turn."""
    try:
        return HeardTurn.model_validate_json(body)
    except ValidationError:
        log.warning("unreadable_reading")
    try:
        return HeardTurn.model_validate({**dict(ChatTurn.model_validate_json(body)), "is_legible": False})
    except ValidationError:
        return None


def _part_of(found: Single) -> PartRead:
    if isinstance(found, Unfitting):
        return PartRead(kind="unable", text=found.text)
    if isinstance(found, Understood):
        return PartRead(
            kind="task",
            agent_id=found.agent_id,
            task=found.task,
            remembered=tuple(sorted(found.remembered)),
            computed=dict(found.computed),
        )
    return PartRead(
        kind="question", text=found.question, agent_id=found.agent_id, task=found.call, missing=found.missing
    )
