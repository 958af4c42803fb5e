"""The desk of one agent: reads deliveries, serves what is remembered, runs the rest, and concludes each one once."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import structlog

from contracts.errors import GiveUp, InvalidInput, MemoryUnavailable, NotAccepted, RetryLater
from contracts.messages import MemoryNote, MemoryOutcome, Usage
from memory.entries import Remembered
from memory.single_flight import Joined, SingleFlight
from runtime.pull import Delivery, PullEngine
from workers.agent import Agent
from workers.conclusion import Conclusion
from workers.context import Context
from workers.order import Order, Unfit, read_order
from workers.verdict import Verdict, dead_letter, elapsed_ms

log = structlog.get_logger(__name__)

#: Seconds a question waits for another worker that computes it, when its task has no deadline.
JOIN_S = 300.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a task that raised runs again: full jitter up to `base_s * 2 ** attempt`, at most `cap_s`, in seconds."""

    base_s: float = 0.5
    cap_s: float = 60.0

    def pause_s(self, attempt: int) -> float:
        """Return seconds until the run after *attempt*."""
        return random.uniform(0.1, 1.0) * min(self.cap_s, self.base_s * 2 ** min(attempt, 20))  # noqa: S311 - jitter


class BatchRecall(Protocol):
    """What a desk recalls from and remembers into: `memory.long_term.LongTermMemory` fits."""

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
    """What a desk asks before a run: `memory.ledger.Ledger` fits."""

    async def begin(self, task_id: str, generation: int, attempt: int, worker_id: str, now_ms: int) -> bytes | None:
        """Return None when the attempt may run, or the terminal report that exists already."""


class DeskMeter(Protocol):
    """Where a desk counts: `runtime.metrics.Metrics` fits."""

    def count_task(self, agent: str, task: str, outcome: str, *, queued_s: float, run_s: float) -> None:
        """Count a terminal report with its status."""

    def count_lookup(self, agent: str, outcome: str, number: int = 1) -> None:
        """Count what the memory had to say to *number* tasks."""

    def count_saved(self, seconds: float) -> None:
        """Count the time that served answers once took to compute."""

    def time_lookup(self) -> AbstractContextManager[object]:
        """Measure a recall while the block runs."""


ContextMaker = Callable[[Order], Context]


