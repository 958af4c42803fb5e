"""Chat completions that do not end as they should: the client goes, the process leaves, the answer fails."""

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


async def test_a_client_that_goes_mid_stream_leaves_nothing_behind(stand: Stand) -> None:
    """Neither a stream, nor a request, nor a task of the event loop that waits for the answer."""
    await ask(stand.url, "GET", "/v1/models")
    before = len(asyncio.all_tasks())
    async with Connection(stand.url) as connection:
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


async def test_a_client_that_does_not_wait_for_a_whole_answer_leaves_nothing_behind(stand: Stand) -> None:
    """As many as like to go."""
    await ask(stand.url, "GET", "/v1/models")
    before = len(asyncio.all_tasks())
    for _ in range(5):
        async with Connection(stand.url) as connection:
            connection.send("POST", PATH, HELLO)
            await reached(lambda: stand.parts.life.inside == 1)
        await reached(lambda: stand.parts.life.inside == 0)
    await reached(lambda: len(asyncio.all_tasks()) <= before)
    assert len(stand.service.asked) == 5


async def test_what_goes_wrong_after_the_first_event_is_the_last_one(stand: Stand) -> None:
    """In the form that OpenAI's clients raise as an error; nothing claims that the answer is whole."""
    stand.service.error = MemoryUnavailable("the store is away")
    stand.service.gate.set()
    async with Connection(stand.url) as connection:
        connection.send("POST", PATH, STREAMED)
        status, headers = await connection.head()
        told = [data async for _, name, data in connection.events() if name != ":"]
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert told[-1]["error"]["type"] == "server_error"
    assert len(told) == 2


async def test_an_error_that_nobody_foresaw_is_told_in_openais_form(stand: Stand) -> None:
    """And says nothing of what it was."""
    # Drawing the traceback for a terminal takes seconds.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    stand.service.error = RuntimeError("secret")
    stand.service.gate.set()
    answer = await ask(stand.url, "POST", PATH, HELLO)
    assert (answer.status, answer.body["error"]["code"]) == (500, "internal")
    assert "secret" not in str(answer.body)


async def test_a_server_behind_it_that_is_away_may_be_asked_again(stand: Stand) -> None:
    """With the time after which, which OpenAI's clients heed."""
    stand.service.error = MemoryUnavailable("the store is away")
    stand.service.gate.set()
    answer = await ask(stand.url, "POST", PATH, HELLO)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert answer.body["error"]["type"] == "server_error"


async def test_whoever_still_waits_when_the_process_leaves_is_told_to_ask_again(stand: Stand) -> None:
    """Streamed and not; another replica takes the task up by its memory."""
    whole = asyncio.create_task(ask(stand.url, "POST", PATH, HELLO))
    async with Connection(stand.url) as connection:
        connection.send("POST", PATH, STREAMED)
        await connection.head()
        await reached(lambda: len(stand.service.asked) == 2)
        stand.parts.life.leaving.set()
        told = [data async for _, name, data in connection.events() if name != ":"]
    assert told[-1]["error"]["code"] == "unavailable"
    assert (await whole).status == 503
