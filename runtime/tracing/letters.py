"""What a letter to a stream carries of its trace, and the span of its way there."""

from collections.abc import Callable, Mapping

from tasklore.contracts import subjects
from tasklore.contracts.errors import NotAccepted
from tasklore.contracts.traces import names_context
from tasklore.runtime.tracing.spans import Span, Value, begin, current, is_on

Settled = Callable[[NotAccepted | None], None]


def traced_letter(
    subject: str, message_id: str, headers: Mapping[str, str] | None, settled: Settled
) -> tuple[Mapping[str, str] | None, Settled]:
    """Return *headers* with those of the current trace, if any, and *settled*, which then ends the span of the way.

    Headers that name a trace already are left as they are: the letter repeats another one.
    """
    context = current()
    if context is None or not subjects.holds_unfinished_work(subject):
        return headers, settled
    if headers and names_context(headers):
        return headers, settled
    if is_on():
        span = begin(
            f"send {subjects.place(subject)}",
            kind="producer",
            parent=context,
            attributes=_sending(subject, message_id),
        )
        context = span.context or context
        settled = _ending(span, settled)
    return {**(headers or {}), **context.headers}, settled


def _sending(subject: str, message_id: str) -> dict[str, Value]:
    # Of other letters the id tells of persons and of conversations.
    named: dict[str, Value] = (
        {"messaging.message.id": message_id} if subjects.id_names_task(subject) else {}
    )
    return _said(subject, "send") | named


def processing(subject: str) -> dict[str, Value]:
    """Return the attributes of processing a message on *subject*, by the conventions for messaging."""
    return _said(subject, "process")


def _said(subject: str, operation: str) -> dict[str, Value]:
    return {
        "messaging.system": "nats",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": subjects.place(subject),
    }


def _ending(span: Span, settled: Settled) -> Settled:
    def end(problem: NotAccepted | None) -> None:
        if problem is not None:
            span.fail(type(problem).__name__)
        span.end()
        settled(problem)

    return end
