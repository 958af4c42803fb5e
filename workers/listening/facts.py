"""Facts at work: ruled on over a draft, which is stored with its rulings in one step, or worked out anew.

No snapshot outlives a question to a model: who else changed the documents meanwhile makes the store refuse the draft,
and the listener is asked again over what is there now.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import structlog
from pydantic import BaseModel, ValidationError

from contracts.errors import EditRefused, LlmError, MemoryUnavailable
from contracts.messages import ExtractedFacts
from memory.conversations.notices import Notices
from memory.documents.draft import AppliedPlan, Draft, Plan, Snapshot
from memory.documents.guard import LIMITS, Limits
from memory.documents.storage.commits import Committed
from memory.documents.storage.store import DocumentStore
from memory.queues.claims import Claim, Closing, Row
from memory.queues.queue import PersonalQueue
from runtime.lease_loop import LeaseLost
from runtime.metrics import Metrics
from workers.context.services import Services
from workers.execution.retry_decision import RetryPolicy
from workers.listening.context import ListenContext
from workers.listening.declaration import Listener
from workers.listening.fates import MOST_MODEL_RESTS, Fate, demand_harmless, fate_of
from workers.listening.rows import Unreadable
from workers.listening.rulings import closings_of
from workers.listening.runs import contained
from workers.listening.tracing import Ruling
from workers.listening.values import FactBatch, PendingFact
from workers.listening.values import Ruling as Ruled

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
class Known:
    """A row that could be read."""

    row: Row
    pending: PendingFact
    said: "Said"


@dataclass(frozen=True, slots=True, order=True)
class Said:
    """When a fact was said: the time of its turn's facts, and its number among them."""

    at: datetime
    number: int


class WatchedDraft(Draft):
    """A draft that tells when it refused a plan, of which the listener may make a ruling that does not say why."""

    def __init__(
        self,
        snapshot: Snapshot,
        limits: Limits,
        now: datetime,
        *,
        known: Collection[str] = (),
        refused: Callable[[Plan, str], None],
    ) -> None:
        super().__init__(snapshot, limits, now, known=known)
        self._tell_refused = refused

    def apply(self, plan: Plan, as_of: int | None = None) -> AppliedPlan:
        """Apply *plan* as `Draft.apply` does."""
        try:
            return super().apply(plan, as_of)
        except EditRefused as error:
            self._tell_refused(plan, error.reason)
            raise


