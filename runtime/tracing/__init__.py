"""Traces: what a span is called and whose child it is, for every part of a process; off unless it was switched on.

Not here: which operations get a span: their own modules decide. Off, a context that came with a
message is carried on as it is, and nothing else is done; `tasklore.runtime.tracing.exporting` alone imports
OpenTelemetry.
"""

from tasklore.runtime.tracing.letters import traced_letter
from tasklore.runtime.tracing.spans import (
    NO_SPAN,
    Kind,
    Span,
    Tracer,
    begin,
    current,
    is_on,
    known_span_id,
    span,
    tell,
    use,
    within,
)

__all__ = [
    "NO_SPAN",
    "Kind",
    "Span",
    "Tracer",
    "begin",
    "current",
    "is_on",
    "known_span_id",
    "span",
    "tell",
    "traced_letter",
    "use",
    "within",
]
