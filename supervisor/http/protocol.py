"""The connection protocol: uvicorn's for HTTP/1.1, with a deadline for headers, limits of connections and of chunks.

uvicorn has a deadline only for a connection that stays silent after a response; it would keep one that sends a header
at a time, or nothing ever. Its own limit of connections refuses requests on all of them once there is one too many.
"""

import asyncio
from collections import Counter
from typing import Any, Final

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from tasklore.runtime.metrics import Metrics
from tasklore.supervisor.http.admission.clients import UnknownClients
from tasklore.supervisor.http.admission.limits import ClientLimits

#: Chunks of one body; each costs as much to read as a kilobyte, however small it is.
MOST_CHUNKS: Final = 5_000
#: Bytes of a refused body that are read, so that the connection can be used again.
_READ_ON: Final = 64 * 1024
#: Seconds in which the sender of a longer one can read the answer: closed at once, the connection could lose it.
_LINGER_S: Final = 1.0
#: Seconds between two log lines about refused connections: any client could fill the log with them.
_REPORT_S: Final = 60.0

log = structlog.get_logger(__name__)


class RefusalLog:
    """Counts connections that are refused or cut, in *meter* and in the log: there once a minute at most."""

    def __init__(self, meter: Metrics) -> None:
        self._meter = meter
        self._counts: Counter[str] = Counter()

    def count(self, reason: str) -> None:
        """Count one connection; the log line follows at the end of the minute."""
        self._meter.count_connection_refused(reason)
        if not self._counts:
            asyncio.get_running_loop().call_later(_REPORT_S, self._report)
        self._counts[reason] += 1

    def _report(self) -> None:
        log.warning("api_connections_refused", **self._counts)
        self._counts.clear()


class _Connection(h11.Connection):
    """Refuses a body of too many chunks."""

    _chunks = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = 0
        elif isinstance(event, h11.Data) and event.chunk_start:
            self._chunks += 1
            if self._chunks > MOST_CHUNKS:
                raise h11.RemoteProtocolError("too many chunks")
        return event


class TimedProtocol(H11Protocol):
    """One connection, closed when the headers of its next request are not complete in time.

    It is closed at once when it is one too many and none without a known key makes room. *unknown* counts it until it
    shows a known key, and the response has to be read in that time, too; None where no keys are required.
    """

    def __init__(
        self,
        *args: Any,
        limits: ClientLimits,
        unknown: UnknownClients | None,
        refusals: RefusalLog,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.conn = _Connection(h11.SERVER)
        self._limits = limits
        self._unknown = unknown
        self._refusals = refusals
        self._deadline: asyncio.TimerHandle | None = None
        self._is_lingering = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Start the deadline of the first request; beyond the limit the oldest unknown connection closes, or this."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            has_room = self._unknown is not None and self._unknown.make_room()
            self._refusals.count("evicted" if has_room else "over_limit")
            if not has_room:
                self._drop()
                return
        if self._unknown is not None:
            self._unknown.connect(self.client, self._drop)
        self._start_deadline(self._limits.head_s)

    def data_received(self, data: bytes) -> None:
        """Take *data*; headers that stay incomplete do not move the deadline."""
        if self._is_lingering:
            # Data that is not read fills the buffers of its sender.
            self.transport.pause_reading()
            return
        super().data_received(data)
        if self._is_answering() and not self._is_unknown():
            self._stop_deadline()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are no HTTP; once a response has begun only the connection can be closed."""
        self._refusals.count("invalid_http")
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        """Start the deadline of the next request; after a refused long body, close once its sender could read why."""
        super().on_response_complete()
        if self.transport.is_closing() or self._is_answering():
            return
        length = dict(self.headers).get(b"content-length")
        if self.conn.their_state is h11.SEND_BODY and (
            length is None or int(length) > _READ_ON
        ):
            self._is_lingering = True
            if self.transport.can_write_eof():
                self.transport.write_eof()
            self._start_deadline(_LINGER_S)
        else:
            self._start_deadline(self.timeout_keep_alive + self._limits.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything."""
        if self._unknown is not None:
            self._unknown.settle(self.client)
        self._stop_deadline()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _is_unknown(self) -> bool:
        return self._unknown is not None and self._unknown.is_unknown(self.client)

    def _drop(self) -> None:
        """End the connection at once: an orderly end would wait for the other side to read, or to agree over TLS."""
        self.connections.discard(self)
        self.transport.abort()

    def _expire(self) -> None:
        # A client that has shown a key by now is waited for.
        if not self._is_answering() or self._is_unknown():
            if not self._is_lingering:
                self._refusals.count("timed_out")
            self._drop()

    def _start_deadline(self, within_s: float) -> None:
        self._stop_deadline()
        self._deadline = self.loop.call_later(within_s, self._expire)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
