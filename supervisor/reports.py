"""Reports: the one report of each assignment, found for whoever waits for it and kept true in the ledger.

A report reaches the waiter three ways, whichever is first: the supervisor's durable consumer; a hint on the core
subject; and a look into the ledger every two seconds. The core subject also carries what the stream refused: of a hint
that did not pass the ledger, or is of a task that was sent again, the ledger is asked.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import ValidationError

from contracts import subjects
from contracts.errors import MemoryUnavailable
from contracts.messages import CompletionReport, TaskAssignment
from memory.ledger import Ledger
from memory.runs import Finish
from runtime.pull import Delivery, PullEngine
from supervisor.run_times import RunTimes
from supervisor.spans import note_report

log = structlog.get_logger(__name__)

#: Seconds between looks at the ledger while a report is awaited: both other ways may have missed it.
_LOOK_S = 2.0
#: Seconds for one direct read of a stored report.
_READ_S = 1.0

_Waiter = asyncio.Future[CompletionReport]


class ReportDesk:
    """Where stored reports are worked on, and where requests wait for theirs."""

    def __init__(self, client: Client, ledger: Ledger) -> None:
        self._client = client
        self._ledger = ledger
        self._waiters: dict[str, list[_Waiter]] = defaultdict(list)
        self._looking: set[asyncio.Task[None]] = set()
        self.run_times = RunTimes()
        """How long tasks took, as the reports that came here tell."""

    async def report_of(
        self, assignment: TaskAssignment, within_s: float, *, is_new: bool = False
    ) -> CompletionReport | None:
        """Return the terminal report of *assignment*, or None when there is none within *within_s* seconds.

        *is_new* tells that it was not sent before this is called, so that there is nothing to look for yet.
        """
        loop = asyncio.get_running_loop()
        waiter: _Waiter = loop.create_future()
        waiters = self._waiters[assignment.task_id]
        waiters.append(waiter)
        gives_up_at = loop.time() + within_s
        try:
            # It may have come before anybody waited, or long ago when the request is a repeated one.
            if not is_new:
                await self._look(assignment.task_id)
            while not waiter.done():
                left_s = gives_up_at - loop.time()
                if left_s <= 0:
                    return None
                await asyncio.wait([waiter], timeout=min(left_s, _LOOK_S))
                if not waiter.done():
                    await self._look(assignment.task_id)
                    await self._look_in_stream(assignment)
            return waiter.result()
        finally:
            waiters.remove(waiter)
            if not waiters:
                self._waiters.pop(assignment.task_id, None)

    async def is_under_way(self, task_id: str) -> bool:
        """Return whether somebody runs *task_id*, as far as is known: its report may be about to come."""
        try:
            entry = await self._ledger.read(task_id)
        except MemoryUnavailable:
            return True
        return entry is not None and entry.generations[entry.newest].state == "running"

    async def hear_hint(self, message: Msg) -> None:
        """Serve the report that was just published, after a look at the ledger where that is in doubt."""
        task_id = message.subject.split(".")[2]
        if task_id not in self._waiters:
            return
        report = _read_report(message.data)
        if report is not None and (report.fence, report.generation) == ("ledger", 1):
            self._serve(report)
        else:
            look = asyncio.create_task(self._look(task_id))
            self._looking.add(look)
            look.add_done_callback(self._looking.discard)

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Take stored reports: repair the ledger where a worker could not reach it, and serve who waits."""
        unfenced: list[tuple[Delivery, Finish]] = []
        for delivery in batch:
            report = _read_report(delivery.body)
            if report is not None:
                note_report(delivery, report)
                # Whoever waits comes first: a repair may take as long as the ledger is waited for.
                self._serve(report)
                self.run_times.note(report)
            if report is not None and report.fence == "none":
                user = (delivery.headers or {}).get(subjects.USER_HEADER, "")
                finish = Finish(report.task_id, report.generation, report.status, delivery.body, user)
                unfenced.append((delivery, finish))
            else:
                line.settle(delivery)
        if unfenced:
            await self._repair(unfenced, line)

    async def _repair(self, unfenced: Sequence[tuple[Delivery, Finish]], line: PullEngine) -> None:
        """Store reports that were published while the ledger was away, at once: each alone would wait its deadline.

        What the ledger does not take, since it has an earlier one or a wish to cancel, is dealt with all the same.
        """
        try:
            await self._ledger.finish_many([finish for _, finish in unfenced])
        except MemoryUnavailable:
            for delivery, _ in unfenced:
                line.hand_back(delivery, _LOOK_S)
            return
        for delivery, finish in unfenced:
            line.settle(delivery)
            log.info("ledger_repaired", task_id=finish.task_id)

    async def _look(self, task_id: str) -> None:
        try:
            entry = await self._ledger.read(task_id)
        except MemoryUnavailable:
            return
        stored = entry.generations[entry.newest].report if entry is not None else None
        report = _read_report(stored) if stored is not None else None
        if report is not None:
            self._serve(report)

    async def _look_in_stream(self, assignment: TaskAssignment) -> None:
        if assignment.task_id not in self._waiters:
            return
        subject = subjects.report(assignment.supervisor_id, assignment.task_id, 1)
        try:
            async with asyncio.timeout(_READ_S + 1):
                stored = await self._client.request(f"$JS.API.DIRECT.GET.{subjects.REPORTS}.{subject}", timeout=_READ_S)
        except (TimeoutError, OSError, nats.errors.Error):
            return
        report = _read_report(stored.data) if not (stored.headers or {}).get("Status") else None
        if report is not None:
            self._serve(report)

    def _serve(self, report: CompletionReport) -> None:
        for waiter in self._waiters.get(report.task_id, ()):
            if not waiter.done():
                waiter.set_result(report)


def _read_report(body: bytes) -> CompletionReport | None:
    try:
        return CompletionReport.model_validate_json(body)
    except ValidationError as error:
        log.warning("unreadable_report", problems=error.error_count(), at=datetime.now(UTC).isoformat())
        return None
