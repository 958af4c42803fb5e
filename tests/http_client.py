"""A client of HTTP/1.1 that a test holds by the hand: it sees bytes as they come, and hangs up when it likes."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

#: Seconds for what takes none.
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Answer:
    """What came back; `body` is read when it is JSON."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Connection:
    """One connection to *url*, for one request, over *tls* if given."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._place = urlsplit(url)
        self._tls = tls

    async def __aenter__(self) -> Self:
        host = self._place.hostname
        port = self._place.port
        self.reader, self.writer = await asyncio.open_connection(
            host, port, limit=2**22, ssl=self._tls
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a request; *body* is sent as JSON unless it is bytes."""
        content = (
            body
            if isinstance(body, bytes)
            else b""
            if body is None
            else json.dumps(body).encode()
        )
        told = {"Host": self._place.netloc, "Content-Length": str(len(content))}
        if content:
            told["Content-Type"] = "application/json"
        lines = [
            f"{method} {path} HTTP/1.1",
            *(
                f"{name}: {value}"
                for name, value in (told | dict(headers or {})).items()
            ),
        ]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)

    async def head(self) -> tuple[int, dict[str, str]]:
        """Return status and headers of the answer."""
        async with asyncio.timeout(PATIENCE_S):
            first, *lines = (
                (await self.reader.readuntil(b"\r\n\r\n"))
                .decode()
                .strip()
                .split("\r\n")
            )
        headers = {
            name.lower(): value
            for name, _, value in (line.partition(": ") for line in lines)
        }
        return int(first.split(" ")[1]), headers

    async def answer(self) -> Answer:
        """Return the whole answer."""
        status, headers = await self.head()
        async with asyncio.timeout(PATIENCE_S):
            body = await self.reader.readexactly(
                int(headers.get("content-length", "0"))
            )
        is_json = "json" in headers.get("content-type", "")
        return Answer(status, headers, json.loads(body) if is_json else body.decode())

    async def events(self) -> AsyncIterator[tuple[str, str, Any]]:
        """Yield each event of a stream as id, name and data; a comment is named `:`."""
        fields: dict[str, str] = {}
        while size := int(await self._line(), 16):
            async with asyncio.timeout(PATIENCE_S):
                chunk = (await self.reader.readexactly(size + 2))[:-2].decode()
            for line in chunk.split("\n"):
                name, _, value = line.partition(": ")
                if line.startswith(":"):
                    yield "", ":", None
                elif line:
                    fields[name] = value
                elif "data" not in fields:
                    fields = {}
                else:
                    yield (
                        fields.get("id", ""),
                        fields.get("event", ""),
                        json.loads(fields["data"]),
                    )
                    fields = {}

    async def _line(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            return (await self.reader.readline()).decode().strip()


async def until(fact: Callable[[], bool]) -> None:
    """Return once *fact* holds."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if fact():
                return
            await asyncio.sleep(0.01)


async def ask(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Return what *method* of *path* answers."""
    async with Connection(url) as connection:
        connection.send(method, path, body, headers)
        return await connection.answer()
