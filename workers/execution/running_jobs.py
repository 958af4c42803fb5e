"""The jobs that this worker works on, from recall to report, and how each is cut short."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from tasklore.contracts.errors import (
    RunReplaced,
    TaskCancelled,
    TaskExpired,
    TaskloreError,
)
from tasklore.contracts.moments import describe_deadline, describe_time
from tasklore.runtime.logs import bind_task
from tasklore.runtime.messaging.pull import PullEngine
from tasklore.workers.context.branches import RunParked
from tasklore.workers.context.context import Context
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.stores import Name
from tasklore.workers.middleware import Call

#: Seconds until a task is offered again that would wait for others where too many do.
FULL_S = 2.0
#: Seconds in which a cancellation that is heard of gets into the ledger, also of a slow one.
NOTED_S = 5.0


class Leaving(TaskloreError):
    """The job goes back to the queue, to be had by another worker in *pause_s* seconds: this one leaves or is full.

    It has not begun to run, or only waits for tasks that it called.
    """

    def __init__(self, message: str, pause_s: float = 0.0) -> None:
        super().__init__(message)
        self.pause_s = pause_s


class LendablePlaces(Protocol):
    """The places of a run, as far as its waiting for tasks that it called is concerned."""

    async def lend(self) -> None:
        """Give them up while the run waits: the tasks that it called may need them."""

    async def reclaim(self) -> None:
        """Wait until the run has them again."""


class RunningJob:
    """One job at work. `cancel` and `leave` end its waiting, `cancel` and `replace` its run.

    The coroutine that waits or runs gets an exception: TaskCancelled, Leaving or RunReplaced.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.name: Name = job.assignment.named, job.generation
        self.has_begun = False
        #: The places of its run, None where nothing bounds it.
        self.places: LendablePlaces | None = None
        #: Whether it waits for tasks that it called, and lends its slot.
        self.is_lending = False
        self._is_to_leave = False
        #: Made by a copy that waits for this one.
        self.done: asyncio.Event | None = None
        self._end: TaskloreError | None = None
        self._scope: asyncio.Timeout | None = None
        self._run: asyncio.Task[bytes] | None = None
        self._context: Context | None = None

    def cancel(self, reason: str) -> None:
        """End it on request."""
        self._cut_short(TaskCancelled(reason or "cancelled on request"))

    def replace(self) -> None:
        """End the run because another worker has taken the task meanwhile."""
        if self._run is not None:
            self._cut_short(
                RunReplaced(f"another worker runs task {self.name[0]!r} meanwhile")
            )

    def leave(self) -> None:
        """Stop waiting, unless the task has begun to run and does more than wait for others."""
        self._is_to_leave = True
        if not self.has_begun or (self.is_lending and self.job.task.idempotent):
            self._cut_short(Leaving("the worker leaves"))

    def lend(self, engine: PullEngine) -> bool:
        """Lend its slot while it waits for tasks that it called; return False where too many lend theirs.

        It is handed back instead where the worker leaves, unless its task must not run twice.
        """
        self.is_lending = True
        if self._is_to_leave and self.job.task.idempotent:
            self._cut_short(Leaving("the worker leaves"))
            return True
        return engine.lend(self.job.delivery)

    def is_run_by(self, task: "asyncio.Task[object]") -> bool:
        """Return whether *task* is its run; for any thread."""
        return self._run is task

    @property
    def depth(self) -> int:
        """How many tasks are above it."""
        return len(self.job.assignment.ancestors or ())

    def hand_back(self, reason: str) -> None:
        """End the run and offer its task again in a while; it is held against no task."""
        self._cut_short(Leaving(reason, FULL_S * random.uniform(1, 2)))  # noqa: S311 - jitter

    def park(self, waiting: RunParked) -> None:
        """End the run, which waits for something that may take days."""
        self._cut_short(waiting)

    def raise_if_parked(self) -> None:
        """Do nothing, unless the run waits, whatever the task made of its end.

        Raises:
            RunParked: it does.
        """
        if isinstance(self._end, RunParked):
            raise self._end from None

    @property
    def is_cut_short(self) -> bool:
        """Whether it is to end, or has ended, before its time."""
        return self._end is not None

    def begin(self) -> None:
        """Note that the ledger has let the task begin: from here on the worker stays until it has ended.

        Raises:
            TaskloreError: it is to end.
        """
        self.has_begun = True
        if isinstance(self._end, Leaving):
            self._end = None
        self.check()

    def check(self) -> None:
        """Do nothing, unless it is to end.

        Raises:
            TaskloreError: why it is to end.
        """
        if self._end is not None:
            raise self._end

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Wait for something in the block, before the task runs.

        Raises:
            TaskloreError: why it must not wait any longer.
        """
        self.check()
        try:
            async with asyncio.timeout(None) as self._scope:
                yield
        except TimeoutError:
            if self._end is not None:
                raise self._end from None
            raise
        finally:
            self._scope = None

    async def run(
        self, run: asyncio.Task[bytes], context: Context, left_s: float | None
    ) -> bytes:
        """Return the result of *run*, which is given *left_s* seconds, None for no limit.

        Raises:
            TaskExpired: its time is over.
            TaskloreError: why it was ended, or that it let a CancelledError escape.
            Exception: whatever it raises.
        """
        self._run = run
        self._context = context
        try:
            if left_s is None:
                return await run
            async with asyncio.timeout(left_s):
                return await run
        except TimeoutError as error:
            if run.cancelled():
                deadline = self.job.deadline
                passed = (
                    describe_deadline(deadline) if deadline else "its time was over"
                )
                after = describe_time((left_s or 0) * 1_000)
                raise TaskExpired(
                    f"{passed} while {self.job.task.name} ran, {after} after this run began; allow more time",
                    deadline,
                ) from error
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                # Only the run was cancelled.
                if self._end is not None:
                    raise self._end from None
                msg = (
                    f"{self.job.task.name} raised CancelledError although it was not "
                    "cancelled; catch the error where your code cancels something"
                )
                raise TaskloreError(msg) from error
            run.cancel()
            raise
        finally:
            self._run = None

    async def demand_start(self, context: Context, left_s: float | None) -> None:
        """Return once the task may start: at once, unless its assignment needs a person's yes.

        Raises:
            NotApproved: it may not.
            TaskloreError: as `run`, and `Context.demand_start`.
        """

        async def ask() -> bytes:
            self.job.begin_at(await context.demand_start(self.job.parameters))
            context.set_deadline(self.job.deadline)
            return b""

        if self.job.assignment.approval is not None:
            await self.run(
                asyncio.create_task(run_contained(self.job, ask)), context, left_s
            )

    def _cut_short(self, end: TaskloreError) -> None:
        if self._end is not None:
            return
        self._end = end
        if self._run is not None:
            if self._context is not None:
                self._context.request_stop()
            self._run.cancel()
        elif self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())


class RunningJobs:
    """All jobs at work here; a copy of a task waits for the one before it, and finds its report."""

    def __init__(self) -> None:
        self._all: dict[Name, RunningJob] = {}
        self._behind: set[RunningJob] = set()
        self._is_leaving = False
        self._cancelled: dict[str, tuple[float, str]] = {}

    def find(self, task: "asyncio.Task[object]") -> Job | None:
        """Return the job whose run *task* is, if any; for any thread."""
        runs = (one.job for one in list(self._all.values()) if one.is_run_by(task))
        return next(runs, None)

    async def enter(self, running: RunningJob) -> None:
        """Return once no copy of *running* is at work here; call `exit` afterwards, also after an error.

        Raises:
            TaskloreError: why it must not wait any longer.
        """
        if self._is_leaving:
            # The signal came while its batch was still being recalled.
            running.leave()
        self._cancel_with_parent(running)
        if self._all.setdefault(running.name, running) is running:
            return
        self._behind.add(running)
        try:
            async with running.waiting():
                while (
                    ahead := self._all.setdefault(running.name, running)
                ) is not running:
                    ahead.done = ahead.done or asyncio.Event()
                    await ahead.done.wait()
        finally:
            self._behind.discard(running)

    def _cancel_with_parent(self, running: RunningJob) -> None:
        """Cancel *running* when something above it was cancelled just now, which the ledger may not know yet."""
        above = running.job.assignment.parent_id, running.job.assignment.root_id
        for task_id in above if self._cancelled else ():
            heard_at, reason = self._cancelled.get(task_id or "", (0.0, ""))
            if asyncio.get_running_loop().time() - heard_at < NOTED_S:
                running.cancel(reason)

    def make_room(self, running: RunningJob, engine: PullEngine) -> None:
        """Let *running* lend its slot although too many do: one above it goes back to the queue, else it does itself.

        The deepest goes on, so that those above it find its report when they come again.
        """
        others = [
            one
            for one in self._all.values()
            if one.is_lending and one.job.task.idempotent
        ]
        above = min(
            others, key=lambda one: (one.is_cut_short, one.depth), default=running
        )
        if above.depth < running.depth and not above.is_cut_short:
            above.hand_back("tasks below it need its place")
            engine.lend(running.job.delivery, anyway=True)
        elif running.job.task.idempotent:
            running.hand_back("too many tasks wait here for others")

    def exit(self, running: RunningJob) -> None:
        """Let the next copy of *running* in."""
        if self._all.get(running.name) is running:
            del self._all[running.name]
        if running.done is not None:
            running.done.set()

    def running(self) -> list[Name]:
        """Return the tasks that have begun to run here; may be called from another thread."""
        return [
            running.name for running in list(self._all.values()) if running.has_begun
        ]

    def cancel(self, task_id: str, reason: str) -> tuple[bool, set[str]]:
        """Cancel *task_id* and all below it; return whether it was here, and the task ids of the children that were."""
        is_here = False
        children = set[str]()
        below = (
            f"its parent was cancelled: {reason}"
            if reason
            else "its parent was cancelled"
        )
        self._remember(task_id, below)
        for running in [*self._all.values(), *self._behind]:
            if running.name[0] == task_id:
                is_here = True
                running.cancel(reason)
            elif task_id in (
                running.job.assignment.parent_id,
                running.job.assignment.root_id,
            ):
                children.add(running.name[0])
                running.cancel(below)
        return is_here, children

    def _remember(self, task_id: str, reason: str) -> None:
        now = asyncio.get_running_loop().time()
        while (
            self._cancelled and now - next(iter(self._cancelled.values()))[0] > NOTED_S
        ):
            del self._cancelled[next(iter(self._cancelled))]
        self._cancelled[task_id] = now, reason

    def replace(self, names: list[Name]) -> None:
        """End the runs of *names*, which other workers have taken meanwhile."""
        for name in names:
            if (running := self._all.get(name)) is not None:
                running.replace()

    def leave(self) -> None:
        """Hand back everything that has not begun to run, and all that still comes."""
        self._is_leaving = True
        for running in [*self._all.values(), *self._behind]:
            running.leave()


async def run_contained(job: Job, call: Call) -> bytes:
    """Await *call*; an end of the whole process (sys.exit, a panic in an extension) is a failure of *job* alone."""
    bind_task(job.assignment.agent_id, job.assignment.task_id)
    try:
        return await call()
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        msg = (
            f"{job.task.name} raised {type(error).__name__}({error}), which is not an "
            "Exception; return or raise one"
        )
        raise TaskloreError(msg) from error
