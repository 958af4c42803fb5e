"""A collector of traces: the receiver of OTLP over HTTP that OpenTelemetry sends to, which keeps every span."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

#: Seconds that spans may take on a busy machine.
PATIENCE_S = 90.0


@dataclass(frozen=True)
class Kept:
    """A span that came; ids are hexadecimal, `parent` "" for the first of a trace."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    links: tuple[str, ...]
    attributes: dict[str, Any]
    events: tuple[tuple[str, dict[str, Any]], ...] = ()


class Collector:
    """Keeps what is sent to `endpoint` while the block lasts."""

    def __init__(self) -> None:
        self.spans: list[Kept] = []
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def endpoint(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT is set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process that sends here, soon."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }

    def await_spans(
        self,
        is_enough: Callable[[list[Kept]], bool],
        explain: Callable[[], str] = str,
    ) -> list[Kept]:
        """Return all spans once *is_enough* holds of them; the failure says what *explain* returns."""
        gives_up_at = time.monotonic() + PATIENCE_S
        with self._changed:
            while not is_enough(self.spans):
                left_s = gives_up_at - time.monotonic()
                if left_s <= 0:
                    came = (
                        f"{one.service} {one.name} {one.trace[:6]}"
                        for one in self.spans
                    )
                    raise AssertionError("\n".join([*came, explain()]))
                self._changed.wait(left_s)
            return list(self.spans)

    def _keep(self, body: bytes) -> None:
        # Only where the extra is installed.
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        sent = ExportTraceServiceRequest.FromString(body)
        with self._changed:
            for resource in sent.resource_spans:
                service = _attributes(resource.resource.attributes)["service.name"]
                self.spans += [
                    _kept(service, span)
                    for scope in resource.scope_spans
                    for span in scope.spans
                ]
            self._changed.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        keep = self._keep

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                keep(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_words: object) -> None:
                """Say nothing."""

        return Handler

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _kept(service: str, span: Any) -> Kept:
    kinds = ("unspecified", "internal", "server", "client", "producer", "consumer")
    return Kept(
        service,
        span.name,
        kinds[span.kind],
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        tuple(link.span_id.hex() for link in span.links),
        _attributes(span.attributes),
        tuple((one.name, _attributes(one.attributes)) for one in span.events),
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs
    }
