"""A process on real servers: it ends with the error of a part that cannot go on, and without one on request."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tasklore.contracts.errors import Unreachable
from tasklore.runtime.process import Process
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.runtime.settings import Settings

#: Seconds for what takes milliseconds.
PATIENCE_S = 60.0


class Frame:
    """A process with nothing in it but its broker, which hears one subject."""

    def __init__(self, servers: EmbeddedServers) -> None:
        self.process = Process(
            "framed", Settings(nats_url=servers.nats_url, redis_url=servers.redis_url)
        )
        self.steps: list[str] = []
        self.started = asyncio.Event()
        self.process.broker.subscriber("framed.hears")(self._hear)

    async def run(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.process.run(self._lifespan, self._start, self._drain)

    async def publish_too_much(self) -> None:
        await self.started.wait()
        await self.process.broker.publish(b"x" * 1024 * 1024, "framed.much")

    async def close(self) -> None:
        await self.started.wait()
        await (await self.process.broker.connect()).close()

    def end(self) -> None:
        self.process.end()

    async def _hear(self, body: bytes) -> None:
        self.steps.append(body.decode())

    @asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        yield
        self.steps.append("closed")

    async def _start(self) -> None:
        self.started.set()

    async def _drain(self) -> None:
        self.steps.append("drained")


@pytest.mark.parametrize("way", ["publish_too_much", "close"])
async def test_a_process_whose_broker_was_closed_for_good_fails(
    servers: EmbeddedServers, way: str
) -> None:
    frame = Frame(servers)
    closing = asyncio.create_task(getattr(frame, way)())
    with pytest.raises(
        Unreachable, match="the broker's connection to NATS was closed for good"
    ):
        await frame.run()
    await closing
    assert frame.steps == ["drained", "closed"]


async def test_a_process_ends_on_request_without_an_error(
    servers: EmbeddedServers,
) -> None:
    frame = Frame(servers)
    running = asyncio.create_task(frame.run())
    await frame.started.wait()
    frame.end()
    await running
    assert frame.steps == ["drained", "closed"]


async def test_a_process_that_waits_for_servers_ends_on_request(
    servers: EmbeddedServers,
) -> None:
    frame = Frame(servers)
    waits = asyncio.Event()

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        try:
            waits.set()
            await asyncio.Event().wait()
            yield
        finally:
            frame.steps.append("given up")

    async def ask() -> None:
        await waits.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(ask())
        # The task that runs it is cancelled, and must not take the test along.
        group.create_task(frame.process.run(lifespan, frame._start, frame._drain))
    assert frame.steps == ["given up"]
    assert not frame.started.is_set()
