"""The runner of one agent: computes what is not remembered, once for identical questions, under the ledger's fence."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Protocol

import structlog

from contracts.errors import MemoryUnavailable, TaskCancelled, TaskExpired, TaskloreError, WorkerLost
from memory.entries import Remembered
from memory.ledger import Held
from memory.single_flight import Joined, SingleFlight
from runtime.logs import about_task
from runtime.pull import PullEngine
from workers.conclusion import Conclusion
from workers.context import Context
from workers.judgement import RetryPolicy, judge
from workers.order import Order
from workers.verdict import elapsed_ms, verdict_on

log = structlog.get_logger(__name__)

#: Seconds a question waits for another worker that computes it, when its task has no deadline.
JOIN_S = 300.0


class LongTerm(Protocol):
    """What is recalled from and remembered into: `memory.long_term.LongTermMemory` fits."""

    async def recall_many(self, entry_keys: Sequence[str]) -> list[Remembered | None]:
        """Return what is remembered for each key, in one round trip."""

    async def remember(
        self,
        key: str,
        result_json: bytes,
        *,
        computed_ms: int,
        ttl: timedelta | None,
        now_ms: int,
        user_token: str | None = None,
        parameters_json: bytes = b"{}",
    ) -> None:
        """Store a result."""


class Beginning(Protocol):
    """What is asked before a run: `memory.ledger.Ledger` fits."""

    async def begin(
        self, task_id: str, generation: int, worker_id: str, now_ms: int, lease_ms: int, *, before: int = 0
    ) -> int | Held | bytes:
        """Return which run this is, who else runs it, or the terminal report that exists already."""

    async def hold(self, runs: Sequence[tuple[str, int]], worker_id: str, lease_ms: int) -> None:
        """Lease runs anew, or let them go with 0."""


@dataclass(frozen=True, slots=True)
class Stores:
    """What a runner and its desk remember with."""

    long_term: LongTerm
    ledger: Beginning
    flights: SingleFlight[bytes]
    hits: Counter[str]


@dataclass(slots=True)
class _Run:
    """A task that runs here, and why it is to stop once somebody wishes so."""

    task: asyncio.Task[bytes]
    context: Context
    reason: str = ""


class _Start(Enum):
    """What the ledger says before a run."""

    MAY_RUN = auto()
    IS_OVER = auto()


class Runner:
    """Brings orders that are not served from memory to their end.

    Args:
        worker_id: Names this process in reports.
        stores: Memory, ledger and flights.
        conclusion: Where verdicts go.
        make_context: What a run may touch.
        retry: When a task that raised runs again.
        parked_s: Seconds until a task is offered again that waits for the ledger, or runs elsewhere.
        lease_s: Seconds for which the ledger keeps a run from being started elsewhere; as long as its delivery's lease.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        worker_id: str,
        stores: Stores,
        conclusion: Conclusion,
        make_context: Callable[[Order], Context],
        retry: RetryPolicy,
        *,
        parked_s: float = 2.0,
        lease_s: float = 30.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._worker_id = worker_id
        self._stores = stores
        self._conclusion = conclusion
        self._make_context = make_context
        self._retry = retry
        self._parked_s = parked_s
        self._lease_ms = max(1, int(lease_s * 1000))
        self._leased: set[tuple[str, int]] = set()
        self._now = now
        self._running: dict[str, _Run] = {}
        self._attended: dict[tuple[str, int], asyncio.Event] = {}

    def cancel(self, task_id: str, reason: str) -> bool:
        """Cancel the run of *task_id* and return True, or False when it does not run here."""
        running = self._running.get(task_id)
        if running is None:
            return False
        running.reason = reason or "cancelled on request"
        running.context.request_stop()
        running.task.cancel()
        return True

    async def attend(self, order: Order, line: PullEngine) -> None:
        """Bring one order to its end, or hand it back; whatever happens, it is not lost."""
        name = order.assignment.task_id, order.generation
        done = asyncio.Event()
        try:
            # A copy of a task that runs here waits for it, and then finds its report in the ledger.
            while (ahead := self._attended.setdefault(name, done)) is not done:
                await ahead.wait()
            if order.outcome == "miss":
                await self._compute_once(order, line)
            else:
                await self._compute(order, line)
        except asyncio.CancelledError:
            await self._hold([name], 0)
            line.hand_back(order.delivery)
            raise
        except Exception:
            log.exception("attending_failed", task_id=order.assignment.task_id)
            await self._hold([name], 0)
            line.hand_back(order.delivery, self._retry.pause_s(order.attempt))
        finally:
            if self._attended.get(name) is done:
                del self._attended[name]
            done.set()

    async def _compute_once(self, order: Order, line: PullEngine) -> None:
        """Compute unless an identical question is being computed: then wait for its answer."""
        key = order.memory_key or ""

        async def recall() -> bytes | None:
            found = (await self._stores.long_term.recall_many([key]))[0]
            return found.result_json if found is not None else None

        left_s = self._left_s(order)
        seat = await self._stores.flights.join(key, recall, wait_s=JOIN_S if left_s is None else left_s)
        if isinstance(seat, Joined):
            self._stores.hits[key] += 1
            order.outcome = "joined"
            verdict = verdict_on(order, "completed", self._worker_id, result_json=seat.value)
            verdict.age_ms = 0
            await self._conclusion.conclude([verdict], line)
            return
        async with seat:
            result = await self._compute(order, line)
            if result is not None:
                seat.share(result)

    async def _compute(self, order: Order, line: PullEngine) -> bytes | None:
        """Run the task, remember its result and conclude; return the result when it completed."""
        if await self._begin(order, line) is _Start.IS_OVER:
            return None
        if order.attempt > _allowed(order):
            verdict = verdict_on(order, "failed", self._worker_id)
            verdict.error = WorkerLost(f"{order.attempt - 1} runs of this task ended without a word; mend it")
            verdict.dead_reason = "attempts"
            await self._conclusion.conclude([verdict], line)
            return None
        context = self._make_context(order)
        started = time.monotonic()
        try:
            result = await self._run(order, context)
        except Exception as error:  # noqa: BLE001 - whatever a task raises becomes its report or its retry
            await self._fail(order, error, context, elapsed_ms(started), line)
            return None
        run_ms = elapsed_ms(started)
        await self._remember(order, result, run_ms)
        verdict = verdict_on(order, "completed", self._worker_id, result_json=result, run_ms=run_ms)
        verdict.usage = context.usage
        await self._conclusion.conclude([verdict], line)
        return result

    async def _begin(self, order: Order, line: PullEngine) -> _Start:
        """Ask the ledger: a generation that has its report gets it again, and what runs elsewhere is left there."""
        assignment = order.assignment
        now_ms = int(self._now().timestamp() * 1000)
        try:
            found = await self._stores.ledger.begin(
                assignment.task_id,
                order.generation,
                self._worker_id,
                now_ms,
                self._lease_ms,
                before=order.first_attempt - 1,
            )
        except MemoryUnavailable as error:
            if order.task.idempotent:
                # Nobody counts the runs now: deliveries do, of which some may have been handed back unstarted.
                order.attempt = min(order.attempt, _allowed(order))
                return _Start.MAY_RUN
            log.warning("parked_without_ledger", task_id=assignment.task_id, error=str(error))
            line.hand_back(order.delivery, self._parked_s)
            return _Start.IS_OVER
        if isinstance(found, int):
            order.attempt = found
            return _Start.MAY_RUN
        if isinstance(found, Held):
            line.hand_back(order.delivery, min(self._parked_s, found.wait_ms / 1000))
        else:
            self._conclusion.publish(assignment, order.generation, found, order.delivery, line)
        return _Start.IS_OVER

    async def renew_leases(self) -> None:
        """Renew what runs here in the ledger until cancelled, so that a copy elsewhere is not started."""
        while True:
            await asyncio.sleep(self._lease_ms / 3000)
            if self._leased:
                await self._hold(list(self._leased), self._lease_ms)

    async def _hold(self, runs: list[tuple[str, int]], lease_ms: int) -> None:
        try:
            await self._stores.ledger.hold(runs, self._worker_id, lease_ms)
        except MemoryUnavailable as error:
            log.info("run_lease_not_renewed", runs=len(runs), error=str(error))

    async def _run(self, order: Order, context: Context) -> bytes:
        """Return the result of the task; the deadline bounds it, and a wish to cancel ends it."""
        task_id = order.assignment.task_id
        name = task_id, order.generation
        self._leased.add(name)
        run = asyncio.create_task(_contained(order, context))
        wish = self._running[task_id] = _Run(run, context)
        try:
            async with asyncio.timeout(self._left_s(order)):
                return await run
        except TimeoutError as error:
            if run.cancelled():
                raise TaskExpired(f"the deadline passed while {order.task.name} ran; allow more time") from error
            raise
        except asyncio.CancelledError:
            if context.cancelled and not _being_cancelled():
                raise TaskCancelled(wish.reason) from None
            if run.cancelled() and not _being_cancelled():
                msg = f"{order.task.name} let a CancelledError escape that nobody asked for; catch it where it cancels"
                raise TaskloreError(msg) from None
            run.cancel()
            raise
        finally:
            self._leased.discard(name)
            self._running.pop(task_id, None)

    async def _remember(self, order: Order, result: bytes, run_ms: int) -> None:
        if order.memory_key is None or order.outcome not in ("miss", "refreshed"):
            return
        try:
            await self._stores.long_term.remember(
                order.memory_key,
                result,
                computed_ms=run_ms,
                ttl=order.task.remember_for,
                now_ms=int(self._now().timestamp() * 1000),
                user_token=order.user,
                parameters_json=order.parameters.model_dump_json().encode(),
            )
        except MemoryUnavailable as error:
            order.outcome = "unavailable"
            log.info("not_remembered", agent=order.assignment.agent_id, error=str(error))
        except Exception:
            # A serializer of the user's may raise anything: the result is there, and is reported all the same.
            order.outcome = "unavailable"
            log.exception("not_remembered", agent=order.assignment.agent_id)

    async def _fail(self, order: Order, error: Exception, context: Context, run_ms: int, line: PullEngine) -> None:
        """Hand the order back for another run, or conclude it as what *error* makes it."""
        assignment = order.assignment
        judgement = judge(error, attempt=order.attempt, max_attempts=_allowed(order), retry=self._retry)
        if judgement.pause_s is not None:
            log.info(
                "task_retried",
                agent=assignment.agent_id,
                task_id=assignment.task_id,
                attempt=order.attempt,
                error=type(error).__name__,
                pause_s=round(judgement.pause_s, 3),
            )
            await self._hold([(assignment.task_id, order.generation)], 0)
            line.hand_back(order.delivery, judgement.pause_s)
            return
        verdict = verdict_on(order, judgement.status, self._worker_id, run_ms=run_ms)
        verdict.error, verdict.usage, verdict.dead_reason = error, context.usage, judgement.dead_reason
        await self._conclusion.conclude([verdict], line)

    def _left_s(self, order: Order) -> float | None:
        """Return seconds until the order's deadline, or None without one."""
        deadline = order.deadline
        return None if deadline is None else max(0.0, (deadline - self._now()).total_seconds())


def _allowed(order: Order) -> int:
    return min(order.assignment.max_attempts, order.task.max_attempts)


async def _contained(order: Order, context: Context) -> bytes:
    """Run the task; what would end the whole process (sys.exit, a panic in an extension) is its failure alone."""
    try:
        with about_task(order.assignment.agent_id, order.assignment.task_id):
            return await order.task.run(order.parameters, context)
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        msg = f"{order.task.name} raised {type(error).__name__}({error}), which is no Exception; return or raise one"
        raise TaskloreError(msg) from error


def _being_cancelled() -> bool:
    """Return whether the cancellation is of the runner itself and not only of the run."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
