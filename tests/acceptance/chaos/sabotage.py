"""Switch a promise of the product off in one worker, to see that the checker finds what follows."""

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Any

from tasklore.contracts.messages import TaskAssignment
from tasklore.memory.command_batch import Command
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.run_index import RunIndex
from tasklore.memory.ledger.run_rows import RunRow
from tasklore.memory.ledger.runs import RunPermission
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.supervisor.reports.comparison import ReportReconciler
from tasklore.workers.context.context import Context
from tasklore.workers.execution.report_publisher import ReportPublisher


def commit(deed: str) -> None:
    """Break this process in the way *deed* names (a key of `DEEDS`); nothing when it is empty."""
    if deed:
        DEEDS[deed]()


def _every_run_may() -> None:
    """Let `context.once` say True to everybody: effects are made twice."""

    async def once(self: Context, name: str) -> bool:
        return True

    Context.once = once  # type: ignore[method-assign]


def _fence_nobody() -> None:
    """Let the ledger forget who runs what and who has reported: tasks are computed and reported again."""

    async def begin(self: Ledger, *args: Any, **options: Any) -> RunPermission:
        return RunPermission(1)

    async def hold(self: Ledger, *args: Any, **named: Any) -> list[tuple[str, int]]:
        return []

    async def once(self: Ledger, *args: Any, **named: Any) -> bool:
        return True

    async def finish_many(self: Ledger, reports: Sequence[Any]) -> list[None]:
        return [None] * len(reports)

    Ledger.begin = begin  # type: ignore[method-assign]
    Ledger.hold = hold  # type: ignore[method-assign, assignment]
    Ledger.once = once  # type: ignore[method-assign, assignment]
    Ledger.finish_many = finish_many  # type: ignore[method-assign, assignment]


def _acknowledge_too_early() -> None:
    """Settle a delivery and report a second later: whoever dies in between has lost the task."""
    send = ReportPublisher.send

    def hasty(
        self: ReportPublisher,
        assignment: TaskAssignment,
        *,
        delivery: Delivery,
        engine: PullEngine,
        **report: Any,
    ) -> None:
        engine.settle(delivery)
        later = functools.partial(
            send, self, assignment, delivery=delivery, engine=engine, **report
        )
        asyncio.get_running_loop().call_later(1.0, later)

    ReportPublisher.send = hasty  # type: ignore[method-assign, assignment]


def _never_compare() -> None:
    """Let a supervisor settle what it is asked to compare: the ledger keeps what it has."""

    async def work(self: ReportReconciler, batch: Sequence[Any], line: Any) -> None:
        for delivery in batch:
            line.settle(delivery)

    ReportReconciler.work = work  # type: ignore[method-assign]


def _list_no_ends() -> None:
    """Let the list of tasks keep every task open."""
    listing = RunIndex.listing

    def list_open(
        self: RunIndex, rows: Sequence[RunRow], *, is_settled: bool = True
    ) -> list[Command]:
        open_rows = [row for row in rows if not row.has_ended]
        return listing(self, open_rows, is_settled=is_settled)

    RunIndex.listing = list_open  # type: ignore[method-assign]


DEEDS: dict[str, Callable[[], None]] = {
    "once": _every_run_may,
    "fence": _fence_nobody,
    "hasty": _acknowledge_too_early,
    "apart": _never_compare,
    "unlisted": _list_no_ends,
}
