"""Middleware: hooks on the way of every task of an agent, for concerns that are not the task's own.

```python
class Audit(Middleware):
    def on_reports(self, outcomes):
        for outcome in outcomes:
            log.info("audit", task=outcome.assignment.task.name, status=outcome.status)


agent = Agent("TripAgent", middleware=[Audit()])
```
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from tasklore.contracts.messages import TaskAssignment
    from tasklore.runtime.messaging.delivery import Delivery
    from tasklore.workers.context.context import Context
    from tasklore.workers.execution.job import Job
    from tasklore.workers.execution.outcome import TaskOutcome
    from tasklore.workers.execution.retry_decision import RetryDecision

log = structlog.get_logger(__name__)

Call = Callable[[], Coroutine[Any, Any, bytes]]
#: Makes a call in an asyncio task with the given context variables, and returns its result.
Caller = Callable[[Call, contextvars.Context], Awaitable[bytes]]

#: Seconds that all `after_run` of one run have; the report waits for them.
AFTER_RUN_S = 5.0


class Middleware:
    """Hooks around the tasks of one agent; each does nothing until it is overridden, and then costs its call.

    Hooks run in the worker's event loop, in the order in which middleware is given, and must not block it. An exception
    out of `before_run` is the run's, as if the task had raised it (`GiveUp` refuses the task); any other is logged and
    changes nothing, also a CancelledError that the hook itself raised. `before_run`, the function of the task and
    `after_run` share their context variables.

    Near matches, tracing, metrics and erasing are middleware too: see `tasklore.workers.execution`.
    """

    def on_deliveries(self, deliveries: "Sequence[Delivery]") -> None:
        """Note that *deliveries* arrived together; none of them has been read."""

    def after_read(self, job: "Job") -> None:
        """Note that a delivery was read as *job*."""

    async def after_recall(self, jobs: "Sequence[Job]", began_ns: int) -> None:
        """Look at *jobs* that were looked up together since *began_ns*: `recalled` is the remembered answer or None.

        A hook may set `recalled` where it is None, which serves that answer.
        """

    async def before_run(self, job: "Job", context: "Context") -> None:
        """Act before the function of the task is called, within its deadline; not for answers that are served."""

    async def after_run(
        self, job: "Job", context: "Context", error: BaseException | None
    ) -> None:
        """Act when the function has returned, or ended with *error*, before its result is remembered and reported.

        *error* is the one that is reported, TaskExpired or TaskCancelled for a run that was cut short; CancelledError
        where the worker leaves. Not called when the function was not: a `before_run` raised, or the parameters are
        unfit. It runs outside the task's deadline; all of one run have `AFTER_RUN_S` seconds, after which they are
        cancelled and that is logged; the result counts all the same. It may use *context* but for waits: a question, a
        signal or a sleep raises InvalidInput.
        """

    def before_retry(
        self, job: "Job", decision: "RetryDecision", error: Exception
    ) -> None:
        """Note that *job* raised *error* and runs again after `decision.pause_s` seconds."""

    def on_reports(self, outcomes: "Sequence[TaskOutcome]") -> None:
        """Note *outcomes* whose reports the ledger took, before they are published.

        Each generation of a task is seen once, but for a worker that dies at this moment or a ledger that is away.
        """

    async def before_acknowledge(
        self, delivery: "Delivery", assignment: "TaskAssignment"
    ) -> None:
        """Act when the report is stored, or the schedule of another run, and *delivery* is about to be acknowledged.

        It keeps its slot meanwhile. Not called for a delivery that is handed back (a short wait before another run),
        nor for one that goes to DEAD because its sender cannot be read.
        """


class Hooks:
    """The hooks that some middleware overrides, by name and in order: those that none overrides cost nothing."""

    def __init__(self, middleware: Iterable[Middleware] = ()) -> None:
        given = tuple(middleware)

        def overridden(name: str) -> tuple[Any, ...]:
            hook = getattr(Middleware, name)
            return tuple(
                getattr(one, name)
                for one in given
                if getattr(type(one), name) is not hook
            )

        self.on_deliveries = overridden("on_deliveries")
        self.after_read = overridden("after_read")
        self.after_recall = overridden("after_recall")
        self.before_run = overridden("before_run")
        self.after_run = overridden("after_run")
        self.before_retry = overridden("before_retry")
        self.on_reports = overridden("on_reports")
        self.before_acknowledge = overridden("before_acknowledge")


def notify(hooks: tuple[Any, ...], *arguments: Any) -> None:
    """Call each of *hooks*; one that raises is logged and keeps nothing else from its way."""
    for hook in hooks:
        try:
            hook(*arguments)
        except (Exception, asyncio.CancelledError):
            log.exception("middleware_failed", hook=hook.__qualname__)


async def notify_async(hooks: tuple[Any, ...], *arguments: Any) -> None:
    """Await each of *hooks*; one that raises is logged, also a CancelledError of its own.

    Raises:
        CancelledError: the current task is being cancelled.
    """
    for hook in hooks:
        try:
            await hook(*arguments)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            log.exception("middleware_failed", hook=hook.__qualname__)
        except Exception:
            log.exception("middleware_failed", hook=hook.__qualname__)


async def call_task(
    job: "Job", context: "Context", hooks: Hooks, caller: Caller
) -> bytes:
    """Return the result of the task of *job*, with `before_run` before its function and `after_run` after it.

    *caller* calls `before_run` and the function under the limits of the task; `after_run` is called outside them, in
    the same context variables.

    Raises:
        Exception: whatever *caller* raises.
    """
    variables = contextvars.copy_context()
    variables.run(context.enter)
    was_called = False

    async def call() -> bytes:
        nonlocal was_called
        for hook in hooks.before_run:
            await hook(job, context)
        was_called = True
        return await job.task.run(job.parameters, context)

    failure: BaseException | None = None
    try:
        return await caller(call, variables)
    except BaseException as error:
        failure = error
        raise
    finally:
        if was_called and hooks.after_run:
            variables.run(context.leave)
            after = asyncio.create_task(
                notify_async(hooks.after_run, job, context, failure), context=variables
            )
            try:
                # A wait that ends in time even where a hook does not heed its cancellation.
                await asyncio.wait({after}, timeout=AFTER_RUN_S)
            finally:
                if not after.done():
                    after.cancel()
                    log.warning(
                        "middleware_cut_short", task=job.task.name, limit_s=AFTER_RUN_S
                    )
