"""Messages to agents: delivered once, taken into their conversation in order, and new until a task has used them.

At least once underneath, effect once above: everything may be sent again, and adds nothing then.
"""

import contextlib
import re
from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import Any, NamedTuple

import structlog
from pydantic import ValidationError
from redis.asyncio import Redis

from tasklore.contracts.conversations import (
    Digest,
    History,
    Page,
    TakenMessages,
    Utterance,
    said_id,
)
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.observations import LONGEST_UTTERANCE, Observation
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.conversations import scripts as inbox_scripts
from tasklore.memory.conversations.conversation import KEEP, KEEP_FOR, call, note_owner
from tasklore.memory.conversations.observations import Observations, read_observations

log = structlog.get_logger(__name__)

#: Characters of the summary of earlier messages: what a prompt can spare for them.
LONGEST_SUMMARY = 4_000
#: Messages that one look at a conversation returns.
LARGEST_PAGE = 1_000

_UNSPEAKABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class ExactMessage(NamedTuple):
    """A message with all that was said in it, and the tenant of who asked; None where none is named."""

    utterance: Utterance
    text: str
    tenant: str | None


class ExactPage(NamedTuple):
    """A part of a conversation, oldest first; `before` as in `Page`."""

    messages: tuple[ExactMessage, ...]
    before: int | None


