"""Take messages of a stream into the table of waiting rows: each body under its owner, by id.

Reading a partition, and burying unreadable messages, is in `tasklore.runtime.messaging.partitions`.
"""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import fault_of
from tasklore.contracts.messages import ChatTurn, ExtractedFacts
from tasklore.contracts.traces import read_context
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.partitions import Owner, PartitionHandler
from tasklore.runtime.messaging.pull import Delivery
from tasklore.runtime.messaging.signatures import Publishers
from tasklore.runtime.metrics import Metrics
from tasklore.workers.listening.rows import fact_rows
from tasklore.workers.listening.turn_episodes import episode_of, in_zone


class Arrived(NamedTuple):
    """Rows of *owner*, each an id and a body, when they were said, and the turn to be kept.

    An anonymous owner has no rows.
    """

    owner: str
    rows: tuple[tuple[str, bytes], ...]
    said: datetime
    episode: Episode | None = None


class InflowHandler(PartitionHandler):
    """Appends the messages of *stream* to *queue*, turns to *episodes* first; calls *appended* when rows wait."""

    def __init__(
        self,
        stream: str,
        whose: Owner,
        *,
        queue: PersonalQueue,
        eraser: Eraser | None,
        outbox: Outbox,
        meter: Metrics,
        appended: Callable[[], None],
        publishers: Publishers | None = None,
        episodes: Episodes | None = None,
        spoken: Callable[[str], None] = lambda _owner: None,
    ) -> None:
        super().__init__(
            stream,
            self._append,
            whose,
            outbox=outbox,
            meter=meter,
            eraser=eraser,
            publishers=publishers,
        )
        self._queue = queue
        self._episodes = episodes
        self._spoken = spoken
        self._turns = meter
        self._appended = appended
        self._reads_turns = stream == subjects.TURNS

    async def _append(self, delivery: Delivery) -> None:
        arrived = read_turn(delivery) if self._reads_turns else read_facts(delivery)
        if arrived.episode is not None and self._episodes is not None:
            await self._episodes.append(arrived.owner, [arrived.episode])
            self._spoken(arrived.owner)
        if arrived.rows:
            await self._queue.append(
                arrived.owner,
                arrived.rows,
                trace=str(read_context(delivery.headers) or ""),
                said=arrived.said,
            )
            self._appended()
        elif self._reads_turns:
            self._turns.count_turn("anonymous")


def read_turn(delivery: Delivery) -> Arrived:
    """Return the turn in *delivery* as a row of its user; no row for an anonymous one.

    Raises:
        InvalidInput: it is no turn, or lies where another user's belong.
    """
    try:
        turn = ChatTurn.model_validate_json(delivery.body)
    except ValidationError as error:
        raise InvalidInput(f"no ChatTurn: {_faults(error)}") from error
    owner = turn.user_id or turn.conversation_id
    _demand_place(delivery, subjects.turns, owner)
    said = in_zone(turn.at)
    if not turn.user_id:
        return Arrived(owner, (), said)
    return Arrived(owner, ((turn.turn_id, delivery.body),), said, episode_of(turn))


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
    return Arrived(extracted.user_id, fact_rows(extracted), in_zone(extracted.at))


def _demand_place(
    delivery: Delivery, place_of: Callable[[str], str], owner: str
) -> None:
    """Refuse what lies under another user's token: who may publish there may be held to that by the server."""
    try:
        wanted = place_of(owner)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "the user id contains an unpaired surrogate, which is invalid Unicode; "
            "send valid Unicode"
        ) from error
    if delivery.subject != wanted:
        raise InvalidInput(
            f"a message for {wanted!r} lies on {delivery.subject!r}; publish it to its user's subject"
        )


def _faults(error: ValidationError) -> str:
    """Return the field and the fault of *error*, without a word of the message."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[
        0
    ]
    return fault_of(first)
