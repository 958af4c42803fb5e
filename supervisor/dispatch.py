"""Dispatch: an assignment goes out once it is durably stored, and its one report comes back."""

import asyncio
from collections import defaultdict
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
from runtime.outbox import Outbox
from runtime.pull import Delivery, PullEngine

log = structlog.get_logger(__name__)

#: Seconds between looks at the ledger while a report is awaited: both other ways may have missed it.
_LOOK_S = 2.0
#: Seconds for one direct read of a stored report.
_READ_S = 1.0

_Waiter = asyncio.Future[CompletionReport]


class Dispatch:
    """Sends assignments and finds their reports.

    A report reaches the waiter three ways, whichever is first: the supervisor's durable consumer; a hint on the core
    subject, after which the ledger is read, since that subject also carries what the stream refused; and a look every
    two seconds.
    """

    def __init__(self, client: Client, outbox: Outbox, ledger: Ledger) -> None:
        self._client = client
        self._outbox = outbox
        self._ledger = ledger
        self._waiters: dict[str, list[_Waiter]] = defaultdict(list)
        self._looking: set[asyncio.Task[None]] = set()

    async def assign(self, assignment: TaskAssignment, *, patience_s: float = 10.0) -> None:
        """Publish *assignment*; returns when it is durably stored and the ledger knows of it.

        Raises:
            NotAccepted: the stream did not take it; nothing was started.
        """
        body = assignment.model_dump_json(exclude_none=True).encode()
        await self._outbox.put(
            subjects.task(assignment.agent_id, assignment.task.name),
            body,
            subjects.task_message_id(assignment.task_id, 1),
            headers={subjects.GENERATION_HEADER: "1", subjects.ATTEMPT_HEADER: "1"},
            patience_s=patience_s,
        )
        try:
            await self._ledger.accept(assignment.task_id, 1, body)
        except MemoryUnavailable as error:
            log.warning("ledger_away", task_id=assignment.task_id, error=str(error))

    async def report_of(self, assignment: TaskAssignment, within_s: float) -> CompletionReport | None:
        """Return the terminal report of *assignment*, or None when there is none within *within_s* seconds."""
        loop = asyncio.get_running_loop()
        waiter: _Waiter = loop.create_future()
        waiters = self._waiters[assignment.task_id]
        waiters.append(waiter)
        gives_up_at = loop.time() + within_s
        try:
            # It may have come before anybody waited, or long ago when the request is a repeated one.
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

    async def hear_hint(self, message: Msg) -> None:
        """Look at the ledger for the task whose report was just published."""
        task_id = message.subject.split(".")[2]
        if task_id in self._waiters:
            look = asyncio.create_task(self._look(task_id))
            self._looking.add(look)
            look.add_done_callback(self._looking.discard)

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Take stored reports: repair the ledger where a worker could not reach it, and serve who waits."""
        for delivery in batch:
            report = _read_report(delivery.body)
            if report is not None:
                # Whoever waits comes first: a repair may take as long as the ledger is waited for.
                self._serve(report)
                if report.fence == "none" and not await self._repair(report, delivery.body):
                    line.hand_back(delivery, _LOOK_S)
                    continue
            line.settle(delivery)

    async def _repair(self, report: CompletionReport, body: bytes) -> bool:
        try:
            await self._ledger.repair(report.task_id, report.generation, report.status, body)
        except MemoryUnavailable:
            return False
        log.info("ledger_repaired", task_id=report.task_id)
        return True

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
