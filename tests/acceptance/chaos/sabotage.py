"""Switch a promise of the product off in one process, to see that whoever judges finds what follows."""

import asyncio
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tasklore.contracts.messages import TaskAssignment
from tasklore.memory.command_batch import Command
from tasklore.memory.documents.storage.repository import (
    DocumentRepository,
    Transaction,
)
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import RunPermission
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.task_rows import TaskRow
from tasklore.memory.sessions.pipeline_records import PhaseState, RunRecord
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import FoundEntry, SessionCache
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
    listing = TaskIndex.listing

    def list_open(
        self: TaskIndex, rows: Sequence[TaskRow], *, is_settled: bool = True
    ) -> list[Command]:
        open_rows = [row for row in rows if not row.has_ended]
        return listing(self, open_rows, is_settled=is_settled)

    TaskIndex.listing = list_open  # type: ignore[method-assign]


def _forget_what_is_done() -> None:
    """Let whoever takes a run over from another driver believe that its last phase which is done has never run."""
    read = PipelineRuns.read
    known: set[str] = set()

    async def forgetful(self: PipelineRuns, session_id: str) -> RunRecord | None:
        record = await read(self, session_id)
        if record is None or record.state != "running" or session_id in known:
            return record
        known.add(session_id)
        done = [name for name, state in record.phases.items() if state.status == "done"]
        forgotten = {
            name: PhaseState(run=record.phases[name].run) for name in done[-1:]
        }
        return replace(record, phases=record.phases | forgotten)

    PipelineRuns.read = forgetful  # type: ignore[method-assign]


def _count_every_reading() -> None:
    """Let a use count again when a run of the same task reads again."""
    get_many = SessionCache.get_many

    async def counting(
        self: SessionCache,
        session_id: str,
        keys: list[str],
        *,
        reader: str | None = None,
    ) -> list[FoundEntry | None]:
        return await get_many(self, session_id, keys, reader=None)

    SessionCache.get_many = counting  # type: ignore[method-assign, assignment]


def _leave_a_document_out() -> None:
    """Let every third plan be closed as done though the last of its documents is not written."""
    commit_whole = DocumentRepository.commit
    commits = itertools.count()

    async def commit_part(
        self: DocumentRepository, token: str, deed: Transaction
    ) -> Any:
        if next(commits) % 3 == 0:
            kept = dict(list(deed.documents.items())[:-1])
            deed = replace(deed, documents=kept)
        return await commit_whole(self, token, deed)

    DocumentRepository.commit = commit_part  # type: ignore[method-assign]


DEEDS: dict[str, Callable[[], None]] = {
    "once": _every_run_may,
    "fence": _fence_nobody,
    "hasty": _acknowledge_too_early,
    "apart": _never_compare,
    "unlisted": _list_no_ends,
    "forgetful": _forget_what_is_done,
    "counting": _count_every_reading,
    "careless": _leave_a_document_out,
}
