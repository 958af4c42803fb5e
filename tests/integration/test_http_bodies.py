"""Limits of HTTP bodies: a refused one is not read to its end, others have limits of chunks and values."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from contracts.parameters.body_sizes import MOST_VALUES
from runtime.servers.embedded import EmbeddedServers
from supervisor.http.admission.key_file import KeyRing, make_key
from supervisor.http.protocol import MOST_CHUNKS
from tests.http_client import PATIENCE_S, Connection, ask
from tests.integration.http_stand import Stand, http_stand

HELLO = b'{"text": "hello"}'
HEAD = "POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
#: Far more than the buffers of both ends of a connection hold.
ENDLESS = 64 * 1024**2


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    """Serve the API without keys."""
    async with http_stand(servers, redis) as found:
        found.service.gate.set()
        yield found


async def _sent_until_the_end(asked: Connection, piece: bytes) -> int:
    """Return how many bytes of an endless body the other end took before it closed the connection."""
    sent = 0
    try:
        async with asyncio.timeout(PATIENCE_S):
            while sent < ENDLESS:
                asked.writer.write(piece)
                await asked.writer.drain()
                sent += len(piece)
    except ConnectionError:
        pass
    return sent


async def test_a_refused_body_is_not_read_to_its_end(servers: EmbeddedServers, redis: Redis, tmp_path: Path) -> None:
    """The answer can be read while it is still sent, and the connection is closed soon after."""
    make_key(tmp_path / "keys.json", "ann", ("ask",), None)
    async with http_stand(servers, redis, keys=KeyRing(tmp_path / "keys.json")) as stand:
        for length in ("Transfer-Encoding: chunked", f"Content-Length: {ENDLESS}"):
            async with Connection(stand.url) as asked:
                asked.writer.write(f"{HEAD}{length}\r\n\r\n".encode())
                status, _ = await asked.head()
                chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
                assert status in (401, 413)
                assert await _sent_until_the_end(asked, chunk) < ENDLESS // 2


async def test_a_connection_is_used_again_after_a_short_body_was_refused(stand: Stand) -> None:
    async with Connection(stand.url) as asked:
        for _ in range(2):
            asked.send("POST", "/v1/requests", b'{"txt": "' + b"x" * 1000 + b'"}')
            assert (await asked.answer()).status == 422


async def test_a_body_of_too_many_chunks_is_refused(stand: Stand) -> None:
    for length, status in ((MOST_CHUNKS, 200), (MOST_CHUNKS + 1, 400)):
        body = HELLO + b" " * (length - len(HELLO))
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
        async with Connection(stand.url) as asked:
            asked.writer.write(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks + b"0\r\n\r\n")
            answer = await asked.answer()
        assert answer.status == status, answer.body


async def test_a_body_with_too_many_values_is_refused(stand: Stand) -> None:
    """A megabyte of wrong ones took three to twelve seconds to refuse, in which nobody else was answered."""
    for path, field, value in (
        ("/v1/chat/completions", "messages", [1] * MOST_VALUES),
        ("/v1/agents/EchoAgent/brain/decide", "new_messages", [{}] * MOST_VALUES),
        ("/v1/tasks", "parameters", {f"p{number}": number for number in range(MOST_VALUES + 1)}),
        ("/v1/pipelines", "pipeline", {"phases": [{}] * MOST_VALUES}),
    ):
        refused = await ask(stand.url, "POST", path, {"model": "tasklore", field: value})
        assert refused.status == 413
        assert f"{MOST_VALUES:,} values; send fewer" in json.dumps(refused.body)
