"""Work on facts: the listener rules on them over a draft, which is stored with its rulings in one step.

No snapshot outlives a question to a model: when another process changes the documents meanwhile, the store refuses the
draft, and the listener is asked again over the documents as they are then.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from pydantic import ValidationError

from tasklore.contracts.errors import EditRefused, LlmError, MemoryUnavailable
from tasklore.contracts.messages import ExtractedFacts
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.documents.draft import AppliedPlan, Draft, Plan, Snapshot
from tasklore.memory.documents.guard import LIMITS, DocumentLimits
from tasklore.memory.documents.storage.repository import Committed
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.claims import Claim, Closing, QueueRow
from tasklore.runtime.claim_loop import LeaseLost
from tasklore.workers.listening.row_outcomes import (
    MOST_MODEL_RESTS,
    Fate,
    Unreadable,
    demand_harmless,
    fate_of,
    run_contained,
)
from tasklore.workers.listening.rows import RowWork, group_rows
from tasklore.workers.listening.rulings import closings_of
from tasklore.workers.listening.tracing import RulingSpans
from tasklore.workers.listening.values import FactBatch, PendingFact, Ruling

log = structlog.get_logger(__name__)

#: Drafts for one batch, the first included: who loses to others five times in a row lets them go first.
MOST_DRAFTS = 5
#: Seconds before a draft is worked out anew, at most; doubled each time.
_STALE_S = 0.02
#: Seconds for which a user rests whose documents others kept changing.
_CONTENDED_S = 2.0
#: The note of a row that left the order to wait for a model: what was said after it may be done when it comes back.
_PARKED = b"parked"
#: Closed rows that are looked through for what was said after such a row, the last closed first: with a reply of some
#: 500 KB at most what a single user says in weeks.
_MOST_LATER = 1_000


@dataclass(frozen=True, slots=True)
class ReadableRow:
    """A row that could be read."""

    row: QueueRow
    pending: PendingFact
    said: "FactTime"
    tenant: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class FactTime:
    """When a fact was said: the time of its turn's facts, and its number among them."""

    at: datetime
    number: int


class WatchedDraft(Draft):
    """A draft that counts refused plans: the ruling that a listener makes of one need not give the reason."""

    def __init__(
        self,
        snapshot: Snapshot,
        limits: DocumentLimits,
        now: datetime,
        *,
        known: Collection[str] = (),
        count_refused: Callable[[Plan, str], None],
    ) -> None:
        super().__init__(snapshot, limits, now, known=known)
        self._count_refused = count_refused

    def apply(self, plan: Plan, as_of: int | None = None) -> AppliedPlan:
        """Apply *plan* as `Draft.apply` does."""
        try:
            return super().apply(plan, as_of)
        except EditRefused as error:
            self._count_refused(plan, error.reason)
            raise


