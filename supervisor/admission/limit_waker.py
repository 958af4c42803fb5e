"""The loop that wakes tasks which wait for room under a limit, as soon as there is some.

It looks twice a second for accounts that have room and tasks that wait for it: whatever made the room, a change of the
limits by any door, a refund or another day, is found there.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar

import structlog
from pydantic import ValidationError

from tasklore.contracts.errors import MessageTooLarge, NotAccepted
from tasklore.contracts.messages import TaskAssignment
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.lease_loop import LeaseLoop, NotYet
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.supervisor.wake_up import wake_up

log = structlog.get_logger(__name__)

#: Tasks that are woken at once, and the least seconds between two looks: a thousand a second, however many wait.
_AT_ONCE = 250
_LOOKS_APART_S = 0.25
_LEASE_S = 10.0
#: Seconds until a task is woken again whose wake-up could not be stored.
_AGAIN_S = 1.0


class LimitWaker(LeaseLoop[str, str]):
    """Wakes tasks that wait for room under a limit, in this process; its keys are "id:generation"."""

    # A task that is woken twice runs once.
    is_exclusive: ClassVar[bool] = False

    def __init__(self, waiting: WaitingTasks, ledger: Ledger, outbox: Outbox) -> None:
        super().__init__("wake-up", at_once=_AT_ONCE, lease_s=_LEASE_S)
        self._waiting = waiting
        self._ledger = ledger
        self._outbox = outbox
        self._looked_at = 0.0

    async def due(self, limit: int) -> Sequence[str]:
        """Return up to *limit* tasks that there is room for, each once in ten seconds."""
        if time.monotonic() - self._looked_at < _LOOKS_APART_S:
            return ()
        self._looked_at = time.monotonic()
        return await self._waiting.wake(min(limit, _AT_ONCE - self.busy))

    async def claim(self, key: str) -> str:
        """Return *key*, which no other process is told of."""
        return key

    async def work(self, key: str, lease: str) -> float:  # noqa: ARG002 - as the loop calls it
        """Let one task run now, unless it has not come to wait yet, or runs no more."""
        task_id, _, number = key.rpartition(":")
        found = await self._ledger.wake(task_id, generation := int(number))
        if found == "running":
            await self._waiting.wake_again(key)
            return 0.0
        if found == "ended":
            await self._waiting.forget(key)
            return 0.0
        try:
            assignment = TaskAssignment.model_validate_json(found.assignment)
        except ValidationError:
            # A worker wrote something else there; it looks by itself.
            return 0.0
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
        except NotAccepted as error:
            raise NotYet(str(error), _AGAIN_S) from error
        except MessageTooLarge as error:
            log.info("task_not_woken", task_id=task_id, error=str(error))
        return 0.0

    async def renew(self, lease: str) -> bool:
        """Return True: another process is told of the task after ten seconds at the soonest."""
        return lease is not None

    async def give_back(self, lease: str) -> None:
        """Do nothing: one that does not come is woken again."""
