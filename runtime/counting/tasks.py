"""Tasks: how they ended, how long they waited and ran, and what the memory had to do with it."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

from prometheus_client import Histogram

from tasklore.contracts.messages import MemoryOutcome, Status
from tasklore.contracts.words import OTHER
from tasklore.runtime.counting.series import LabelledCounters, Series
from tasklore.runtime.counting.words import (
    DEAD_REASONS,
    LOOKUP_BUCKETS,
    MAX_TASKS,
    RETRY_WAYS,
    TASK_BUCKETS,
    words_of,
)


@dataclass(frozen=True, slots=True)
class _TaskSeries:
    """The series of one task name that change when a task ends."""

    outcomes: LabelledCounters
    queue_wait: Histogram
    duration: Histogram


class TaskCounters:
    """What a worker counts of the tasks that it runs."""

    def __init__(self, series: Series) -> None:
        self._by_task: dict[tuple[str, str], _TaskSeries] = {}
        self._by_agent: dict[str, LabelledCounters] = {}
        self._tasks = series.counter(
            "tasks", "Tasks that ended, by reports.", "agent", "task", "outcome"
        )
        self._queue_wait = series.histogram(
            "task_queue_wait_seconds",
            "Queue wait of a task, from submission to start.",
            TASK_BUCKETS,
            "agent",
        )
        self._duration = series.histogram(
            "task_duration_seconds",
            "Run time of a task, from start to end.",
            TASK_BUCKETS,
            "agent",
            "task",
        )
        self._lookups = series.counter(
            "memory_lookups", "Lookups in the result cache.", "agent", "outcome"
        )
        self._saved = series.counter(
            "memory_saved_seconds", "Compute time saved by cache hits."
        )
        self._lookup_duration = series.histogram(
            "memory_lookup_duration_seconds",
            "Duration of a batch of cache lookups.",
            LOOKUP_BUCKETS,
        )
        self._crashed_runs = series.counter(
            "crashed_runs", "Runs that crashed without a report."
        )
        self._replaced_runs = series.counter(
            "replaced_runs", "Runs stopped because another worker had taken the task."
        )
        self._retries = LabelledCounters(
            series.counter("retries", "Further runs of tasks that raised.", "how"),
            RETRY_WAYS,
        )
        self._stale_reports = series.counter(
            "stale_reports_refused", "Results after another attempt had finished."
        )
        self._dead_letters = LabelledCounters(
            series.counter(
                "dead_letters", "Messages put into the dead-letter queue.", "reason"
            ),
            DEAD_REASONS,
        )

    def count_tasks(self, agent: str, task: str, outcome: str, number: int = 1) -> None:
        """Count *number* terminal reports by their status."""
        series = self._by_task.get((agent, task)) or self._new_task(agent, task)
        series.outcomes[outcome].inc(number)

    def observe_task(
        self, agent: str, task: str, *, queued_s: float, run_s: float | None
    ) -> None:
        """Note that a task waited *queued_s* and ran *run_s* seconds; None when its answer was served instead."""
        series = self._by_task.get((agent, task)) or self._new_task(agent, task)
        series.queue_wait.observe(queued_s)
        if run_s is not None:
            series.duration.observe(run_s)

    def count_lookup(self, agent: str, outcome: str, number: int = 1) -> None:
        """Count what the memory had to do with *number* tasks."""
        lookups = self._by_agent.get(agent)
        if lookups is None:
            lookups = self._by_agent[agent] = LabelledCounters(
                self._lookups, words_of(MemoryOutcome), agent
            )
        lookups[outcome].inc(number)

    def count_saved(self, seconds: float) -> None:
        """Count the time that served answers once took to compute."""
        self._saved.inc(max(0.0, seconds))

    def time_lookup(self) -> AbstractContextManager[object]:
        """Measure one recall of the memory, of however many keys, while the block runs."""
        return self._lookup_duration.time()

    def count_crashed_run(self) -> None:
        """Count a run that ended without a word, as the next one finds it in the ledger."""
        self._crashed_runs.inc()

    def count_replaced_run(self) -> None:
        """Count a run that was stopped here because another worker runs the task meanwhile."""
        self._replaced_runs.inc()

    def count_retry(self, how: str) -> None:
        """Count another run that is to follow; *how*: `nak` in TASKS, else in LATER, for what it waits."""
        self._retries[how].inc()

    def count_stale_report(self) -> None:
        """Count a result that came after another attempt had finished, and was refused."""
        self._stale_reports.inc()

    def count_dead_letter(self, reason: str) -> None:
        """Count a message set aside; *reason* is one of a few words."""
        self._dead_letters[reason].inc()

    def _new_task(self, agent: str, task: str) -> _TaskSeries:
        if len(self._by_task) >= MAX_TASKS:
            agent = task = OTHER
        series = _TaskSeries(
            LabelledCounters(self._tasks, words_of(Status), agent, task),
            self._queue_wait.labels(agent),
            self._duration.labels(agent, task),
        )
        return self._by_task.setdefault((agent, task), series)
