"""The acknowledgement of a delivery, and erasing it on disk before that where its words must not stay.

An acknowledged message lies in the files of the stream until these are turned over (see `messaging.erasure`), as they
are when a user is forgotten. Erasing a person's words at once costs a file written anew for each task that names a
user, during which no task can be published.
"""

import asyncio

import structlog

from tasklore.contracts import subjects
from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.messages import TaskAssignment
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.workers.middleware import Hooks, Middleware, notify_async

log = structlog.get_logger(__name__)


class Acknowledger:
    """Acknowledges deliveries whose reports, or schedules of another run, are stored."""

    def __init__(self, hooks: Hooks | None = None) -> None:
        self._before = hooks.before_acknowledge if hooks is not None else ()
        self._waiting: set[asyncio.Task[None]] = set()

    def acknowledge(
        self, delivery: Delivery, assignment: TaskAssignment, engine: PullEngine
    ) -> None:
        """Acknowledge *delivery* for good; while a hook works on it, it keeps its slot and lease."""
        if not self._before:
            engine.settle(delivery)
            return

        async def acknowledge() -> None:
            try:
                await notify_async(self._before, delivery, assignment)
            finally:
                # Its report is stored: whatever became of the hooks, another offer would change nothing.
                engine.settle(delivery)

        waiting = asyncio.create_task(acknowledge())
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)


class Erasing(Middleware):
    """Overwrites acknowledged deliveries that name a user in the files of the stream."""

    def __init__(self, eraser: Eraser) -> None:
        self._eraser = eraser

    async def before_acknowledge(
        self, delivery: Delivery, assignment: TaskAssignment
    ) -> None:
        """Erase *delivery* when it names a user."""
        if not assignment.user_id:
            return
        try:
            await self._eraser.erase(subjects.TASKS, delivery.sequence)
        except TaskloreError as error:
            # Its report is stored, so that another offer would change nothing, and forgetting finds what is left.
            log.warning("task_not_erased", sequence=delivery.sequence, error=str(error))