class FactWork:
    """Works on the facts of one user at a time.

    Args:
        listener: Whose function rules on them.
        settings: Those of its agent.
        queue: Where the facts lie.
        store: Takes drafts.
        services: What a context lends.
        meter: Counts what became of facts.
        retry: When a fact runs again.
        agent_files: The operator's folder over the agents' own files.
        notices: Where lines for the person wait until they are said; None: nowhere.
    """

    def __init__(
        self,
        listener: Listener,
        settings: BaseModel | None,
        *,
        queue: PersonalQueue,
        store: DocumentStore,
        services: Services,
        meter: Metrics,
        retry: RetryPolicy,
        agent_files: Path | None = None,
        notices: Notices | None = None,
    ) -> None:
        self._listener = listener
        self._settings = settings
        self._queue = queue
        self._store = store
        self._services = services
        self._meter = meter
        self._retry = retry
        self._agent_files = agent_files
        self._notices = notices
        self._allowed = listener.attempts or 1

    async def work(self, claim: Claim, is_leaving: Callable[[], bool], rests: int) -> float:
        """Rule on the facts of *claim* together; when that fails, one by one. See `workers.listening.outflow.Work`."""
        groups = deque(_grouped(await self._readable(claim)))
        while groups and not is_leaving():
            group = groups.popleft()
            try:
                ruling = Ruling([known.row for known in group])
                with ruling.going():
                    contended = not await self._rule(claim, group, ruling)
            except (LeaseLost, MemoryUnavailable):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a listener raises becomes the fate of its facts
                fate = self._fate(error, group, rests)
                # One of them is to blame: alone it harms nobody. Of those that wait for a model too, once: what comes
                # before the first that needs one need not wait.
                is_outage = fate.state == "outage" and (rests > 0 or not isinstance(error, LlmError))
                if len(group) > 1 and not is_outage:
                    groups.extendleft([known] for known in reversed(group))
                    continue
                pause_s = await self._end(claim, group, fate)
                if pause_s is not None:
                    return pause_s
                continue
            if contended:
                return _CONTENDED_S * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        return 0.0

    async def _readable(self, claim: Claim) -> list[Known]:
        """Return the facts of *claim* that can be worked on; the others are set aside."""
        found: list[Known] = []
        for row in claim.rows:
            try:
                demand_harmless(row, self._allowed)
                found.append(_read_fact(row.row_id, row.body, claim.owner, row))
            except Unreadable as error:
                await self._close(claim, [Closing(row.row_id, "failed", str(error))])
                self._meter.count_fact("failed")
        return await self._with_later(claim.owner, found)

    async def _with_later(self, owner: str, found: Sequence[Known]) -> list[Known]:
        """Return *found*, those that waited for a model with what was said after them and is done."""
        if all(known.row.note is None for known in found):
            return list(found)
        counts = await self._queue.counts(owner)
        rows = await self._queue.rows(owner, counts.waiting + counts.parked + _MOST_LATER)
        done = sorted(
            (_read_fact(row.row_id, row.body, owner) for row in rows if row.state == "done"),
            key=lambda known: known.said,
        )
        return [
            known
            if known.row.note is None
            else replace(
                known,
                pending=replace(known.pending, later=tuple(one.pending for one in done if one.said > known.said)),
            )
            for known in found
        ]

    async def _rule(self, claim: Claim, group: Sequence[Known], told: Ruling) -> bool:
        """Have *group* ruled on and stored; False when others kept changing the documents."""
        batch = FactBatch(claim.owner, tuple(known.pending for known in group))
        attempt = max(known.row.attempts for known in group) + 1
        stored: tuple[str, ...] = ()
        for number in range(MOST_DRAFTS):
            context = await self._context(claim.owner, attempt, stored)
            draft = context.draft
            rulings = await contained(self._listener, self._listener.rule(batch, context))
            closings = closings_of(self._listener.label, batch, rulings, draft.applied)
            await self._note_parked(claim, closings)
            told.committing()
            done = await self._store.commit(draft, claim=claim, closings=closings)
            if isinstance(done, Committed):
                told.committed(draft, done)
                for ruling in rulings:
                    self._meter.count_fact(ruling.outcome)
                self._count_edits(draft, done)
                await self._tell(batch, rulings, done)
                return True
            if done.lease:
                raise LeaseLost("the lease ended while facts were worked on")
            self._meter.count_stale_draft()
            stored = (*stored, *done.known)
            log.info("draft_stale", listener=self._listener.label, moved=list(done.moved), drafts=number + 1)
            await asyncio.sleep(random.uniform(0.0, _STALE_S * 2**number))  # noqa: S311 - jitter
        return False

    async def _tell(self, batch: FactBatch, rulings: Sequence[Ruled], done: Committed) -> None:
        """Put the lines of what was stored; when that fails the person is told less, and nothing else is lost."""
        if self._notices is None:
            return
        lines: dict[str, list[str]] = {}
        turn_of = {pending.fact.fact_id: pending.turn_id for pending in batch.facts}
        for ruling in rulings:
            if ruling.plan is not None and ruling.plan.plan_id in done.plans:
                lines.setdefault(turn_of[ruling.fact_id], []).extend(ruling.notices)
        for turn_id, told in lines.items():
            try:
                await self._notices.put(batch.user_id, turn_id, told)
            except MemoryUnavailable as error:
                log.info("notices_lost", error=str(error))
        if not any(lines.values()):
            try:
                await self._notices.calm(batch.user_id)
            except MemoryUnavailable as error:
                log.info("reply_waits_in_vain", error=str(error))

    async def _context(self, user_id: str, attempt: int, stored: Sequence[str]) -> ListenContext:
        services, deadline = self._services, self._listener.deadline
        now = services.now()
        snapshot = await self._store.of(user_id).snapshot()
        return ListenContext(
            user_id,
            services,
            draft=WatchedDraft(snapshot, LIMITS, now, known=stored, refused=self._count_refused),
            settings=self._settings,
            attempt=attempt,
            deadline=None if deadline is None else now + deadline,
            agent_files=self._agent_files,
            count_refused=self._meter.count_edit_refused,
        )

    def _fate(self, error: Exception, group: Sequence[Known], rests: int) -> Fate:
        return fate_of(
            error,
            attempt=max(known.row.attempts for known in group) + 1,
            allowed=self._allowed,
            rests=rests,
            retry=self._retry,
            now=self._services.now(),
            most_model_rests=MOST_MODEL_RESTS,
        )

    async def _end(self, claim: Claim, group: Sequence[Known], fate: Fate) -> float | None:
        """Close *group* as *fate* says; return for how long its user rests, None when the next facts may go on."""
        log.warning("facts_not_ruled_on", listener=self._listener.label, fate=fate.state, facts=len(group))
        if fate.state == "outage":
            return fate.pause_s
        if fate.state == "retry":
            self._meter.count_listen_retry(claim.queue)
            not_before_ms = int((self._services.now().timestamp() + fate.pause_s) * 1000)
            retries = [Closing(known.row.row_id, "retry", fate.reason, not_before_ms=not_before_ms) for known in group]
            await self._close(claim, retries)
            # What follows must not overtake them.
            return 0.0
        closings = [Closing(known.row.row_id, fate.state, fate.reason) for known in group]
        await self._note_parked(claim, closings)
        await self._close(claim, closings)
        for _ in group:
            self._meter.count_fact(fate.state)
        return None

    async def _note_parked(self, claim: Claim, closings: Sequence[Closing]) -> None:
        """Note that rows leave their order, before they do."""
        for closing in closings:
            if closing.state == "needs_model" and not await self._queue.note(claim, closing.row_id, _PARKED):
                raise LeaseLost("the lease ended while facts were worked on")

    async def _close(self, claim: Claim, closings: Sequence[Closing]) -> None:
        if not await self._queue.close(claim, closings):
            raise LeaseLost("the lease ended while facts were worked on")

    def _count_refused(self, plan: Plan, reason: str) -> None:
        self._meter.count_edit_refused(reason)
        for edit in plan.edits:
            if edit.operation != "no_change":
                self._meter.count_edit(edit.operation, "refused")

    def _count_edits(self, draft: Draft, done: Committed) -> None:
        for applied in draft.applied:
            for edit in applied.plan.edits if applied.plan.plan_id in done.plans else ():
                if edit.operation != "no_change":
                    self._meter.count_edit(edit.operation, "applied")


