"""Middleware: which hooks are called on the way of a task, and what an error in one of them does."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from tasklore import Context, Middleware
from tasklore.contracts.errors import GiveUp, RetryLater
from tasklore.memory.ledger.runs import CancelRequest
from tasklore.memory.long_term.entries import CachedResult
from tasklore.runtime import tracing
from tasklore.workers import middleware
from tasklore.workers.execution import executor
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.tracing import Tracing
from tasklore.workers.testing import AgentKit
from tests.unit.workers.execution.fake_worker import FakeWorker, a_task, raising
from tests.virtual_time import elapsed_s, in_virtual_time

PATIENCE_S = 60.0
AWAITED = ("after_recall", "before_run", "after_run", "before_acknowledge")
#: Hooks whose errors change nothing.
HARMLESS = (
    "on_deliveries", "after_read", "after_recall", "after_run", "before_retry", "on_reports", "before_acknowledge",
)  # fmt: skip


class Recording(Middleware):
    """Notes the hooks that were called, in *calls* when it is given."""

    def __init__(self, name: str = "", calls: list[str] | None = None) -> None:
        self.calls: list[str] = [] if calls is None else calls
        self._name = name

    def _note(self, call: str) -> None:
        self.calls.append(f"{self._name}{call}")

    def on_deliveries(self, deliveries: Sequence[Any]) -> None:
        """Note it."""
        self._note(f"deliveries {len(deliveries)}")

    def after_read(self, job: Job) -> None:
        """Note it."""
        self._note(f"read {job.assignment.task_id}")

    async def after_recall(self, jobs: Sequence[Job], began_ns: int) -> None:
        """Note it."""
        self._note(f"recalled {[job.recalled is not None for job in jobs]}")

    async def before_run(self, job: Job, context: Context) -> None:
        """Note it."""
        self._note(f"before {job.task.name}")

    async def after_run(
        self, job: Job, context: Context, error: BaseException | None
    ) -> None:
        """Note it."""
        self._note(f"after {type(error).__name__}")

    def before_retry(self, job: Job, decision: Any, error: Exception) -> None:
        """Note it."""
        self._note(f"retry {error}")

    def on_reports(self, outcomes: Sequence[Any]) -> None:
        """Note it."""
        self._note(f"reports {[outcome.status for outcome in outcomes]}")

    async def before_acknowledge(self, delivery: Any, assignment: Any) -> None:
        """Note it."""
        self._note(f"acknowledge {assignment.task_id}")


class Answering(Middleware):
    """Serves one answer to every question."""

    async def after_recall(self, jobs: Sequence[Job], began_ns: int) -> None:
        """Serve it."""
        for job in jobs:
            job.recalled = CachedResult(0, 7, b'{"word":"other"}')


def broken(error: type[BaseException], *names: str) -> Middleware:
    """Return middleware that raises *error* in the hooks called *names*."""

    def hook(name: str) -> Any:
        def call(*_arguments: Any) -> None:
            raise error(name)

        async def call_awaited(*_arguments: Any) -> None:
            raise error(name)

        function: Any = call_awaited if name in AWAITED else call
        function.__qualname__ = f"Broken.{name}"
        return function

    kind: type[Middleware] = type(
        "Broken", (Middleware,), {name: hook(name) for name in names}
    )
    return kind()


async def work(worker: FakeWorker, *deliveries: Any, acknowledged: int = 1) -> None:
    """Let *worker* work on *deliveries*, and wait until *acknowledged* are settled in all."""
    await worker.work(*deliveries)
    async with asyncio.timeout(PATIENCE_S):
        while len(worker.engine.settled) < acknowledged:  # noqa: ASYNC110 - the engine has no event
            await asyncio.sleep(0)


async def test_hooks_are_called_on_the_way_of_a_task_and_of_a_remembered_answer() -> (
    None
):
    """In the order of the way, those of one middleware before those of the next; nothing runs for a served answer."""
    calls: list[str] = []
    worker = FakeWorker(middleware=[Recording("", calls), Recording("then ", calls)])
    await work(worker, a_task())
    assert calls[::2] == [
        "deliveries 1", "read t1", "recalled [False]", "before speak", "after NoneType", "reports ['completed']",
        "acknowledge t1",
    ]  # fmt: skip
    assert calls[1::2] == [f"then {call}" for call in calls[::2]]
    calls.clear()
    await work(worker, a_task(task_id="t2"), acknowledged=2)
    assert calls[::2] == [
        "deliveries 1",
        "read t2",
        "recalled [True]",
        "reports ['completed']",
        "acknowledge t2",
    ]


@pytest.mark.parametrize(
    ("error", "calls", "acknowledged"),
    [
        (ValueError("no"), ["retry no"], 0),
        (RetryLater("no", 3600), ["retry no", "acknowledge t1"], 1),
    ],
)
async def test_a_run_that_is_repeated_tells_its_hooks(
    error: Exception, calls: list[str], acknowledged: int
) -> None:
    """No report; a delivery that is handed back is not acknowledged, one before a scheduled run is."""
    recording = Recording()
    worker = FakeWorker(raising(error), middleware=[recording])
    await work(worker, a_task(task="mutter"), acknowledged=acknowledged)
    assert recording.calls[2:] == [
        "before mutter",
        f"after {type(error).__name__}",
        *calls,
    ]
    assert (len(worker.engine.settled), len(worker.engine.handed_back)) == (
        acknowledged,
        1 - acknowledged,
    )


@pytest.mark.parametrize("error", [KeyError, asyncio.CancelledError])
async def test_hooks_that_raise_change_nothing(error: type[BaseException]) -> None:
    """Each is logged, and the next is called; the tasks of the batch are run, repeated, reported and acknowledged."""

    def does(word: str, _context: Context) -> None:
        if word == "no":
            raise ValueError(word)

    recording = Recording()
    worker = FakeWorker(does, middleware=[broken(error, *HARMLESS), recording])
    with capture_logs() as logs:
        await work(
            worker,
            a_task(),
            a_task("bye", task_id="t2"),
            a_task("no", task_id="t3"),
            acknowledged=2,
        )
    assert {(report.task_id, report.status) for report in worker.outbox.reports()} == {
        ("t1", "completed"),
        ("t2", "completed"),
    }
    assert (len(worker.engine.settled), len(worker.engine.handed_back)) == (2, 1)
    assert {
        entry["hook"] for entry in logs if entry["event"] == "middleware_failed"
    } == {f"Broken.{name}" for name in HARMLESS}
    kinds = {call.split()[0] for call in recording.calls}
    assert kinds == {
        "deliveries",
        "read",
        "recalled",
        "before",
        "after",
        "retry",
        "reports",
        "acknowledge",
    }


async def test_a_hook_ends_when_its_worker_does() -> None:
    """A cancellation of the asyncio task around it is not swallowed."""
    task = asyncio.create_task(middleware.notify_async((asyncio.sleep,), 60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_before_run_raises_is_the_tasks_own_error() -> None:
    """The function is not called, and `after_run` neither."""

    class Closed(Recording):
        async def before_run(self, job: Job, context: Context) -> None:
            raise GiveUp("closed")

    closed = Closed()
    worker = FakeWorker(middleware=[closed])
    await worker.work(a_task())
    assert (worker.report().status, worker.runs) == ("failed", [])
    assert not any(call.startswith("after") for call in closed.calls)


@in_virtual_time
async def test_a_slow_hook_after_a_run_does_not_cost_its_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is cut short after the deadline, the task has completed in time, and its time is without the hook's."""
    monkeypatch.setattr(middleware, "AFTER_RUN_S", 0.2)
    monkeypatch.setattr(executor, "elapsed_ms", lambda _: int(elapsed_s() * 1000))

    class Slow(Middleware):
        async def after_run(
            self, job: Job, context: Context, error: BaseException | None
        ) -> None:
            await asyncio.sleep(60)

    worker = FakeWorker(middleware=[Slow()])
    with capture_logs() as logs:
        await worker.work(a_task(deadline="2026-01-01T12:00:00.100Z"))
    assert (worker.report().status, worker.runs) == ("completed", ["hello"])
    assert worker.report().run_ms < 200 <= round(elapsed_s() * 1000)
    assert "middleware_cut_short" in [entry["event"] for entry in logs]


