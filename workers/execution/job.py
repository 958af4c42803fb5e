"""A job: one delivery that has been read, with everything its run and its report need."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.messages import MemoryOutcome, TaskAssignment
from tasklore.contracts.parameters.model import Parameters
from tasklore.contracts.parameters.neighbours import Neighbourhood
from tasklore.memory.ledger.runs import Ended
from tasklore.memory.ledger.task_rows import TaskRow, row_of
from tasklore.memory.long_term.entries import CachedResult
from tasklore.runtime.messaging.pull import Delivery
from tasklore.workers.task import Task

#: Clocks of two machines; `tasklore doctor` warns of more.
_CLOCKS_DIFFER = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearResult:
    """An answer to a neighbouring question: the *key* of its entry, and its distance by field, as text.

    *farthest* is the largest distance as a number; *computed_for* are the parameters of that question, as JSON holds
    them.
    """

    key: str
    answer: CachedResult
    distances: dict[str, str]
    farthest: float
    computed_for: dict[str, Any]


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """An assignment that a worker holds. `question` is its key for people, `memory_key` where its answer is remembered.

    `memory` is the part of the long-term memory so far: the result of `miss` and `refreshed` will be remembered.
    `user` is the token of the user who asked, so that forgetting them finds what their tasks stored; None when unknown.
    `crashes` counts earlier runs that ended without a report, `excused` those of them that are not held against the
    task. `waited_for` is why it waited for this run, if that was for a model. `deadline` is the assignment's, else the
    task's own counted from its creation, in UTC; None for no limit. `recalled` is a remembered answer. `neighbourhood`
    is where its question stands among those that may be near to it, None when none may; `near` is the neighbour that
    was found there once its own question was not remembered.
    """

    delivery: Delivery
    assignment: TaskAssignment
    task: Task
    parameters: Parameters
    generation: int
    attempt: int
    queued_ms: int
    question: str
    memory_key: str | None
    memory: MemoryOutcome
    user: str | None
    deadline: datetime | None
    neighbourhood: Neighbourhood | None = None
    crashes: int = 0
    excused: int = 0
    waited_for: RunWait | None = None
    recalled: CachedResult | None = None
    near: NearResult | None = None

    def to_ended(self, *, excused: bool = False, uncounted: bool = False) -> Ended:
        """Return the run that began with this delivery, as one that ended without a report."""
        return Ended(
            self.assignment.named,
            generation=self.generation,
            token=self.delivery.reply,
            excused=excused,
            uncounted=uncounted,
        )

    def make_row(self) -> TaskRow:
        """Return how the task is listed while it is open."""
        assignment = self.assignment
        return row_of(assignment, self.generation, assignment.agent_id)

    @property
    def first_attempt(self) -> int:
        """The number of its first run, by its header: 1 unless it was scheduled again."""
        return self.delivery.number(subjects.ATTEMPT_HEADER)

    @property
    def entry_key(self) -> str | None:
        """The key of the entry that answers it: its own, or that of a neighbour."""
        return self.memory_key if self.near is None else self.near.key

    @property
    def runs_allowed(self) -> int:
        """How many runs the task may have, the first included."""
        return min(self.assignment.max_attempts, self.task.runs_allowed)

    @property
    def tries(self) -> int:
        """Runs that count against `runs_allowed`.

        An outage of our servers, or a worker that leaves, is no fault of the task. A crash may be caused by a
        neighbour, and is not held against a task that may run twice.
        """
        return (
            self.attempt - self.excused - (self.crashes if self.task.idempotent else 0)
        )

    def seconds_left(self, now: datetime) -> float | None:
        """Return seconds from *now* until the deadline, or None without one."""
        return (
            None
            if self.deadline is None
            else max(0.0, (self.deadline - now).total_seconds())
        )

    def begin_at(self, approved_at: datetime) -> None:
        """Let the task's own deadline count from *approved_at*, when it was allowed to start."""
        if self.task.deadline is not None and self.assignment.deadline is None:
            self.deadline = (
                max(approved_at, self.assignment.waits_from) + self.task.deadline
            )

    def is_early(self, now: datetime) -> bool:
        """Return whether its `not_before` lies further ahead of *now* than clocks may differ."""
        asked = self.assignment
        return asked.not_before is not None and asked.waits_from - now > _CLOCKS_DIFFER


@dataclass(slots=True, eq=False, kw_only=True)
class UnfitJob:
    """A delivery that no run can mend: `assignment` is None when not even its sender is known."""

    delivery: Delivery
    assignment: TaskAssignment | None
    generation: int
    attempt: int
    problem: Exception
    is_expired: bool = False
