"""The desk of one agent: reads deliveries, serves what is remembered in batches, and gives the rest to the runner."""

import asyncio
import functools
import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from contracts import subjects
from contracts.errors import MemoryUnavailable, NotAccepted
from contracts.messages import TaskAssignment
from memory.long_term.entries import Remembered
from runtime.messaging.dead_letter import dead_letter
from runtime.messaging.pull import Delivery, PullEngine
from runtime.metrics import Metrics
from workers.agent import Agent
from workers.execution.due_copies import DueCopies
from workers.execution.executor import Runner
from workers.execution.job import Order, Unfit, read_order
from workers.execution.near_matches import find_neighbours
from workers.execution.outcome import Verdict, verdict_on
from workers.execution.report_publisher import Conclusion
from workers.execution.stores import Name, Stores
from workers.execution.tracing import begin_spans, describe_order, note_recall

log = structlog.get_logger(__name__)

#: Seconds until a delivery that could not even be buried is offered again.
_RETURN_S = 2.0
#: Bytes of a body from which on it is read beside the loop: the largest, all of numbers, takes seconds.
_LONG = 32 * 1024


class TaskDesk:
    """Works on the deliveries of one agent.

    Args:
        agent: Whose tasks these are.
        worker_id: Names this process in reports.
        stores: The memory; counts the entry keys that were served in `hits`, until the host flushes them.
        runner: Computes what is not remembered.
        conclusion: Where verdicts go.
        meter: Measures recalls.
        due_copies: Clears LATER of what has become due; None when nothing ever comes from there.
        remembers: The agent's memory switch.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        agent: Agent,
        worker_id: str,
        *,
        stores: Stores,
        runner: Runner,
        conclusion: Conclusion,
        meter: Metrics,
        due_copies: DueCopies | None = None,
        remembers: bool = True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._agent = agent
        self._worker_id = worker_id
        self._stores = stores
        self._runner = runner
        self._conclusion = conclusion
        self._meter = meter
        self._due_copies = due_copies
        self._remembers = remembers
        self._now = now

    def cancel(self, task_id: str, reason: str) -> tuple[bool, set[str]]:
        """Cancel *task_id* and its children; return whether it was here, and the task ids of the children that were."""
        return self._runner.attendance.cancel(task_id, reason)

    def running(self) -> list[Name]:
        """Return what runs here; may be called from another thread."""
        return self._runner.attendance.running()

    def replace(self, names: list[Name]) -> None:
        """End the runs of *names*, which other workers have taken meanwhile."""
        self._runner.attendance.replace(names)

    def leave(self) -> None:
        """Hand back what has not begun to run."""
        self._runner.attendance.leave()

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Serve what is remembered out of *batch* with one recall, and run the rest side by side."""
        now = self._now()
        orders: list[Order] = []
        refused: list[Verdict] = []
        nameless: list[Unfit] = []
        begin_spans(batch)
        for delivery in batch:
            if delivery.headers and subjects.SOURCE_HEADER in delivery.headers and self._due_copies is not None:
                self._due_copies.clear(delivery)
            reading = functools.partial(read_order, delivery, self._agent, now, remembers=self._remembers)
            read = await asyncio.to_thread(reading) if len(delivery.body) > _LONG else reading()
            if isinstance(read, Order):
                describe_order(read)
                orders.append(read)
            elif read.assignment is not None:
                refused.append(self._refuse(read, read.assignment))
            else:
                nameless.append(read)
        served, rest = await self._recall(orders, int(now.timestamp() * 1000))
        if served or refused:
            await self._conclusion.conclude(served + refused, line)
        if len(rest) == 1 and not nameless:
            await self._runner.attend(rest[0], line)
        elif rest or nameless:
            async with asyncio.TaskGroup() as group:
                for order in rest:
                    group.create_task(self._runner.attend(order, line))
                for unfit in nameless:
                    group.create_task(self._bury(unfit, line))

    async def _recall(self, orders: list[Order], now_ms: int) -> tuple[list[Verdict], list[Order]]:
        """Return verdicts for what is remembered, and the orders that are not, or whose answers a session is to get."""
        asking = [order for order in orders if order.outcome == "miss"]
        if not asking:
            return [], orders
        began_ns = time.time_ns()
        try:
            with self._meter.time_lookup():
                answers = await self._stores.long_term.recall_many([order.memory_key or "" for order in asking])
        except MemoryUnavailable as error:
            log.info("memory_unavailable", agent=self._agent.agent_id, error=str(error))
            for order in asking:
                order.outcome = "unavailable"
            note_recall(asking, began_ns)
            return [], orders
        served = []
        unknown = [order for order, answer in zip(asking, answers, strict=True) if answer is None]
        await find_neighbours(unknown, self._stores.long_term)
        for order, exact in zip(asking, answers, strict=True):
            answer = order.near.answer if exact is None and order.near is not None else exact
            if answer is None:
                continue
            if order.assignment.writes:
                # The session of its phase comes before the report, and the ledger is asked before the session.
                order.remembered = answer
            else:
                served.append(self._serve(order, answer, now_ms))
        note_recall(asking, began_ns)
        return served, [order for order in orders if order.outcome not in ("hit", "near")]

    def _serve(self, order: Order, answer: Remembered, now_ms: int) -> Verdict:
        order.outcome = "hit" if order.near is None else "near"
        if (key := order.served_key) is not None:
            self._stores.count_hit(key, order.user)
        verdict = verdict_on(order, "completed", self._worker_id, result_json=answer.result_json)
        verdict.age_ms = max(0, now_ms - answer.created_at_ms)
        verdict.saved_ms = answer.computed_ms
        return verdict

    def _refuse(self, unfit: Unfit, assignment: TaskAssignment) -> Verdict:
        """Return the verdict on what no run can mend."""
        return Verdict(
            unfit.delivery,
            assignment,
            unfit.generation,
            unfit.attempt,
            "expired" if unfit.expired else "rejected",
            self._worker_id,
            "off",
            error=unfit.problem,
        )

    async def _bury(self, unfit: Unfit, line: PullEngine) -> None:
        """Put what names no sender into DEAD; nobody could be told anything else."""
        letter = dead_letter(
            unfit.delivery,
            reason="unreadable",
            error=unfit.problem,
            attempts=unfit.attempt,
            generation=unfit.generation,
            agent_id=self._agent.agent_id,
            worker_id=self._worker_id,
        )
        try:
            await self._conclusion.bury(unfit.delivery, letter, reason="unreadable")
        except NotAccepted as error:
            log.warning("dead_letter_not_stored", error=str(error))
            line.hand_back(unfit.delivery, _RETURN_S)
        else:
            line.settle(unfit.delivery)
