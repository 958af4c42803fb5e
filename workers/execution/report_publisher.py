"""Publishing reports: the ledger decides which one counts, the stream keeps it, then the delivery is acknowledged."""

import asyncio
import contextlib
import random
import secrets
import time
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import structlog
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import (
    GiveUp,
    MemoryUnavailable,
    NotAccepted,
    ResultTooLarge,
    TaskCancelled,
)
from tasklore.contracts.identifiers import TaskName, user_token
from tasklore.contracts.messages import CompletionReport, TaskAssignment
from tasklore.memory.gathered_calls import GatheredCalls
from tasklore.memory.ledger.expired import spell_expired
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import CancelRequest, Finish, ReportExpired
from tasklore.memory.ledger.task_rows import TaskRow, row_of, row_of_report
from tasklore.runtime.messaging.dead_letter import dead_letter
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.tracing import within
from tasklore.workers.execution.acknowledger import Acknowledger
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.outcome import TaskOutcome
from tasklore.workers.execution.tracing import note_outcome
from tasklore.workers.middleware import Hooks, Middleware, notify

log = structlog.get_logger(__name__)

#: Seconds after which a delivery is offered again when its report could not be stored.
_RETURN_S = 2.0
#: Bytes of reports up to which they are written beside those of others: many larger ones would not be in time together.
_GATHERED_BYTES = 16 * 1024
#: How a report says that the ledger did not take it; a result with this word in it is compared in vain.
_UNFENCED = b'"fence":"none"'


