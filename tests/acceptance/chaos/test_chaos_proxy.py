"""The wire that can be cut: what each manner does to what is under way, and to who connects meanwhile."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from runtime.servers.claims import HOST
from tests.acceptance.chaos.proxy import Proxy

#: Seconds for what has to happen, and for what must not: the second only has to be longer than a loopback takes.
PATIENCE_S, GLANCE_S = 20.0, 0.1


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """Stand between a client and a server that says everything twice."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.strip() * 2 + b"\n")
        writer.close()

    server = await asyncio.start_server(echo, HOST, 0)
    async with Proxy(server.sockets[0].getsockname()[1]) as between:
        yield between
    server.close()


class Client:
    """One connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def through(cls, proxy: Proxy) -> "Client":
        """Connect."""
        return cls(*await asyncio.open_connection(HOST, proxy.port))

    async def ask(self, word: bytes, within_s: float = PATIENCE_S) -> bytes:
        """Say *word* and return the answer; TimeoutError when there is none."""
        self._writer.write(word + b"\n")
        return await self.answer(within_s)

    async def answer(self, within_s: float = PATIENCE_S) -> bytes:
        """Return the next answer; nothing when the connection has ended in good order."""
        async with asyncio.timeout(within_s):
            return (await self._reader.readline()).strip()


async def test_a_stalled_wire_keeps_what_is_said_until_it_heals(proxy: Proxy) -> None:
    """Also for who connects meanwhile."""
    client = await Client.through(proxy)
    before = await client.ask(b"a")
    proxy.cut("stall")
    newcomer = await Client.through(proxy)
    for one in (client, newcomer):
        with pytest.raises(TimeoutError):
            await one.ask(b"b", GLANCE_S)
    proxy.heal()

    assert before == b"aa"
    assert (await client.answer(), await newcomer.answer()) == (b"bb", b"bb")


async def test_a_wire_that_drops_loses_what_is_said_and_ends_when_it_heals(proxy: Proxy) -> None:
    """Half of a conversation is never passed on; the next one is whole."""
    client = await Client.through(proxy)
    await client.ask(b"a")
    proxy.cut("drop")
    with pytest.raises(TimeoutError):
        await client.ask(b"b", GLANCE_S)
    proxy.heal()
    with pytest.raises(ConnectionResetError):
        await client.answer()

    assert await (await Client.through(proxy)).ask(b"c") == b"cc"


async def test_a_wire_that_resets_ends_every_connection_until_it_heals(proxy: Proxy) -> None:
    """The old ones and the new ones."""
    client = await Client.through(proxy)
    await client.ask(b"a")
    proxy.cut("reset")
    with pytest.raises(ConnectionResetError):
        await client.answer()
    with pytest.raises(ConnectionResetError):
        await (await Client.through(proxy)).ask(b"b")
    proxy.heal()

    assert await (await Client.through(proxy)).ask(b"c") == b"cc"


async def test_a_server_that_is_away_ends_the_connection(proxy: Proxy) -> None:
    """A client behind the proxy learns of it as it would without."""
    async with Proxy(1) as nowhere:
        client = await Client.through(nowhere)

        assert await client.answer() == b""
