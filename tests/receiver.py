"""A receiver of webhooks that a test scripts: it keeps what it hears, and answers as its path says."""

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Heard:
    """One request: its line, its headers in lower case, and its body."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    def is_signed(self, secret: str = SECRET) -> bool:
        """Return whether one of its signatures is right, computed as the specification says."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        right = base64.b64encode(
            hmac.new(key, signed, hashlib.sha256).digest()
        ).decode()
        return f"v1,{right}" in self.headers["webhook-signature"].split(" ")


@dataclass
class Receiver:
    """It answers 200, but for a path that begins with `/hang`, `/status/CODE` or the like; `statuses` come first."""

    port: int = 0
    scheme: str = "http"
    heard: list[Heard] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    open: int = 0
    most_open: int = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    async def hears(self, count: int, within_s: float = PATIENCE_S) -> list[Heard]:
        """Return what was heard once that are *count* requests."""
        async with asyncio.timeout(within_s):
            while len(self.heard) < count:  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.01)
        return list(self.heard)

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            first, *lines = (
                (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            )
            headers = {
                name.lower(): value
                for name, _, value in (line.partition(": ") for line in lines)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            path = first.split(" ")[1]
            self.heard.append(Heard(path, headers, body))
            await self._answer(path, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _answer(  # noqa: C901
        self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        status = self.statuses.pop(0) if self.statuses else 200
        what, _, rest = path.strip("/").partition("/")
        if what == "hang":
            # Until the other side has enough of it.
            await reader.read()
        elif what == "drip":
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        elif what == "flood":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10485760\r\n\r\n")
            for _ in range(160):
                writer.write(b"y" * 65_536)
                await writer.drain()
        elif what == "line":
            writer.write(b"HTTP/1.1 2" + b"0" * 1_000_000 + b"\r\n\r\n")
            await writer.drain()
        elif what == "garbage":
            writer.write(b"SSH-2.0-OpenSSH\r\n" * 200)
        elif what == "close":
            return
        elif what == "interim":
            writer.write(
                b"HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
            )
        elif what == "redirect":
            writer.write(
                f"HTTP/1.1 302 Found\r\nLocation: {rest}\r\nContent-Length: 0\r\n\r\n".encode()
            )
        else:
            code = int(rest.partition("/")[0]) if what == "status" else status
            writer.write(f"HTTP/1.1 {code} Fine\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()


@asynccontextmanager
async def receiving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """Serve a receiver on a port of this machine within the block."""
    receiver = Receiver(scheme="https" if tls else "http")
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
