"""Another run later: a short wait is spent in TASKS, a long one in LATER, where it holds no slot and is not pending.

Every step comes after the one that makes it safe: the ledger knows that no run begins before its time, then the
schedule is stored, then the delivery is settled. A worker that dies in between leaves a delivery that waits for the
same time.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from contracts import subjects
from contracts.errors import MemoryUnavailable, MessageTooLarge, NotAccepted
from memory.ledger.ledger import Ledger
from memory.ledger.runs import Ended
from runtime.messaging.outbox import Outbox
from runtime.messaging.pull import PullEngine
from runtime.metrics import Metrics
from workers.execution.acknowledger import Settling
from workers.execution.job import Order
from workers.execution.releases import Releases

log = structlog.get_logger(__name__)

#: How long a message that has become due stays in LATER: TASKS takes it within milliseconds, one that is full within a
#: day. It is deleted as soon as its task is delivered (see `workers.execution.due_copies`).
_DUE_TTL = "24h"
#: Seconds that the ledger lets a task run early: its clock and that of NATS are not the same.
_EARLY_S = 0.1
#: Seconds to wait for the schedule to be stored before the delivery is handed back with its delay instead.
_STORED_WITHIN_S = 10.0


class Retries:
    """Lets tasks run again.

    Args:
        ledger: Notes that they wait.
        releases: Keeps what the ledger could not be told.
        outbox: Stores schedules.
        meter: Counts them.
        scheduled_over_s: Seconds above which a wait is scheduled.
        settling: How a delivery is settled whose next run is scheduled.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        ledger: Ledger,
        releases: Releases,
        outbox: Outbox,
        meter: Metrics,
        *,
        scheduled_over_s: float = 5.0,
        settling: Settling | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._ledger = ledger
        self._releases = releases
        self._outbox = outbox
        self._meter = meter
        self._scheduled_over_s = scheduled_over_s
        self._settling = settling or Settling()
        self._now = now

    async def again(
        self, order: Order, pause_s: float, line: PullEngine, *, excused: bool = False, waits_for: str | None = None
    ) -> None:
        """Let the task of *order* run again after *pause_s* seconds.

        An *excused* run is not held against it; one that only found that its model is away, *waits_for*, is none.
        """
        if waits_for is not None:
            self._meter.count_waiting(waits_for, order.assignment.task_id, pause_s)
        ended = order.ended(excused=excused, uncounted=waits_for is not None)
        if pause_s <= self._scheduled_over_s:
            await self._park(order, ended, 0.0)
            self._meter.count_retry("nak")
            line.hand_back(order.delivery, pause_s)
            return
        due_at = self._now() + timedelta(seconds=pause_s)
        await self._park(order, ended, max(0.0, pause_s - _EARLY_S))
        try:
            await self._schedule(order, due_at, uncounted=ended.uncounted)
        except (NotAccepted, MessageTooLarge) as error:
            # One that only just fits into TASKS is too large with the headers of a schedule.
            log.warning("retry_not_scheduled", task_id=order.assignment.task_id, error=str(error))
            self._meter.count_retry("nak")
            line.hand_back(order.delivery, max(0.0, (due_at - self._now()).total_seconds()))
        else:
            self._meter.count_retry("schedule")
            self._settling.settle(order.delivery, order.assignment.user_id, line)

    async def _park(self, order: Order, ended: Ended, wait_s: float) -> None:
        try:
            await self._ledger.park(ended, int(wait_s * 1000), order.delivery.body)
        except MemoryUnavailable as error:
            log.info("retry_not_noted", task_id=order.assignment.task_id, error=str(error))
            self._releases.keep(ended)

    async def _schedule(self, order: Order, due_at: datetime, *, uncounted: bool) -> None:
        assignment, attempt = order.assignment, order.attempt + 1 - int(uncounted)
        message_id = subjects.retry_message_id(assignment.task_id, order.generation, attempt)
        if uncounted:
            # The same attempt may be scheduled often, each time by another delivery.
            message_id += f":{order.delivery.sequence}"
        kept = {name: value for name, value in (order.delivery.headers or {}).items() if not name.startswith("Nats-")}
        await self._outbox.put(
            subjects.schedule(assignment.task_id, order.generation),
            order.delivery.body,
            message_id,
            headers={
                **kept,
                subjects.GENERATION_HEADER: str(order.generation),
                subjects.ATTEMPT_HEADER: str(attempt),
                subjects.SCHEDULE_HEADER: f"@at {due_at.isoformat().replace('+00:00', 'Z')}",
                subjects.SCHEDULE_TARGET_HEADER: subjects.due(assignment.agent_id, assignment.task.name),
                subjects.SCHEDULE_TTL_HEADER: _DUE_TTL,
            },
            patience_s=_STORED_WITHIN_S,
        )