async def test_a_hook_may_serve_an_answer() -> None:
    """The task does not run, neither in a worker nor in the kit."""
    worker = FakeWorker(middleware=[Answering()])
    await worker.work(a_task())
    worker.agent.middleware = (Answering(),)
    kit_report = await AgentKit(worker.agent).run("speak", {"word": "hello"})
    for report in (worker.report(), kit_report):
        assert (report.result, report.memory.outcome) == ({"word": "other"}, "hit")
    assert worker.runs == []


class Span(tracing.Span):
    """Keeps the attributes that it is given."""

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}
        self.error_type: str | None = None

    def note(self, attributes: Any) -> None:
        """Keep them."""
        self.attributes.update(attributes)

    def fail(self, error_type: str) -> None:
        """Keep it."""
        self.error_type = error_type


@pytest.mark.parametrize(
    ("stored", "status", "error_type"),
    [
        (None, "completed", None),
        (b"the report of another run", "completed", None),
        (CancelRequest("enough"), "cancelled", "TaskCancelled"),
    ],
)
async def test_a_span_has_its_status_whether_or_not_the_report_counts(
    stored: Any, status: str, error_type: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tasklore.status` is how the task ended here."""
    worker = FakeWorker(middleware=[Tracing()])
    span = Span()
    answers = [stored, None]

    async def finish_many(reports: Any) -> list[Any]:
        return [answers.pop(0) for _ in reports]

    monkeypatch.setattr(tracing, "begin", lambda *_arguments, **_options: span)
    monkeypatch.setattr(worker.ledger, "finish_many", finish_many)
    await worker.work(a_task())
    assert (span.attributes["tasklore.status"], span.error_type) == (status, error_type)
