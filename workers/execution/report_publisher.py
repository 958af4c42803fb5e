"""Concluding: the ledger decides which report counts, the stream keeps it, and only then the delivery is settled."""

import asyncio
import random
import secrets
import zlib
from collections import Counter
from collections.abc import Collection, Sequence

import structlog

from contracts import subjects
from contracts.errors import GiveUp, MemoryUnavailable, NotAccepted, ResultTooLarge, TaskCancelled
from contracts.identifiers import user_token
from contracts.messages import TaskAssignment
from memory.ledger.ledger import Ledger
from memory.ledger.runs import CancelRequest, Finish
from runtime.messaging.dead_letter import dead_letter
from runtime.messaging.outbox import Outbox
from runtime.messaging.pull import Delivery, PullEngine
from runtime.metrics import Metrics
from runtime.tracing import within
from workers.execution.acknowledger import Settling
from workers.execution.outcome import Verdict
from workers.execution.tracing import note_verdicts

log = structlog.get_logger(__name__)

#: Seconds after which a delivery is offered again when its verdict could not be stored.
_RETURN_S = 2.0
#: How a report says that the ledger did not take it; a result with this word in it is compared in vain.
_UNFENCED = b'"fence":"none"'


class Conclusion:
    """Brings verdicts of one agent to their end: ledger, REPORTS (before it DEAD), acknowledgement, in this order."""

    def __init__(
        self,
        agent_id: str,
        task_names: Collection[str],
        fence: Ledger,
        outbox: Outbox,
        meter: Metrics,
        *,
        fence_pause_s: float = 1.0,
        settling: Settling | None = None,
    ) -> None:
        self._agent_id = agent_id
        self._task_names = frozenset(task_names)
        self._fence = fence
        self._outbox = outbox
        self._meter = meter
        self._fence_pause_s = fence_pause_s
        self._settling = settling or Settling()

    async def conclude(self, verdicts: Sequence[Verdict], line: PullEngine) -> bool:
        """Store and publish *verdicts*; returns when all are on their way, each settles when it is stored.

        False when some were handed back instead, since DEAD did not take them. What must not run twice waits here for a
        ledger that is away. What is given up goes to DEAD first: once the ledger has its report, a redelivery would
        only repeat that.
        """
        due = [verdict for verdict in verdicts if verdict.dead_reason is None or await self._buried(verdict, line)]
        try:
            await self._conclude_fenced(due, line)
        except MemoryUnavailable as error:
            log.warning("ledger_away", error=str(error), reports=len(due))
            self._conclude_unfenced([verdict for verdict in due if not verdict.must_be_fenced], line)
            await self._conclude_later([verdict for verdict in due if verdict.must_be_fenced], line)
        return len(due) == len(verdicts)

    async def _conclude_fenced(self, verdicts: Sequence[Verdict], line: PullEngine) -> None:
        """Let the ledger decide, and publish what it says; a wish to cancel makes another verdict of one."""
        note_verdicts(verdicts)
        bodies = [_fitting_body(verdict) for verdict in verdicts]
        earlier = await self._fence.finish_many(
            [_finish(verdict, body) for verdict, body in zip(verdicts, bodies, strict=True)]
        )
        self._count([verdict for verdict, stored in zip(verdicts, earlier, strict=True) if stored is None])
        unwanted = []
        for verdict, body, stored in zip(verdicts, bodies, earlier, strict=True):
            if isinstance(stored, CancelRequest):
                verdict.become_cancelled(TaskCancelled(stored.reason))
                unwanted.append(verdict)
                continue
            if stored is not None:
                self._meter.count_stale_report()
            report = body if stored is None else stored
            self.publish(verdict.assignment, verdict.generation, report, verdict.delivery, line)
        if unwanted:
            await self._conclude_fenced(unwanted, line)

    async def _conclude_later(self, verdicts: Sequence[Verdict], line: PullEngine) -> None:
        """Wait for the ledger with *verdicts*, whose deliveries stay leased: they are done, and must not run again."""
        while verdicts:
            await asyncio.sleep(self._fence_pause_s)
            try:
                await self._conclude_fenced(verdicts, line)
            except MemoryUnavailable:
                continue
            return

    def _conclude_unfenced(self, verdicts: Sequence[Verdict], line: PullEngine) -> None:
        self._count(verdicts)
        for verdict in verdicts:
            self.publish(verdict.assignment, verdict.generation, verdict.body("none"), verdict.delivery, line)

    def publish(
        self, assignment: TaskAssignment, generation: int, body: bytes, delivery: Delivery, line: PullEngine
    ) -> None:
        """Publish *body*, the one report of this generation, and settle *delivery* once it is stored.

        Where the stream has a report already, or the ledger may not have this one, a comparison is asked for first.
        """
        where = subjects.report(assignment.supervisor_id, assignment.task_id, generation)
        doubts = [_UNFENCED] if _UNFENCED in body else []

        def stored(problem: NotAccepted | None) -> None:
            if problem is not None or not doubts:
                settled(problem)
                return
            asked = subjects.comparison(where, secrets.token_hex(8))
            self._outbox.send(asked, where.encode(), asked, settled)

        def settled(problem: NotAccepted | None) -> None:
            if problem is None:
                self._settling.settle(delivery, assignment.user_id, line)
            else:
                log.error("report_not_stored", task_id=assignment.task_id, error=str(problem))
                line.hand_back(delivery, _RETURN_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter

        with within(delivery.trace):
            self._outbox.send(
                where,
                body,
                subjects.report_message_id(assignment.task_id, generation),
                stored,
                headers=_whose(assignment) or None,
                known=lambda: doubts.append(b"known"),
            )

    def _count(self, verdicts: Sequence[Verdict]) -> None:
        """Count a batch at once: a counter costs the same for forty tasks as for one."""
        agent_id, meter = self._agent_id, self._meter
        ended: Counter[tuple[str, str]] = Counter()
        lookups: Counter[str] = Counter()
        saved_ms = 0
        for verdict in verdicts:
            name = verdict.assignment.task.name
            # Names may come from strangers, and each makes a series.
            task = name if name in self._task_names else "unknown"
            ended[task, verdict.status] += 1
            lookups[verdict.outcome] += 1
            saved_ms += verdict.saved_ms
            run_s = None if verdict.run_ms is None else verdict.run_ms / 1000
            meter.observe_task(agent_id, task, queued_s=verdict.queued_ms / 1000, run_s=run_s)
        for (task, status), number in ended.items():
            meter.count_tasks(agent_id, task, status, number)
        for outcome, number in lookups.items():
            meter.count_lookup(agent_id, outcome, number)
        if saved_ms:
            meter.count_saved(saved_ms / 1000)

    async def _buried(self, verdict: Verdict, line: PullEngine) -> bool:
        """Return whether DEAD has the delivery of *verdict*; when not, it is handed back."""
        reason = verdict.dead_reason or "gave_up"
        letter = dead_letter(
            verdict.delivery,
            reason=reason,
            error=verdict.error or GiveUp("given up"),
            attempts=verdict.attempt,
            generation=verdict.generation,
            agent_id=self._agent_id,
            worker_id=verdict.worker_id,
            assignment=verdict.assignment,
            queued_ms=verdict.queued_ms,
            run_ms=verdict.run_ms,
            usage=verdict.usage,
        )
        try:
            await self.bury(verdict.delivery, letter, reason=reason, headers=_whose(verdict.assignment))
        except NotAccepted as error:
            log.warning("dead_letter_not_stored", task_id=verdict.assignment.task_id, error=str(error))
            line.hand_back(verdict.delivery, _RETURN_S)
            return False
        return True

    async def bury(
        self, delivery: Delivery, letter: bytes, *, reason: str, headers: dict[str, str] | None = None
    ) -> None:
        """Put *letter* about *delivery* into DEAD, with *headers*, and return when it is stored.

        Raises:
            NotAccepted: DEAD did not take it.
        """
        # A stream made anew counts from one again: the body tells two messages of one number apart.
        message_id = f"dead:{subjects.dead(delivery.subject)}:{delivery.sequence}:{zlib.crc32(delivery.body):08x}"
        await self._outbox.put(
            subjects.dead(delivery.subject), letter, message_id, headers=headers or None, waits_when_full=True
        )
        self._meter.count_dead_letter(reason)


def _finish(verdict: Verdict, body: bytes) -> Finish | tuple[str, int, str, bytes]:
    """Return what the ledger is told, and whose it is when somebody's: what a task of theirs led to must be found."""
    assignment = verdict.assignment
    if not assignment.user_id:
        return assignment.task_id, verdict.generation, verdict.status, body
    return Finish(assignment.task_id, verdict.generation, verdict.status, body, user_token(assignment.user_id))


def _whose(assignment: TaskAssignment) -> dict[str, str]:
    return {subjects.USER_HEADER: user_token(assignment.user_id)} if assignment.user_id else {}


def _fitting_body(verdict: Verdict) -> bytes:
    """Return the report of *verdict*; a result that is too large turns it into a failure that says so."""
    body = verdict.body("ledger")
    if len(body) <= subjects.MAX_BODY:
        return body
    size = len(verdict.result_json or b"")
    verdict.status = "failed"
    verdict.error = ResultTooLarge(f"the result has {size} bytes, a report at most {subjects.MAX_BODY}; return less")
    verdict.result_json = None
    return verdict.body("ledger")
