"""From a stream into the table of waiting rows: the body under its owner, by id, and no more.

That is all that happens while a message holds its partition up, so that it is a matter of milliseconds however long a
listener takes. An acknowledgement leaves the body in the stream's files until somebody is forgotten, or the server
begins new ones; who may not wait for that has each message overwritten, at 5 to 20 ms of the server's disk.
"""

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import structlog
from pydantic import ValidationError

from contracts import subjects
from contracts.errors import InvalidInput, MemoryUnavailable, NotAccepted, TaskloreError
from contracts.messages import ChatTurn, ExtractedFacts
from runtime.pull import Delivery, PullEngine
from workers.verdict import dead_letter

log = structlog.get_logger(__name__)

#: Seconds after which a message is offered again that could not be taken in: about what a store needs to restart.
RETURN_S = 1.0
#: Offers of one message after which it is let go although the server did not erase it: it must not hold up the others.
MOST_ERASURES = 5

#: What is said in DEAD of a message that is none of ours.
_UNREADABLE = "unreadable"


class Appends(Protocol):
    """What is needed of `memory.queues.PersonalQueue`."""

    async def append(self, owner: str, rows: Sequence[tuple[str, bytes]]) -> int:
        """Add rows, each once; return how many are new."""


class Erases(Protocol):
    """What is needed of `runtime.erasing.Eraser`."""

    async def erase(self, stream: str, sequence: int) -> object:
        """Overwrite the message on the server's disk; one that is gone already is no error."""


class Keeps(Protocol):
    """What is needed of `runtime.outbox.Outbox`."""

    async def put(
        self, subject: str, body: bytes, message_id: str, *, patience_s: float = 10.0, waits_when_full: bool = False
    ) -> None:
        """Return when *body* is durably stored; raises NotAccepted when it is not."""


class InflowMeter(Protocol):
    """What an inflow counts."""

    def count_turn(self, outcome: str) -> None:
        """Count a turn that is dealt with."""

    def count_dead_letter(self, reason: str) -> None:
        """Count a message that was set aside."""


class Arrived(NamedTuple):
    """Whose rows came, each an id and a body; of somebody anonymous there are none."""

    owner: str
    rows: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Whose:
    """Names in dead letters."""

    agent_id: str
    worker_id: str


class InflowDesk:
    """Takes the messages of *stream* in; fits `runtime.pull.Desk`.

    *appended* is told when something waits. *eraser* overwrites each message on the server's disk; None leaves that to
    whoever forgets a user.
    """

    def __init__(
        self,
        stream: str,
        whose: Whose,
        *,
        queue: Appends,
        eraser: Erases | None,
        outbox: Keeps,
        meter: InflowMeter,
        appended: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._whose = whose
        self._queue = queue
        self._eraser = eraser
        self._outbox = outbox
        self._meter = meter
        self._appended = appended
        self._read = read_turn if stream == subjects.TURNS else read_facts

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Take *batch* in, one message after the other."""
        for delivery in batch:
            try:
                await self._take(delivery)
            except (MemoryUnavailable, NotAccepted) as error:
                log.warning("not_taken_in", stream=self._stream, error=str(error))
                line.hand_back(delivery, RETURN_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
                continue
            if await self._erased(delivery):
                line.settle(delivery)
            else:
                line.hand_back(delivery, RETURN_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter

    async def _take(self, delivery: Delivery) -> None:
        try:
            arrived = self._read(delivery)
            if arrived.rows:
                await self._queue.append(arrived.owner, arrived.rows)
                self._appended()
            elif self._stream == subjects.TURNS:
                self._meter.count_turn("anonymous")
        except InvalidInput as error:
            await self._bury(delivery, error)

    async def _erased(self, delivery: Delivery) -> bool:
        """Return whether the body is off the server's disk, as far as that is wanted, or was tried often enough."""
        if self._eraser is None:
            return True
        try:
            await self._eraser.erase(self._stream, delivery.sequence)
        except TaskloreError as error:
            lets_go = delivery.deliveries >= MOST_ERASURES
            log.warning("not_erased", stream=self._stream, sequence=delivery.sequence, error=str(error), last=lets_go)
            return lets_go
        return True

    async def _bury(self, delivery: Delivery, error: InvalidInput) -> None:
        """Put the message into DEAD; raises NotAccepted when that does not take it."""
        letter = dead_letter(
            delivery,
            reason=_UNREADABLE,
            error=error,
            attempts=delivery.deliveries,
            generation=1,
            agent_id=self._whose.agent_id,
            worker_id=self._whose.worker_id,
        )
        where = subjects.dead(delivery.subject)
        # A stream made anew counts from one again: the body tells two messages of one number apart.
        message_id = f"dead:{where}:{delivery.sequence}:{zlib.crc32(delivery.body):08x}"
        await self._outbox.put(where, letter, message_id, waits_when_full=True)
        self._meter.count_dead_letter(_UNREADABLE)


def read_turn(delivery: Delivery) -> Arrived:
    """Return the turn in *delivery* as a row of its user; no row when nobody known said it.

    Raises:
        InvalidInput: it is no turn, or lies where another user's belong.
    """
    try:
        turn = ChatTurn.model_validate_json(delivery.body)
    except ValidationError as error:
        raise InvalidInput(f"no ChatTurn: {_faults(error)}") from error
    owner = turn.user_id or turn.conversation_id
    _demand_place(delivery, subjects.turns, owner)
    return Arrived(owner, ((turn.turn_id, delivery.body),) if turn.user_id else ())


def read_facts(delivery: Delivery) -> Arrived:
    """Return the facts in *delivery* as rows of their user, each a message with that one fact.

    Raises:
        InvalidInput: they are no facts, or lie where another user's belong.
    """
    try:
        extracted = ExtractedFacts.model_validate_json(delivery.body)
    except ValidationError as error:
        raise InvalidInput(f"no ExtractedFacts: {_faults(error)}") from error
    _demand_place(delivery, subjects.facts, extracted.user_id)
    rows = tuple(
        (fact.fact_id, extracted.model_copy(update={"facts": (fact,)}).model_dump_json(exclude_none=True).encode())
        for fact in extracted.facts
    )
    return Arrived(extracted.user_id, rows)


def _demand_place(delivery: Delivery, place_of: Callable[[str], str], owner: str) -> None:
    """Refuse what lies under another user's token: who may publish there may be held to that by the server."""
    try:
        wanted = place_of(owner)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "the user id holds half of a surrogate pair, which is no text; send valid Unicode"
        ) from error
    if delivery.subject != wanted:
        raise InvalidInput(f"a message for {wanted!r} lies on {delivery.subject!r}; publish it to its user's subject")


def _faults(error: ValidationError) -> str:
    """Return where *error* found what, without a word of what was said."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'body'}: {first['msg']}"