def _grouped(facts: Sequence[Known]) -> list[list[Known]]:
    """Return *facts* in order, those that failed before alone: what follows them must not fail with them again."""
    groups: list[list[Known]] = []
    for known in facts:
        is_suspect = known.row.attempts > 0 or known.row.crashes > 0
        if groups and not is_suspect and not (groups[-1][0].row.attempts or groups[-1][0].row.crashes):
            groups[-1].append(known)
        else:
            groups.append([known])
    return groups


def _read_fact(row_id: str, body: bytes, owner: str, row: Row | None = None) -> Known:
    """Return the fact of *body*; *row* is its row where it is claimed."""
    try:
        extracted = ExtractedFacts.model_validate_json(body)
    except ValidationError as error:
        # Without a word of it: the reason is read in lists.
        raise Unreadable(f"the row holds no fact ({error.error_count()} faults)") from None
    if extracted.user_id != owner or len(extracted.facts) != 1:
        raise Unreadable("the row is not one fact of this user")
    fact, row = extracted.facts[0], row or Row(row_id, body)
    number = fact.fact_id.rpartition("-")[2]
    said = Said(extracted.at, int(number) if number.isdecimal() else 0)
    return Known(row, PendingFact(fact, extracted.turn_id, row.attempts, said=extracted.at), said)
