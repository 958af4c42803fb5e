"""Spans of this process, and the context that a message sent now belongs to."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from types import TracebackType
from typing import Literal, Protocol, Self

from tasklore.contracts.traces import TraceContext

#: As OpenTelemetry names them: `server` and `consumer` begin with what came from elsewhere, `client` and `producer`
#: with what goes there.
Kind = Literal["internal", "server", "client", "producer", "consumer"]
#: What an attribute may hold. Never a text, an id of a person, or a value that somebody gave, but for the masked texts
#: of events that TASKLORE_TRACING=content asks for.
Value = str | int | float | bool

_current: ContextVar[TraceContext | None] = ContextVar("trace", default=None)
_open: ContextVar["Span | None"] = ContextVar("open_span", default=None)


class Span:
    """A span that is not recorded; its block changes nothing."""

    context: TraceContext | None = None
    """What messages that belong to it carry; None where nobody records."""

    def note(self, attributes: Mapping[str, Value]) -> None:
        """Add *attributes*; ignored after the end."""

    def tell(self, event: str, attributes: Mapping[str, Value]) -> None:
        """Add an *event* that happens now, with *attributes*; ignored after the end."""

    def rename(self, name: str) -> None:
        """Call it *name*, once more is known."""

    def fail(self, error_type: str) -> None:
        """Mark it as failed with *error_type*, the name of a class or a word; never its message."""

    def end(self) -> None:
        """End it; a second time changes nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


#: The span of everything while nobody records.
NO_SPAN = Span()


class Tracer(Protocol):
    """Records spans; implemented by `tasklore.runtime.tracing.exporting`."""

    def begin(
        self,
        name: str,
        kind: Kind,
        parent: TraceContext | None,
        attributes: Mapping[str, Value],
        links: Sequence[TraceContext],
        began_ns: int | None,
        identity: str | None,
    ) -> Span:
        """Return a span that began at *began_ns* since 1970, None is now; see `begin`."""


_tracer: Tracer | None = None


def use(tracer: Tracer | None) -> None:
    """Record with *tracer* in the whole process from now on; None records nothing."""
    global _tracer
    _tracer = tracer


def is_on() -> bool:
    """Whether spans are recorded in this process."""
    return _tracer is not None


def current() -> TraceContext | None:
    """Return what a message sent now belongs to, None for no trace."""
    return _current.get()


@contextmanager
def within(context: TraceContext | None) -> Iterator[None]:
    """Make *context*, also of another process, or no trace, the current one in the block."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def begin(
    name: str,
    *,
    kind: Kind = "internal",
    parent: TraceContext | None = None,
    attributes: Mapping[str, Value] | None = None,
    links: Sequence[TraceContext] = (),
    began_ns: int | None = None,
    identity: str | None = None,
) -> Span:
    """Begin a span below *parent*, or a trace of its own; the caller ends it.

    A span with an *identity* has the same id whenever it is begun with that again in one trace, so that another
    process can name it in *links* without having seen it.
    """
    if _tracer is None:
        return NO_SPAN
    return _tracer.begin(
        name,
        kind=kind,
        parent=parent,
        attributes=attributes or {},
        links=links,
        began_ns=began_ns,
        identity=identity,
    )


@contextmanager
def span(
    name: str,
    *,
    kind: Kind = "internal",
    parent: TraceContext | None = None,
    attributes: Mapping[str, Value] | None = None,
    links: Sequence[TraceContext] = (),
) -> Iterator[Span]:
    """Record the block as a span below *parent* or the current one.

    Recording nothing, the block still belongs to *parent* when there is one.
    """
    if _tracer is None:
        if parent is None:
            yield NO_SPAN
            return
        with within(parent):
            yield NO_SPAN
        return
    one = begin(
        name,
        kind=kind,
        parent=parent or _current.get(),
        attributes=attributes,
        links=links,
    )
    token = _open.set(one)
    try:
        with within(one.context), one:
            yield one
    finally:
        _open.reset(token)


def tell(event: str, attributes: Mapping[str, Value]) -> None:
    """Add an *event* to the span of the innermost block, if there is one."""
    one = _open.get()
    if one is not None:
        one.tell(event, attributes)


def known_span_id(trace_id: str, identity: str) -> int:
    """Return the id of the span that *identity* names in a trace; never 0, which is no id."""
    digest = blake2b(f"{trace_id}:{identity}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) or 1
