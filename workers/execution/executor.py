"""The runner of one agent: computes what is not remembered, once for identical questions, under the ledger's fence."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from contracts.errors import MemoryUnavailable, RunReplaced, TaskCancelled, TaskExpired, WorkerLost
from contracts.messages import MemoryOutcome
from memory.ledger.runs import Beginning, CancelRequest, Held, NotDue, Run, Suspect
from memory.long_term.entries import Remembered
from memory.long_term.single_flight import Joined
from runtime.messaging.pull import PullEngine
from runtime.metrics import Metrics
from runtime.tracing import within
from workers.execution.exclusive_runs import Solitude, StillBusy
from workers.execution.job import Order
from workers.execution.outcome import verdict_on
from workers.execution.releases import Releases
from workers.execution.report_publisher import Conclusion
from workers.execution.run import Performer
from workers.execution.running_jobs import Attendance, Attending, Leaving
from workers.execution.stores import Stores

log = structlog.get_logger(__name__)

#: Seconds a question waits for another worker that computes it, when its task has no deadline.
JOIN_S = 300.0
#: Crashes after which a task still runs beside all others, and after which in a small group of such; then it is alone.
CRASHES_BESIDE_ALL, CRASHES_IN_GROUP = 1, 2
#: Crashes of runs beside which nothing ran, after which a task is given up: by then it was nobody else.
CRASHES_ALONE = 3
#: Seconds until an order is offered again whose attending failed, which only a mistake of ours can make it do.
_MISTAKE_S = 2.0


@dataclass(frozen=True, slots=True)
class Terms:
    """How long things are left alone, in seconds.

    `parked_s` is for a task that waits for the ledger, or runs elsewhere. `lease_s` is how long the ledger keeps a run
    from being started elsewhere; as long as the lease of its delivery.
    """

    parked_s: float = 2.0
    lease_s: float = 30.0


class Runner:
    """Brings orders that are not served from memory to their end.

    Args:
        worker_id: Names this process in reports.
        stores: Memory, ledger and flights.
        performer: Runs the tasks.
        releases: Keeps what the ledger could not be told.
        conclusion: Where verdicts go.
        meter: Counts crashes and replacements.
        solitude: Who may run beside whom in this process.
        terms: Leases and pauses.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        worker_id: str,
        stores: Stores,
        performer: Performer,
        releases: Releases,
        conclusion: Conclusion,
        meter: Metrics,
        *,
        solitude: Solitude,
        terms: Terms,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._worker_id = worker_id
        self._stores = stores
        self._performer = performer
        self._releases = releases
        self._conclusion = conclusion
        self._meter = meter
        self._solitude = solitude
        self._terms = terms
        self._lease_ms = max(1, int(terms.lease_s * 1000))
        self._now = now
        self.attendance = Attendance()

    async def attend(self, order: Order, line: PullEngine) -> None:
        """Bring one order to its end, or hand it back; whatever happens, it is not lost."""
        try:
            with within(order.delivery.trace):
                await self._attend(order, line)
        except asyncio.CancelledError:
            # The worker leaves before the task has ended, which is no fault of the task.
            await self._performer.release(order, excused=True)
            line.hand_back(order.delivery)
            raise
        except Exception:
            log.exception("attending_failed", task_id=order.assignment.task_id)
            await self._performer.release(order)
            line.hand_back(order.delivery, _MISTAKE_S)

    async def _attend(self, order: Order, line: PullEngine) -> None:
        attending = Attending(order)
        try:
            async with self.attendance.turn(attending):
                if order.remembered is not None:
                    await self._hand_on(attending, order.remembered, "hit" if order.near is None else "near", line)
                elif order.outcome == "miss":
                    await self._compute_once(attending, line)
                else:
                    await self._compute(attending, line)
        except Leaving:
            line.hand_back(order.delivery)
        except RunReplaced as error:
            self._meter.count_replaced_run()
            log.warning("run_replaced", task_id=order.assignment.task_id, error=str(error))
            # It is the other worker's by now: a word on it would take it from there.
            line.forget(order.delivery)
        except (TaskCancelled, TaskExpired) as error:
            await self._performer.fail(order, error, line)

    async def _compute_once(self, attending: Attending, line: PullEngine) -> None:
        """Compute unless an identical question is being computed: then wait for its answer."""
        order = attending.order
        key = order.memory_key or ""

        async def recall() -> bytes | None:
            found = (await self._stores.long_term.recall_many([key]))[0]
            return found.result_json if found is not None else None

        left_s = self._performer.left_s(order)
        async with attending.waiting():
            seat = await self._stores.flights.join(key, recall, wait_s=JOIN_S if left_s is None else left_s)
        if isinstance(seat, Joined) and order.assignment.writes:
            await self._hand_on(attending, await self._as_remembered(key, seat.value), "joined", line)
            return
        if isinstance(seat, Joined):
            self._stores.count_hit(key, order.user)
            order.outcome = "joined"
            verdict = verdict_on(order, "completed", self._worker_id, result_json=seat.value)
            verdict.age_ms = 0
            await self._conclusion.conclude([verdict], line)
            return
        async with seat:
            result = await self._compute(attending, line)
            if result is not None:
                seat.share(result)

    async def _hand_on(
        self, attending: Attending, answer: Remembered, outcome: MemoryOutcome, line: PullEngine
    ) -> None:
        """Put an *answer* that needs no run into the session of its phase, and conclude.

        The ledger is asked first: a redelivery whose report is out must not touch what others have read since.
        """
        order = attending.order
        found = await self._begin(order, line)
        # Where runs of it crashed before, it is harmless to hand on what another one computed.
        if found is not None:
            order.outcome = outcome
            await self._performer.hand_on(attending, answer, line)

    async def _as_remembered(self, key: str, result: bytes) -> Remembered:
        """Return *result*, which was joined, with what computing it took; 0 ms when that is not known."""
        try:
            found = (await self._stores.long_term.recall_many([key]))[0]
        except MemoryUnavailable:
            found = None
        if found is not None and found.result_json == result:
            return found
        return Remembered(int(self._now().timestamp() * 1000), 0, result)

    async def _compute(self, attending: Attending, line: PullEngine) -> bytes | None:
        """Run the task beside fewer the more often it may have killed a worker; return its result if it completed."""
        order = attending.order
        # What must not run twice has few runs: it is not to lose them by a neighbour that strikes again.
        most = (CRASHES_BESIDE_ALL, CRASHES_IN_GROUP) if order.task.idempotent else (0,)
        crashes = 0
        for most_crashes in (*most, None):
            if most_crashes is not None and crashes > most_crashes:
                continue
            alone, grouped = most_crashes is None, most_crashes == CRASHES_IN_GROUP
            try:
                async with self._entered(attending, alone=alone, grouped=grouped):
                    found = await self._begin(order, line, alone=alone, most_crashes=most_crashes or 0)
                    if isinstance(found, Run):
                        return await self._performer.perform(attending, line)
            except StillBusy as error:
                log.info("task_left_to_others", task_id=order.assignment.task_id, reason=str(error))
                line.hand_back(order.delivery, self._terms.parked_s * random.uniform(1, 2))  # noqa: S311 - jitter
                return None
            if found is None:
                return None
            if found.crashes_alone >= CRASHES_ALONE or not (order.task.idempotent or found.runs < order.runs_allowed):
                await self._give_up(order, found, line)
                return None
            crashes = found.crashes
            log.warning("task_suspected", task_id=order.assignment.task_id, crashes=crashes)
        line.hand_back(order.delivery, self._terms.parked_s)
        return None

    @asynccontextmanager
    async def _entered(self, attending: Attending, *, alone: bool, grouped: bool) -> AsyncIterator[None]:
        async with attending.waiting():
            await self._solitude.enter(alone=alone, grouped=grouped)
        try:
            yield
        finally:
            self._solitude.leave(alone=alone, grouped=grouped)

    async def _begin(
        self, order: Order, line: PullEngine, *, alone: bool = False, most_crashes: int = 0
    ) -> Run | Suspect | None:
        """Ask the ledger: a generation that has its report gets it again, and what runs elsewhere is left there.

        A suspect has crashed more than *most_crashes* times and does not run *alone*. None when it is dealt with.

        Raises:
            TaskCancelled: somebody wishes the task, or the one it is a part of, cancelled.
            TaskExpired: its time is over before it could begin.
        """
        assignment = order.assignment
        if self._performer.left_s(order) == 0:
            raise TaskExpired("the deadline passed before the task could begin; allow more time or start more workers")
        try:
            found = await self._ask(order, alone=alone, most_crashes=most_crashes)
        except MemoryUnavailable as error:
            if order.task.idempotent:
                # Nobody counts the runs now: deliveries do, of which some may have been handed back unstarted.
                order.attempt = min(order.attempt, order.runs_allowed)
                return Run(order.attempt)
            log.warning("parked_without_ledger", task_id=assignment.task_id, error=str(error))
            # It may have been told that the run begins, which it does not.
            self._releases.keep(order.ended(excused=True))
            line.hand_back(order.delivery, self._terms.parked_s)
            return None
        if isinstance(found, Run):
            order.attempt, order.crashes, order.excused = found.number, found.crashes, found.excused
            if order.tries <= order.runs_allowed:
                return found
            await self._give_up(order, Suspect(found.crashes, 0, found.number - 1), line)
        elif isinstance(found, Suspect):
            return found
        elif isinstance(found, CancelRequest):
            raise TaskCancelled(found.reason)
        elif isinstance(found, Held):
            line.hand_back(order.delivery, min(self._terms.parked_s, found.wait_ms / 1000))
        elif isinstance(found, NotDue):
            line.hand_back(order.delivery, found.wait_ms / 1000)
        else:
            self._conclusion.publish(assignment, order.generation, found, order.delivery, line)
        return None

    async def _ask(self, order: Order, *, alone: bool, most_crashes: int) -> Beginning:
        assignment, ledger = order.assignment, self._stores.ledger
        if assignment.parent_id and (wish := await ledger.wish(assignment.parent_id)) is not None:
            return CancelRequest(f"its parent was cancelled: {wish.reason}")
        now_ms = int(self._now().timestamp() * 1000)
        found = await ledger.begin(
            assignment.task_id,
            order.generation,
            self._worker_id,
            now_ms,
            self._lease_ms,
            before=order.first_attempt - 1,
            alone=alone,
            most_crashes=most_crashes,
            token=order.delivery.reply,
        )
        if isinstance(found, Run | Suspect) and found.is_news:
            self._meter.count_crashed_run()
        return found

    async def _give_up(self, order: Order, suspect: Suspect, line: PullEngine) -> None:
        """Set a task aside whose runs end without a word."""
        order.attempt = suspect.runs
        verdict = verdict_on(order, "failed", self._worker_id)
        if suspect.crashes:
            verdict.error = WorkerLost(
                f"{suspect.crashes} runs of this task ended without a word, {suspect.crashes_alone} of them with "
                "nothing beside it; it probably kills the process that runs it: mend it, then redrive it"
            )
            verdict.dead_reason = "crashes"
        else:
            verdict.error = WorkerLost(f"{suspect.runs} runs of this task ended without a report; redrive it")
            verdict.dead_reason = "attempts"
        if not await self._conclusion.conclude([verdict], line):
            await self._performer.release(order)
