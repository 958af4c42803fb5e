"""Turns at work: what each teaches is noted, published to FACTS and only then the turn is closed.

A listener may take several turns of one user at once; they then wait a while for more, where a model is to be asked. A
crash between two of these steps asks no model again, since what was learned stands beside the turn; and it doubles no
fact, since a fact is appended once by its id. A turn that waits for a model has what was learned without one published
and noted as such; when it comes back, only what is new is published.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

import structlog
from pydantic import BaseModel, ValidationError

from contracts import subjects
from contracts.errors import MemoryUnavailable, TaskloreError
from contracts.messages import ChatTurn, Fact
from memory.queues.claims import Claim, Closing, Row
from memory.queues.queue import PersonalQueue
from runtime.lease_loop import LeaseLost
from runtime.messaging.outbox import Outbox
from runtime.metrics import Metrics
from workers.context.services import Services
from workers.execution.retry_decision import RetryPolicy
from workers.listening.context import ListenContext
from workers.listening.debounce import Hurries, Patience, Unhurried, Waiting
from workers.listening.declaration import Listener
from workers.listening.fates import demand_harmless, fate_of, is_outage
from workers.listening.lessons import Lesson, read_lesson
from workers.listening.rows import Unreadable
from workers.listening.runs import contained
from workers.listening.tracing import listening
from workers.listening.values import TurnBatch, TurnFacts

log = structlog.get_logger(__name__)

#: Seconds that FACTS has to take what was learned; then the turn waits, and what was learned with it.
PUBLISH_S = 10.0
#: Turns of one conversation that are shown before those of a batch.
BEFORE = 8


@dataclass(frozen=True, slots=True)
class _Heard:
    """A row that can be worked on: its turn, and what an earlier run noted beside it."""

    row: Row
    turn: ChatTurn
    lesson: Lesson | None


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
        patience: When turns of a listener that takes several are a batch, while a model is configured.
        hurries: Who does not wait for that.
    """

    def __init__(
        self,
        listener: Listener,
        settings: BaseModel | None,
        *,
        queue: PersonalQueue,
        outbox: Outbox,
        services: Services,
        meter: Metrics,
        retry: RetryPolicy,
        agent_files: Path | None = None,
        patience: Patience | None = None,
        hurries: Hurries | None = None,
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
        patience = patience or Patience()
        self._most = patience.turns if listener.is_batched else 1
        self._hurries = hurries or Unhurried()
        self._waiting = Waiting(patience, self._hurries, services.now)

    async def work(self, claim: Claim, is_leaving: Callable[[], bool], rests: int) -> float:
        """Work on the turns of *claim* in order; see `workers.listening.outflow.Work`."""
        groups = deque(self._grouped(claim.rows))
        parted = set[str]()
        while groups and not is_leaving():
            group = groups.popleft()
            heard = await self._readable(claim, group)
            if not heard:
                continue
            # What is left over of several batches waits as the first one did.
            pause_s = await self._pause_s(claim, group, heard)
            if pause_s > 0 and group[0].row_id not in parted:
                return pause_s
            try:
                with ExitStack() as spans:
                    for one in heard:
                        spans.enter_context(listening("turns", one.row))
                    await self._learn(claim, heard)
            except (LeaseLost, MemoryUnavailable):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a listener raises becomes the fate of its turn
                # One of them is to blame: alone it harms nobody.
                if len(heard) > 1 and not is_outage(error):
                    groups.extendleft([[one.row] for one in reversed(heard)])
                    parted |= {one.row.row_id for one in heard}
                    continue
                ended_s = await self._end(claim, [one.row for one in heard], error, rests)
                if ended_s is not None:
                    return ended_s
        return 0.0

    def _grouped(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Return *rows* in order, in groups of as many as are learned from at once; those that failed before alone."""
        groups: list[list[Row]] = []
        for row in rows:
            is_joining = bool(groups) and len(groups[-1]) < self._most and not _is_suspect(row)
            if is_joining and not _is_suspect(groups[-1][0]):
                groups[-1].append(row)
            else:
                groups.append([row])
        return groups

    async def _readable(self, claim: Claim, rows: Sequence[Row]) -> list[_Heard]:
        """Return the turns of *rows* that can be worked on; the others are closed."""
        heard: list[_Heard] = []
        for row in rows:
            try:
                demand_harmless(row, self._allowed)
                turn = _read_turn(row.body, claim.owner)
                lesson = read_lesson(row)
            except Unreadable as error:
                log.warning("turn_not_learned", listener=self._listener.label, fate="failed", error="Unreadable")
                await self._close(claim, Closing(row.row_id, "failed", f"Unreadable: {error}"))
                self._meter.count_turn("failed")
                continue
            if turn.user_id is None:
                # There is nobody to remember it for.
                await self._close(claim, Closing(row.row_id, "done", "nobody known said it"))
                self._meter.count_turn("anonymous")
                continue
            heard.append(_Heard(row, turn, lesson))
        return heard

    async def _pause_s(self, claim: Claim, group: Sequence[Row], heard: Sequence[_Heard]) -> float:
        """Return for how long *heard* wait for more turns; only what a model is asked about does."""
        is_fresh = all(one.row.note is None and not _is_suspect(one.row) for one in heard)
        if not self._listener.is_batched or not is_fresh or not self._services.llm.configured:
            return 0.0
        if len(group) >= self._most:
            return 0.0
        return await self._waiting.pause_s(claim.owner, [one.turn for one in heard])

    async def _learn(self, claim: Claim, heard: Sequence[_Heard]) -> None:
        """Bring turns to their end."""
        untaught = [one for one in heard if one.lesson is None or one.lesson.is_published]
        taught = await self._taught(claim, untaught) if untaught else {}
        for one in heard:
            lesson = taught.get(one.turn.turn_id) or one.lesson
            if lesson is not None:
                self._meter.count_turn(await self._publish(claim, one.row, lesson))
        if not any(lesson.facts for lesson in taught.values()):
            await self._hurries.calm(claim.owner)

    async def _publish(self, claim: Claim, row: Row, lesson: Lesson) -> str:
        """Publish what is new of *lesson*, close its turn, and return how that is counted."""
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

    async def _taught(self, claim: Claim, heard: Sequence[_Heard]) -> dict[str, Lesson]:
        """Return what the listener learns from each turn beside what it learned before, noted unless that is nothing.

        All is noted before any of it is published: of a batch that was answered nothing is asked again.
        """
        known = {one.turn.turn_id: one.lesson.facts for one in heard if one.lesson is not None}
        runs = max(one.lesson.runs if one.lesson is not None else 0 for one in heard)
        attempt = max(one.row.attempts for one in heard) + runs + 1
        turns = tuple(one.turn for one in heard)
        before = await self._before(turns) if self._listener.is_batched else ()
        context = self._context(claim.owner, attempt, known.get(turns[0].turn_id, ()) if len(turns) == 1 else ())
        batch = TurnBatch(claim.owner, turns, before, known)
        learned = {one.turn_id: one for one in await contained(self._listener, self._listener.learn(batch, context))}
        lessons: dict[str, Lesson] = {}
        for one in heard:
            found = learned.get(one.turn.turn_id, TurnFacts(one.turn.turn_id))
            _demand_names(found.facts)
            lessons[one.turn.turn_id] = _lesson_of(one, found, claim.owner)
        for one in heard:
            lesson = lessons[one.turn.turn_id]
            if not lesson.is_published or lesson.waits_for is not None:
                await self._note(claim, one.row, lesson)
        return lessons

    async def _before(self, turns: Sequence[ChatTurn]) -> tuple[ChatTurn, ...]:
        """Return the other turns of the conversations of *turns*, up to the last of these, oldest first."""
        own, found = {turn.turn_id for turn in turns}, list[ChatTurn]()
        for conversation in dict.fromkeys(turn.conversation_id for turn in turns):
            last = max(turn.at for turn in turns if turn.conversation_id == conversation)
            recent = await self._services.recent_turns(conversation, BEFORE + 4 * len(turns))
            found += [
                turn
                for turn in map(_zoned, recent)
                # In a conversation of several people the words of another one are not shown.
                if turn.at <= last and turn.turn_id not in own and turn.user_id in (None, turns[0].user_id)
            ]
        return tuple(sorted(found, key=lambda turn: turn.at))

    async def _end(self, claim: Claim, rows: Sequence[Row], error: Exception, rests: int) -> float | None:
        """Close *rows* as what *error* makes them; return for how long their user rests, None to go on."""
        now, attempt = self._services.now(), max(row.attempts for row in rows) + 1
        fate = fate_of(error, attempt=attempt, allowed=self._allowed, rests=rests, retry=self._retry, now=now)
        log.warning("turn_not_learned", listener=self._listener.label, fate=fate.state, error=type(error).__name__)
        if fate.state == "outage":
            return fate.pause_s
        for row in rows:
            if fate.state == "retry":
                self._meter.count_listen_retry(claim.queue)
                not_before_ms = int((now.timestamp() + fate.pause_s) * 1000)
                await self._close(claim, Closing(row.row_id, "retry", fate.reason, not_before_ms=not_before_ms))
            else:
                await self._close(claim, Closing(row.row_id, fate.state, fate.reason))
                self._meter.count_turn(fate.state)
        # What follows must not overtake what runs again.
        return 0.0 if fate.state == "retry" else None

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


def _is_suspect(row: Row) -> bool:
    return row.attempts > 0 or row.crashes > 0


def _lesson_of(heard: _Heard, found: TurnFacts, owner: str) -> Lesson:
    """Return what is noted beside a turn: what was known before, and what is new of *found*."""
    before, turn = heard.lesson, heard.turn
    known = before.facts if before is not None else ()
    names = {fact.fact_id for fact in known}
    return Lesson(
        turn_id=turn.turn_id,
        conversation_id=turn.conversation_id,
        user_id=owner,
        facts=(*known, *(fact for fact in found.facts if fact.fact_id not in names)),
        # When it was said, not when it was understood: a fact that comes late is no newer for that.
        at=turn.at,
        published=len(known),
        waits_for=found.waits_for,
        runs=(before.runs if before is not None else 0) + 1,
    )


def _zoned(turn: ChatTurn) -> ChatTurn:
    """Return *turn* with a time in UTC where its time says no zone."""
    return turn if turn.at.tzinfo is not None else turn.model_copy(update={"at": turn.at.replace(tzinfo=UTC)})


def _read_turn(body: bytes, owner: str) -> ChatTurn:
    """Return the turn of *body*, which is one of *owner* or of nobody known."""
    try:
        turn = _zoned(ChatTurn.model_validate_json(body))
    except ValidationError as error:
        # Without a word of it: the reason is read in lists.
        raise Unreadable(f"the row holds no turn ({error.error_count()} faults)") from None
    if turn.user_id not in (None, owner):
        raise Unreadable("the turn is not one of this user")
    return turn


def _demand_names(facts: tuple[Fact, ...]) -> None:
    names = [fact.fact_id for fact in facts]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TaskloreError(f"two facts of one turn are called {twice[0]!r}; a fact is kept once by its id")
