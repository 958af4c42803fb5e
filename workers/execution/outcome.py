"""The outcome of one delivery: its terminal status and its report."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from pydantic_core import from_json

from tasklore.contracts.messages import (
    CompletionReport,
    ErrorNote,
    Fence,
    MemoryNote,
    MemoryOutcome,
    Status,
    TaskAssignment,
    Usage,
)
from tasklore.runtime.messaging.dead_letter import error_note
from tasklore.runtime.messaging.pull import Delivery
from tasklore.workers.execution.job import Job, NearResult

_NO_USAGE = b'{"input_tokens":0,"output_tokens":0,"cost_usd":0.0}'


@dataclass(slots=True, eq=False, kw_only=True)
class TaskOutcome:
    """The terminal status of *delivery*. `result_json` is spliced into the report as it was computed or remembered.

    `error` is the exception behind a status other than `completed`; a `dead_reason` sends the delivery to DEAD as well.
    `remark` is said before its message in the report: why no other run follows. `place` is where it is in the author's
    code. `run_ms` is None when nothing ran, `waited_ms` the part of it in which
    the run waited for another task's value; `saved_ms` is the computing time that a served answer spared; `age_ms` is
    its age; `near` is set where it answers a neighbouring question.
    """

    delivery: Delivery
    assignment: TaskAssignment
    generation: int
    attempt: int
    status: Status
    worker_id: str
    memory: MemoryOutcome
    question: str | None = None
    age_ms: int | None = None
    queued_ms: int = 0
    run_ms: int | None = None
    waited_ms: int = 0
    result_json: bytes | None = None
    error: BaseException | None = None
    remark: str = ""
    place: str | None = None
    usage: Usage | None = None
    dead_reason: str | None = None
    saved_ms: int = 0
    near: NearResult | None = None
    must_be_fenced: bool = False

    def become_cancelled(self, error: BaseException) -> None:
        """Turn it into the only outcome that is taken once the task is to be cancelled."""
        self.status = "cancelled"
        self.error = error
        self.remark = ""
        self.result_json = self.dead_reason = None

    def body(self, fence: Fence) -> bytes:
        """Return the report as it crosses the wire; *fence* says whether the ledger took it."""
        if self.result_json is None or self.error is not None:
            return self._report(fence).model_dump_json().encode()
        assignment = self.assignment
        usage = (
            _NO_USAGE if self.usage is None else self.usage.model_dump_json().encode()
        )
        question = "null" if self.question is None else f'"{self.question}"'
        near = "" if self.near is None else _nearness(self.near)
        saved = f',"saved_ms":{self.saved_ms}' if self.saved_ms else ""
        # Put together by hand, since every served answer passes here. Names have no character that JSON would escape;
        # a key is percent-escaped, see tasklore.contracts.parameters.questions.
        waited = f'"waited_ms":{self.waited_ms},' if self.waited_ms else ""
        head = (
            f'{{"schema_version":1,"task_id":"{assignment.task_id}","generation":{self.generation},'
            f'"agent_id":"{assignment.agent_id}","supervisor_id":"{assignment.supervisor_id}",'
            f'"task_name":"{assignment.task.name}","status":"{self.status}","error":null,'
            f'"memory":{{"outcome":"{self.memory}","key":{question},'
            f'"age_ms":{"null" if self.age_ms is None else self.age_ms}{saved}{near}}},'
            f'"attempt":{self.attempt},"fence":"{fence}","worker_id":"{self.worker_id}",'
            f'"queued_ms":{self.queued_ms},"run_ms":{self.run_ms or 0},{waited}'
            f'"finished_at":"{_spell_now()}",'
        )
        return b"".join(
            (head.encode(), b'"usage":', usage, b',"result":', self.result_json, b"}")
        )

    def _note(self) -> ErrorNote | None:
        """Return the error as the report has it."""
        if self.error is None:
            return None
        note = error_note(self.error)
        if not self.remark:
            return note
        return note.model_copy(update={"message": f"{self.remark}: {note.message}"})

    def _report(self, fence: Fence) -> CompletionReport:
        assignment = self.assignment
        return CompletionReport(
            task_id=assignment.task_id,
            generation=self.generation,
            agent_id=assignment.agent_id,
            supervisor_id=assignment.supervisor_id,
            task_name=assignment.task.name,
            status=self.status,
            result=from_json(self.result_json)
            if self.result_json is not None
            else None,
            error=self._note(),
            memory=MemoryNote(
                outcome=self.memory,
                key=self.question,
                age_ms=self.age_ms,
                saved_ms=self.saved_ms or None,
            ),
            attempt=self.attempt,
            fence=fence,
            worker_id=self.worker_id,
            queued_ms=self.queued_ms,
            run_ms=self.run_ms or 0,
            waited_ms=self.waited_ms or None,
            usage=self.usage or Usage(),
            finished_at=datetime.now(UTC),
        )


def _spell_now() -> str:
    second, microseconds = divmod(time.time_ns() // 1000, 1_000_000)
    return f"{_spell_second(second)}.{microseconds:06d}Z"


@lru_cache(maxsize=1)
def _spell_second(second: int) -> str:
    """Return *second* since 1970 in RFC 3339, without its zone: spelling it is a third of a report."""
    return datetime.fromtimestamp(second, UTC).isoformat()[:-6]


def _nearness(near: NearResult) -> str:
    """Return the members of a memory note that an answer to a neighbouring question adds."""
    note = MemoryNote(
        outcome="near",
        distance=near.farthest,
        computed_for=near.computed_for,
        distances=near.distances,
    )
    return (
        ","
        + note.model_dump_json(include={"distance", "computed_for", "distances"})[1:-1]
    )


def outcome_of(
    job: Job,
    status: Status,
    worker_id: str,
    *,
    result_json: bytes | None = None,
    run_ms: int | None = None,
) -> TaskOutcome:
    """Return the outcome *status* of *job*, with the memory's part in it so far."""
    return TaskOutcome(
        delivery=job.delivery,
        assignment=job.assignment,
        generation=job.generation,
        attempt=job.attempt,
        status=status,
        worker_id=worker_id,
        memory=job.memory,
        question=job.question,
        age_ms=None,
        queued_ms=job.queued_ms,
        run_ms=run_ms,
        result_json=result_json,
        near=job.near if job.memory == "near" else None,
        must_be_fenced=not job.task.idempotent,
    )


def elapsed_ms(started: float) -> int:
    """Return whole milliseconds since *started*, a reading of `time.monotonic`."""
    return int((time.monotonic() - started) * 1000)
