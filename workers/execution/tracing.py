"""Tracing of the tasks of a worker as spans: middleware that is there only while spans are recorded.

The span of a delivery begins with its arrival and ends with its acknowledgement. Its id follows from the message and
the number of the delivery, so that the next delivery can link to it even when this worker dies before its report.
"""

import time
from collections.abc import Sequence

from tasklore.contracts import subjects
from tasklore.contracts.traces import made_context, read_context
from tasklore.runtime import tracing
from tasklore.runtime.messaging.pull import Delivery
from tasklore.runtime.tracing import known_span_id
from tasklore.runtime.tracing.letters import processing
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.outcome import TaskOutcome
from tasklore.workers.middleware import Middleware


class Tracing(Middleware):
    """Records spans of deliveries, their waiting and their recall, and notes their outcomes."""

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Begin the span of every delivery, below that of its sender."""
        for delivery in deliveries:
            parent = read_context(delivery.headers)
            links = []
            if delivery.deliveries > 1 and parent is not None:
                before = known_span_id(
                    parent.trace_id, _identity(delivery, delivery.deliveries - 1)
                )
                links.append(
                    made_context(int(parent.trace_id, 16), before, parent.flags)
                )
            delivery.span = tracing.begin(
                f"process {subjects.place(delivery.subject)}",
                kind="consumer",
                parent=parent,
                attributes=processing(delivery.subject)
                | {"tasklore.delivery": delivery.deliveries},
                links=links,
                identity=_identity(delivery, delivery.deliveries),
            )

    def after_read(self, job: Job) -> None:
        """Note on its span which task it is, and how long it waited."""
        delivery = job.delivery
        delivery.span.note(
            {
                "tasklore.agent": job.assignment.agent_id,
                "tasklore.task": job.task.name,
                "tasklore.task_id": job.assignment.task_id,
                "tasklore.generation": job.generation,
                "tasklore.attempt": job.attempt,
            }
        )
        began_ns = time.time_ns() - job.queued_ms * 1_000_000
        parent = read_context(delivery.headers)
        tracing.begin(
            f"wait {subjects.place(delivery.subject)}", parent=parent, began_ns=began_ns
        ).end()

    async def after_recall(self, jobs: Sequence[Job], began_ns: int) -> None:
        """Record that *jobs* were looked up together since *began_ns*, and how the memory answered."""
        for job in jobs:
            outcome = (
                job.memory
                if job.recalled is None
                else "hit"
                if job.near is None
                else "near"
            )
            parent = job.delivery.span.context
            attributes = {"tasklore.memory.outcome": outcome}
            tracing.begin(
                "recall", parent=parent, attributes=attributes, began_ns=began_ns
            ).end()

    def on_reports(self, outcomes: Sequence[TaskOutcome]) -> None:
        """Note the status on the span of each of *outcomes*."""
        for outcome in outcomes:
            note_outcome(outcome)


def note_outcome(outcome: TaskOutcome) -> None:
    """Note on the span of its delivery how a task ended; nothing where no spans are recorded."""
    span = outcome.delivery.span
    span.note(
        {"tasklore.status": outcome.status, "tasklore.memory.outcome": outcome.memory}
    )
    if outcome.error is not None:
        span.fail(type(outcome.error).__name__)


def _identity(delivery: Delivery, number: int) -> str:
    return f"{delivery.subject}:{delivery.sequence}:{number}"
