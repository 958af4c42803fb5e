"""A message as a durable consumer delivers it, under a lease that its worker gives back with an acknowledgement."""

from dataclasses import dataclass

from tasklore.contracts import subjects
from tasklore.contracts.traces import TraceContext, read_context
from tasklore.runtime.messaging.link import Arrival
from tasklore.runtime.tracing import NO_SPAN, Span


@dataclass(slots=True, eq=False, kw_only=True)
class Delivery:
    """One message under lease. `deliveries` counts from 1; `headers` is None when there are none.

    `span` ends when its word is said: when it is settled, handed back or forgotten.
    """

    subject: str
    body: bytes
    headers: dict[str, str] | None
    reply: str
    deliveries: int
    sequence: int
    arrived_at: float
    span: Span = NO_SPAN

    @property
    def generation(self) -> int:
        """The generation of the task that it is; 1 where its header is missing or no number."""
        return self.number(subjects.GENERATION_HEADER)

    def number(self, name: str) -> int:
        """Return the counting header *name*; 1 when it is missing or no number."""
        text = (self.headers or {}).get(name, "")
        return (
            max(1, int(text))
            if text.isascii() and text.isdigit() and len(text) < 10
            else 1
        )

    @property
    def stored_us(self) -> int:
        """When the stream stored it, in us since 1970, by the clock of its server."""
        tokens = self.reply.split(".")
        return int(tokens[9 if len(tokens) >= 11 else 7]) // 1000

    @property
    def trace(self) -> TraceContext | None:
        """The trace context of its work: its own span, else that of its sender."""
        return self.span.context or read_context(self.headers)


def delivery_of(
    arrival: Arrival, headers: dict[str, str] | None, arrived_at: float
) -> Delivery:
    """Return *arrival* with attempts and sequence from its acknowledgement subject (JetStream's ack format)."""
    tokens = arrival.reply.split(".")
    # Newer servers put domain and account before the stream name.
    first = 6 if len(tokens) >= 11 else 4
    return Delivery(
        subject=arrival.subject,
        body=arrival.body,
        headers=headers,
        reply=arrival.reply,
        deliveries=int(tokens[first]),
        sequence=int(tokens[first + 1]),
        arrived_at=arrived_at,
    )
