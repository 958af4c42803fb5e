"""Comparison: where the ledger and REPORTS may hold different reports of a task, both end with the one in REPORTS.

That one may have been read, and cannot be recalled or replaced; the ledger can be set. While the ledger answers it
decides which is published, so that they differ only after it was away, or when a process died between the two. The
process that may have caused that asks for a comparison before it acknowledges the task: a worker without the ledger,
one that finds a report in the stream already, a supervisor that is about to report a cancelled task. Comparing twice,
or in several supervisors at once, changes nothing: REPORTS stays as it is, and the ledger takes over nothing else.
"""

import asyncio
import base64
import time

import structlog
from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import CompletionReport
from tasklore.memory.ledger.expired import REPORT_EXPIRED
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import Finish
from tasklore.memory.ledger.task_rows import row_of_report
from tasklore.runtime.messaging.jetstream import ask_or_none
from tasklore.runtime.messaging.link import read_headers
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.runtime.messaging.streams import REPORTS_KEPT_S, PullSource

log = structlog.get_logger(__name__)

#: Seconds before a comparison that could not be made is tried again.
_RETRY_S = 2.0
#: Tries of a comparison that finds no report in either: its sender asked before reporting, and may be about to.
_TRIES = 15
#: Seconds an unheard-of comparison stays with a supervisor before another is offered it.
_ACK_WAIT_S = 10.0

SOURCE = PullSource(
    stream=subjects.REPORTS,
    durable=subjects.COMPARISONS,
    filter_subject=subjects.COMPARISONS_ALL,
    ack_wait_s=_ACK_WAIT_S,
)


class ReportReconciler:
    """Compares reports on request, for every program whose reports lie in the stream."""

    def __init__(self, client: Client, ledger: Ledger, outbox: Outbox) -> None:
        self._client = client
        self._ledger = ledger
        self._outbox = outbox

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Compare all of *batch* side by side; a comparison that fails is offered again."""
        found = await asyncio.gather(
            *(self._compare(delivery.body) for delivery in batch),
            return_exceptions=True,
        )
        for delivery, outcome in zip(batch, found, strict=True):
            is_unreadable = isinstance(outcome, ValueError | InvalidInput)
            if is_unreadable:
                log.warning(
                    "unreadable_comparison",
                    subject=delivery.subject,
                    error=str(outcome),
                )
            if (
                outcome is True
                or is_unreadable
                or (outcome is False and delivery.deliveries >= _TRIES)
            ):
                line.settle(delivery)
            else:
                line.hand_back(delivery, _RETRY_S)
        errors = [
            outcome
            for outcome in found
            if not isinstance(outcome, bool | ValueError | InvalidInput)
        ]
        if errors:
            log.warning(
                "comparisons_postponed", number=len(errors), error=repr(errors[0])
            )

    async def _compare(self, asked: bytes) -> bool:
        """Give both stores one report of the generation whose subject is *asked*; False when neither has any yet.

        Raises:
            TaskloreError: a server does not answer.
            InvalidInput: no task can be called so.
            ValueError: that is no subject of a report, or another report lies there.
        """
        _, _, task_id, generation = (where := asked.decode()).split(".")
        # As the leader has it: another node may not have it yet.
        found = await ask_or_none(
            self._client, f"STREAM.MSG.GET.{subjects.REPORTS}", {"last_by_subj": where}
        )
        report: CompletionReport | None = None
        body = b""
        headers: dict[str, str] = {}
        if found is not None:
            message = found["message"]
            body = base64.b64decode(message.get("data", ""))
            report = _read(where, body)
            headers = read_headers(base64.b64decode(message.get("hdrs", ""))) or {}
        # An id alone leads to an entry only as long as its report is kept.
        named = report.named if report else await self._ledger.name(task_id)
        entry = await self._ledger.read(named)
        known = entry.generations.get(int(generation)) if entry is not None else None
        if known is not None and known.expired is not None:
            return True
        if (
            report is None
            and entry is not None
            and known is not None
            and known.report is not None
        ):
            return await self._publish(where, known.report, entry.user)
        if report is None:
            return False
        if report.error is not None and report.error.type == REPORT_EXPIRED:
            # It was made of what the ledger knew, and says less.
            return True
        if known is None or known.report != body:
            user = headers.get(subjects.USER_HEADER, "")
            await self._ledger.adopt_many(
                [
                    Finish(
                        report.named,
                        generation=int(generation),
                        status=report.status,
                        report=body,
                        user=user,
                        row=row_of_report(report, user),
                    )
                ]
            )
            was = known.state if known is not None else None
            log.warning(
                "ledger_took_over_report",
                task_id=task_id,
                status=report.status,
                was=was,
            )
        return True

    async def _publish(self, where: str, body: bytes, user: str) -> bool:
        """Publish a report that only the ledger has, unless older than the stream keeps; False to look once more."""
        report = _read(where, body)
        if time.time() - report.finished_at.timestamp() > REPORTS_KEPT_S:
            return True
        message_id = subjects.report_message_id(report.task_id, report.generation)
        headers = {subjects.USER_HEADER: user} if user else None
        await self._outbox.put(
            where, body, message_id, headers=headers, waits_when_full=True
        )
        log.warning(
            "report_published_again", task_id=report.task_id, status=report.status
        )
        # Another process may have published another one meanwhile.
        return False


def _read(where: str, body: bytes) -> CompletionReport:
    """Return the report in *body*; raises ValueError when it is none, or belongs elsewhere than *where*."""
    report = CompletionReport.model_validate_json(body)
    if (
        subjects.report(report.supervisor_id, report.task_id, report.generation)
        != where
    ):
        msg = (
            f"{where} holds a report on {report.task_id!r} for {report.supervisor_id!r}"
        )
        raise ValueError(msg)
    return report
