"""Another run later: a short wait is spent in TASKS, a long one in LATER, where it holds no slot and is not pending.

Every step comes after the one that makes it safe: the ledger knows that no run begins before its time, then the
schedule is stored, then the delivery is acknowledged. A worker that dies in between leaves a delivery that waits for
the same time.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from contracts import subjects
from contracts.errors import MemoryUnavailable, MessageTooLarge, NotAccepted
from memory.ledger.runs import Ended
from runtime.messaging.outbox import Outbox
from runtime.messaging.pull import PullEngine
from runtime.metrics import Metrics
from workers.execution.acknowledger import Acknowledger
from workers.execution.job import Job
from workers.execution.stores import Stores

log = structlog.get_logger(__name__)

#: Seconds that the ledger lets a task run early: its clock and that of NATS are not the same.
_EARLY_S = 0.1
#: Seconds to wait for the schedule to be stored before the delivery is handed back with its delay instead.
_STORED_WITHIN_S = 10.0


class Retries:
    """Lets tasks run again.

    Args:
        stores: The ledger notes that they wait.
        outbox: Stores schedules.
        metrics: Counts them.
        acknowledger: Acknowledges a delivery whose next run is scheduled.
        scheduled_over_s: Seconds above which a wait is scheduled.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        stores: Stores,
        outbox: Outbox,
        metrics: Metrics,
        acknowledger: Acknowledger,
        *,
        scheduled_over_s: float = 5.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._stores = stores
        self._outbox = outbox
        self._metrics = metrics
        self._acknowledger = acknowledger
        self._scheduled_over_s = scheduled_over_s
        self._now = now

    async def retry(
        self, job: Job, pause_s: float, engine: PullEngine, *, excused: bool = False, waits_for: str | None = None
    ) -> None:
        """Let *job* run again after *pause_s* seconds.

        An *excused* run is not held against it; one that only found its model *waits_for* away is no attempt at all.
        """
        if waits_for is not None:
            self._metrics.count_waiting(waits_for, job.assignment.task_id, pause_s)
        ended = job.to_ended(excused=excused, uncounted=waits_for is not None)
        if pause_s <= self._scheduled_over_s:
            await self._park(job, ended, 0.0)
            self._metrics.count_retry("nak")
            engine.hand_back(job.delivery, pause_s)
            return
        due_at = self._now() + timedelta(seconds=pause_s)
        await self._park(job, ended, max(0.0, pause_s - _EARLY_S))
        try:
            await self._schedule(job, due_at, uncounted=ended.uncounted)
        except (NotAccepted, MessageTooLarge) as error:
            # One that only just fits into TASKS is too large with the headers of a schedule.
            log.warning("retry_not_scheduled", task_id=job.assignment.task_id, error=str(error))
            self._metrics.count_retry("nak")
            engine.hand_back(job.delivery, max(0.0, (due_at - self._now()).total_seconds()))
        else:
            self._metrics.count_retry("schedule")
            self._acknowledger.acknowledge(job.delivery, job.assignment, engine)

    async def _park(self, job: Job, ended: Ended, wait_s: float) -> None:
        try:
            await self._stores.ledger.park(ended, int(wait_s * 1000), job.delivery.body)
        except MemoryUnavailable as error:
            log.info("retry_not_noted", task_id=job.assignment.task_id, error=str(error))
            self._stores.ended.keep(ended)

    async def _schedule(self, job: Job, due_at: datetime, *, uncounted: bool) -> None:
        assignment, attempt = job.assignment, job.attempt + 1 - int(uncounted)
        message_id = subjects.retry_message_id(assignment.task_id, job.generation, attempt)
        if uncounted:
            # The same attempt may be scheduled often, each time by another delivery.
            message_id += f":{job.delivery.sequence}"
        kept = {name: value for name, value in (job.delivery.headers or {}).items() if not name.startswith("Nats-")}
        await self._outbox.put(
            subjects.schedule(assignment.task_id, job.generation),
            job.delivery.body,
            message_id,
            headers={
                **kept,
                subjects.GENERATION_HEADER: str(job.generation),
                subjects.ATTEMPT_HEADER: str(attempt),
                **subjects.schedule_headers(due_at, subjects.due(assignment.agent_id, assignment.task.name)),
            },
            patience_s=_STORED_WITHIN_S,
        )
