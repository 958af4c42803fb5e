"""The index of agent cards: read from the bucket, first all of them, then each change.

Any program may put anything into the bucket: a value that is no card, or none that a sentence could be read into, is
left out, and costs the other agents nothing.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing

import structlog
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput, TaskloreError
from tasklore.contracts.faults import fault_of
from tasklore.contracts.messages import AgentCard
from tasklore.runtime.messaging.buckets import (
    BucketState,
    read_bucket,
    read_bucket_by_page,
    state_of_bucket,
)
from tasklore.runtime.messaging.direct import Line
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.routing import problem_of

log = structlog.get_logger(__name__)

#: Cards that are warned about, each once, so that rubbish in the bucket does not fill the log.
_MOST_WARNINGS = 1000

#: Called with the id of a card that is left out, and the reason.
Warn = Callable[[str, str], None]


class CardIndex:
    """The catalogue as of now; `catalogue` is replaced as a whole by each change.

    *refused* is called once for each card that is left out. *own* is the card of the supervisor's own tasks: no other
    one of that name is learned.
    """

    def __init__(
        self, refused: Callable[[], None] = lambda: None, own: AgentCard | None = None
    ) -> None:
        self._own = own
        self.catalogue = self._make_catalogue([])
        self._refused = refused
        self._loading = asyncio.Lock()
        self._read: BucketState | None = None
        #: Changes since the bucket was last read.
        self._heard: list[AgentCard | str] = []
        self._warned: dict[str, str] = {}

    def learn(self, card: AgentCard, key: str | None = None) -> None:
        """Add the card of an agent, put under *key* (None is its own name).

        A lower version than the known one is ignored, and so is an unreadable card, or that of another agent.
        """
        key = card.agent_id if key is None else key
        problem = _misplacement(card, key) or self._clash(key) or problem_of(card)
        if problem is not None:
            self._warn(key, problem)
            return
        self._heard.append(card)
        self.catalogue = self.catalogue.with_card(card)
        log.info(
            "agent_known",
            agent=card.agent_id,
            version=card.version,
            tasks=len(card.tasks),
        )

    def forget(self, agent_id: str) -> None:
        """Remove an agent that was retired."""
        if self._clash(agent_id) is not None:
            return
        self._heard.append(agent_id)
        self.catalogue = self.catalogue.without(agent_id)
        log.info("agent_retired", agent=agent_id)

    async def load(self, line: Line) -> None:
        """Read the whole bucket anew: at the start, after a lost connection, and now and then.

        Raises:
            Unreachable: the bucket did not answer.
        """
        async with self._loading:
            state = await state_of_bucket(line, subjects.AGENTS_BUCKET)
            if state == self._read and not self._heard:
                return
            self._read = None
            self._heard.clear()
            cards = await read_cards(line, self._warn)
            problems = await asyncio.to_thread(
                lambda: {
                    card.agent_id: problem
                    for card in cards
                    if (problem := problem_of(card)) is not None
                }
            )
            for agent_id, problem in problems.items():
                self._warn(agent_id, problem)
            catalogue = self._make_catalogue(
                card for card in cards if card.agent_id not in problems
            )
            # A notice that came meanwhile may be newer than the page that was read: it must not be undone.
            for change in self._heard:
                catalogue = (
                    catalogue.without(change)
                    if isinstance(change, str)
                    else catalogue.with_card(change)
                )
            if catalogue.cards != self.catalogue.cards:
                self.catalogue = catalogue
            self._read = state

    def _make_catalogue(self, cards: Iterable[AgentCard]) -> Catalogue:
        others = [card for card in cards if self._clash(card.agent_id) is None]
        return Catalogue(others if self._own is None else [self._own, *others])

    def _clash(self, agent_id: str) -> str | None:
        is_ours = self._own is not None and self._own.agent_id == agent_id
        return (
            "that name stands for the pipelines declared here; give the agent another one"
            if is_ours
            else None
        )

    def _warn(self, agent_id: str, problem: str) -> None:
        """Warn of a card once, although the bucket is read again and again."""
        if self._warned.get(agent_id) != problem and len(self._warned) < _MOST_WARNINGS:
            self._warned[agent_id] = problem
            log.warning("card_left_out", agent=agent_id, problem=problem)
            self._refused()


async def read_cards(
    line: Line, warn: Warn = lambda _agent_id, _problem: None
) -> list[AgentCard]:
    """Return every readable card in the bucket, by agent id; *warn* is called for each other one.

    Raises:
        Unreachable: the bucket did not answer, or does not exist yet.
    """
    cards: dict[str, AgentCard] = {}
    async with aclosing(read_bucket_by_page(line, subjects.AGENTS_BUCKET)) as pages:
        async for page in pages:
            # A page of large cards takes longer than others should wait.
            for key, found in (await asyncio.to_thread(_read_page, page)).items():
                cards.pop(key, None)
                if isinstance(found, AgentCard):
                    cards[key] = found
                elif found is not None:
                    warn(key, found)
    return [cards[key] for key in sorted(cards)]


def _read_page(page: Mapping[str, bytes | None]) -> dict[str, AgentCard | str | None]:
    """Return the card, or its fault, under each key of *page*; None for a deleted one."""
    found: dict[str, AgentCard | str | None] = {}
    for key, body in page.items():
        try:
            found[key] = _read_card(key, body) if body is not None else None
        except InvalidInput as error:
            found[key] = str(error)
    return found


def _read_card(key: str, body: bytes) -> AgentCard:
    """Return the card that lies under *key*.

    Raises:
        InvalidInput: it is none, or that of another agent.
    """
    if len(body) > subjects.MAX_BODY:
        raise InvalidInput(f"it has {len(body):,} bytes; keep to {subjects.MAX_BODY:,}")
    try:
        card = AgentCard.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(
            include_url=False, include_input=False, include_context=False
        )[0]
        more = (
            f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        )
        raise InvalidInput(f"{fault_of(first)}{more}") from error
    if (problem := _misplacement(card, key)) is not None:
        raise InvalidInput(problem)
    return card


def _misplacement(card: AgentCard, key: str) -> str | None:
    """Return the fault of *card* under *key*, None when that is its own."""
    return (
        None
        if card.agent_id == key
        else f"it is the card of {card.agent_id!r}; put it under that key"
    )


async def has_worker(line: Line, agent_id: str) -> bool:
    """Return whether a worker of *agent_id* is alive; a dead one counts for 15 s. True where it is unknown."""
    try:
        alive = await read_bucket(line, subjects.WORKERS_BUCKET)
    except TaskloreError as error:
        log.info("workers_not_read", error=str(error))
        return True
    return any(key.partition(".")[0] == agent_id for key in alive)
