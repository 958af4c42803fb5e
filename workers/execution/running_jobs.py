"""What this worker attends to: from its first look at an order to its last word, and how that is cut short."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contracts.errors import RunReplaced, TaskCancelled, TaskExpired, TaskloreError
from workers.context.context import Context
from workers.execution.job import Order
from workers.execution.stores import Name


class Leaving(TaskloreError):
    """The worker leaves and the order has not begun to run: somebody else is to have it at once."""


class Attending:
    """One order that is attended to. What waits is ended by `cancel` and `leave`, what runs by `cancel` and `replace`.

    Whoever waits or runs is told by an exception: TaskCancelled, Leaving or RunReplaced.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.name: Name = order.assignment.task_id, order.generation
        self.done = asyncio.Event()
        self.has_begun = False
        self._end: TaskloreError | None = None
        self._scope: asyncio.Timeout | None = None
        self._run: asyncio.Task[bytes] | None = None
        self._context: Context | None = None

    def cancel(self, reason: str) -> None:
        """End it because somebody wishes so."""
        self._cut_short(TaskCancelled(reason or "cancelled on request"))

    def replace(self) -> None:
        """End the run because another worker has taken the task meanwhile."""
        if self._run is not None:
            self._cut_short(RunReplaced(f"another worker runs task {self.name[0]!r} meanwhile"))

    def leave(self) -> None:
        """Stop waiting, unless the task has begun to run."""
        if not self.has_begun:
            self._cut_short(Leaving("the worker leaves"))

    def begin(self) -> None:
        """Note that the ledger has let the task begin: from here on the worker stays until it has ended.

        Raises:
            TaskloreError: somebody wishes it to end.
        """
        self.has_begun = True
        if isinstance(self._end, Leaving):
            self._end = None
        self._demand_wanted()

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Wait for something in the block, before the task runs.

        Raises:
            TaskloreError: why it is not to be waited for any more.
        """
        self._demand_wanted()
        try:
            async with asyncio.timeout(None) as self._scope:
                yield
        except TimeoutError:
            if self._end is not None:
                raise self._end from None
            raise
        finally:
            self._scope = None

    async def run(self, run: asyncio.Task[bytes], context: Context, left_s: float | None) -> bytes:
        """Return the result of *run*, which is given *left_s* seconds, None for no limit.

        Raises:
            TaskExpired: its time is over.
            TaskloreError: why it was ended, or that it let a CancelledError escape.
            Exception: whatever it raises.
        """
        self._run, self._context = run, context
        try:
            async with asyncio.timeout(left_s):
                return await run
        except TimeoutError as error:
            if run.cancelled():
                raise TaskExpired(f"the deadline passed while {self.order.task.name} ran; allow more time") from error
            raise
        except asyncio.CancelledError:
            if not _being_cancelled():
                raise self._why_cancelled() from None
            run.cancel()
            raise
        finally:
            self._run = None

    def _demand_wanted(self) -> None:
        if self._end is not None:
            raise self._end

    def _why_cancelled(self) -> TaskloreError:
        if self._end is not None:
            return self._end
        msg = f"{self.order.task.name} let a CancelledError escape that nobody asked for; catch it where it cancels"
        return TaskloreError(msg)

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


class Attendance:
    """Everything that is attended to here; a copy of a task waits for the one before it, and finds its report."""

    def __init__(self) -> None:
        self._all: dict[Name, Attending] = {}
        self._behind: set[Attending] = set()
        self._is_leaving = False

    @asynccontextmanager
    async def turn(self, attending: Attending) -> AsyncIterator[None]:
        """Run the block for *attending* once no copy of its task is attended to here.

        Raises:
            TaskloreError: why it is not to be waited for any more.
        """
        if self._is_leaving:
            # The signal came while its batch was still being recalled.
            attending.leave()
        try:
            if self._all.setdefault(attending.name, attending) is not attending:
                self._behind.add(attending)
                try:
                    async with attending.waiting():
                        while (ahead := self._all.setdefault(attending.name, attending)) is not attending:
                            await ahead.done.wait()
                finally:
                    self._behind.discard(attending)
            yield
        finally:
            if self._all.get(attending.name) is attending:
                del self._all[attending.name]
            attending.done.set()

    def running(self) -> list[Name]:
        """Return what has begun to run here; may be called from another thread."""
        return [attending.name for attending in list(self._all.values()) if attending.has_begun]

    def cancel(self, task_id: str, reason: str) -> tuple[bool, set[str]]:
        """Cancel *task_id* and its children; return whether it was here, and the task ids of the children that were."""
        found, children = False, set[str]()
        for attending in [*self._all.values(), *self._behind]:
            if attending.name[0] == task_id:
                found = True
                attending.cancel(reason)
            elif attending.order.assignment.parent_id == task_id:
                children.add(attending.name[0])
                attending.cancel(f"its parent was cancelled: {reason}" if reason else "its parent was cancelled")
        return found, children

    def replace(self, names: list[Name]) -> None:
        """End the runs of *names*, which other workers have taken meanwhile."""
        for name in names:
            if (attending := self._all.get(name)) is not None:
                attending.replace()

    def leave(self) -> None:
        """Hand back everything that has not begun to run, and all that still comes."""
        self._is_leaving = True
        for attending in [*self._all.values(), *self._behind]:
            attending.leave()


def _being_cancelled() -> bool:
    """Return whether the cancellation is of the attending task itself and not only of the run."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
