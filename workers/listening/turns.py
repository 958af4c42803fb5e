"""Work on turns: the facts of each are appended to the rows of facts in the step that closes the turn.

A listener may take several turns of one user at once; they then wait a while for more, where a model is to be asked. A
crash before that step leaves nothing behind, one after it leaves nothing to do. A turn that waits for a model has the
facts that were learned without one appended and noted beside it; when it comes back, only new ones are appended.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC
from typing import Literal

import structlog
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import (
    LlmCutOff,
    LlmMalformed,
    LlmRefused,
    MemoryUnavailable,
    MessageTooLarge,
    TaskloreError,
)
from tasklore.contracts.messages import ChatTurn, ExtractedFacts
from tasklore.contracts.traces import TraceContext
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.queues.claims import Claim, Closing, NewRow, QueueRow
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.claim_loop import LeaseLost
from tasklore.workers.listening.debounce import BatchLimits, Debounce
from tasklore.workers.listening.row_outcomes import (
    Unreadable,
    demand_harmless,
    fate_of,
    is_outage,
    run_contained,
)
from tasklore.workers.listening.rows import (
    LEASE_ENDED,
    RowWork,
    fact_rows,
    group_rows,
    is_suspect,
)
from tasklore.workers.listening.tracing import process_span, send_span
from tasklore.workers.listening.unsettled_facts import FactSettling
from tasklore.workers.listening.values import TurnBatch, TurnFacts

log = structlog.get_logger(__name__)

#: How a reason begins by which a model answered and could not be read, which each time is paid for.
_UNREAD = tuple(one.__name__ for one in (LlmMalformed, LlmCutOff, LlmRefused))
#: Runs up to which it is asked each time, then at each power of two, and at least once a day of pauses of 5 minutes.
_OFTEN = 8
_RARELY = 288
#: Turns of one conversation that are shown before those of a batch.
BEFORE = 8


class Lesson(ExtractedFacts):
    """The facts learned from one turn so far, as they are noted beside it while it waits for a model.

    The first `published` of them are rows of facts, or were: all, unless a worker of 0.2 left the note. `waits_for` is
    why a model is still to be asked, None when all is learned. `runs` counts those of the listener.
    """

    published: int = 0
    waits_for: str | None = None
    runs: int = 1

    @property
    def is_handed_over(self) -> bool:
        """Whether all facts are rows."""
        return self.published >= len(self.facts)

    @property
    def is_asked_again(self) -> bool:
        """Whether a model is asked this time: one whose answers could not be read is, less and less often.

        While it is away it costs nothing, and is asked each time.
        """
        is_unread = (self.waits_for or "").startswith(_UNREAD)
        is_due = self.runs & (self.runs - 1) == 0 or self.runs % _RARELY == 0
        return not is_unread or self.runs < _OFTEN or is_due

    @property
    def outcome(self) -> Literal["needs_model", "learned", "nothing"]:
        """The label that counts its turn."""
        if self.waits_for is not None:
            return "needs_model"
        return "learned" if self.facts else "nothing"

    def as_note(self) -> bytes:
        """Return the note beside the turn, once all facts are rows."""
        noted = self.model_copy(update={"published": len(self.facts)})
        return noted.model_dump_json(exclude_none=True).encode()

    def rows_left(self, trace: str) -> list[NewRow]:
        """Return the facts that are no rows yet as such, in the trace that *trace* spells.

        Raises:
            MessageTooLarge: they have more than 960 KiB.
        """
        extracted = ExtractedFacts(
            turn_id=self.turn_id,
            conversation_id=self.conversation_id,
            user_id=self.user_id,
            facts=self.facts[self.published :],
            at=self.at,
            tenant=self.tenant,
        )
        rows = fact_rows(extracted)
        size = sum(len(body) for _, body in rows)
        if size > subjects.MAX_BODY:
            raise MessageTooLarge(
                f"facts of one turn have {size} bytes, more than {subjects.MAX_BODY}; return fewer or shorter ones"
            )
        return [
            NewRow(row_id=fact_id, body=body, trace=trace) for fact_id, body in rows
        ]


def read_lesson(row: QueueRow) -> Lesson | None:
    """Return the lesson noted beside *row*, None without a note.

    Raises:
        Unreadable: that is no lesson.
    """
    if row.note is None:
        return None
    try:
        return Lesson.model_validate_json(row.note)
    except ValidationError as error:
        # Without a word of it: the reason is read in lists.
        raise Unreadable(
            f"the row's note holds no facts ({error.error_count()} faults)"
        ) from None


@dataclass(frozen=True, slots=True)
class _Heard:
    """A row that can be worked on: its turn, and the lesson that an earlier run noted beside it."""

    row: QueueRow
    turn: ChatTurn
    lesson: Lesson | None


@dataclass
class TurnWork(RowWork):
    """Works on the turns of one user at a time, and appends their facts to *facts*; then *handed_over* is called.

    *patience* says when turns of a listener that takes several are a batch, while a model is configured, and *settling*
    for how long a batch waits for the facts of the one before; None: not at all. *notices* know for whose reply not to
    wait; None: for no reply.
    """

    facts: PersonalQueue = field(kw_only=True)
    handed_over: Callable[[], None] = field(default=lambda: None, kw_only=True)
    patience: BatchLimits = field(default_factory=BatchLimits, kw_only=True)
    settling: FactSettling | None = field(default=None, kw_only=True)
    notices: Notices | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._most = self.patience.turns if self.listener.is_batched else 1
        self._debounce = Debounce(self.patience, self.notices, self.services.now)

    async def work(
        self, claim: Claim, is_leaving: Callable[[], bool], rests: int
    ) -> float:
        """Work on the turns of *claim* in order; see `tasklore.workers.listening.outflow.QueueWork`."""
        groups = deque(group_rows(claim.rows, lambda row: row, self._most))
        parted = set[str]()
        while groups and not is_leaving():
            group = groups.popleft()
            heard = await self._read(claim, group)
            if not heard:
                continue
            # The rest of several batches waits as the first one did.
            pause_s = await self._pause_s(claim, group, heard)
            if pause_s > 0 and group[0].row_id not in parted:
                return pause_s
            try:
                with ExitStack() as spans:
                    causes = [
                        spans.enter_context(process_span("turns", one.row))
                        for one in heard
                    ]
                    await self._learn(claim, heard, causes)
            except (LeaseLost, MemoryUnavailable):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a listener raises becomes the fate of its turn
                # One of them is to blame: alone it harms no other.
                if len(heard) > 1 and not is_outage(error):
                    groups.extendleft([[one.row] for one in reversed(heard)])
                    parted |= {one.row.row_id for one in heard}
                    continue
                rest_s = await self._end(
                    claim, [one.row for one in heard], error, rests
                )
                if rest_s is not None:
                    return rest_s
        return 0.0

    async def _read(self, claim: Claim, rows: Sequence[QueueRow]) -> list[_Heard]:
        """Return the turns of *rows* that can be worked on; the others are closed."""
        heard: list[_Heard] = []
        for row in rows:
            try:
                demand_harmless(row, self.max_attempts)
                turn = _read_turn(row.body, claim.owner)
                lesson = read_lesson(row)
            except Unreadable as error:
                log.warning(
                    "turn_not_learned",
                    listener=self.listener.label,
                    fate="failed",
                    error="Unreadable",
                )
                await self.close(
                    claim,
                    [
                        Closing(
                            row_id=row.row_id,
                            state="failed",
                            reason=f"Unreadable: {error}",
                        )
                    ],
                )
                self.meter.count_turn("failed")
                continue
            if turn.user_id is None:
                # There is no user to remember it for.
                await self.close(
                    claim,
                    [
                        Closing(
                            row_id=row.row_id,
                            state="done",
                            reason="nobody known said it",
                        )
                    ],
                )
                self.meter.count_turn("anonymous")
                continue
            heard.append(_Heard(row, turn, lesson))
        return heard

    async def _pause_s(
        self, claim: Claim, group: Sequence[QueueRow], heard: Sequence[_Heard]
    ) -> float:
        """Return for how long *heard* wait for more turns; only turns for a model do."""
        is_fresh = all(
            one.row.note is None and not is_suspect(one.row) for one in heard
        )
        if (
            not self.listener.is_batched
            or not is_fresh
            or not self.services.llm.configured
        ):
            return 0.0
        if self.settling is not None:
            unsettled_s = await self.settling.pause_s(claim.owner)
            if unsettled_s > 0:
                return unsettled_s
        if len(group) >= self._most:
            return 0.0
        return await self._debounce.pause_s(claim.owner, [one.turn for one in heard])

    async def _learn(
        self,
        claim: Claim,
        heard: Sequence[_Heard],
        causes: Sequence[TraceContext | None],
    ) -> None:
        """Bring turns to their end; *causes* are the traces of what becomes of each."""
        # Those wait on; that they came up is counted.
        kept = {
            one.turn.turn_id: one.lesson.model_copy(
                update={"runs": one.lesson.runs + 1}
            )
            for one in heard
            if one.lesson is not None
            and not (one.lesson.is_handed_over and one.lesson.is_asked_again)
        }
        new = [one for one in heard if one.turn.turn_id not in kept]
        found = await self._ask(claim.owner, new) if new else {}
        lessons = [(kept | found)[one.turn.turn_id] for one in heard]
        closings = [
            _closing_of(one.row, lesson)
            for one, lesson in zip(heard, lessons, strict=True)
        ]
        with ExitStack() as sending:
            rows = [
                row
                for lesson, cause in zip(lessons, causes, strict=True)
                if not lesson.is_handed_over
                for row in lesson.rows_left(
                    sending.enter_context(send_span("facts", cause))
                )
            ]
            await self._hand_over(claim, closings, rows)
        for lesson in lessons:
            self.meter.count_turn(lesson.outcome)
        if self.notices is not None and not any(
            lesson.facts for lesson in found.values()
        ):
            await self.notices.calm(claim.owner)

    async def _hand_over(
        self, claim: Claim, closings: Sequence[Closing], rows: Sequence[NewRow]
    ) -> None:
        """Append *rows* of facts and close turns of *claim*, in one step.

        Raises:
            LeaseLost: another process has claimed the turns; nothing was changed.
        """
        if not rows:
            await self.close(claim, closings)
            return
        if not await self.facts.take_over(claim, closings, rows):
            raise LeaseLost(LEASE_ENDED)
        if self.settling is not None:
            self.settling.note(claim.owner, [row.row_id for row in rows])
        self.handed_over()

    async def _ask(self, owner: str, heard: Sequence[_Heard]) -> dict[str, Lesson]:
        """Return the lessons of *heard* by turn id: facts of earlier runs and those that the listener finds now."""
        known = {
            one.turn.turn_id: one.lesson.facts
            for one in heard
            if one.lesson is not None
        }
        runs = max(one.lesson.runs if one.lesson is not None else 0 for one in heard)
        attempt = max(one.row.attempts for one in heard) + runs + 1
        turns = tuple(one.turn for one in heard)
        before = await self._before(turns) if self.listener.is_batched else ()
        known_facts = known.get(turns[0].turn_id, ()) if len(turns) == 1 else ()
        context = self.context(
            owner, attempt, known_facts=known_facts, tenant=turns[0].tenant
        )
        batch = TurnBatch(owner, turns, before, known)
        answers = {
            one.turn_id: one
            for one in await run_contained(
                self.listener, self.listener.learn(batch, context)
            )
        }
        lessons: dict[str, Lesson] = {}
        for one in heard:
            found = answers.get(one.turn.turn_id, TurnFacts(one.turn.turn_id))
            names = [fact.fact_id for fact in found.facts]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise TaskloreError(
                    f"two facts of one turn are called {twice[0]!r}; a fact is kept once by its id"
                )
            lessons[one.turn.turn_id] = _extend(one, found, owner)
        return lessons

    async def _before(self, turns: Sequence[ChatTurn]) -> tuple[ChatTurn, ...]:
        """Return the other turns of the conversations of *turns*, up to the last of these, oldest first."""
        own = {turn.turn_id for turn in turns}
        found = list[ChatTurn]()
        for conversation in dict.fromkeys(turn.conversation_id for turn in turns):
            last = max(
                turn.at for turn in turns if turn.conversation_id == conversation
            )
            recent = await self.services.recent_turns(
                conversation, BEFORE + 4 * len(turns)
            )
            found += [
                turn
                for turn in map(_set_zone, recent)
                # In a conversation of several people the words of another one are not shown.
                if turn.at <= last
                and turn.turn_id not in own
                and turn.user_id in (None, turns[0].user_id)
            ]
        return tuple(sorted(found, key=lambda turn: turn.at))

    async def _end(
        self, claim: Claim, rows: Sequence[QueueRow], error: Exception, rests: int
    ) -> float | None:
        """Close *rows* by the fate that *error* brings; return the seconds that their user rests, None to go on."""
        now = self.services.now()
        attempt = max(row.attempts for row in rows) + 1
        fate = fate_of(
            error,
            attempt=attempt,
            allowed=self.max_attempts,
            rests=rests,
            retry=self.retry,
            now=now,
        )
        log.warning(
            "turn_not_learned",
            listener=self.listener.label,
            fate=fate.state,
            error=type(error).__name__,
        )
        if fate.state == "outage":
            return fate.pause_s
        for closing in self.closings_of(rows, fate):
            await self.close(claim, [closing])
            if fate.state == "retry":
                self.meter.count_listen_retry(claim.queue)
            else:
                self.meter.count_turn(fate.state)
        # The rows after it must not overtake one that runs again.
        return 0.0 if fate.state == "retry" else None


def _extend(heard: _Heard, found: TurnFacts, owner: str) -> Lesson:
    """Return the lesson of a turn: the facts known before, and those that are new in *found*."""
    before = heard.lesson
    turn = heard.turn
    known = before.facts if before is not None else ()
    names = {fact.fact_id for fact in known}
    return Lesson(
        turn_id=turn.turn_id,
        conversation_id=turn.conversation_id,
        user_id=owner,
        facts=(*known, *(fact for fact in found.facts if fact.fact_id not in names)),
        # When it was said, not when it was understood: a fact that comes late is no newer for that.
        at=turn.at,
        tenant=turn.tenant,
        published=len(known),
        waits_for=found.waits_for,
        runs=(before.runs if before is not None else 0) + 1,
    )


def _closing_of(row: QueueRow, lesson: Lesson) -> Closing:
    """Return how the turn in *row* is closed, once all facts of *lesson* are rows."""
    if lesson.waits_for is not None:
        return Closing(
            row_id=row.row_id,
            state="needs_model",
            reason=lesson.waits_for,
            note=lesson.as_note(),
        )
    reason = "learned" if lesson.facts else "nothing to learn"
    return Closing(row_id=row.row_id, state="done", reason=reason)


def _set_zone(turn: ChatTurn) -> ChatTurn:
    """Return *turn* with a time in UTC where its time says no zone."""
    return (
        turn
        if turn.at.tzinfo is not None
        else turn.model_copy(update={"at": turn.at.replace(tzinfo=UTC)})
    )


def _read_turn(body: bytes, owner: str) -> ChatTurn:
    """Return the turn of *body*, which has no user or *owner*.

    Raises:
        Unreadable: it is no turn, or that of another user.
    """
    try:
        turn = _set_zone(ChatTurn.model_validate_json(body))
    except ValidationError as error:
        # Without a word of it: the reason is read in lists.
        raise Unreadable(
            f"the row holds no turn ({error.error_count()} faults)"
        ) from None
    if turn.user_id not in (None, owner):
        raise Unreadable("the turn is not one of this user")
    return turn
