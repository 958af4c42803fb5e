"""Spans of work on turns and facts, in the traces of the messages that brought them."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tasklore.contracts.traces import TraceContext, spelled_context
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.storage.repository import Committed
from tasklore.memory.queues.claims import QueueName, QueueRow
from tasklore.runtime import tracing
from tasklore.runtime.tracing import Span
from tasklore.runtime.tracing.spans import Value


@contextmanager
def process_span(queue: QueueName, row: QueueRow) -> Iterator[TraceContext | None]:
    """Span the block in the trace of what brought *row*; yield the context of what comes of it, None for no trace."""
    parent = spelled_context(row.trace) if row.trace else None
    with tracing.span(
        f"process {queue}",
        kind="consumer",
        parent=parent,
        attributes=_about(queue, "process") | _attempt(row),
    ) as opened:
        yield opened.context or parent


@contextmanager
def send_span(queue: QueueName, cause: TraceContext | None) -> Iterator[str]:
    """Span the block, in which rows are appended to *queue*, below *cause*; yield how their rows spell the trace."""
    with tracing.span(
        f"send {queue}",
        kind="producer",
        parent=cause,
        attributes=_about(queue, "send") | {"messaging.system": "redis"},
    ) as opened:
        yield str(opened.context or cause or "")


class RulingSpans:
    """Spans of one ruling on facts of possibly several traces: one in each; questions to a model are in the first."""

    def __init__(self, rows: Sequence[QueueRow]) -> None:
        self._rows = rows
        self._spans: dict[str, Span] = {}
        self._committing_ns = 0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Span the block in every trace of the rows; where there is none, in one of its own."""
        if not tracing.is_on():
            yield
            return
        first_of = {row.trace: row for row in reversed(self._rows) if row.trace} or {
            "": self._rows[0]
        }
        with ExitStack() as stack:
            for trace, row in first_of.items():
                parent = spelled_context(trace)
                opened = tracing.span(
                    "process facts",
                    kind="consumer",
                    parent=parent,
                    attributes=_about("facts", "process") | _attempt(row),
                )
                self._spans[trace] = stack.enter_context(opened)
            yield

    def begin_commit(self) -> None:
        """Note that the draft is about to be stored."""
        self._committing_ns = time.time_ns()

    def end_commit(self, draft: Draft, done: Committed) -> None:
        """Span the stored edits, each in the trace of its fact, whose id is that of its plan."""
        if not tracing.is_on():
            return
        operations = {
            applied.plan.plan_id: [
                edit.operation
                for edit in applied.plan.edits
                if edit.operation != "no_change"
            ]
            for applied in draft.applied
            if applied.plan.plan_id in done.plans
        }
        for row in self._rows:
            stored = operations.get(row.row_id)
            span = self._spans.get(row.trace)
            if stored and span is not None:
                tracing.begin(
                    "edit documents",
                    parent=span.context,
                    attributes={
                        "tasklore.edits": len(stored),
                        "tasklore.operations": ",".join(sorted(set(stored))),
                    },
                    began_ns=self._committing_ns,
                ).end()


def _about(queue: QueueName, operation: str) -> dict[str, Value]:
    return {
        "messaging.system": "nats",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": queue,
    }


def _attempt(row: QueueRow) -> dict[str, Value]:
    return {"tasklore.attempt": row.attempts + 1}