class Inbox:
    """Delivers messages to conversations, each of which has one agent that hears them, its owner's.

    A message is numbered as it enters the conversation. What a task takes is new until it settles, for its own retries
    as for whichever task comes next; a task that has settled is shown the same again. Of the last 32 tasks it is known
    the messages that they took; an older one that comes again is shown those that no task has settled.

    Args:
        deadline_s: Seconds for one call; then MemoryUnavailable.
        window: Messages that are shown, and more when more are new; of older ones a digest.
        keep: Messages that a conversation holds for `page`, and as many wait at most: then the oldest of them enters.
        keep_for: How long a conversation is kept after its last message.
    """

    def __init__(
        self,
        client: Redis,
        deadline_s: float = 1.0,
        *,
        window: int = 50,
        keep: int = KEEP,
        keep_for: timedelta = KEEP_FOR,
    ) -> None:
        self._window = window
        self._keep_ms = keep_for // timedelta(milliseconds=1)
        self._limits = (keep, self._keep_ms)
        self._batch = CommandBatch(client, deadline_s)
        self._observations = Observations(client, deadline_s, keep_for=keep_for)

    async def post(
        self,
        owner: str,
        message: Utterance,
        *,
        user_id: str | None = None,
        known_as: str | None = None,
    ) -> bool:
        """Deliver *message* to the conversation *owner*, said for *user_id*; False when it is known by its id.

        Or by *known_as* in its place, which is no id of a message when there is a blank in it.

        Raises:
            MemoryUnavailable: Redis did not answer in time; posting again is safe.
            InvalidInput: the conversation id is empty or too long.
        """
        known_as = message.message_id if known_as is None else known_as
        commands = self._noting(owner, user_id)
        commands.append(
            call(
                inbox_scripts.POST,
                owner,
                *self._limits,
                known_as,
                body_of(message, user_id),
            )
        )
        return bool((await self._batch.run(commands))[-1])

    async def take(
        self,
        owner: str,
        task_id: str,
        arriving: Sequence[Utterance] = (),
        *,
        observations: int = 0,
        senses: bool = True,
        user_id: str | None = None,
    ) -> TakenMessages:
        """Move *arriving* and then what waits into the conversation, and return it with which of it is new.

        The same task is shown the same again, but for what another has settled meanwhile. With it come the last
        *observations* before that of the task; without *senses* they hold only what the agent did.

        Raises:
            MemoryUnavailable: Redis did not answer in time; taking again is safe.
            InvalidInput: an id is none.
        """
        words = [
            word for one in arriving for word in (one.message_id, body_of(one, user_id))
        ]
        commands = self._noting(owner, user_id)
        task = checked_name(task_id, "task id")
        commands.append(
            call(inbox_scripts.TAKE, owner, *self._limits, task, self._window, *words)
        )
        commands.append(self._observations.to_recall(owner, observations, task))
        reply, observed = (await self._batch.run(commands))[-2:]
        done, before = read_observations(observed, senses=senses)
        return TakenMessages(_history(reply), before, done, is_settled=bool(reply[0]))

    async def settle(
        self,
        owner: str,
        task_id: str,
        said: Utterance | None = None,
        *,
        observation: Observation | None = None,
        user_id: str | None = None,
    ) -> None:
        """Note that what *task_id* took is new no longer; *said* enters as `said_id`, and *observation* is kept.

        The second time only that is added which the first lacked.

        Raises:
            MemoryUnavailable: Redis did not answer in time; settling again is safe.
            InvalidInput: an id is none.
        """
        task = checked_name(task_id, "task id")
        commands = self._noting(owner, user_id)
        # Before the messages: whoever finds the task settled finds what it did.
        if observation is not None:
            commands.append(self._observations.to_note(owner, task, observation))
        own = (
            ("", b"")
            if said is None
            else (said_id(task), _body(own_message(task, said), user_id))
        )
        commands.append(call(inbox_scripts.SETTLE, owner, *self._limits, task, *own))
        await self._batch.run(commands)

    async def summarise(
        self, owner: str, upto: int, text: str, *, removals: int | None = None
    ) -> bool:
        """Keep *text* as what the first *upto* messages came to; False when as many are summarised already.

        They must have left the window: `earlier.count` of them have. With *removals*, those of the digest that *text*
        was made after, it is refused when words were removed since: they may be in it.

        Raises:
            InvalidInput: *text* is empty or too long.
        """
        check_summary(text)
        known = "" if removals is None else removals
        command = call(inbox_scripts.SUMMARISE, owner, *self._limits, upto, text, known)
        return bool((await self._batch.run([command]))[0])

    async def page(
        self, owner: str, before: int | None = None, count: int = 100
    ) -> Page:
        """Return up to *count* messages before the number *before*, the last ones by default, oldest first.

        Going on with the `before` of each page shows every message once, whatever is added meanwhile. What waits is in
        none.

        Raises:
            InvalidInput: *count* or *before* is out of its range.
        """
        first, bodies, gone = await self._read_page(owner, before, count)
        return Page(tuple(_readable(bodies)), first or None, gone)

    async def exact_page(
        self, owner: str, before: int | None, count: int, most_bytes: int
    ) -> ExactPage:
        """Return a page as `page` does, with what was said in full, and the later ones alone beyond *most_bytes*.

        There is one message at least.

        Raises:
            InvalidInput: *count* or *before* is out of its range.
        """
        first, bodies, gone = await self._read_page(owner, before, count)
        taken = 0
        left_bytes = most_bytes
        for body in reversed(bodies):
            left_bytes -= len(body)
            if left_bytes < 0 and taken:
                first = (first or gone + 1) + len(bodies) - taken
                break
            taken += 1
        shown = [
            _exact(one, body)
            for body in bodies[len(bodies) - taken :]
            if (one := read(body)) is not None
        ]
        return ExactPage(tuple(shown), first or None)

    async def _read_page(
        self, owner: str, before: int | None, count: int
    ) -> tuple[int, list[bytes], int]:
        """Return the number of the first message, 0 for that of the conversation, the bodies, and how many are gone."""
        place, count = check_page(before, count)
        first, bodies, gone = (
            await self._batch.run([call(inbox_scripts.PAGE, owner, place, count)])
        )[0]
        return first, bodies, gone

    async def recent_observations(
        self, owner: str, count: int
    ) -> tuple[Observation, ...]:
        """Return the last *count* observations, oldest first."""
        return await self._observations.recent(owner, count)

    def _noting(self, owner: str, user_id: str | None) -> list[Command]:
        """Return the commands that make forgetting *user_id* find this conversation, to be sent first."""
        return note_owner(user_id, owner, self._keep_ms) if user_id else []


def own_message(task_id: str, said: Utterance) -> Utterance:
    """Return *said* as it stands in the conversation of who said it: under its id there, and as their own."""
    return said.model_copy(update={"message_id": said_id(task_id), "own": True})


def as_heard(message: Utterance) -> Utterance:
    """Return *message* as it stands in the conversation of its hearer: not as own, whatever it says itself."""
    return message.model_copy(update={"own": False}) if message.own else message


def body_of(message: Utterance, user_id: str | None) -> bytes:
    """Return *message* of another speaker as it is stored: as one of *user_id* unless it names its user."""
    return _body(as_heard(message), user_id)


def _body(message: Utterance, user_id: str | None) -> bytes:
    if user_id is not None and message.user_id is None:
        message = message.model_copy(update={"user_id": user_id})
    return message.model_dump_json(exclude_defaults=True).encode()


