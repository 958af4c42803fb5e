"""Chat completions that end early: the client leaves, the process leaves, or the answer fails."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import pytest
import structlog
from redis.asyncio import Redis

from contracts.errors import MemoryUnavailable
from runtime.servers.embedded import EmbeddedServers
from tests.http_client import PATIENCE_S, Connection, ask
from tests.integration.http_stand import Stand, http_stand

PATH = "/v1/chat/completions"
HELLO = {"model": "tasklore", "messages": [{"role": "user", "content": "hello"}]}
STREAMED = {**HELLO, "stream": True}


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    """Serve the API; the service answers once its gate is opened."""
    async with http_stand(servers, redis, heartbeat_s=0.05) as found:
        yield found


async def reached(is_so: Callable[[], bool]) -> None:
    """Return once *is_so*, which nothing tells of."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


async def test_clients_that_leave_early_leave_nothing_behind(stand: Stand) -> None:
    """Neither a stream, nor a request, nor a task of the event loop that waits for the answer."""
    await ask(stand.url, "GET", "/v1/models")
    before = len(asyncio.all_tasks())
    async with Connection(stand.url) as whole, Connection(stand.url) as connection:
        whole.send("POST", PATH, HELLO)
        await reached(lambda: stand.parts.life.inside == 1)
        connection.send("POST", PATH, STREAMED)
        await connection.head()
        events = connection.events()
        _, _, first = await anext(events)
        assert first["choices"][0]["delta"]["role"] == "assistant"
        # A sign of life is no part of the answer.
        assert (await anext(events))[1] == ":"
        assert stand.parts.life.streams == 1
    await reached(lambda: stand.parts.life.streams == stand.parts.life.inside == 0)
    await reached(lambda: len(asyncio.all_tasks()) <= before)


async def test_an_error_after_the_first_event_is_the_last_event(stand: Stand) -> None:
    stand.service.error = MemoryUnavailable("the store is away")
    stand.service.gate.set()
    async with Connection(stand.url) as connection:
        connection.send("POST", PATH, STREAMED)
        status, headers = await connection.head()
        events = [data async for _, name, data in connection.events() if name != ":"]
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert events[-1]["error"]["type"] == "server_error"
    assert len(events) == 2


async def test_errors_have_openais_form_and_show_nothing_internal(stand: Stand) -> None:
    # Drawing the traceback for a terminal takes seconds.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    stand.service.error = RuntimeError("secret")
    stand.service.gate.set()
    answer = await ask(stand.url, "POST", PATH, HELLO)
    assert (answer.status, answer.body["error"]["code"]) == (500, "internal")
    assert "secret" not in str(answer.body)
    stand.service.error = MemoryUnavailable("the store is away")
    answer = await ask(stand.url, "POST", PATH, HELLO)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert answer.body["error"]["type"] == "server_error"


async def test_when_the_process_leaves_waiting_clients_are_told_to_ask_again(stand: Stand) -> None:
    whole = asyncio.create_task(ask(stand.url, "POST", PATH, HELLO))
    async with Connection(stand.url) as connection:
        connection.send("POST", PATH, STREAMED)
        await connection.head()
        await reached(lambda: len(stand.service.asked) == 2)
        stand.parts.life.leaving.set()
        events = [data async for _, name, data in connection.events() if name != ":"]
    assert events[-1]["error"]["code"] == "unavailable"
    assert (await whole).status == 503
