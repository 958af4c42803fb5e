"""Turns at work: what each teaches is noted, published to FACTS and only then the turn is closed.

A crash between two of these steps asks no model again, since what was learned stands beside the turn; and it doubles no
fact, since a fact is appended once by its id. A turn that waits for a model has what was learned without one published
and noted as such; when it comes back, only what is new is published.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import structlog
from pydantic import BaseModel, ValidationError

from contracts import subjects
from contracts.errors import MemoryUnavailable, TaskloreError
from contracts.messages import ChatTurn, Fact
from memory.claims import Claim, Closing, Row
from workers.context import Services
from workers.judgement import RetryPolicy
from workers.listening.context import ListenContext
from workers.listening.declaration import Listener
from workers.listening.fates import demand_harmless, fate_of
from workers.listening.lessons import Lesson, read_lesson
from workers.listening.rows import ClosesRows, LeaseLost, ListenMeter, Unreadable
from workers.listening.runs import contained
from workers.listening.spans import listening

log = structlog.get_logger(__name__)

#: Seconds that FACTS has to take what was learned; then the turn waits, and what was learned with it.
PUBLISH_S = 10.0


class Publishes(Protocol):
    """What is needed of `runtime.outbox.Outbox`."""

    async def put(self, subject: str, body: bytes, message_id: str, *, patience_s: float = 10.0) -> None:
        """Return when *body* is durably stored; raises NotAccepted when it is not."""


class TurnWork:
    """Works on the turns of one user at a time.

    Args:
        listener: Whose function learns from them.
        settings: Those of its agent.
        queue: Where the turns lie.
        outbox: The way to FACTS.
        services: What a context lends.
        meter: Counts what became of turns.
        retry: When a turn runs again.
        agent_files: The operator's folder over the agents' own files.
    """

    def __init__(
        self,
        listener: Listener,
        settings: BaseModel | None,
        *,
        queue: ClosesRows,
        outbox: Publishes,
        services: Services,
        meter: ListenMeter,
        retry: RetryPolicy,
        agent_files: Path | None = None,
    ) -> None:
        self._listener = listener
        self._settings = settings
        self._queue = queue
        self._outbox = outbox
        self._services = services
        self._meter = meter
        self._retry = retry
        self._agent_files = agent_files
        self._allowed = listener.attempts or 1

    async def work(self, claim: Claim, is_leaving: Callable[[], bool], rests: int) -> float:
        """Work on the turns of *claim* one by one; see `workers.listening.outflow.Work`."""
        for row in claim.rows:
            if is_leaving():
                break
            try:
                with listening("turns", row):
                    outcome = await self._learn(claim, row)
            except (LeaseLost, MemoryUnavailable):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a listener raises becomes the fate of its turn
                pause_s = await self._end(claim, row, error, rests)
                if pause_s is not None:
                    return pause_s
                continue
            self._meter.count_turn(outcome)
        return 0.0

    async def _learn(self, claim: Claim, row: Row) -> str:
        """Bring one turn to its end, and return how that is counted."""
        demand_harmless(row, self._allowed)
        turn = _read_turn(row.body)
        if turn.user_id is None:
            # There is nobody to remember it for.
            await self._close(claim, Closing(row.row_id, "done", "nobody known said it"))
            return "anonymous"
        if turn.user_id != claim.owner:
            raise Unreadable("the turn is not one of this user")
        lesson = read_lesson(row)
        if lesson is None or lesson.is_published:
            lesson = await self._taught(claim, row, turn, lesson)
        if not lesson.is_published:
            where = subjects.facts(claim.owner)
            await self._outbox.put(where, lesson.as_message(), lesson.message_id, patience_s=PUBLISH_S)
            if lesson.waits_for is not None:
                # Until then it may be published again, which is harmless while the facts' rows are known.
                await self._note(claim, row, lesson.as_published())
        if lesson.waits_for is not None:
            await self._close(claim, Closing(row.row_id, "needs_model", lesson.waits_for))
            return "needs_model"
        await self._close(claim, Closing(row.row_id, "done", "learned" if lesson.facts else "nothing to learn"))
        return "learned" if lesson.facts else "nothing"

    async def _taught(self, claim: Claim, row: Row, turn: ChatTurn, before: Lesson | None) -> Lesson:
        """Return what the listener learns from *turn* beside what it learned *before*, noted unless that is nothing."""
        known, runs = (before.facts, before.runs) if before is not None else ((), 0)
        context = self._context(claim.owner, row.attempts + runs + 1, known)
        facts = await contained(self._listener, self._listener.learn(turn, context))
        _demand_names(facts)
        names = {fact.fact_id for fact in known}
        new = tuple(fact for fact in facts if fact.fact_id not in names)
        lesson = Lesson(
            turn_id=turn.turn_id,
            conversation_id=turn.conversation_id,
            user_id=claim.owner,
            facts=(*known, *new),
            # What is found later was said no later: newer turns may have been dealt with meanwhile.
            at=before.at if before is not None else self._services.now(),
            published=len(known),
            waits_for=context.waits_for,
            runs=runs + 1,
        )
        if new or lesson.waits_for is not None:
            await self._note(claim, row, lesson)
        return lesson

    async def _end(self, claim: Claim, row: Row, error: Exception, rests: int) -> float | None:
        """Close the turn as what *error* makes it; return for how long its user rests, None when the next may go on."""
        now, attempt = self._services.now(), row.attempts + 1
        fate = fate_of(error, attempt=attempt, allowed=self._allowed, rests=rests, retry=self._retry, now=now)
        log.warning("turn_not_learned", listener=self._listener.label, fate=fate.state, error=type(error).__name__)
        if fate.state == "outage":
            return fate.pause_s
        if fate.state == "retry":
            self._meter.count_listen_retry(claim.queue)
            not_before_ms = int((now.timestamp() + fate.pause_s) * 1000)
            await self._close(claim, Closing(row.row_id, "retry", fate.reason, not_before_ms=not_before_ms))
            # What follows must not overtake it.
            return 0.0
        await self._close(claim, Closing(row.row_id, fate.state, fate.reason))
        self._meter.count_turn(fate.state)
        return None

    async def _note(self, claim: Claim, row: Row, lesson: Lesson) -> None:
        if not await self._queue.note(claim, row.row_id, lesson.as_note()):
            raise LeaseLost("the lease ended while a turn was worked on")

    async def _close(self, claim: Claim, closing: Closing) -> None:
        if not await self._queue.close(claim, [closing]):
            raise LeaseLost("the lease ended while a turn was worked on")

    def _context(self, user_id: str, attempt: int, known: Sequence[Fact]) -> ListenContext:
        deadline = self._listener.deadline
        return ListenContext(
            user_id,
            self._services,
            settings=self._settings,
            attempt=attempt,
            deadline=None if deadline is None else self._services.now() + deadline,
            agent_files=self._agent_files,
            count_refused=self._meter.count_edit_refused,
            known_facts=known,
        )


def _read_turn(body: bytes) -> ChatTurn:
    try:
        return ChatTurn.model_validate_json(body)
    except ValidationError as error:
        # Without a word of it: the reason is read in lists.
        raise Unreadable(f"the row holds no turn ({error.error_count()} faults)") from None


def _demand_names(facts: tuple[Fact, ...]) -> None:
    names = [fact.fact_id for fact in facts]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TaskloreError(f"two facts of one turn are called {twice[0]!r}; a fact is kept once by its id")