class ReportPublisher:
    """Brings outcomes of one agent to their end: ledger, REPORTS (before it DEAD), acknowledgement, in this order."""

    def __init__(
        self,
        agent_id: str,
        ledger: Ledger,
        outbox: Outbox,
        metrics: Metrics,
        *,
        acknowledger: Acknowledger,
        hooks: Hooks,
        ledger_pause_s: float = 1.0,
    ) -> None:
        self._agent_id = agent_id
        self._ledger = ledger
        self._outbox = outbox
        self._metrics = metrics
        self._acknowledger = acknowledger
        self._hooks = hooks
        self._ledger_pause_s = ledger_pause_s
        #: What runs that end in one turn report, is written to the ledger, and listed, at once.
        self._finishes = GatheredCalls(self._finish)

    async def publish(
        self, outcomes: Sequence[TaskOutcome], engine: PullEngine
    ) -> bool:
        """Publish the reports of *outcomes*; return when all are on their way, each is acknowledged when it is stored.

        False when some were handed back instead, since DEAD did not take them. Tasks that must not run twice wait here
        for a ledger that is away. A task that is given up goes to DEAD first: once the ledger has its report, a
        redelivery would only repeat that.
        """
        due = [
            one
            for one in outcomes
            if one.dead_reason is None or await self._put_into_dead(one, engine)
        ]
        try:
            await self._publish_fenced(due, engine)
        except MemoryUnavailable as error:
            log.warning("ledger_away", error=str(error), reports=len(due))
            unfenced = [one for one in due if not one.must_be_fenced]
            notify(self._hooks.on_reports, unfenced)
            for one in unfenced:
                self.send(
                    one.assignment,
                    generation=one.generation,
                    body=one.body("none"),
                    delivery=one.delivery,
                    engine=engine,
                )
            fenced = [one for one in due if one.must_be_fenced]
            # Their deliveries stay leased: they are done, and must not run again.
            while fenced:
                await asyncio.sleep(self._ledger_pause_s)
                try:
                    await self._publish_fenced(fenced, engine)
                except MemoryUnavailable:
                    continue
                break
        return len(due) == len(outcomes)

    async def _publish_fenced(
        self, outcomes: Sequence[TaskOutcome], engine: PullEngine
    ) -> None:
        """Let the ledger decide, and publish its decision: a cancel request makes another outcome of one."""
        bodies = [_fitting_body(outcome) for outcome in outcomes]
        finishes = [
            _finish_of(self._agent_id, outcome, body)
            for outcome, body in zip(outcomes, bodies, strict=True)
        ]
        is_small = sum(map(len, bodies)) <= _GATHERED_BYTES
        earlier = await (self._finishes.ask if is_small else self._finish)(finishes)
        taken = [
            outcome
            for outcome, stored in zip(outcomes, earlier, strict=True)
            if stored is None
        ]
        if taken:
            notify(self._hooks.on_reports, taken)
        cancelled = []
        standing = []
        for outcome, body, stored in zip(outcomes, bodies, earlier, strict=True):
            if stored is None:
                self.send(
                    outcome.assignment,
                    generation=outcome.generation,
                    body=body,
                    delivery=outcome.delivery,
                    engine=engine,
                )
            elif isinstance(stored, CancelRequest):
                outcome.become_cancelled(TaskCancelled(stored.reason))
                cancelled.append(outcome)
            else:
                self._metrics.count_stale_report()
                note_outcome(outcome)
                opened = row_of(outcome.assignment, outcome.generation, self._agent_id)
                if isinstance(stored, ReportExpired):
                    stored = spell_expired(
                        outcome.assignment, outcome.generation, stored
                    )
                else:
                    standing.append(_row_of_earlier(opened, stored))
                self.send(
                    outcome.assignment,
                    generation=outcome.generation,
                    body=stored,
                    delivery=outcome.delivery,
                    engine=engine,
                )
        if cancelled:
            await self._publish_fenced(cancelled, engine)
        if rows := [row for row in standing if row is not None]:
            # Ours were listed in the same batch, before it was known that they are not taken.
            await self._list(rows)

    async def _finish(
        self, reports: Sequence[Finish]
    ) -> Sequence[bytes | CancelRequest | ReportExpired | None]:
        return await self._ledger.finish_many(reports)

    async def _list(self, rows: Sequence[TaskRow]) -> None:
        """List *rows*; where the ledger is away, the next run of that task lists it, or none does."""
        with contextlib.suppress(MemoryUnavailable):
            await self._ledger.list_runs(rows)

    async def repeat(self, job: Job, stored: bytes, engine: PullEngine) -> None:
        """Send *stored*, the report that the ledger has of the task of *job*.

        It is listed anew: a process may have died between the ledger and the list.
        """
        if (row := _row_of_earlier(job.make_row(), stored)) is not None:
            await self._list([row])
        self.send(
            job.assignment,
            generation=job.generation,
            body=stored,
            delivery=job.delivery,
            engine=engine,
        )

    def send(
        self,
        assignment: TaskAssignment,
        generation: int,
        body: bytes,
        delivery: Delivery,
        engine: PullEngine,
    ) -> None:
        """Send *body*, the one report of this generation, and acknowledge *delivery* once it is stored.

        Where the stream has a report already, or the ledger may not have this one, a comparison is asked for first.
        """
        subject = subjects.report(
            assignment.supervisor_id, assignment.task_id, generation
        )
        sent = _Sent(
            outbox=self._outbox,
            acknowledger=self._acknowledger,
            assignment=assignment,
            generation=generation,
            delivery=delivery,
            engine=engine,
            subject=subject,
            # `in` makes a TypeError of every bytes first, and drops it.
            is_doubtful=body.find(_UNFENCED) >= 0,
        )
        if (trace := delivery.trace) is None:
            sent.publish(body)
        else:
            with within(trace):
                sent.publish(body)

    async def _put_into_dead(self, outcome: TaskOutcome, engine: PullEngine) -> bool:
        """Return whether DEAD has the delivery of *outcome*; when not, it is handed back."""
        reason = outcome.dead_reason or "gave_up"
        letter = dead_letter(
            outcome.delivery,
            reason=reason,
            error=outcome.error or GiveUp("given up"),
            attempts=outcome.attempt,
            generation=outcome.generation,
            agent_id=self._agent_id,
            worker_id=outcome.worker_id,
            assignment=outcome.assignment,
            queued_ms=outcome.queued_ms,
            run_ms=outcome.run_ms,
            usage=outcome.usage,
            place=outcome.place,
        )
        task_id = outcome.assignment.task_id
        # Not its words, which may be a person's: the report and the dead letter have them.
        log.warning(
            "task_failed",
            agent=self._agent_id,
            task=outcome.assignment.task.name,
            task_id=task_id,
            reason=reason,
            error=type(outcome.error).__name__,
            place=outcome.place,
            more=f"tasklore dead-letters show {task_id}",
        )
        try:
            await self.put_into_dead(
                outcome.delivery,
                letter,
                reason,
                headers=_user_headers(outcome.assignment),
            )
        except NotAccepted as error:
            log.warning(
                "dead_letter_not_stored",
                task_id=outcome.assignment.task_id,
                error=str(error),
            )
            engine.hand_back(outcome.delivery, _RETURN_S)
            return False
        return True

    async def put_into_dead(
        self,
        delivery: Delivery,
        letter: bytes,
        reason: str,
        *,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Put *letter* about *delivery* into DEAD, with *headers*, and return when it is stored.

        Raises:
            NotAccepted: DEAD did not take it.
        """
        # A stream made anew counts from one again: the body tells two messages of one number apart.
        message_id = f"dead:{subjects.dead(delivery.subject)}:{delivery.sequence}:{zlib.crc32(delivery.body):08x}"
        await self._outbox.put(
            subjects.dead(delivery.subject),
            letter,
            message_id,
            headers=headers,
            waits_when_full=True,
        )
        self._metrics.count_dead_letter(reason)


@dataclass(slots=True, eq=False, kw_only=True)
class _Sent:
    """A report on its way to REPORTS. No closures: those that refer to themselves wait for the garbage collector."""

    outbox: Outbox
    acknowledger: Acknowledger
    assignment: TaskAssignment
    generation: int
    delivery: Delivery
    engine: PullEngine
    subject: str
    is_doubtful: bool

    def publish(self, body: bytes) -> None:
        """Send *body* in the current trace."""
        assignment = self.assignment
        message_id = subjects.report_message_id(assignment.task_id, self.generation)
        headers = _user_headers(assignment)
        self.outbox.send(
            self.subject,
            body,
            message_id,
            self._finish,
            headers=headers,
            known=self._doubt,
        )

    def _doubt(self) -> None:
        self.is_doubtful = True

    def _finish(self, problem: NotAccepted | None) -> None:
        if problem is not None:
            log.error(
                "report_not_stored", task_id=self.assignment.task_id, error=str(problem)
            )
            self.engine.hand_back(self.delivery, _RETURN_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
        elif self.is_doubtful:
            self.is_doubtful = False
            comparison = subjects.comparison(self.subject, secrets.token_hex(8))
            self.outbox.send(
                comparison, self.subject.encode(), comparison, self._finish
            )
        else:
            self.acknowledger.acknowledge(self.delivery, self.assignment, self.engine)


class Metering(Middleware):
    """Counts reports and lookups of one agent, a batch at once: a counter costs the same for forty tasks as for one."""

    def __init__(
        self, agent_id: str, task_names: Collection[str], metrics: Metrics
    ) -> None:
        self._agent_id = agent_id
        self._task_names = frozenset(task_names)
        self._metrics = metrics

    def on_reports(self, outcomes: Sequence[TaskOutcome]) -> None:
        """Count *outcomes* by task and status, and the computing time that was spared."""
        agent_id = self._agent_id
        metrics = self._metrics
        ended: Counter[tuple[str, str]] = Counter()
        lookups: Counter[str] = Counter()
        saved_ms = 0
        for outcome in outcomes:
            name = outcome.assignment.task.name
            # Names may come from strangers, and each makes a series.
            task = name if name in self._task_names else "unknown"
            ended[task, outcome.status] += 1
            lookups[outcome.memory] += 1
            saved_ms += outcome.saved_ms
            run_s = None if outcome.run_ms is None else outcome.run_ms / 1000
            metrics.observe_task(
                agent_id, task, queued_s=outcome.queued_ms / 1000, run_s=run_s
            )
        for (task, status), number in ended.items():
            metrics.count_tasks(agent_id, task, status, number)
        for memory, number in lookups.items():
            metrics.count_lookup(agent_id, memory, number)
        if saved_ms:
            metrics.count_saved(saved_ms / 1000)


def _finish_of(agent_id: str, outcome: TaskOutcome, body: bytes) -> Finish:
    """Return the entry for the ledger, with the token of its user, so that forgetting them finds it.

    A task that names another agent than the one it was sent to ends with *agent_id*, which refuses it.
    """
    assignment = outcome.assignment
    row = row_of(
        assignment,
        outcome.generation,
        agent_id,
        state=outcome.status,
        ended_ms=time.time_ns() // 1_000_000,
        error=None if outcome.error is None else type(outcome.error).__name__,
        memory=outcome.memory,
        run_ms=outcome.run_ms,
    )
    return Finish(
        TaskName(agent_id, assignment.task_id),
        generation=outcome.generation,
        status=outcome.status,
        report=body,
        user=row.user,
        row=row,
    )


def _row_of_earlier(opened: TaskRow, stored: bytes) -> TaskRow | None:
    """Return how a task, listed as *opened*, is listed once it has the report *stored*; None if that is none."""
    try:
        report = CompletionReport.model_validate_json(stored)
    except ValidationError:
        return None
    row = row_of_report(report)._replace(agent_id=opened.agent_id)
    return row.complete(opened)


def _user_headers(assignment: TaskAssignment) -> dict[str, str] | None:
    return (
        {subjects.USER_HEADER: user_token(assignment.user_id)}
        if assignment.user_id
        else None
    )


def _fitting_body(outcome: TaskOutcome) -> bytes:
    """Return the report of *outcome*; a result that is too large turns it into a failure that says so."""
    body = outcome.body("ledger")
    if len(body) <= subjects.MAX_BODY:
        return body
    size = len(outcome.result_json or b"")
    outcome.status = "failed"
    outcome.error = ResultTooLarge(
        f"the result has {size} bytes, a report at most {subjects.MAX_BODY}; return less"
    )
    outcome.result_json = None
    return outcome.body("ledger")