class TaskDesk:
    """Works on the deliveries of one agent.

    Args:
        agent: Whose tasks these are.
        worker_id: Names this process in reports.
        remembers: The agent's memory switch.
        hits: Counts entry keys that were served, until the host flushes them.
        make_context: What a run may touch.
        parked_s: Seconds until a task that must be fenced is offered again while the ledger is away.
    """

    def __init__(
        self,
        agent: Agent,
        worker_id: str,
        *,
        memory: BatchRecall,
        ledger: Beginning,
        flights: SingleFlight[bytes],
        conclusion: Conclusion,
        make_context: ContextMaker,
        meter: DeskMeter,
        hits: Counter[str],
        retry: RetryPolicy,
        remembers: bool = True,
        parked_s: float = 2.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._agent = agent
        self._worker_id = worker_id
        self._memory = memory
        self._ledger = ledger
        self._flights = flights
        self._conclusion = conclusion
        self._make_context = make_context
        self._meter = meter
        self._hits = hits
        self._retry = retry
        self._remembers = remembers
        self._parked_s = parked_s
        self._now = now
        self._running: dict[str, _Run] = {}

    def cancel(self, task_id: str, reason: str) -> bool:
        """Cancel the run of *task_id* and return True, or False when it does not run here."""
        running = self._running.get(task_id)
        if running is None:
            return False
        running.reason = reason or "cancelled on request"
        running.context.request_stop()
        running.task.cancel()
        return True

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Serve what is remembered out of *batch* with one recall, and run the rest side by side."""
        now = self._now()
        orders: list[Order] = []
        refused: list[Verdict] = []
        for delivery in batch:
            read = read_order(delivery, self._agent, now, remembers=self._remembers)
            if isinstance(read, Order):
                orders.append(read)
            elif (verdict := await self._refuse(read, line)) is not None:
                refused.append(verdict)
        served, rest = await self._recall(orders)
        if served or refused:
            await self._conclude(served + refused, line)
        if len(rest) == 1:
            await self._attend(rest[0], line)
        elif rest:
            async with asyncio.TaskGroup() as group:
                for order in rest:
                    group.create_task(self._attend(order, line))

    async def _recall(self, orders: list[Order]) -> tuple[list[Verdict], list[Order]]:
        """Return verdicts for what is remembered, and the orders that are not."""
        asking = [order for order in orders if order.outcome == "miss"]
        if not asking:
            return [], orders
        try:
            with self._meter.time_lookup():
                answers = await self._memory.recall_many([order.memory_key or "" for order in asking])
        except MemoryUnavailable as error:
            log.info("memory_unavailable", agent=self._agent.agent_id, error=str(error))
            for order in asking:
                order.outcome = "unavailable"
            return [], orders
        now_ms = self._now_ms()
        served = [
            self._serve(order, answer, "hit", now_ms)
            for order, answer in zip(asking, answers, strict=True)
            if answer is not None
        ]
        if len(served) == len(orders):
            return served, []
        done = {id(verdict.delivery) for verdict in served}
        return served, [order for order in orders if id(order.delivery) not in done]

    def _serve(self, order: Order, answer: Remembered, outcome: MemoryOutcome, now_ms: int) -> Verdict:
        if order.memory_key is not None:
            self._hits[order.memory_key] += 1
        age_ms = max(0, now_ms - answer.created_at_ms)
        verdict = self._verdict(order, "completed", outcome, result_json=answer.result_json, age_ms=age_ms)
        verdict.saved_ms = answer.computed_ms
        return verdict

    async def _attend(self, order: Order, line: PullEngine) -> None:
        """Bring one order to its end, or hand it back; whatever happens, it is not lost."""
        try:
            if order.outcome == "miss":
                await self._compute_once(order, line)
            else:
                await self._compute(order, line)
        except asyncio.CancelledError:
            await line.hand_back(order.delivery)
            raise
        except Exception:
            log.exception("attending_failed", task_id=order.assignment.task_id)
            await line.hand_back(order.delivery, self._retry.pause_s(order.attempt))

    async def _compute_once(self, order: Order, line: PullEngine) -> None:
        """Compute unless an identical question is being computed: then wait for its answer."""
        key = order.memory_key or ""

        async def recall() -> bytes | None:
            found = (await self._memory.recall_many([key]))[0]
            return found.result_json if found is not None else None

        seat = await self._flights.join(key, recall, wait_s=self._patience_s(order))
        if isinstance(seat, Joined):
            self._hits[key] += 1
            verdict = self._verdict(order, "completed", "joined", result_json=seat.value, age_ms=0)
            await self._conclude([verdict], line)
            return
        async with seat:
            result = await self._compute(order, line)
            if result is not None:
                seat.share(result)

    async def _compute(self, order: Order, line: PullEngine) -> bytes | None:
        """Run the task, remember its result and conclude; return the result when it completed."""
        stored = await self._begin(order, line)
        if stored is not None:
            if stored:
                await self._conclusion.publish_again(self._verdict(order, "completed", order.outcome), stored, line)
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
        verdict = self._verdict(
            order, "completed", order.outcome, result_json=result, run_ms=run_ms, usage=context.usage
        )
        await self._conclude([verdict], line)
        return result

    async def _begin(self, order: Order, line: PullEngine) -> bytes | None:
        """Return None when the order may run, its stored report, or b"" when it was handed back."""
        assignment = order.assignment
        try:
            return await self._ledger.begin(
                assignment.task_id, order.generation, order.attempt, self._worker_id, self._now_ms()
            )
        except MemoryUnavailable as error:
            if order.task.idempotent:
                return None
            log.warning("parked_without_ledger", task_id=assignment.task_id, error=str(error))
            await line.hand_back(order.delivery, self._parked_s)
            return b""

    async def _run(self, order: Order, context: Context) -> bytes:
        """Return the result of the task; the deadline bounds it, and a wish to cancel ends it."""
        task_id = order.assignment.task_id
        run = asyncio.create_task(order.task.run(order.parameters, context))
        wish = self._running[task_id] = _Run(run, context)
        try:
            async with asyncio.timeout(self._left_s(order)):
                return await run
        except TimeoutError as error:
            if run.cancelled():
                raise _Expired(f"the deadline passed while {order.task.name} ran; allow more time") from error
            raise
        except asyncio.CancelledError:
            if context.cancelled and not _being_cancelled():
                raise _Cancelled(wish.reason) from None
            run.cancel()
            raise
        finally:
            self._running.pop(task_id, None)

    async def _remember(self, order: Order, result: bytes, run_ms: int) -> None:
        if order.memory_key is None or order.outcome not in ("miss", "refreshed"):
            return
        try:
            await self._memory.remember(
                order.memory_key,
                result,
                computed_ms=run_ms,
                ttl=order.task.remember_for,
                now_ms=self._now_ms(),
                user_token=order.user,
                parameters_json=order.parameters.model_dump_json().encode(),
            )
        except MemoryUnavailable as error:
            order.outcome = "unavailable"
            log.info("not_remembered", agent=self._agent.agent_id, error=str(error))

    async def _fail(
        self, order: Order, error: Exception, context: Context, run_ms: int, line: PullEngine
    ) -> None:
        """Hand the order back for another run, or conclude it as what *error* makes it."""
        assignment = order.assignment
        status = _status_of(error)
        final = status != "failed" or isinstance(error, GiveUp) or getattr(error, "retryable", True) is False
        attempts_left = min(assignment.max_attempts, order.task.max_attempts) - order.attempt
        if not final and attempts_left > 0:
            asked_s = error.after_s if isinstance(error, RetryLater) else None
            pause_s = asked_s if asked_s is not None else self._retry.pause_s(order.attempt)
            log.info(
                "task_retried",
                agent=self._agent.agent_id,
                task_id=assignment.task_id,
                attempt=order.attempt,
                error=type(error).__name__,
                pause_s=round(pause_s, 3),
            )
            await line.hand_back(order.delivery, pause_s)
            return
        verdict = self._verdict(order, status, order.outcome, run_ms=run_ms, usage=context.usage)
        verdict.error = error
        if status == "failed":
            verdict.dead_reason = "gave_up" if final else "attempts"
        await self._conclude([verdict], line)

    async def _refuse(self, unfit: Unfit, line: PullEngine) -> Verdict | None:
        """Return the verdict on what cannot run; what has no sender goes to DEAD and is over."""
        if unfit.assignment is not None:
            status = "expired" if unfit.expired else "rejected"
            return Verdict(
                unfit.delivery,
                unfit.assignment,
                unfit.generation,
                unfit.attempt,
                status,
                self._worker_id,
                MemoryNote(outcome="off"),
                error=unfit.problem,
            )
        letter = dead_letter(unfit.delivery, reason="unreadable", error=unfit.problem, attempts=unfit.attempt)
        try:
            await self._conclusion.bury(unfit.delivery, letter, reason="unreadable")
        except NotAccepted as error:
            log.warning("dead_letter_not_stored", error=str(error))
            await line.hand_back(unfit.delivery, self._parked_s)
        else:
            await line.settle(unfit.delivery)
        return None

    async def _conclude(self, verdicts: list[Verdict], line: PullEngine) -> None:
        agent_id = self._agent.agent_id
        for verdict in verdicts:
            task = verdict.assignment.task.name if verdict.assignment.task.name in self._agent.tasks else "unknown"
            self._meter.count_task(
                agent_id, task, verdict.status, queued_s=verdict.queued_ms / 1000, run_s=verdict.run_ms / 1000
            )
            self._meter.count_lookup(agent_id, verdict.memory.outcome)
            if verdict.saved_ms:
                self._meter.count_saved(verdict.saved_ms / 1000)
        await self._conclusion.conclude(verdicts, line)

    def _verdict(
        self,
        order: Order,
        status: str,
        outcome: MemoryOutcome,
        *,
        result_json: bytes | None = None,
        age_ms: int | None = None,
        run_ms: int = 0,
        usage: Usage | None = None,
    ) -> Verdict:
        return Verdict(
            order.delivery,
            order.assignment,
            order.generation,
            order.attempt,
            status,  # type: ignore[arg-type]  # one of the words of Status, all from this file
            self._worker_id,
            MemoryNote.model_construct(
                outcome=outcome, key=order.question, age_ms=age_ms, distance=None, computed_for=None
            ),
            queued_ms=order.queued_ms,
            run_ms=run_ms,
            result_json=result_json,
            usage=usage,
            must_be_fenced=not order.task.idempotent,
        )

    def _left_s(self, order: Order) -> float | None:
        """Return seconds until the order's deadline, None without one; the task's own limit counts from now."""
        deadline = order.assignment.deadline
        own_s = order.task.deadline.total_seconds() if order.task.deadline is not None else None
        if deadline is None:
            return own_s
        left_s = (deadline if deadline.tzinfo else deadline.replace(tzinfo=UTC)).timestamp() - self._now().timestamp()
        return max(0.0, left_s if own_s is None else min(left_s, own_s))

    def _patience_s(self, order: Order) -> float:
        left_s = self._left_s(order)
        return JOIN_S if left_s is None else left_s

    def _now_ms(self) -> int:
        return int(self._now().timestamp() * 1000)


@dataclass(slots=True)
class _Run:
    """A task that runs here, and why it is to stop once somebody wishes so."""

    task: asyncio.Task[bytes]
    context: Context
    reason: str = ""


class _Expired(GiveUp):
    """The deadline passed during a run."""


class _Cancelled(GiveUp):
    """Somebody asked to cancel."""


def _status_of(error: BaseException) -> str:
    if isinstance(error, _Expired):
        return "expired"
    if isinstance(error, _Cancelled):
        return "cancelled"
    return "rejected" if isinstance(error, InvalidInput) else "failed"


def _being_cancelled() -> bool:
    """Return whether the cancellation is of the desk itself and not only of the run."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