def read(body: bytes) -> Utterance | None:
    """Return a message of a conversation, whether an agent said it or it is a turn; None when it was removed."""
    if not body:
        return None
    with contextlib.suppress(ValidationError):
        return Utterance.model_validate_json(body)
    try:
        return utterance_of(ChatTurn.model_validate_json(body))
    except ValidationError:
        log.warning("unreadable_message")
        return None


def is_utterance(body: bytes) -> bool:
    """Return whether an agent said *body* of a conversation, so that it is no turn."""
    try:
        Utterance.model_validate_json(body)
    except ValidationError:
        return False
    return True


def is_answer(body: bytes) -> bool:
    """Return whether *body* of a conversation is a turn of the assistant."""
    # What an agent said is read for sure, and has no field of a turn.
    if not body or is_utterance(body):
        return False
    try:
        return ChatTurn.model_validate_json(body).speaker == "assistant"
    except ValidationError:
        return False


def utterance_of(turn: ChatTurn) -> Utterance:
    """Return *turn* as a message: of `person`, or of the agent that answered; its text is cut to what one holds."""
    at = turn.at if turn.at.tzinfo is not None else turn.at.replace(tzinfo=UTC)
    return Utterance(
        message_id=turn.turn_id,
        speaker=turn.agent_id
        if turn.speaker == "assistant" and turn.agent_id
        else turn.speaker,
        message=_UNSPEAKABLE.sub(" ", turn.text)[:LONGEST_UTTERANCE] or " ",
        time=max(0.0, at.timestamp()),
        user_id=turn.user_id or None,
        own=turn.speaker == "assistant",
    )


def _exact(message: Utterance, body: bytes) -> ExactMessage:
    """Return *message* with the whole text of the turn in *body*; what an agent said is all in it."""
    turn = read_turn(body)
    if turn is None:
        return ExactMessage(message, message.message, None)
    return ExactMessage(message, turn.text, turn.tenant)


def read_turn(body: bytes) -> ChatTurn | None:
    """Return the turn in *body* of a conversation, None for what an agent said."""
    try:
        return ChatTurn.model_validate_json(body)
    except ValidationError:
        return None


def check_summary(text: str) -> None:
    """Raise InvalidInput when *text* cannot be a summary."""
    if not 1 <= len(text) <= LONGEST_SUMMARY:
        raise InvalidInput(
            f"a summary must have 1 to {LONGEST_SUMMARY:,} characters, this has {len(text):,}"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "a summary contains an unpaired surrogate, which is invalid Unicode; send "
            "valid Unicode"
        ) from error


def check_page(before: int | None, count: int) -> tuple[int, int]:
    """Return the number before which to look, 0 for the end, and how many messages to return.

    Raises:
        InvalidInput: a number is out of its range.
    """
    if not 1 <= count <= LARGEST_PAGE:
        raise InvalidInput(f"count must be 1 to {LARGEST_PAGE:,}, this is {count}")
    if before is not None and before < 1:
        raise InvalidInput(
            f"before must be 1 or more, as the page after it says; this is {before}"
        )
    return before or 0, count


def _history(reply: list[Any]) -> History:
    """Return the conversation out of what TAKE returns; own messages that came among the new ones stand before them.

    So do answers of an assistant: who asked has heard them, and who answered has said them.
    """
    _, new, own, digest, first, bodies = reply
    at = max(0, len(bodies) - new)
    is_past = [
        number in own or is_answer(body)
        for number, body in enumerate(bodies[at:], start=first + at)
    ]
    past = [
        *bodies[:at],
        *(body for body, past in zip(bodies[at:], is_past, strict=True) if past),
    ]
    current = [
        body for body, past in zip(bodies[at:], is_past, strict=True) if not past
    ]
    earlier = _readable(past)
    heard = _readable(current)
    return History(
        (*earlier, *heard),
        len(heard),
        _digest(dict(zip(digest[::2], digest[1::2], strict=True))),
    )


def _readable(bodies: Sequence[bytes]) -> list[Utterance]:
    return [one for body in bodies if (one := read(body)) is not None]


def _digest(told: dict[bytes, bytes]) -> Digest:
    by = {
        field[3:].decode(): int(count)
        for field, count in told.items()
        if field.startswith(b"by:")
    }
    since = told.get(b"since")
    until = told.get(b"until")
    summary = told.get(b"summary")
    return Digest(
        count=int(told.get(b"count", 0)),
        speakers=by,
        since=None if since is None else float(since),
        until=None if until is None else float(until),
        summary=None if summary is None else summary.decode(),
        summarised=int(told.get(b"summarised", 0)),
        removals=int(told.get(b"removals", 0)),
    )
