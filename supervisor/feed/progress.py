"""The progress of tasks, heard by one subscription a task for all clients of a process that follow it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.messages import Progress

if TYPE_CHECKING:
    from nats.aio.subscription import Subscription

    from tasklore.runtime.messaging.link import Arrival, Link

#: Called with each message of the progress of a task; it must neither wait nor raise.
Hear = Callable[[Progress], None]


@dataclass(slots=True)
class _Heard:
    """One task: its listeners, and the subscription that they share."""

    listeners: set[Hear] = field(default_factory=set)
    subscription: "Subscription | None" = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    def hear(self, arrival: "Arrival") -> None:
        """Hand a message to each listener."""
        try:
            progress = Progress.model_validate_json(arrival.body)
        except ValidationError:
            return
        for hear in self.listeners:
            hear(progress)


class ProgressListeners:
    """The listeners to tasks that were sent as *supervisor_id*."""

    def __init__(self, link: "Link", supervisor_id: str) -> None:
        self._link = link
        self._supervisor_id = supervisor_id
        self._tasks: dict[str, _Heard] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    async def listen(self, task_id: str, hear: Hear) -> None:
        """Call *hear* with the progress of a task from now on."""
        heard = self._tasks.setdefault(task_id, _Heard())
        heard.listeners.add(hear)
        async with heard.opening:
            if heard.subscription is None:
                subject = subjects.progress(self._supervisor_id, task_id)
                heard.subscription = await self._link.listen(subject, heard.hear)

    async def leave(self, task_id: str, hear: Hear) -> None:
        """Call *hear* no more; the last one to leave ends the subscription."""
        heard = self._tasks.get(task_id)
        if heard is None:
            return
        heard.listeners.discard(hear)
        if heard.listeners:
            return
        del self._tasks[task_id]
        if heard.subscription is not None:
            await self._link.unlisten(heard.subscription)
