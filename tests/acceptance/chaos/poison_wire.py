"""A NATS client that checks nothing: any bytes as subject, headers and body, which no client library would send."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

#: Seconds for the server's word; it has its hands full with megabytes.
PATIENCE_S = 60.0

_INBOX = b"_INBOX.poison"


class Wire:
    """One connection; what is answered to `ask` lies in `answers` under its number."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.answers: dict[int, bytes] = {}
        #: What the server complained about.
        self.complaints: list[str] = []
        self._asked = 0
        self._pongs = 0
        self._hung_up = False
        self._news = asyncio.Event()
        writer.write(
            b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB %b.* 1\r\n'
            % _INBOX
        )

    def send(
        self, subject: bytes, body: bytes, headers: bytes = b"", reply: bytes = b""
    ) -> None:
        """Publish *body*; *headers* is the whole block, its version line and last empty line included."""
        if headers:
            line = b"HPUB %b %b %d %d\r\n" % (
                subject,
                reply,
                len(headers),
                len(headers) + len(body),
            )
        else:
            line = b"PUB %b %b %d\r\n" % (subject, reply, len(body))
        self._writer.writelines([line, headers, body, b"\r\n"])

    def ask(self, subject: bytes, body: bytes, headers: bytes = b"") -> int:
        """Publish *body*, to be answered, and return the number of the answer."""
        self._asked += 1
        self.send(subject, body, headers, b"%b.%d" % (_INBOX, self._asked))
        return self._asked

    async def flush(self) -> None:
        """Return once the server has taken everything."""
        wanted = self._pongs + 1
        self._writer.write(b"PING\r\n")
        await self._writer.drain()
        await self._until(lambda: self._pongs >= wanted, PATIENCE_S)

    async def answered(self, numbers: list[int], within_s: float) -> list[int]:
        """Return those of *numbers* that were not answered within *within_s* seconds."""
        with contextlib.suppress(TimeoutError):
            await self._until(
                lambda: all(number in self.answers for number in numbers), within_s
            )
        return [number for number in numbers if number not in self.answers]

    async def _until(self, condition: Callable[[], bool], within_s: float) -> None:
        async with asyncio.timeout(within_s):
            while not condition():
                if self._hung_up:
                    raise ConnectionResetError(
                        f"the server hung up: {self.complaints[-3:]}"
                    )
                self._news.clear()
                await self._news.wait()

    async def listen(self) -> None:
        """Take what the server says until it hangs up."""
        while line := await self._reader.readline():
            words = line.split()
            match words[0] if words else b"":
                case b"PING":
                    self._writer.write(b"PONG\r\n")
                case b"PONG":
                    self._pongs += 1
                case b"MSG" | b"HMSG":
                    await self._take(words)
                case b"-ERR":
                    self.complaints.append(line.decode(errors="replace").strip())
                case _:
                    continue
            self._news.set()
        self._hung_up = True
        self._news.set()

    async def _take(self, words: list[bytes]) -> None:
        content = await self._reader.readexactly(int(words[-1]) + 2)
        head = int(words[-2]) if words[0] == b"HMSG" else 0
        status = content[:head].partition(b"\r\n")[0] if head else b""
        number = int(words[1].rpartition(b".")[2])
        # "No responders" has no body: it is no answer, and told as what it is.
        self.answers[number] = b"" if b" 503" in status else content[head:-2]


@asynccontextmanager
async def wire(port: int) -> AsyncIterator[Wire]:
    """Connect to the server on *port* of this machine."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, limit=16 * 1024 * 1024
    )
    opened = Wire(reader, writer)
    listening = asyncio.create_task(opened.listen())
    try:
        await opened.flush()
        yield opened
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        writer.close()
