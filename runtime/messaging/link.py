"""The fast path of a NATS connection: messages to plain functions, many publishes in one write.

nats-py connects, authenticates, reconnects and resubscribes. A task passes its queues and coroutines three times, a
third of what it costs: here it does not. This is the one file that touches the private parts of the library: hence the
narrow pin of its version, and tests/integration/test_link.py, which fails when a part is gone.
"""

import asyncio
import re
from collections.abc import Callable
from typing import NamedTuple

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser

from tasklore.runtime.messaging.connection import PENDING_BYTES

log = structlog.get_logger(__name__)

_END = b"\r\n"
_NO_HEADERS = b"NATS/1.0\r\n"
#: A subject that nats-py can read: the server lets any bytes through.
_LEGIBLE = re.compile(r"[!-~]+")


class Arrival(NamedTuple):
    """A message as it came: `headers` are raw bytes, None when there are none; see `read_headers`."""

    subject: str
    reply: str
    headers: bytes | None
    body: bytes


Sink = Callable[[Arrival], None]


class Link:
    """A connection on which sinks are called for each message, and sends of one turn of the loop are one write."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._loop = asyncio.get_running_loop()
        self._out: list[bytes] = []
        self._parser = _LeanParser(client)
        client._ps = self._parser  # noqa: SLF001 - see the head of the file

    @property
    def is_connected(self) -> bool:
        """Whether the connection is up; messages sent meanwhile are written when it is up again."""
        return self.client.is_connected

    async def listen(self, subject: str, sink: Sink) -> Subscription:
        """Call *sink* in the event loop for every message on *subject*; it must neither wait nor raise."""

        async def unexpected(message: Msg) -> None:
            # Only what arrived between the subscription and the next line.
            sink(
                Arrival(
                    message.subject, message.reply, _raw_headers(message), message.data
                )
            )

        subscription = await self.client.subscribe(subject, cb=unexpected)
        self._parser.sinks[subscription._id] = sink  # noqa: SLF001 - see the head of the file
        return subscription

    async def unlisten(self, subscription: Subscription) -> None:
        """End *subscription*; its sink is called no more."""
        self._parser.sinks.pop(subscription._id, None)  # noqa: SLF001 - see the head of the file
        if not self.client.is_closed:
            await subscription.unsubscribe()

    def new_inbox(self) -> str:
        """Return a unique reply subject."""
        return self.client.new_inbox()

    def send(
        self, subject: str, body: bytes, reply: str = "", headers: str = ""
    ) -> None:
        """Publish *body*, at the end of this turn of the event loop; *headers* are lines that end in CRLF."""
        if not self._out:
            self._loop.call_soon(self._flush)
        if headers:
            head = f"NATS/1.0\r\n{headers}\r\n".encode()
            line = f"HPUB {subject} {reply} {len(head)} {len(head) + len(body)}\r\n".encode()
            self._out += (line, head, body, _END)
        else:
            self._out += (f"PUB {subject} {reply} {len(body)}\r\n".encode(), body, _END)

    def _flush(self) -> None:
        client = self.client
        data = b"".join(self._out)
        self._out.clear()
        if client.is_closed:
            log.warning("sent_to_closed_connection", bytes=len(data))
            return
        transport = client._transport  # noqa: SLF001 - see the head of the file
        if client.is_connected and transport is not None and not client._pending:  # noqa: SLF001
            # The library's flusher would be two turns of the loop later; a broken connection is noticed by its reader.
            transport.writelines([data])
            return
        if client._pending_data_size + len(data) > PENDING_BYTES:  # noqa: SLF001
            # Letters are sent again and unacknowledged deliveries come again: nothing is lost with these bytes.
            log.warning("outage_buffer_full", bytes=len(data))
            return
        client._pending.append(data)  # noqa: SLF001
        client._pending_data_size += len(data)  # noqa: SLF001
        flushes = client._flush_queue  # noqa: SLF001
        if flushes is not None and flushes.empty():
            flushes.put_nowait(self._loop.create_future())


class _LeanParser(Parser):
    """nats-py's parser with a short way for messages that a sink takes; everything else goes the long one."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.sinks: dict[int, Sink] = {}
        self._rest = b""

    def reset(self) -> None:
        """Forget a broken connection's last words."""
        super().reset()
        self._rest = b""

    async def parse(self, data: bytes = b"") -> None:
        """Take *data* apart: each whole message to its sink, the rest kept for the next read."""
        buffer = self._rest + data if self._rest else data
        at = 0
        while (eol := buffer.find(_END, at)) >= 0:
            first = buffer[at]
            if first != 77 and first != 72:
                await self._parse_slowly(buffer[at : eol + 2])
                at = eol + 2
                continue
            words = buffer[at:eol].decode("utf-8", "replace").split(" ")
            body_at = eol + 2
            end = body_at + int(words[-1])
            if len(buffer) < end + 2:
                break
            sink = self.sinks.get(int(words[2]))
            head_end = body_at + int(words[-2]) if first == 72 else body_at
            if sink is None:
                # nats-py hears nothing any more once it met a subject or headers that are no text; nobody here waits
                # for either.
                if _LEGIBLE.fullmatch(words[1]) and _is_text(buffer[body_at:head_end]):
                    try:
                        await self._parse_slowly(buffer[at : end + 2])
                    except Exception as error:  # noqa: BLE001 - as above: a head without a version line, for one
                        log.info("unreadable_message", error=type(error).__name__)
            else:
                reply = words[3] if len(words) == (6 if first == 72 else 5) else ""
                headers = buffer[body_at:head_end] if first == 72 else None
                try:
                    sink(Arrival(words[1], reply, headers, buffer[head_end:end]))
                except Exception:
                    # What leaves this method ends nats-py's reading for good.
                    log.exception("sink_failed", subject=words[1])
            at = end + 2
        self._rest = bytes(buffer[at:])

    async def _parse_slowly(self, protocol: bytes) -> None:
        self.state = AWAITING_CONTROL_LINE
        await super().parse(protocol)


def _is_text(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_headers(raw: bytes | None) -> dict[str, str] | None:
    """Return *raw* as a dict; a status line's code becomes `Status`, its words `Description`. None stays None."""
    if raw is None:
        return None
    first, *lines = raw.decode("utf-8", "replace").split("\r\n")
    headers: dict[str, str] = {}
    _, _, status = first.partition(" ")
    if status:
        headers["Status"], _, headers["Description"] = status.strip().partition(" ")
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip()] = value.strip()
    return headers


def _raw_headers(message: Msg) -> bytes | None:
    if not message.headers:
        return None
    return _NO_HEADERS + b"".join(
        f"{name}: {value}\r\n".encode() for name, value in message.headers.items()
    )
