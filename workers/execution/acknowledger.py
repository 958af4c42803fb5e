"""The last word on a delivery: it is acknowledged, and before that overwritten on disk where its words must not stay.

What is acknowledged lies in the files of the stream until these are turned over (see `messaging.erasure`), as they are
when a user is forgotten. Who wants a person's words gone at once pays for each task that names a user with a file
written anew, during which nobody else can publish a task.
"""

import asyncio

import structlog

from contracts import subjects
from contracts.errors import TaskloreError
from runtime.messaging.erasure import Eraser
from runtime.messaging.pull import Delivery, PullEngine

log = structlog.get_logger(__name__)


class Settling:
    """Settles deliveries of tasks; with an *eraser* those that name a user are erased first."""

    def __init__(self, eraser: Eraser | None = None) -> None:
        self._eraser = eraser
        self._erasing: set[asyncio.Task[None]] = set()

    def settle(self, delivery: Delivery, user_id: str | None, line: PullEngine) -> None:
        """Tell the server that *delivery* is dealt with for good; until it is erased it keeps its slot and lease."""
        if self._eraser is None or not user_id:
            line.settle(delivery)
            return
        erasing = asyncio.create_task(self._erase(self._eraser, delivery, line))
        self._erasing.add(erasing)
        erasing.add_done_callback(self._erasing.discard)

    async def _erase(self, eraser: Eraser, delivery: Delivery, line: PullEngine) -> None:
        try:
            await eraser.erase(subjects.TASKS, delivery.sequence)
        except TaskloreError as error:
            # Its report is stored: what would come of another offer is known, and forgetting finds what is left.
            log.warning("task_not_erased", sequence=delivery.sequence, error=str(error))
        line.settle(delivery)
