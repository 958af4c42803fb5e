"""The consumer of one agent: reads deliveries as jobs, serves remembered answers in batches, and runs the rest."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from tasklore.contracts import subjects
from tasklore.contracts.errors import NotAccepted
from tasklore.contracts.messages import TaskAssignment
from tasklore.memory.long_term.entries import CachedResult
from tasklore.runtime.messaging.dead_letter import dead_letter
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.runtime.metrics import Metrics
from tasklore.workers.agent import Agent
from tasklore.workers.execution.due_copies import DueCopies
from tasklore.workers.execution.executor import Executor
from tasklore.workers.execution.job import Job, UnfitJob
from tasklore.workers.execution.job_reader import JobReader
from tasklore.workers.execution.outcome import TaskOutcome, outcome_of
from tasklore.workers.execution.recall import recall
from tasklore.workers.execution.report_publisher import ReportPublisher
from tasklore.workers.execution.run_waits import explain_expiry
from tasklore.workers.execution.stores import Stores
from tasklore.workers.middleware import Hooks, notify

log = structlog.get_logger(__name__)

#: Seconds until a delivery that DEAD did not take is offered again.
_RETURN_S = 2.0
#: Bytes of a body from which on it is read beside the loop: the largest, all of numbers, takes seconds.
_LONG = 32 * 1024


class Consumer:
    """Works on the deliveries of one agent.

    Args:
        agent: Whose tasks these are.
        worker_id: Names this process in reports.
        stores: The memory; counts the entry keys that were served, until the host flushes them.
        executor: Computes answers that are not remembered.
        publisher: Publishes reports.
        metrics: Measures recalls.
        hooks: Middleware of the agent.
        due_copies: Clears LATER of copies of due messages; None when nothing ever comes from there.
        remembers: The agent's memory switch.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        agent: Agent,
        worker_id: str,
        *,
        stores: Stores,
        executor: Executor,
        publisher: ReportPublisher,
        metrics: Metrics,
        hooks: Hooks,
        due_copies: DueCopies | None = None,
        remembers: bool = True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._agent_id = agent.agent_id
        self._worker_id = worker_id
        self._stores = stores
        self._executor = executor
        self._publisher = publisher
        self._metrics = metrics
        self._hooks = hooks
        self._due_copies = due_copies
        self._reader = JobReader(agent, remembers=remembers)
        self._now = now
        self.jobs = executor.jobs

    async def work(self, batch: list[Delivery], engine: PullEngine) -> None:
        """Serve remembered answers to *batch* with one recall, and run the rest side by side."""
        now = self._now()
        jobs, refused, unknown = await self._read(batch, now)
        await recall(
            [job for job in jobs if not job.is_early(now)],
            self._stores.long_term,
            self._metrics,
            self._hooks,
        )
        # The session of a phase comes before its report, and the ledger is asked before the session.
        served = [
            job
            for job in jobs
            if job.recalled is not None and not job.assignment.writes
        ]
        now_ms = int(now.timestamp() * 1000)
        outcomes = refused + [
            self._serve(job, job.recalled, now_ms)
            for job in served
            if job.recalled is not None
        ]
        if outcomes:
            await self._publisher.publish(outcomes, engine)
        rest = [job for job in jobs if job.recalled is None or job.assignment.writes]
        if len(rest) == 1 and not unknown:
            await self._executor.execute(rest[0], engine)
        elif rest or unknown:
            async with asyncio.TaskGroup() as group:
                for job in rest:
                    group.create_task(self._executor.execute(job, engine))
                for unfit in unknown:
                    group.create_task(self._put_into_dead(unfit, engine))

    async def _read(
        self, batch: list[Delivery], now: datetime
    ) -> tuple[list[Job], list[TaskOutcome], list[UnfitJob]]:
        """Return the jobs of *batch*, the outcomes of those that no run can mend, and those without a known sender."""
        jobs: list[Job] = []
        refused: list[tuple[UnfitJob, TaskAssignment]] = []
        unknown: list[UnfitJob] = []
        notify(self._hooks.on_deliveries, batch)
        for delivery in batch:
            if (
                delivery.headers
                and subjects.SOURCE_HEADER in delivery.headers
                and self._due_copies is not None
            ):
                self._due_copies.clear(delivery)
            if len(delivery.body) > _LONG:
                job = await asyncio.to_thread(self._reader.read, delivery, now)
            else:
                job = self._reader.read(delivery, now)
            if isinstance(job, Job):
                notify(self._hooks.after_read, job)
                jobs.append(job)
            elif job.assignment is None:
                unknown.append(job)
            else:
                refused.append((job, job.assignment))
        # Side by side, so that an outage of the ledger holds up the whole batch for one deadline.
        outcomes = await asyncio.gather(*(self._refuse(*one) for one in refused))
        return jobs, outcomes, unknown

    async def _refuse(self, job: UnfitJob, assignment: TaskAssignment) -> TaskOutcome:
        problem = job.problem
        if job.is_expired:
            problem = await explain_expiry(
                self._stores.ledger, assignment.named, job.generation, problem
            )
        return TaskOutcome(
            delivery=job.delivery,
            assignment=assignment,
            generation=job.generation,
            attempt=job.attempt,
            status="expired" if job.is_expired else "rejected",
            worker_id=self._worker_id,
            memory="off",
            queued_ms=max(
                0, (self._now() - assignment.waits_from) // timedelta(milliseconds=1)
            ),
            error=problem,
        )

    def _serve(self, job: Job, answer: CachedResult, now_ms: int) -> TaskOutcome:
        job.memory = "hit" if job.near is None else "near"
        if (key := job.entry_key) is not None:
            self._stores.count_hit(key, job.user)
        outcome = outcome_of(
            job, "completed", self._worker_id, result_json=answer.result_json
        )
        outcome.age_ms = max(0, now_ms - answer.created_at_ms)
        outcome.saved_ms = answer.computed_ms
        outcome.usage = self._stores.usage_of(job, answer)
        return outcome

    async def _put_into_dead(self, unfit: UnfitJob, engine: PullEngine) -> None:
        """Put a delivery without a known sender into DEAD; there is no address for a report."""
        letter = dead_letter(
            unfit.delivery,
            reason="unreadable",
            error=unfit.problem,
            attempts=unfit.attempt,
            generation=unfit.generation,
            agent_id=self._agent_id,
            worker_id=self._worker_id,
        )
        # Not its words, which may be a person's: the dead letter has them.
        log.warning(
            "message_unreadable",
            agent=self._agent_id,
            subject=unfit.delivery.subject,
            sequence=unfit.delivery.sequence,
            error=type(unfit.problem).__name__,
            more="tasklore dead-letters list --reason unreadable",
        )
        try:
            await self._publisher.put_into_dead(unfit.delivery, letter, "unreadable")
        except NotAccepted as error:
            log.warning("dead_letter_not_stored", error=str(error))
            engine.hand_back(unfit.delivery, _RETURN_S)
        else:
            engine.settle(unfit.delivery)
