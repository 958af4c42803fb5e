"""The loop that wakes tasks which wait for room under a limit, as soon as there is some.

It looks twice a second for accounts that have room and tasks that wait for it, and goes on at once where there is more:
whatever made the room, a change of the limits by any door, a refund or another day, is found there. Of many supervisors
one wakes them, the others ask once a second whether it still does.
"""

import contextlib
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar

import structlog
from pydantic import ValidationError

from tasklore.contracts.errors import MemoryUnavailable, MessageTooLarge, NotAccepted
from tasklore.contracts.messages import TaskAssignment
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.claim_loop import ClaimLoop, NotYet
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.supervisor.wake_up import wake_up

log = structlog.get_logger(__name__)

#: Tasks that are woken at once; seconds between two looks, of the process that wakes tasks and of the others, and where
#: there are more tasks to wake or to look at: a thousand a second, however many wait.
_AT_ONCE = 250
_LOOKS_APART_S = 0.5
_ASKS_APART_S = 1.0
_NEXT_LOOK_S = 0.25
#: Seconds by which a look may come early, as timers do, and still be the one that is meant.
_EARLY_S = 0.05
_LEASE_S = 10.0
#: Seconds until a task is woken again whose wake-up could not be stored, and for which it rests here: it is looked at
#: by then.
_AGAIN_S = 1.0
_REST_S = 0.5


class LimitWaker(ClaimLoop[str, str]):
    """Wakes tasks that wait for room under a limit, in this process; its keys are "id:generation"."""

    # A task that is woken twice runs once.
    is_exclusive: ClassVar[bool] = False

    def __init__(self, waiting: WaitingTasks, ledger: Ledger, outbox: Outbox) -> None:
        super().__init__("wake-up", at_once=_AT_ONCE, lease_s=_LEASE_S)
        self._waiting = waiting
        self._ledger = ledger
        self._outbox = outbox
        self._next_look_at = 0.0

    async def is_idle(self) -> bool:
        """Return whether another process wakes tasks, or none is held by a limit."""
        return await self._waiting.is_idle()

    async def due(self, limit: int) -> Sequence[str]:
        """Return up to *limit* tasks that there is room for, each once in ten seconds."""
        now = time.monotonic()
        if now < self._next_look_at - _EARLY_S:
            return ()
        self._next_look_at = now + _ASKS_APART_S
        tasks = await self._waiting.wake(min(limit, _AT_ONCE - self.busy))
        if tasks or self._waiting.has_more:
            self._next_look_at = now + _NEXT_LOOK_S
            self._loop.call_later(_NEXT_LOOK_S, self.look_soon)
        elif self._waiting.leads:
            self._next_look_at = now + _LOOKS_APART_S
        return tasks

    async def claim(self, key: str) -> str:
        """Return *key*, which no other process is told of."""
        return key

    async def work(self, key: str, lease: str) -> float:  # noqa: ARG002 - as the loop calls it
        """Let one task run now, unless it has not come to wait yet, or runs no more.

        Raises:
            NotYet: its wake-up is not stored; it is woken again in a second, or in ten where that cannot be noted.
        """
        try:
            await self._begin_run(key)
        except (MemoryUnavailable, NotAccepted) as error:
            with contextlib.suppress(MemoryUnavailable):
                await self._waiting.wake_again(key, _AGAIN_S)
            raise NotYet(str(error), _REST_S) from error
        return 0.0

    async def _begin_run(self, key: str) -> None:
        task_id, _, number = key.rpartition(":")
        found = await self._ledger.wake(task_id, generation := int(number))
        if found == "running":
            await self._waiting.await_note(key)
            return
        if found == "ended":
            await self._waiting.forget(key)
            return
        try:
            assignment = TaskAssignment.model_validate_json(found.assignment)
        except ValidationError:
            # A worker wrote something else there; it looks by itself.
            return
        now = datetime.now(UTC)
        try:
            await wake_up(
                self._outbox,
                task_id=task_id,
                generation=generation,
                attempt=found.attempts + 1,
                agent_id=assignment.agent_id,
                task_name=assignment.task.name,
                assignment=found.assignment,
                trace=found.trace,
                now=now,
                why=f"room.{now.timestamp():.3f}",
            )
        except MessageTooLarge as error:
            log.info("task_not_woken", task_id=task_id, error=str(error))

    async def renew(self, lease: str) -> bool:
        """Return True: another process is told of the task after ten seconds at the soonest."""
        return lease is not None

    async def give_back(self, lease: str) -> None:
        """Do nothing: one that does not come is woken again."""
