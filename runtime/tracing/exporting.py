"""Recording with OpenTelemetry: the only module that imports its SDK, and only where tracing is switched on.

OpenTelemetry's environment variables set the collector and the sampling. They are sent
in batches by a thread of their own; a collector that is away costs spans and no time.
"""

import asyncio
import os
import random
import re
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.traces import TraceContext, made_context
from tasklore.runtime.tracing.complaints import seldom
from tasklore.runtime.tracing.spans import Kind, Span, Value, known_span_id, use

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider  # type: ignore[import-not-found, unused-ignore]  # as below
    from opentelemetry.trace import Span as Recorded
    from opentelemetry.trace import SpanContext

log = structlog.get_logger(__name__)

#: Seconds that a process waits at its end for its last spans to be sent.
FLUSH_S = 2.0


@asynccontextmanager
async def recording(service: str, name: str, version: str) -> AsyncIterator[None]:
    """Record the spans of the process *name* within the block, of *service* unless OTEL_SERVICE_NAME says otherwise.

    Raises:
        ConfigurationError: OpenTelemetry is not installed, or cannot do what its variables ask for.
    """
    provider = _provider(service, name, version)
    use(_OpenTelemetry(provider, version))
    with seldom():
        try:
            yield
        finally:
            use(None)
            await _shut_down(provider)


def _provider(service: str, name: str, version: str) -> "TracerProvider":
    try:
        # The SDK comes with the extra alone, so that types are not known everywhere.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # type: ignore[import-not-found, unused-ignore]
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # type: ignore[import-not-found, unused-ignore]
        from opentelemetry.sdk.trace import TracerProvider  # type: ignore[import-not-found, unused-ignore]
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ConfigurationError(
            "TASKLORE_TRACING is on, but OpenTelemetry is not installed: `pip install 'tasklore[tracing]'`, or set "
            "TASKLORE_TRACING=off"
        ) from error
    _demand_exporter()
    _demand_address()
    said = {"service.version": version, "service.instance.id": name}
    if not os.environ.get("OTEL_SERVICE_NAME"):
        said["service.name"] = service
    try:
        provider = TracerProvider(
            resource=Resource.create(said),
            shutdown_on_exit=False,
            id_generator=_IDS,  # type: ignore[arg-type, unused-ignore]  # it fits by its methods
        )
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ValueError as error:
        msg = f"a variable of OpenTelemetry (OTEL_...) is invalid: {error}; correct it, or set TASKLORE_TRACING=off"
        raise ConfigurationError(msg) from error
    return provider


def _demand_exporter() -> None:
    """Refuse an exporter that is not installed: silently nothing would be sent."""
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "otlp") or "otlp"
    protocol = (
        os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "http/protobuf"
    )
    if exporter != "otlp" or protocol != "http/protobuf":
        msg = (
            f"traces are asked for by {exporter} over {protocol}; only otlp over http/protobuf is here: set "
            "OTEL_TRACES_EXPORTER=otlp and OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, or TASKLORE_TRACING=off"
        )
        raise ConfigurationError(msg)


def _demand_address() -> None:
    """Refuse an address without a scheme or a host: every span would be lost, and only a log would say so."""
    for variable in (
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ):
        address = os.environ.get(variable, "")
        if address and re.match(r"https?://[^/]", address, re.IGNORECASE) is None:
            msg = (
                f"{variable} cannot be {address!r}: write it as http://HOST:4318 or https://HOST:4318, or set "
                "TASKLORE_TRACING=off"
            )
            raise ConfigurationError(msg)


async def _shut_down(provider: "TracerProvider") -> None:
    """Flush for at most `FLUSH_S`: a collector that is away delays no shutdown."""
    loop = asyncio.get_running_loop()
    sent = asyncio.Event()

    def shut_down() -> None:
        provider.shutdown()
        try:
            loop.call_soon_threadsafe(sent.set)
        except RuntimeError:
            # Too late: the loop is closed, and nobody waits any more.
            return

    # No pool: the interpreter would wait for its threads.
    threading.Thread(target=shut_down, name="last-spans", daemon=True).start()
    try:
        async with asyncio.timeout(FLUSH_S):
            await sent.wait()
    except TimeoutError:
        log.warning("last_spans_not_sent", waited_s=FLUSH_S)


class _Ids:
    """Ids at random, as OpenTelemetry makes them, but for a span that has an id of its own."""

    def __init__(self) -> None:
        self._known = threading.local()

    def know(self, span_id: int) -> None:
        """Give *span_id* to the span that this thread begins next."""
        self._known.span_id = span_id

    def generate_span_id(self) -> int:
        """Return the id of the span that begins."""
        known = getattr(self._known, "span_id", 0)
        self._known.span_id = 0
        return known or random.getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        """Return the id of the trace that begins."""
        return random.getrandbits(128) or 1

    def is_trace_id_random(self) -> bool:
        """Return that it is, which W3C has a flag for."""
        return True


_IDS = _Ids()


class _Span(Span):
    """A span that is recorded, unless the sampler left it out."""

    def __init__(self, recorded: "Recorded", parent: TraceContext | None) -> None:
        self._recorded = recorded
        found = recorded.get_span_context()
        # Not valid where OpenTelemetry's own variable has switched it off.
        self.context = _context_of(found, parent) if found.is_valid else parent

    def note(self, attributes: Mapping[str, Value]) -> None:
        """Add *attributes*."""
        self._recorded.set_attributes(attributes)

    def tell(self, event: str, attributes: Mapping[str, Value]) -> None:
        """Add an *event*."""
        self._recorded.add_event(event, attributes)

    def rename(self, name: str) -> None:
        """Call it *name*."""
        self._recorded.update_name(name)

    def fail(self, error_type: str) -> None:
        """Mark it as failed."""
        from opentelemetry.trace import StatusCode

        self._recorded.set_attribute("error.type", error_type)
        self._recorded.set_status(StatusCode.ERROR)

    def end(self) -> None:
        """End it."""
        if self._recorded.is_recording():
            self._recorded.end()

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        if error is not None:
            self.fail(type(error).__name__)
        self.end()


class _OpenTelemetry:
    """Begins spans with *provider*; fits `tasklore.runtime.tracing.spans.Tracer`."""

    def __init__(self, provider: "TracerProvider", version: str) -> None:
        self._tracer = provider.get_tracer("tasklore", version)

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
        """Begin a span as `tasklore.runtime.tracing.spans.begin` says."""
        from opentelemetry import trace
        from opentelemetry.context import Context

        around = Context()
        if parent is not None:
            around = trace.set_span_in_context(
                trace.NonRecordingSpan(_remote(parent)), around
            )
        if identity is not None and parent is not None:
            _IDS.know(known_span_id(parent.trace_id, identity))
        recorded = self._tracer.start_span(
            name,
            context=around,
            kind=trace.SpanKind[kind.upper()],
            attributes=attributes,
            links=[trace.Link(_remote(link)) for link in links],
            start_time=began_ns,
        )
        return _Span(recorded, parent)


def _context_of(found: "SpanContext", parent: TraceContext | None) -> TraceContext:
    return made_context(
        found.trace_id,
        found.span_id,
        int(found.trace_flags),
        parent.state if parent is not None else "",
    )


def _remote(context: TraceContext) -> "SpanContext":
    from opentelemetry.trace import SpanContext, TraceFlags

    # What other tracers want carried along goes by us: OpenTelemetry need not understand it.
    return SpanContext(
        int(context.trace_id, 16),
        int(context.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(context.flags),
    )
