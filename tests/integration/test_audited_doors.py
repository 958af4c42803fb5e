"""What doors do by hand is audited as operations are: chat completions and streams, with how each ended and no word."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.http_client import Connection, ask, until
from tests.integration.http_stand import Stand, http_stand

COMPLETIONS = "/v1/chat/completions"
CHAT = {"model": "tasklore", "messages": [{"role": "user", "content": "my secret"}]}
STREAMED = CHAT | {"stream": True}


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis, heartbeat_s=0.05) as found:
        yield found


@contextmanager
def auditing(*operations: str) -> Iterator[list[tuple[str, int]]]:
    """Note the lines of *operations* within the block, each with its status, and none of which holds a word."""
    noted: list[tuple[str, int]] = []
    with capture_logs() as lines:
        yield noted
    audit = [one for one in lines if one["event"] == "operation"]
    assert "secret" not in str(audit)
    found = [one for one in audit if one["operation"] in operations]
    assert {one["caller"] for one in found} <= {"local"}
    noted += [(one["operation"], one["status"]) for one in found]


async def ended(stand: Stand) -> None:
    """Return once no stream and no request is open."""
    life = stand.parts.life
    await until(lambda: life.streams == life.inside == 0)


async def chat_in_a_stream(stand: Stand) -> None:
    """Chat, and hear the stream up to its last piece, or its error."""
    async with Connection(stand.url) as connection:
        connection.send("POST", COMPLETIONS, STREAMED)
        await connection.head()
        async for _, _, data in connection.events():
            if data and ("error" in data or data["choices"][0]["finish_reason"]):
                return


async def test_each_answer_of_a_chat_is_one_line(stand: Stand) -> None:
    """In one body or in a stream, however it ends: a stream that says an error has the status of that."""
    stand.service.gate.set()
    with auditing("chat_complete") as noted:
        await ask(stand.url, "POST", COMPLETIONS, CHAT)
        await chat_in_a_stream(stand)
        await ask(stand.url, "POST", COMPLETIONS, CHAT | {"model": "none"})
        stand.service.error = MemoryUnavailable("the store is away")
        await ask(stand.url, "POST", COMPLETIONS, CHAT)
        await chat_in_a_stream(stand)
        await ended(stand)
    assert [status for _, status in noted] == [200, 200, 404, 503, 503]


async def test_a_client_that_leaves_a_chat_is_one_line(stand: Stand) -> None:
    with auditing("chat_complete") as noted:
        async with Connection(stand.url) as whole, Connection(stand.url) as streamed:
            whole.send("POST", COMPLETIONS, CHAT)
            streamed.send("POST", COMPLETIONS, STREAMED)
            await streamed.head()
            await anext(streamed.events())
            await until(lambda: len(stand.service.asked) == 2)
        await ended(stand)
    assert [status for _, status in noted] == [499, 499]


async def test_each_stream_of_events_is_one_line(stand: Stand) -> None:
    """Read to its end, left, refused, or asked for behind its end."""
    stand.service.gate.set()
    sent = {"text": "my secret", "wait_seconds": 5}
    await ask(stand.url, "POST", "/v1/requests", sent, {"Idempotency-Key": "one"})
    path = "/v1/requests/one/events"
    with auditing("requests_follow") as noted:
        async with Connection(stand.url) as connection:
            connection.send("GET", path)
            await connection.head()
            names = [name async for _, name, _ in connection.events()]
            assert names[-1] == "done"
        await ask(stand.url, "GET", path, headers={"Last-Event-ID": "4"})
        await ask(stand.url, "GET", "/v1/requests/none/events")
        await ended(stand)
    assert [status for _, status in noted] == [200, 200, 404]
    stand.service.gate.clear()
    later = sent | {"wait_seconds": 0}
    await ask(stand.url, "POST", "/v1/requests", later, {"Idempotency-Key": "two"})
    with auditing("requests_follow") as noted:
        async with Connection(stand.url) as connection:
            connection.send("GET", "/v1/requests/two/events")
            await connection.head()
            await anext(connection.events())
        await ended(stand)
    assert noted == [("requests_follow", 499)]
    with auditing("tasks_follow", "pipelines_follow") as noted:
        await ask(stand.url, "GET", "/v1/tasks/none/output")
        await ask(stand.url, "GET", "/v1/pipelines/none/events")
    assert noted == [("tasks_follow", 404), ("pipelines_follow", 404)]
