"""Connections that are not waited for without an end: each says its request within a time, and there are only so many.

The library beneath has a deadline only for a connection that stays silent after an answer; one that sends a header at a
time, or nothing ever, it would keep.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from supervisor.http.admission.unknown_clients import Strangers
from supervisor.http.problems import Refused, crowded, response_of, unavailable

#: Seconds that an idle connection is kept for its next request: longer than the 60 of most balancers before it.
KEEP_ALIVE_S = 75
#: Seconds in which the first request's headers have to be there; those of a later one have them beside the keep-alive.
HEAD_S = 30.0
#: Connections that are open at once; more than are answered at once, so that most are told why when it is too much.
MOST_CONNECTIONS = 2000

#: Chunks of one body; each costs as much to read as a kilobyte, however little is in it.
MOST_CHUNKS: Final = 5_000
#: Bytes of a refused body that are read, so that the connection can be used again; a longer one is not waited for.
_READ_ON: Final = 64 * 1024
#: Seconds in which the sender of a longer one can read the answer: closed at once, the connection could lose it.
_LINGER_S: Final = 1.0

_FULL = unavailable(f"{MOST_CONNECTIONS:,} connections are open here; connect again in a second, or elsewhere")
_TOO_STRANGE = crowded("newer connections need the room of this one, which has shown no known key; send a key at once")
_NO_HTTP = Refused(
    400,
    "no-http",
    "this is no request of HTTP/1.1: mend its first line, its headers (64 KiB at most) or the lengths in its body, "
    f"which may come in {MOST_CHUNKS:,} chunks",
)


class _Connection(h11.Connection):
    """Reads what a client sends, and refuses a body that is cut into too many chunks."""

    _chunks = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return what came next."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = 0
        elif isinstance(event, h11.Data) and event.chunk_start:
            self._chunks += 1
            if self._chunks > MOST_CHUNKS:
                raise h11.RemoteProtocolError("too many chunks")
        return event


class PatientProtocol(H11Protocol):
    """One connection, closed when no request is whole up to its body in time, or when there are too many.

    *strangers* limits those of one address that show no key; None where none is demanded.
    """

    head_s = HEAD_S
    most = MOST_CONNECTIONS

    def __init__(self, *args: Any, strangers: Strangers | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = _Connection(h11.SERVER)
        self._strangers = strangers
        self._deadline: asyncio.TimerHandle | None = None
        self._is_leaving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the library's own
        """Begin to wait for a request."""
        super().connection_made(transport)
        strangers = self._strangers
        if strangers is not None:
            # As a handshake of TLS it counts no more.
            strangers.settle(self.client)
        if len(self.connections) > self.most and not (strangers is not None and strangers.make_room()):
            self._turn_away(_FULL)
            return
        if strangers is not None:
            strangers.connect(self.client, lambda: self._turn_away(_TOO_STRANGE))
        self._wait(self.head_s)

    def data_received(self, data: bytes) -> None:
        """Take *data*; what does not complete the headers wins no time."""
        if self._is_leaving:
            # What is not read any more fills the buffers of its sender.
            self.transport.pause_reading()
            return
        super().data_received(data)
        if self._is_answering() and not self._is_strange():
            self._wait_no_longer()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - its words name no cure
        """Refuse what is no HTTP with a problem; where an answer has begun already, only the connection can end."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_spelled(_NO_HTTP))
        self.transport.close()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, and for what is left of this one's body."""
        super().on_response_complete()
        if self.transport.is_closing() or self._is_answering():
            return
        if self.conn.their_state is h11.SEND_BODY and self._is_long():
            self._leave()
        else:
            self._wait(self.timeout_keep_alive + self.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        if self._strangers is not None:
            self._strangers.settle(self.client)
        self._wait_no_longer()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _is_long(self) -> bool:
        """Tell whether the body of the request, which was answered before its end, may be a long one."""
        length = dict(self.headers).get(b"content-length")
        return length is None or int(length) > _READ_ON

    def _leave(self) -> None:
        """Read no more of a body that was refused, and close once its sender could read why."""
        self._is_leaving = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._wait(_LINGER_S)

    def _is_strange(self) -> bool:
        return self._strangers is not None and self._strangers.is_one(self.client)

    def _turn_away(self, refused: Refused) -> None:
        if not self._is_answering():
            self.transport.write(_spelled(refused))
        self._end()

    def _end(self) -> None:
        """Close the connection, whether or not the other end reads what it was sent."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _give_up(self) -> None:
        # A stranger's answer has to be read in that time, too; whoever has shown a key by now is waited for.
        if not self._is_answering() or self._is_strange():
            self._end()

    def _wait(self, within_s: float) -> None:
        self._wait_no_longer()
        self._deadline = self.loop.call_later(within_s, self._give_up)

    def _wait_no_longer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _spelled(refused: Refused) -> bytes:
    """Return *refused* as it goes over a connection that ends with it, where no application ever sees the request."""
    answer = response_of(refused)
    status = HTTPStatus(answer.status_code)
    head = [f"HTTP/1.1 {status.value} {status.phrase}".encode(), b"connection: close"]
    lines = head + [name + b": " + value for name, value in answer.raw_headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + bytes(answer.body)