@dataclass
class FactWork(RowWork):
    """Works on the facts of one user at a time; *store* takes the drafts.

    *notices* keeps lines for the person until a reply says them; None: nothing does.
    """

    store: DocumentStore = field(kw_only=True)
    notices: Notices | None = field(default=None, kw_only=True)

    async def work(
        self, claim: Claim, is_leaving: Callable[[], bool], rests: int
    ) -> float:
        """Rule on the facts of *claim* together; when that fails, one by one. See `listening.outflow.Work`."""
        groups = deque(
            group_rows(
                await self._read(claim), lambda known: known.row, len(claim.rows)
            )
        )
        while groups and not is_leaving():
            group = groups.popleft()
            try:
                spans = RulingSpans([known.row for known in group])
                with spans.open():
                    is_contended = not await self._rule(claim, group, spans)
            except (LeaseLost, MemoryUnavailable):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a listener raises becomes the fate of its facts
                fate = fate_of(
                    error,
                    attempt=max(known.row.attempts for known in group) + 1,
                    allowed=self.max_attempts,
                    rests=rests,
                    retry=self.retry,
                    now=self.services.now(),
                    most_model_rests=MOST_MODEL_RESTS,
                )
                # One of them is to blame: alone it harms nobody. Of those that wait for a model too, once: what comes
                # before the first that needs one need not wait.
                is_outage = fate.state == "outage" and (
                    rests > 0 or not isinstance(error, LlmError)
                )
                if len(group) > 1 and not is_outage:
                    groups.extendleft([known] for known in reversed(group))
                    continue
                pause_s = await self._end(claim, group, fate)
                if pause_s is not None:
                    return pause_s
                continue
            if is_contended:
                return _CONTENDED_S * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        return 0.0

    async def _read(self, claim: Claim) -> list[ReadableRow]:
        """Return the facts of *claim* that can be worked on; the others are set aside.

        A fact that waited for a model comes with the facts that were said after it and are done.
        """
        found: list[ReadableRow] = []
        for row in claim.rows:
            try:
                demand_harmless(row, self.max_attempts)
                found.append(_read_fact(row.row_id, row.body, claim.owner, row))
            except Unreadable as error:
                await self.close(
                    claim,
                    [Closing(row_id=row.row_id, state="failed", reason=str(error))],
                )
                self.meter.count_fact("failed")
        if all(known.row.note is None for known in found):
            return found
        counts = await self.queue.counts(claim.owner)
        rows = await self.queue.rows(
            claim.owner, counts.waiting + counts.parked + _MOST_LATER
        )
        done = sorted(
            (
                _read_fact(row.row_id, row.body, claim.owner)
                for row in rows
                if row.state == "done"
            ),
            key=lambda known: known.said,
        )
        for number, known in enumerate(found):
            if known.row.note is not None:
                later = tuple(one.pending for one in done if one.said > known.said)
                found[number] = replace(
                    known, pending=replace(known.pending, later=later)
                )
        return found

    async def _rule(
        self, claim: Claim, group: Sequence[ReadableRow], spans: RulingSpans
    ) -> bool:
        """Have *group* ruled on and stored; False when others kept changing the documents."""
        batch = FactBatch(claim.owner, tuple(known.pending for known in group))
        attempt = max(known.row.attempts for known in group) + 1
        stored: tuple[str, ...] = ()
        for number in range(MOST_DRAFTS):
            snapshot = await self.store.of(claim.owner).snapshot()
            draft = WatchedDraft(
                snapshot,
                LIMITS,
                self.services.now(),
                known=stored,
                count_refused=self._count_refused,
            )
            context = self.context(
                claim.owner, attempt, draft=draft, tenant=group[0].tenant
            )
            rulings = await run_contained(
                self.listener, self.listener.rule(batch, context)
            )
            closings = _noted(
                closings_of(self.listener.label, batch, rulings, draft.applied)
            )
            spans.begin_commit()
            done = await self.store.commit(draft, claim=claim, closings=closings)
            if isinstance(done, Committed):
                spans.end_commit(draft, done)
                for ruling in rulings:
                    self.meter.count_fact(ruling.outcome)
                for applied in draft.applied:
                    for edit in (
                        applied.plan.edits if applied.plan.plan_id in done.plans else ()
                    ):
                        if edit.operation != "no_change":
                            self.meter.count_edit(edit.operation, "applied")
                await self._tell(batch, rulings, done)
                return True
            if done.lease:
                raise LeaseLost("the lease ended while facts were worked on")
            self.meter.count_stale_draft()
            stored = (*stored, *done.known)
            log.info(
                "draft_stale",
                listener=self.listener.label,
                moved=list(done.moved),
                drafts=number + 1,
            )
            await asyncio.sleep(random.uniform(0.0, _STALE_S * 2**number))  # noqa: S311 - jitter
        return False

    async def _tell(
        self, batch: FactBatch, rulings: Sequence[Ruling], done: Committed
    ) -> None:
        """Put the notices of stored plans, and of facts that have none; when that fails a reply is shorter."""
        if self.notices is None:
            return
        lines: dict[str, list[str]] = {}
        turn_of = {pending.fact.fact_id: pending.turn_id for pending in batch.facts}
        for ruling in rulings:
            if ruling.plan is None or ruling.plan.plan_id in done.plans:
                lines.setdefault(turn_of[ruling.fact_id], []).extend(ruling.notices)
        for turn_id, texts in lines.items():
            try:
                await self.notices.put(batch.user_id, turn_id, texts)
            except MemoryUnavailable as error:
                log.info("notices_lost", error=str(error))
        if not any(lines.values()):
            try:
                await self.notices.calm(batch.user_id)
            except MemoryUnavailable as error:
                log.info("reply_waits_in_vain", error=str(error))

    async def _end(
        self, claim: Claim, group: Sequence[ReadableRow], fate: Fate
    ) -> float | None:
        """Close *group* by *fate*; return the seconds that its user rests, None when the next facts may go on."""
        log.warning(
            "facts_not_ruled_on",
            listener=self.listener.label,
            fate=fate.state,
            facts=len(group),
        )
        if fate.state == "outage":
            return fate.pause_s
        closings = _noted(self.closings_of([known.row for known in group], fate))
        if fate.state == "retry":
            self.meter.count_listen_retry(claim.queue)
            await self.close(claim, closings)
            # The facts after them must not overtake them.
            return 0.0
        await self.close(claim, closings)
        for _ in group:
            self.meter.count_fact(fate.state)
        return None

    def _count_refused(self, plan: Plan, reason: str) -> None:
        self.meter.count_edit_refused(reason)
        for edit in plan.edits:
            if edit.operation != "no_change":
                self.meter.count_edit(edit.operation, "refused")


def _noted(closings: Sequence[Closing]) -> list[Closing]:
    """Return *closings* with a note on those whose rows leave their order."""
    return [
        replace(one, note=_PARKED) if one.state == "needs_model" else one
        for one in closings
    ]


def _read_fact(
    row_id: str, body: bytes, owner: str, row: QueueRow | None = None
) -> ReadableRow:
    """Return the fact of *body*; *row* is its row where it is claimed."""
    try:
        extracted = ExtractedFacts.model_validate_json(body)
    except ValidationError as error:
        # Without a word of it: the reason is read in lists.
        raise Unreadable(
            f"the row holds no fact ({error.error_count()} faults)"
        ) from None
    if extracted.user_id != owner or len(extracted.facts) != 1:
        raise Unreadable("the row is not one fact of this user")
    fact = extracted.facts[0]
    row = row or QueueRow(row_id=row_id, body=body)
    number = fact.fact_id.rpartition("-")[2]
    said = FactTime(extracted.at, int(number) if number.isdecimal() else 0)
    return ReadableRow(
        row,
        PendingFact(
            fact=fact,
            turn_id=extracted.turn_id,
            attempts=row.attempts,
            said=extracted.at,
        ),
        said,
        extracted.tenant,
    )
