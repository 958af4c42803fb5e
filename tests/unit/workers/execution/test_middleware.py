"""Middleware: which hooks are called on the way of a task, and what an error in one of them does."""

from collections.abc import Sequence
from typing import Any

import pytest

from contracts.errors import ConfigurationError, GiveUp
from memory.long_term.entries import Remembered
from tests.unit.workers.execution.fake_worker import FakeWorker, a_task, raising
from workers import Agent, Context, Middleware
from workers.execution.job import Job


class Recording(Middleware):
    """Notes the hooks that were called."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_deliveries(self, deliveries: Sequence[Any]) -> None:
        """Note it."""
        self.calls.append(f"deliveries {len(deliveries)}")

    def after_read(self, job: Job) -> None:
        """Note it."""
        self.calls.append(f"read {job.assignment.task_id}")

    async def after_recall(self, jobs: Sequence[Job], began_ns: int) -> None:
        """Note it."""
        self.calls.append(f"recalled {[job.recalled is not None for job in jobs]}")

    async def before_run(self, job: Job, context: Context) -> None:
        """Note it."""
        self.calls.append(f"before {job.task.name}")

    async def after_run(self, job: Job, context: Context, error: BaseException | None) -> None:
        """Note it."""
        self.calls.append(f"after {type(error).__name__}")

    def before_retry(self, job: Job, decision: Any, error: Exception) -> None:
        """Note it."""
        self.calls.append(f"retry {error}")

    def on_reports(self, outcomes: Sequence[Any]) -> None:
        """Note it."""
        self.calls.append(f"reports {[outcome.status for outcome in outcomes]}")

    async def before_acknowledge(self, delivery: Any, assignment: Any) -> None:
        """Note it."""
        self.calls.append(f"acknowledge {assignment.task_id}")


class Broken(Middleware):
    """Raises in every hook that must not change anything."""

    def after_read(self, job: Job) -> None:
        """Raise."""
        raise KeyError("read")

    async def after_run(self, job: Job, context: Context, error: BaseException | None) -> None:
        """Raise."""
        raise KeyError("run")

    def on_reports(self, outcomes: Sequence[Any]) -> None:
        """Raise."""
        raise KeyError("reports")


async def test_hooks_are_called_on_the_way_of_a_task_and_of_a_remembered_answer() -> None:
    """In the order of the way; nothing runs for an answer that is served."""
    recording = Recording()
    worker = FakeWorker(middleware=[recording])
    await worker.work(a_task())
    assert recording.calls == [
        "deliveries 1", "read t1", "recalled [False]", "before speak", "after NoneType", "reports ['completed']",
    ]  # fmt: skip
    recording.calls.clear()
    await worker.work(a_task(task_id="t2"))
    assert recording.calls[-2:] == ["recalled [True]", "reports ['completed']"]


async def test_a_run_that_is_repeated_tells_its_hooks() -> None:
    """With the error, and no report."""
    recording = Recording()
    await FakeWorker(raising(ValueError("no")), middleware=[recording]).work(a_task(task="mutter"))
    assert recording.calls[-2:] == ["after ValueError", "retry no"]


async def test_a_hook_that_raises_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """It is logged; the task is run, reported and acknowledged."""
    worker = FakeWorker(middleware=[Broken()])
    await worker.work(a_task(task="mutter"))
    assert (worker.report().status, len(worker.engine.settled)) == ("completed", 1)
    said = capsys.readouterr().out
    assert [f"hook=Broken.{name}" in said for name in ("after_read", "after_run", "on_reports")] == [True] * 3


async def test_what_before_run_raises_is_the_tasks_own_error() -> None:
    """The function is not called."""

    class Closed(Middleware):
        async def before_run(self, job: Job, context: Context) -> None:
            raise GiveUp("closed")

    worker = FakeWorker(middleware=[Closed()])
    await worker.work(a_task())
    assert (worker.report().status, worker.runs) == ("failed", [])


async def test_a_hook_may_serve_an_answer() -> None:
    """The task does not run."""

    class Answering(Middleware):
        async def after_recall(self, jobs: Sequence[Job], began_ns: int) -> None:
            for job in jobs:
                job.recalled = Remembered(0, 7, b'{"word":"other"}')

    worker = FakeWorker(middleware=[Answering()])
    await worker.work(a_task())
    assert (worker.report().result, worker.report().memory.outcome, worker.runs) == ({"word": "other"}, "hit", [])


def test_middleware_must_be_instances() -> None:
    """A class is a slip that shows at once."""
    with pytest.raises(ConfigurationError, match="instances of Middleware"):
        Agent("A", middleware=[Recording])  # type: ignore[list-item]
