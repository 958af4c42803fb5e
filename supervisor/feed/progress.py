"""The progress of tasks, heard by one subscription a task for all clients of a process that follow it."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.messages import Progress
from tasklore.runtime.messaging.output import SharedSubscriptions

if TYPE_CHECKING:
    from tasklore.runtime.messaging.link import Arrival, Link

#: Called with each message of the progress of a task; it must neither wait nor raise.
Hear = Callable[[Progress], None]


class ProgressListeners:
    """The listeners to tasks that were sent as *supervisor_id*."""

    def __init__(self, link: "Link", supervisor_id: str) -> None:
        self._supervisor_id = supervisor_id
        self._live = SharedSubscriptions(link, _parse)

    def __len__(self) -> int:
        return len(self._live)

    async def listen(self, task_id: str, hear: Hear) -> None:
        """Call *hear* with the progress of a task from now on."""
        await self._live.listen(self._subject(task_id), hear)

    async def leave(self, task_ids: Iterable[str], hear: Hear) -> None:
        """Call *hear* no more with that of these tasks; the last one to leave ends the subscription."""
        await self._live.leave([self._subject(one) for one in task_ids], hear)

    def _subject(self, task_id: str) -> str:
        return subjects.progress(self._supervisor_id, task_id)


def _parse(arrival: "Arrival") -> Progress | None:
    try:
        return Progress.model_validate_json(arrival.body)
    except ValidationError:
        return None
