"""Rights to effects, as runs of this process ask the ledger for them: each effect of a task is made by one run."""

from typing import TYPE_CHECKING

from tasklore.contracts.errors import MemoryUnavailable, RunReplaced
from tasklore.contracts.identifiers import new_id
from tasklore.workers.execution.job import Job

if TYPE_CHECKING:
    from tasklore.memory.ledger.ledger import Ledger

#: Claims kept whose answers were lost; one that is forgotten leaves its effect undone.
_MOST_UNANSWERED = 10_000


class Effects:
    """Asks for rights under the name of one worker.

    A claim whose answer was lost may have been granted: the next run in this process asks as the same caller.
    """

    def __init__(self, ledger: "Ledger", worker_id: str) -> None:
        self._ledger = ledger
        self._worker_id = worker_id
        self._unanswered: dict[tuple[str, str], str] = {}

    async def claim(self, job: Job, name: str) -> bool:
        """Return whether the run of *job* is the one that makes the effect *name*.

        Raises:
            RunReplaced: another worker has taken the task meanwhile, or it has ended.
            MemoryUnavailable: the ledger did not answer.
        """
        task_id = job.assignment.task_id
        token = self._unanswered.pop((task_id, name), None) or new_id(0)
        try:
            is_ours = await self._ledger.once(
                job.assignment.named,
                generation=job.generation,
                worker_id=self._worker_id,
                name=name,
                token=token,
            )
        except MemoryUnavailable:
            self._unanswered[task_id, name] = token
            if len(self._unanswered) > _MOST_UNANSWERED:
                del self._unanswered[next(iter(self._unanswered))]
            raise
        if is_ours is None:
            raise RunReplaced(
                f"another worker has taken task {task_id!r}, or it has ended; {name!r} is not made"
            )
        return is_ours
