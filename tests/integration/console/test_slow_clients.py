"""The console under clients that read or write a byte now and then, or half hang up: others are served meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.console_sessions import COOKIE
from tasklore.supervisor.http.admission.limits import ClientLimits
from tests.http_client import PATIENCE_S, Connection, until
from tests.integration.console.browsing import ConsoleStand, console_stand
from tests.integration.console.test_one_run import sent_by

#: Streams that one session opens, and clients that send a form slowly.
STREAMS = 200
SENDERS = 20
#: Bytes of memory that one open stream may take.
MOST_BYTES = 200_000


@pytest.fixture
async def console(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[ConsoleStand]:
    limits = ClientLimits(body_s=2.0)
    async with console_stand(servers, redis, tmp_path, limits=limits) as found:
        yield found


def resident() -> int:
    """Return the bytes of memory of this process."""
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * 4096


async def test_streams_that_nobody_reads_leave_room_for_others(
    console: ConsoleStand,
) -> None:
    """Two hundred of one session, some half closed: those end, others stay, and a page comes as before."""
    task_id = await sent_by(console, "ana")
    life = console.stand.parts.life
    async with console.tab("ana") as tab, console.tab("ben") as other:
        await other.open("/console/runs")
        before = resident()
        cookie = {"Cookie": f"{COOKIE}={tab.client.cookies[COOKIE]}"}
        async with AsyncExitStack() as stack:
            pages = [
                await stack.enter_async_context(Connection(console.stand.url))
                for _ in range(STREAMS)
            ]
            for page in pages:
                page.send("GET", f"/console/runs/{task_id}/output", headers=cookie)
                assert (await page.reader.read(1)) == b"H"
            assert life.streams_of["ana"] == STREAMS
            grown = resident() - before
            began = time.monotonic()
            await other.open("/console/runs")
            assert time.monotonic() - began < PATIENCE_S
            assert grown < STREAMS * MOST_BYTES
            for page in pages[:50]:
                page.writer.write_eof()
            await until(lambda: life.streams_of["ana"] == STREAMS - 50)
        await until(lambda: life.streams_of["ana"] == 0)


async def test_a_form_that_comes_a_byte_at_a_time_is_given_up(
    console: ConsoleStand,
) -> None:
    """Its time is that of the whole body, however many bytes come."""
    async with console.tab("ana") as tab, AsyncExitStack() as stack:
        head = (
            f"POST /console/runs/cancel HTTP/1.1\r\nHost: localhost\r\n"
            f"Cookie: {COOKIE}={tab.client.cookies[COOKIE]}\r\nContent-Length: 9000\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
        )
        senders = [
            await stack.enter_async_context(Connection(console.stand.url))
            for _ in range(SENDERS)
        ]
        async with asyncio.TaskGroup() as group:
            dripping = [group.create_task(_drip(one, head)) for one in senders]
            await tab.open("/console/runs")
        assert [one.result() for one in dripping] == [408] * SENDERS
        await until(lambda: console.stand.parts.life.inside == 0)


async def _drip(connection: Connection, head: str) -> int:
    """Send *head* and then a byte a moment; return the status of the answer."""
    connection.writer.write(head.encode())
    answered = asyncio.ensure_future(connection.head())
    while not answered.done():
        connection.writer.write(b"x")
        await asyncio.wait({answered}, timeout=0.1)
    return answered.result()[0]
