"""HTTP pages as the doctor reads them: within a deadline, whatever listens there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from runtime.health import HealthServer
from runtime.servers.claims import free_port
from tasklore.doctor.facts import HealthPage, Unanswered
from tasklore.doctor.pages import PAGE_BYTES, examine_monitor, examine_processes, fetch

#: Seconds that any of it may take on a busy machine.
PATIENCE_S = 60.0


@asynccontextmanager
async def answering(answer: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """Listen on loopback and let *answer* write to whoever comes; yield the address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
        except ConnectionError:
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def saying(text: bytes) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    """Return somebody who says *text* and hangs up."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        await writer.drain()

    return answer


async def dripping(writer: asyncio.StreamWriter) -> None:
    """Say a letter now and then, for longer than anybody listens."""
    while True:
        writer.write(b"H")
        await writer.drain()
        await asyncio.sleep(0.02)


async def test_a_page_has_its_status_and_its_json() -> None:
    """The body of what is no JSON object is empty."""
    async with answering(saying(b'HTTP/1.0 503 Busy\r\nX: y\r\n\r\n{"checks": {}}')) as url:
        assert await fetch(f"{url}/readyz", PATIENCE_S) == HealthPage(503, {"checks": {}})
    for body in (b"plain words", b"[1, 2]", b"\xff\xfe", b""):
        async with answering(saying(b"HTTP/1.1 200 OK\r\n\r\n" + body)) as url:
            assert await fetch(url, PATIENCE_S) == HealthPage(200, {})


async def test_an_answer_that_is_no_page_is_reported_as_such() -> None:
    for answer in (b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.0 fine\r\n\r\n"):
        async with answering(saying(answer)) as url:
            found = await fetch(url, PATIENCE_S)
        assert isinstance(found, Unanswered)
        assert "no HTTP page" in found.reason
    refused = await fetch(f"http://127.0.0.1:{free_port()}")
    assert isinstance(refused, Unanswered)
    assert "refused" in refused.reason.lower() or "connect" in refused.reason.lower()


async def test_a_page_that_never_ends_is_given_up() -> None:
    """A drop at a time keeps no deadline alive, and a flood is cut off."""
    async with asyncio.timeout(PATIENCE_S):
        async with answering(dripping) as url:
            assert await fetch(url, 0.2) == Unanswered("no answer within 0.2 s")
        flood = b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * (2 * PAGE_BYTES)
        async with answering(saying(flood)) as url:
            assert await fetch(url, PATIENCE_S) == HealthPage(200, {})


async def test_a_monitoring_page_without_a_server_id_is_not_believed() -> None:
    async with answering(saying(b"HTTP/1.0 404 Not Found\r\n\r\n{}")) as url:
        seen = await examine_monitor(f"{url}/", "--monitor")
    assert isinstance(seen.varz, Unanswered)
    assert "404" in seen.varz.reason


async def test_processes_are_asked_for_both_pages() -> None:
    stuck = {"loop": lambda: (False, "no beat")}
    with HealthServer("127.0.0.1", 0, alive={}, ready=stuck, metrics=bytes) as server:
        (found,) = await examine_processes([("worker-1", server.url, True)])
    assert found.alive == HealthPage(200, {"status": "ok", "checks": {}})
    assert isinstance(found.ready, HealthPage)
    assert (found.ready.status, found.ready.body["checks"]["loop"]["detail"]) == (503, "no beat")
