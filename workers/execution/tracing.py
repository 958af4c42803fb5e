"""What a worker does with an assignment, as spans; each function returns at once where nobody records.

The span of a delivery is begun when the desk gets it and ended with the word on it. Its id follows from the message and
the number of the delivery, so that the next delivery can link to it even when this worker dies without a word.
"""

import time
from collections.abc import Iterable, Sequence

from contracts import subjects
from contracts.traces import TraceContext, made_context, read_context
from runtime import tracing
from runtime.messaging.pull import Delivery
from runtime.tracing import known_span_id
from runtime.tracing.letters import processing
from workers.execution.job import Order
from workers.execution.outcome import Verdict


def begin_spans(batch: Sequence[Delivery]) -> None:
    """Begin the span of every delivery in *batch*, below what its sender said."""
    if not tracing.is_on():
        return
    for delivery in batch:
        parent = read_context(delivery.headers)
        again = delivery.deliveries > 1
        attributes = processing(delivery.subject) | {"tasklore.delivery": delivery.deliveries}
        delivery.span = tracing.begin(
            f"process {subjects.place(delivery.subject)}",
            kind="consumer",
            parent=parent,
            attributes=attributes,
            links=[_delivery_before(delivery, parent)] if again and parent is not None else (),
            identity=_identity(delivery, delivery.deliveries),
        )


def describe_order(order: Order) -> None:
    """Say of the span of *order* which task it is, and how long it waited."""
    if not tracing.is_on():
        return
    order.delivery.span.note(
        {
            "tasklore.agent": order.assignment.agent_id,
            "tasklore.task": order.task.name,
            "tasklore.task_id": order.assignment.task_id,
            "tasklore.generation": order.generation,
            "tasklore.attempt": order.attempt,
        }
    )
    waited_ns = order.queued_ms * 1_000_000
    now_ns = time.time_ns()
    waiting = tracing.begin(
        f"wait {subjects.place(order.delivery.subject)}",
        parent=read_context(order.delivery.headers),
        began_ns=now_ns - waited_ns,
    )
    waiting.end()


def note_recall(orders: Iterable[Order], began_ns: int) -> None:
    """Tell that *orders* were looked up together, since *began_ns*, and what was remembered."""
    if not tracing.is_on():
        return
    for order in orders:
        attributes = {"tasklore.memory.outcome": order.outcome}
        recall = tracing.begin("recall", parent=order.delivery.span.context, attributes=attributes, began_ns=began_ns)
        recall.end()


def note_verdicts(verdicts: Iterable[Verdict]) -> None:
    """Say of the spans of *verdicts* what came of their tasks."""
    if not tracing.is_on():
        return
    for verdict in verdicts:
        span = verdict.delivery.span
        span.note({"tasklore.status": verdict.status, "tasklore.memory.outcome": verdict.outcome})
        if verdict.error is not None:
            span.fail(type(verdict.error).__name__)


def _delivery_before(delivery: Delivery, parent: TraceContext) -> TraceContext:
    span_id = known_span_id(parent.trace_id, _identity(delivery, delivery.deliveries - 1))
    return made_context(int(parent.trace_id, 16), span_id, parent.flags)


def _identity(delivery: Delivery, number: int) -> str:
    return f"{delivery.subject}:{delivery.sequence}:{number}"
