"""Streams of events that end by a fault of ours: the client is told the end, and the log says why."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from redis.asyncio import Redis
from starlette.types import Message
from structlog.testing import capture_logs

from tasklore.contracts.callers import Caller
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http import event_streams
from tasklore.supervisor.http.event_streams import EventStream
from tests.integration.http_stand import http_stand
from tests.servers import PATIENCE_S

READER = Caller(name="local")


async def endless() -> AsyncGenerator[bytes, None]:
    while True:
        yield b": here\n\n"
        await asyncio.sleep(0.01)


async def broken() -> AsyncGenerator[bytes, None]:
    yield b": here\n\n"
    raise KeyError("no such event")


async def may_not_be_asked() -> bool:
    raise RuntimeError("the keys cannot be read")


async def going_on() -> bool:
    return True


@pytest.mark.parametrize(
    ("events", "may_go_on", "words"),
    [
        (endless, may_not_be_asked, "the keys cannot be read"),
        (broken, going_on, "no such event"),
    ],
    ids=["watcher", "events"],
)
async def test_a_stream_that_a_fault_ends_is_in_the_log(
    servers: EmbeddedServers,
    redis: Redis,
    monkeypatch: pytest.MonkeyPatch,
    events: Any,
    may_go_on: Any,
    words: str,
) -> None:
    """One line, with the error; the stream ends, as nobody knows whether its reader still may read it."""
    monkeypatch.setattr(event_streams, "_LOOK_S", 0.05)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async with http_stand(servers, redis) as stand:
        stream = EventStream.open(stand.parts, READER, events(), may_go_on=may_go_on)
        with capture_logs() as logged:
            async with asyncio.timeout(PATIENCE_S):
                await stream({"type": "http"}, receive, send)
        assert not stand.parts.life.streams
    [line] = [one for one in logged if one["event"] == "event_stream_failed"]
    assert line["log_level"] == "error"
    assert words in str(line["exc_info"])
    assert sent[0]["type"] == "http.response.start"
    has_end = not sent[-1].get("more_body", False)
    # Of events that broke off no end is told: the client comes back for the rest.
    assert has_end == (events is endless)
