"""A run from its first line to what follows from it: a remembered result and a report, another run, or the end."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from contracts.errors import MemoryUnavailable, RunReplaced, TaskloreError
from memory.long_term.entries import Remembered
from runtime import tracing
from runtime.logs import about_task
from runtime.messaging.pull import PullEngine
from workers.context.context import Context
from workers.context.phase_outputs import entries_of
from workers.execution.job import Order
from workers.execution.outcome import elapsed_ms, verdict_on
from workers.execution.releases import Releases
from workers.execution.report_publisher import Conclusion
from workers.execution.retries import Retries
from workers.execution.retry_decision import RetryPolicy, judge
from workers.execution.running_jobs import Attending
from workers.execution.stores import Stores

log = structlog.get_logger(__name__)


class Performer:
    """Runs tasks of one agent and says what became of each.

    Args:
        worker_id: Names this process in reports.
        stores: Keeps results, and knows of runs.
        releases: Keeps what the ledger could not be told.
        conclusion: Where verdicts go.
        retries: How tasks that raised run again.
        retry: When they do, unless they say so themselves.
        make_context: What a run may touch.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        worker_id: str,
        stores: Stores,
        releases: Releases,
        conclusion: Conclusion,
        retries: Retries,
        retry: RetryPolicy,
        make_context: Callable[[Order], Context],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._worker_id = worker_id
        self._stores = stores
        self._releases = releases
        self._conclusion = conclusion
        self._retries = retries
        self._retry = retry
        self._make_context = make_context
        self._now = now

    async def perform(self, attending: Attending, line: PullEngine) -> bytes | None:
        """Run the task, remember its result, put it into its phase's session and conclude; return it, None without one.

        Raises:
            RunReplaced: another worker has taken the task: whatever came of it here is of no use.
            TaskCancelled: somebody wished so before it could begin.
        """
        order = attending.order
        attending.begin()
        context = self._make_context(order)
        try:
            with tracing.span(f"run {order.task.name}"):
                run = asyncio.create_task(_contained(order, context))
                result = await attending.run(run, context, self.left_s(order))
        except RunReplaced:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a task raises becomes its report or its retry
            await self.fail(order, error, line, context=context, run_ms=elapsed_ms(context.started))
            return None
        run_ms = elapsed_ms(context.started)
        await self._remember(order, result, run_ms)
        if order.assignment.writes:
            try:
                await self._put_into_session(order, result, run_ms)
            except Exception as error:  # noqa: BLE001 - as above: the result is nothing to anybody without its session
                await self.fail(order, error, line, context=context, run_ms=run_ms)
                # To who waits for the answer to the same question, it is one.
                return result
        verdict = verdict_on(order, "completed", self._worker_id, result_json=result, run_ms=run_ms)
        verdict.usage = context.usage
        await self._conclusion.conclude([verdict], line)
        return result

    async def hand_on(self, attending: Attending, answer: Remembered, line: PullEngine) -> None:
        """Put an *answer* that was computed before into the session of its order's phase, and conclude.

        Raises:
            TaskCancelled: somebody wished so before it could begin.
        """
        order = attending.order
        attending.begin()
        try:
            await self._put_into_session(order, answer.result_json, answer.computed_ms)
        except Exception as error:  # noqa: BLE001 - it becomes the report, or another run
            await self.fail(order, error, line)
            return
        if (key := order.served_key) is not None:
            self._stores.count_hit(key, order.user)
        verdict = verdict_on(order, "completed", self._worker_id, result_json=answer.result_json)
        verdict.age_ms = 0
        if order.outcome in ("hit", "near"):
            verdict.age_ms = max(0, int(self._now().timestamp() * 1000) - answer.created_at_ms)
            verdict.saved_ms = answer.computed_ms
        await self._conclusion.conclude([verdict], line)

    async def _put_into_session(self, order: Order, result: bytes, computed_ms: int) -> None:
        """Store what the phase of *order* writes."""
        assignment = order.assignment
        entries = entries_of(assignment, result, computed_ms)
        await self._stores.sessions.set_many(assignment.session_id or "", entries, task_id=assignment.task_id)

    async def fail(
        self,
        order: Order,
        error: Exception,
        line: PullEngine,
        *,
        context: Context | None = None,
        run_ms: int | None = None,
    ) -> None:
        """Let the task run again, or conclude it as what *error* makes it; without a *context* it did not run."""
        assignment = order.assignment
        judgement = judge(
            error,
            task=order.task,
            attempt=order.tries,
            max_attempts=order.runs_allowed,
            retry=self._retry.of(order.task),
            now=self._now(),
            left_s=self.left_s(order),
            excused=order.excused,
        )
        if judgement.pause_s is not None:
            log.info(
                "task_retried",
                agent=assignment.agent_id,
                task_id=assignment.task_id,
                attempt=order.attempt,
                error=type(error).__name__,
                pause_s=round(judgement.pause_s, 3),
            )
            is_ours = isinstance(error, MemoryUnavailable)
            await self._retries.again(order, judgement.pause_s, line, excused=is_ours, waits_for=judgement.waits_for)
            return
        verdict = verdict_on(order, judgement.status, self._worker_id, run_ms=run_ms)
        verdict.error, verdict.dead_reason = error, judgement.dead_reason
        verdict.usage = context.usage if context is not None else None
        if not await self._conclusion.conclude([verdict], line):
            await self.release(order)

    async def release(self, order: Order, *, excused: bool = False) -> None:
        """Note in the ledger that the run of *order* has ended without a report, now or when it answers again."""
        await self._releases.release(order.ended(excused=excused), self._stores.ledger)

    def left_s(self, order: Order) -> float | None:
        """Return seconds until the order's deadline, or None without one."""
        deadline = order.deadline
        return None if deadline is None else max(0.0, (deadline - self._now()).total_seconds())

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
                near=order.neighbourhood,
            )
        except MemoryUnavailable as error:
            order.outcome = "unavailable"
            log.info("not_remembered", agent=order.assignment.agent_id, error=str(error))
        except Exception:
            # A serializer of the user's may raise anything: the result is there, and is reported all the same.
            order.outcome = "unavailable"
            log.exception("not_remembered", agent=order.assignment.agent_id)


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
