"""A stream read by direct reads, a batch a request: no consumer, and with each the server says how much follows.

Anybody may have put anything there. What a message says of itself never passes for the server's own word: that is the
one with no sequence, and of two headers of one name the server's comes last.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from tasklore.contracts.errors import Forbidden, TaskloreError, Unreachable
from tasklore.runtime.messaging.jetstream import API_S
from tasklore.runtime.messaging.link import Arrival, Link, read_headers
from tasklore.runtime.messaging.refusals import unless_refused

#: Messages read with one request, and the most bytes: 256 messages may have 200 MB.
PAGE = 256
PAGE_BYTES = 8 * 1024 * 1024

_END = "204"
_NOTHING = "404"
_NO_STREAM = "503"


class Stored(NamedTuple):
    """A message as it lies in the stream; *stored_at* is in RFC 3339."""

    sequence: int
    subject: str
    stored_at: str
    headers: Mapping[str, str]
    body: bytes


class NoSuchStream(Unreachable):
    """The stream answers no direct reads: it does not exist, or does not allow them."""


@dataclass(slots=True, kw_only=True)
class DirectPage:
    """What one request brings: all that fits up to sequence *last*, and how many *following* fit after that."""

    found: list[Stored] = field(default_factory=list)
    following: int = 0
    last: int = 0
    problem: TaskloreError | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, stream: str, headers: Mapping[str, str], body: bytes) -> None:
        """Take one message, or the end."""
        sequence = headers.get("Nats-Sequence", "")
        if sequence.isdecimal():
            subject = headers.get("Nats-Subject", "")
            stored_at = headers.get("Nats-Time-Stamp", "")
            self.found.append(
                Stored(
                    int(sequence),
                    subject=subject,
                    stored_at=stored_at,
                    headers=headers,
                    body=body,
                )
            )
            return
        status = headers.get("Status")
        if status is None:
            # The client library gave up on headers that are no text.
            return
        if status == _END:
            self.following = int(headers["Nats-Num-Pending"])
            self.last = int(headers["Nats-Last-Sequence"])
        elif status == _NO_STREAM:
            self.problem = NoSuchStream(f"no stream {stream} that allows direct reads")
        elif status != _NOTHING:
            self.problem = TaskloreError(
                f"{stream} cannot be read: {headers.get('Description')}"
            )
        self.ended.set()


async def read_last(
    client: Client, stream: str, subject: str, within_s: float = API_S
) -> Msg | None:
    """Return the last message of *stream* on *subject* with its headers, None without one.

    Raises:
        Unreachable: the server did not answer within *within_s* seconds.
    """
    try:
        async with asyncio.timeout(within_s + 1):
            found = await client.request(
                f"$JS.API.DIRECT.GET.{stream}.{subject}", timeout=within_s
            )
    except (TimeoutError, OSError, nats.errors.Error) as error:
        raise Unreachable(
            f"NATS did not answer for {subject}: {str(error) or type(error).__name__}"
        ) from error
    return None if (found.headers or {}).get("Status") else found


class DirectReads:
    """Reads one stream, page by page; opened with `open_direct_reads`."""

    def __init__(self, client: Client, stream: str) -> None:
        self._client = client
        self._stream = stream
        self._awaited: dict[str, DirectPage] = {}
        self.answers = client.new_inbox()
        self.asked = 0
        """How many requests were made."""

    def hear(self, subject: str, headers: Mapping[str, str], body: bytes) -> None:
        """Take one message, or the end of a page."""
        page = self._awaited.get(subject.rpartition(".")[2])
        if page is not None:
            page.take(self._stream, headers, body)

    async def page(self, **request: Any) -> DirectPage:
        """Return what the server finds: from `seq` or `start_time` on what fits `next_by_subj`, up to a page.

        Raises:
            NoSuchStream: there is no such stream.
            Forbidden: this user may not read it.
            Unreachable: the server does not answer in time.
        """
        self.asked += 1
        token = str(self.asked)
        page = self._awaited[token] = DirectPage()
        body = json.dumps({"batch": PAGE, "max_bytes": PAGE_BYTES} | request).encode()
        subject = f"$JS.API.DIRECT.GET.{self._stream}"

        async def asked() -> None:
            await self._client.publish(subject, body, f"{self.answers}.{token}")
            await page.ended.wait()

        try:
            async with asyncio.timeout(API_S):
                await unless_refused(self._client, subject, asked())
        except Forbidden:
            raise
        except (TimeoutError, OSError, nats.errors.Error) as error:
            msg = f"the NATS server did not answer within {API_S:g} s what lies in {self._stream}; try again"
            raise Unreachable(msg) from error
        finally:
            del self._awaited[token]
        if page.problem is not None:
            raise page.problem
        return page

    async def pages(self, subject: str) -> AsyncGenerator[list[Stored], None]:
        """Yield all that lies on *subject*, in order; a message that is replaced meanwhile may come twice.

        Raises as `page` does.
        """
        at = 1
        while True:
            page = await self.page(seq=at, next_by_subj=subject)
            yield page.found
            if not page.following:
                return
            at = max(at, page.last) + 1


#: A connection as the client library has it, or with a link, on which no header of anybody does harm.
Line = Client | Link


def client_of(line: Line) -> Client:
    """Return the client library's side of *line*."""
    return line.client if isinstance(line, Link) else line


@asynccontextmanager
async def open_direct_reads(line: Line, stream: str) -> AsyncIterator[DirectReads]:
    """Open *stream* on *line*; nothing is asked before the first call.

    The client library passes over messages with headers that are no text, and hears nothing any more after some of
    them: long reads use a link.
    """
    client = client_of(line)
    reads = DirectReads(client, stream)

    def hear_arrival(arrival: Arrival) -> None:
        reads.hear(arrival.subject, read_headers(arrival.headers) or {}, arrival.body)

    async def hear_message(message: Msg) -> None:
        reads.hear(message.subject, message.headers or {}, message.data)

    subject = f"{reads.answers}.*"
    if isinstance(line, Link):
        listening = await line.listen(subject, hear_arrival)
    else:
        listening = await line.subscribe(subject, cb=hear_message)
    try:
        yield reads
    finally:
        if not client.is_closed:
            await listening.unsubscribe()
