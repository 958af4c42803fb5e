"""A verdict: the terminal state of one delivery, and the report that says it."""

import base64
import hashlib
import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime

from contracts.messages import (
    CompletionReport,
    DeadLetter,
    ErrorNote,
    Fence,
    MemoryNote,
    Status,
    TaskAssignment,
    Usage,
)
from runtime.pull import Delivery

#: Bytes of a body that a dead letter keeps; the digest and the origin's sequence tell of the rest.
DEAD_BODY = 512 * 1024


@dataclass(slots=True, eq=False)
class Verdict:
    """What is to be said about *delivery*. `result_json` is spliced into the report as it was computed or remembered.

    `error` is the exception behind a status other than `completed`; a `dead_reason` sends the delivery to DEAD as well.
    `saved_ms` is what computing a served answer once took.
    """

    delivery: Delivery
    assignment: TaskAssignment
    generation: int
    attempt: int
    status: Status
    worker_id: str
    memory: MemoryNote
    queued_ms: int = 0
    run_ms: int = 0
    result_json: bytes | None = None
    error: BaseException | None = None
    usage: Usage | None = None
    dead_reason: str | None = None
    saved_ms: int = 0
    must_be_fenced: bool = False

    def body(self, fence: Fence) -> bytes:
        """Return the report as it crosses the wire, with the word *fence* of the ledger."""
        assignment = self.assignment
        report = CompletionReport.model_construct(
            schema_version=1,
            task_id=assignment.task_id,
            generation=self.generation,
            agent_id=assignment.agent_id,
            supervisor_id=assignment.supervisor_id,
            task_name=assignment.task.name,
            status=self.status,
            result=None,
            error=error_note(self.error) if self.error is not None else None,
            memory=self.memory,
            attempt=self.attempt,
            fence=fence,
            worker_id=self.worker_id,
            queued_ms=self.queued_ms,
            run_ms=self.run_ms,
            usage=self.usage or Usage.model_construct(input_tokens=0, output_tokens=0, cost_usd=0.0),
            finished_at=datetime.now(UTC),
        )
        if self.result_json is None:
            return report.model_dump_json().encode()
        head = report.__pydantic_serializer__.to_json(report, exclude=_RESULT)
        return head[:-1] + b',"result":' + self.result_json + b"}"


_RESULT = {"result"}


def error_note(error: BaseException) -> ErrorNote:
    """Return *error* as reports carry it: its class, its words, and whether another run could help."""
    return ErrorNote(
        type=type(error).__name__,
        message=(str(error) or type(error).__name__)[:4000],
        retryable=bool(getattr(error, "retryable", False)),
    )


def dead_letter(
    delivery: Delivery,
    *,
    reason: str,
    error: BaseException,
    attempts: int,
    task_id: str | None = None,
    usage: Usage | None = None,
) -> bytes:
    """Return the message that DEAD keeps of *delivery*."""
    trace = "".join(traceback.format_exception(error))[-20_000:] if error.__traceback__ is not None else None
    letter = DeadLetter(
        reason=reason,
        error=error_note(error),
        traceback=trace,
        subject=delivery.subject,
        sequence=delivery.sequence,
        attempts=attempts,
        headers={name: value for name, value in (delivery.headers or {}).items() if not name.startswith("Nats-")},
        body=base64.b64encode(delivery.body[:DEAD_BODY]).decode(),
        body_bytes=len(delivery.body),
        body_digest=hashlib.blake2b(delivery.body, digest_size=16).hexdigest(),
        task_id=task_id,
        usage=usage or Usage(),
        died_at=datetime.now(UTC),
    )
    return letter.model_dump_json().encode()


def elapsed_ms(started: float) -> int:
    """Return whole milliseconds since *started*, a reading of `time.monotonic`."""
    return int((time.monotonic() - started) * 1000)
