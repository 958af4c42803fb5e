"""A verdict: the terminal state of one delivery, and the report that says it."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic_core import from_json

from contracts.messages import (
    CompletionReport,
    Fence,
    MemoryNote,
    MemoryOutcome,
    Status,
    TaskAssignment,
    Usage,
)
from runtime.messaging.dead_letter import error_note
from runtime.messaging.pull import Delivery
from workers.execution.job import Neighbour, Order


@dataclass(slots=True, eq=False)
class Verdict:
    """What is to be said about *delivery*. `result_json` is spliced into the report as it was computed or remembered.

    `error` is the exception behind a status other than `completed`; a `dead_reason` sends the delivery to DEAD as well.
    `run_ms` is None when nothing ran; `saved_ms` is what computing a served answer once took; `age_ms` how old it is;
    `near` whose it is when that is a neighbouring question.
    """

    delivery: Delivery
    assignment: TaskAssignment
    generation: int
    attempt: int
    status: Status
    worker_id: str
    outcome: MemoryOutcome
    question: str | None = None
    age_ms: int | None = None
    queued_ms: int = 0
    run_ms: int | None = None
    result_json: bytes | None = None
    error: BaseException | None = None
    usage: Usage | None = None
    dead_reason: str | None = None
    saved_ms: int = 0
    near: Neighbour | None = None
    must_be_fenced: bool = False

    def become_cancelled(self, error: BaseException) -> None:
        """Turn it into the only verdict that is taken once somebody wished the task cancelled."""
        self.status, self.error = "cancelled", error
        self.result_json = self.dead_reason = None

    def body(self, fence: Fence) -> bytes:
        """Return the report as it crosses the wire, with the word *fence* of the ledger."""
        if self.result_json is not None and self.error is None:
            return self._completed_body(fence, self.result_json)
        return self._report(fence).model_dump_json().encode()

    def _completed_body(self, fence: Fence, result_json: bytes) -> bytes:
        """Return what `_report` would be as JSON: put together by hand, since every served answer passes here."""
        assignment = self.assignment
        usage = _NO_USAGE if self.usage is None else self.usage.model_dump_json().encode()
        # Names have no character that JSON would escape; a key is percent-escaped, see contracts.parameters.questions.
        head = (
            f'{{"schema_version":1,"task_id":"{assignment.task_id}","generation":{self.generation},'
            f'"agent_id":"{assignment.agent_id}","supervisor_id":"{assignment.supervisor_id}",'
            f'"task_name":"{assignment.task.name}","status":"{self.status}","error":null,'
            f'"memory":{{"outcome":"{self.outcome}","key":{_quoted(self.question)},"age_ms":{_number(self.age_ms)}{_nearness(self.near)}}},'
            f'"attempt":{self.attempt},"fence":"{fence}","worker_id":"{self.worker_id}",'
            f'"queued_ms":{self.queued_ms},"run_ms":{self.run_ms or 0},"finished_at":"{_now()}",'
        )
        return b"".join((head.encode(), b'"usage":', usage, b',"result":', result_json, b"}"))

    def _report(self, fence: Fence) -> CompletionReport:
        assignment = self.assignment
        return CompletionReport(
            task_id=assignment.task_id,
            generation=self.generation,
            agent_id=assignment.agent_id,
            supervisor_id=assignment.supervisor_id,
            task_name=assignment.task.name,
            status=self.status,
            result=from_json(self.result_json) if self.result_json is not None else None,
            error=error_note(self.error) if self.error is not None else None,
            memory=MemoryNote(outcome=self.outcome, key=self.question, age_ms=self.age_ms),
            attempt=self.attempt,
            fence=fence,
            worker_id=self.worker_id,
            queued_ms=self.queued_ms,
            run_ms=self.run_ms or 0,
            usage=self.usage or Usage(),
            finished_at=datetime.now(UTC),
        )


_NO_USAGE = b'{"input_tokens":0,"output_tokens":0,"cost_usd":0.0}'


def _quoted(text: str | None) -> str:
    return "null" if text is None else f'"{text}"'


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)


def _nearness(near: Neighbour | None) -> str:
    """Return what a memory note says of an answer to a neighbouring question, nothing of any other."""
    if near is None:
        return ""
    note = MemoryNote(
        outcome="near",
        distance=near.farthest,
        computed_for=near.computed_for,
        distances=near.distances,
    )
    return "," + note.model_dump_json(include={"distance", "computed_for", "distances"})[1:-1]


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def verdict_on(
    order: Order, status: Status, worker_id: str, *, result_json: bytes | None = None, run_ms: int | None = None
) -> Verdict:
    """Return the verdict *status* on *order*, with the memory's part in it as the order has it so far."""
    return Verdict(
        order.delivery,
        order.assignment,
        order.generation,
        order.attempt,
        status,
        worker_id,
        order.outcome,
        order.question,
        None,
        order.queued_ms,
        run_ms,
        result_json,
        near=order.near if order.outcome == "near" else None,
        must_be_fenced=not order.task.idempotent,
    )


def elapsed_ms(started: float) -> int:
    """Return whole milliseconds since *started*, a reading of `time.monotonic`."""
    return int((time.monotonic() - started) * 1000)
