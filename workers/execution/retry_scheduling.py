"""Another run later: a short wait is spent in TASKS, a long one in LATER, where it holds no slot and is not pending.

Every step comes after the one that makes it safe: the ledger knows that no run begins before its time, then the
schedule is stored, then the delivery is acknowledged. A worker that dies in between leaves a delivery that waits for
the same time.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import structlog

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import RunWait, Wait
from tasklore.contracts.errors import MemoryUnavailable, MessageTooLarge, NotAccepted
from tasklore.memory.ledger.runs import Ended
from tasklore.memory.ledger.waits import LATE, WaitName, Waits
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.pull import PullEngine
from tasklore.runtime.metrics import Metrics
from tasklore.workers.execution.acknowledger import Acknowledger
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.retry_decision import OUTAGE_PAUSE_S
from tasklore.workers.execution.stores import Stores

log = structlog.get_logger(__name__)

#: Seconds that the ledger lets a task run early: its clock and that of NATS are not the same.
_EARLY_S = 0.1
#: Seconds until a copy of a task that waits is offered again: by then REPORTS still has a report that came meanwhile.
NOT_DUE_S = 3600.0
#: Seconds to wait for the schedule to be stored before the delivery is handed back with its delay instead.
_STORED_WITHIN_S = 10.0
#: Seconds for a run that is brought forward: it comes by itself, if later.
_CALLED_WITHIN_S = 5.0
#: Seconds of `scheduled_over_s` above which LATER is not used: workers that may not read it are given a day.
_LATER_OFF_S = 3600.0
#: After which time a wait that is not stored yet never will be.
_STORED_WITHIN = timedelta(minutes=1)


class Retries:
    """Lets tasks run again.

    Args:
        stores: The ledger notes that they wait.
        waits: Where the waits of tasks are noted.
        outbox: Stores schedules.
        metrics: Counts them.
        acknowledger: Acknowledges a delivery whose next run is scheduled.
        scheduled_over_s: Seconds above which a wait is scheduled.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        stores: Stores,
        waits: Waits,
        outbox: Outbox,
        metrics: Metrics,
        acknowledger: Acknowledger,
        *,
        scheduled_over_s: float = 5.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._stores = stores
        self._waits = waits
        self._outbox = outbox
        self._metrics = metrics
        self._acknowledger = acknowledger
        self._scheduled_over_s = scheduled_over_s
        self.has_later = scheduled_over_s <= _LATER_OFF_S
        """Whether LATER takes schedules, as far as is known: where roles are enforced it is closed to workers."""
        self._now = now

    async def retry(
        self,
        job: Job,
        pause_s: float,
        engine: PullEngine,
        *,
        waits_for: RunWait,
        excused: bool = False,
    ) -> None:
        """Let *job* run again after *pause_s* seconds; *waits_for* is why.

        An *excused* run is not held against it; one that only found no room for its call of a model, or the model away,
        is no attempt at all.
        """
        is_uncounted = waits_for.kind in ("limit", "model")
        if is_uncounted:
            self._metrics.count_waiting(
                waits_for.model, job.assignment.task_id, pause_s
            )
        ended = job.to_ended(excused=excused, uncounted=is_uncounted)
        if pause_s <= self._scheduled_over_s:
            await self._park(job, ended, 0.0, waits_for)
            self._metrics.count_retry("nak")
            engine.hand_back(job.delivery, pause_s)
            return
        due_at = self._now() + timedelta(seconds=pause_s)
        await self._park(job, ended, max(0.0, pause_s - _EARLY_S), waits_for)
        try:
            await self._schedule(job, due_at, uncounted=ended.uncounted)
        except (NotAccepted, MessageTooLarge) as error:
            # One that only just fits into TASKS is too large with the headers of a schedule.
            log.warning(
                "retry_not_scheduled", task_id=job.assignment.task_id, error=str(error)
            )
            self._metrics.count_retry("nak")
            engine.hand_back(
                job.delivery, max(0.0, (due_at - self._now()).total_seconds())
            )
        else:
            self._metrics.count_retry("schedule")
            self._acknowledger.acknowledge(job.delivery, job.assignment, engine)

    async def wait(self, job: Job, waits: Sequence[Wait], engine: PullEngine) -> None:
        """Let *job* run again when one of *waits* is answered or over, unless another run took its place.

        The schedule of its end is stored first, so that an answer, which brings it forward, finds it there.
        """
        task_id = job.assignment.task_id
        until = min(one.until for one in waits)
        wait_s = max(0.0, (until - self._now()).total_seconds())
        has_schedule = True
        offered_s = None
        try:
            await self._schedule(job, until, uncounted=False)
        except (NotAccepted, MessageTooLarge) as error:
            # Where roles are enforced a worker has no access to LATER: there the notifier alone wakes the task.
            log.info("wait_not_scheduled", task_id=task_id, error=str(error))
            has_schedule = False
            # One that is too large with the headers of a schedule comes again from TASKS.
            offered_s = (
                min(wait_s, NOT_DUE_S) if isinstance(error, MessageTooLarge) else None
            )
        try:
            # The notifier takes off its list what is not there by then.
            stored_by = self._now() + _STORED_WITHIN
            await self._waits.look_at_many(
                {_name(task_id, one): min(one.until, stored_by) for one in waits}
            )
            await self._stores.ledger.list_runs([job.make_row()])
            is_waiting = await self._waits.begin(
                job.to_ended(),
                waits,
                wait_s=wait_s,
                due_s=max(0.0, wait_s - _EARLY_S),
                assignment=job.delivery.body,
            )
            if is_waiting:
                await self._waits.look_at_many(
                    {
                        _name(task_id, one): self._now()
                        if one.kind == "ask"
                        else one.until + LATE
                        for one in waits
                    }
                )
            elif is_waiting is False and has_schedule:
                await self._schedule(
                    job, self._now(), uncounted=False, mark=":answered"
                )
        except (NotAccepted, MemoryUnavailable) as error:
            log.warning("wait_not_stored", task_id=task_id, error=str(error))
            await self._stores.release(job.to_ended(excused=True))
            engine.hand_back(job.delivery, OUTAGE_PAUSE_S)
            return
        if is_waiting is None:
            engine.forget(job.delivery)
        elif is_waiting and offered_s is not None:
            engine.hand_back(job.delivery, offered_s)
        elif is_waiting or has_schedule:
            self._metrics.count_retry("wait")
            self._acknowledger.acknowledge(job.delivery, job.assignment, engine)
        else:
            engine.hand_back(job.delivery)

    async def close(self, job: Job) -> None:
        """Take the open waits of *job*, which has ended, off the list of all; else the notifier does so later."""
        try:
            await self._waits.close(job.assignment.named)
        except MemoryUnavailable as error:
            log.info(
                "waits_not_closed", task_id=job.assignment.task_id, error=str(error)
            )

    async def postpone(self, job: Job, due_at: datetime, *, mark: str = "") -> bool:
        """Store that *job*, of which no run has begun, is offered at *due_at*; return False where LATER may not.

        *mark* distinguishes the schedules of one delivery.
        """
        if self._scheduled_over_s > _LATER_OFF_S:
            return False
        job.attempt = job.first_attempt
        try:
            await self._schedule(job, due_at, uncounted=True, mark=mark)
        except MessageTooLarge as error:
            log.info(
                "wait_not_scheduled", task_id=job.assignment.task_id, error=str(error)
            )
            return False
        except NotAccepted as error:
            log.info(
                "wait_not_scheduled", task_id=job.assignment.task_id, error=str(error)
            )
            self.has_later = False
            return False
        self.has_later = True
        return True

    async def lay_aside(self, job: Job, wait_ms: int, engine: PullEngine) -> None:
        """Keep a copy of *job*, whose next run is not due for *wait_ms* milliseconds, where it is not pending.

        Its run waits elsewhere, for days perhaps: deliveries that wait as long would leave no room for others. It is
        offered again after `NOT_DUE_S` at the latest.
        """
        wait_s = min(NOT_DUE_S, wait_ms / 1000)
        if wait_s > self._scheduled_over_s and await self._is_kept(job, wait_s):
            self._acknowledger.acknowledge(job.delivery, job.assignment, engine)
        else:
            engine.hand_back(job.delivery, wait_s)

    async def _is_kept(self, job: Job, wait_s: float) -> bool:
        """Schedule *job*; return whether it comes again although its delivery is acknowledged."""
        job.attempt = job.first_attempt
        due_at = self._now() + timedelta(seconds=wait_s)
        try:
            await self._schedule(job, due_at, uncounted=True, mark=":copy")
        except MessageTooLarge:
            return False
        except NotAccepted:
            # Workers have no access to LATER where roles are enforced: there the notifier wakes what has open waits.
            try:
                return bool(await self._waits.of(job.assignment.task_id))
            except MemoryUnavailable:
                return False
        return True

    def settle(self, job: Job, engine: PullEngine) -> None:
        """Acknowledge the delivery of *job*, which was postponed."""
        self._metrics.count_retry("place")
        self._acknowledger.acknowledge(job.delivery, job.assignment, engine)

    async def bring_forward(
        self, subject: str, body: bytes, headers: Mapping[str, str]
    ) -> None:
        """Let a run that waits in LATER begin now, of which *headers* are those that it was read with.

        Raises:
            NotAccepted, MessageTooLarge: that is not known to be stored.
        """
        kept = {
            name: value
            for name, value in headers.items()
            if not name.startswith("Nats-")
        }
        # Once for each schedule: of two that call one task the second changes nothing.
        message_id = f"{subject}:called:{headers[subjects.SEQUENCE_HEADER]}"
        now = subjects.schedule_headers(
            self._now(), headers[subjects.SCHEDULE_TARGET_HEADER]
        )
        await self._outbox.put(
            subject, body, message_id, headers=kept | now, patience_s=_CALLED_WITHIN_S
        )

    async def _park(
        self, job: Job, ended: Ended, wait_s: float, waits_for: RunWait
    ) -> None:
        try:
            await self._stores.ledger.park(
                ended,
                int(wait_s * 1000),
                assignment=job.delivery.body,
                waits_for=waits_for,
                row=job.make_row(),
            )
        except MemoryUnavailable as error:
            log.info(
                "retry_not_noted", task_id=job.assignment.task_id, error=str(error)
            )
            self._stores.ended.keep(ended)

    async def _schedule(
        self, job: Job, due_at: datetime, *, uncounted: bool, mark: str = ""
    ) -> None:
        assignment = job.assignment
        attempt = job.attempt + 1 - int(uncounted)
        message_id = (
            subjects.retry_message_id(assignment.task_id, job.generation, attempt)
            + mark
        )
        if uncounted:
            # The same attempt may be scheduled often, each time by another delivery.
            message_id += f":{job.delivery.sequence}"
        kept = {
            name: value
            for name, value in (job.delivery.headers or {}).items()
            if not name.startswith("Nats-")
        }
        await self._outbox.put(
            subjects.schedule(assignment.task_id, job.generation),
            job.delivery.body,
            message_id,
            headers={
                **kept,
                subjects.GENERATION_HEADER: str(job.generation),
                subjects.ATTEMPT_HEADER: str(attempt),
                **subjects.schedule_headers(
                    due_at, subjects.due(assignment.agent_id, assignment.task.name)
                ),
            },
            patience_s=_STORED_WITHIN_S,
        )


def _name(task_id: str, wait: Wait) -> WaitName:
    return WaitName(wait.kind, task_id, wait.slot)
