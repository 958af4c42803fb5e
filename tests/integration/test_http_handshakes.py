"""Handshakes end in time on either event loop: a supervisor runs on the one, its tests on the other."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import uvloop

from deploy.credentials import make_certificates
from supervisor.http.admission.unknown_clients import Strangers
from supervisor.http.server.certificates import Certificate
from supervisor.http.server.handshakes import Handshakes
from supervisor.http.server.timeouts import PatientProtocol
from tests.http_client import PATIENCE_S, until

Loop = Callable[[], asyncio.AbstractEventLoop]


class Greeter(asyncio.Protocol):
    """Says a word to whoever is over TLS."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say it."""
        cast("asyncio.Transport", transport).write(b"hello")


async def ended(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
    """Tell whether *connection* is closed by the other end without a word."""
    async with asyncio.timeout(PATIENCE_S):
        try:
            return await connection[0].read() == b""
        except ConnectionError:
            return True
        finally:
            connection[1].transport.abort()


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_whoever_does_not_get_over_tls_is_let_go(loop: Loop, tmp_path: Path) -> None:
    """For want of room, of time, of TLS, and when it is over; whoever does is served."""
    make_certificates(tmp_path / "made")
    tls = Certificate(tmp_path / "made" / "nats.crt", tmp_path / "made" / "nats.key")
    client = ssl.create_default_context(cafile=tmp_path / "made" / "ca.crt")

    async def tried() -> None:
        handshakes = Handshakes(tls, Strangers(connections=2))
        handshakes.handshake_s = 10 * PATIENCE_S
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            port = listener.getsockname()[1]
            handshakes.begin(listener, cast("Callable[[], PatientProtocol]", Greeter), set())
            first, second = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            await until(lambda: len(handshakes) == 2)
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
            assert await reader.readexactly(5) == b"hello"
            writer.transport.abort()
            assert await ended(first)
            await until(lambda: len(handshakes) == 1)
            plain = await asyncio.open_connection("127.0.0.1", port)
            plain[1].write(b"GET / HTTP/1.1\r\n\r\n")
            assert await ended(plain)
            handshakes.handshake_s = 0.2
            assert await ended(await asyncio.open_connection("127.0.0.1", port))
            handshakes.close()
        await handshakes.wait_closed()
        assert await ended(second)
        assert len(handshakes) == 0

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(tried())
