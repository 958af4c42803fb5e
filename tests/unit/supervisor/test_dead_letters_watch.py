"""The watch over DEAD on a fake connection: depth and age as of the last look, 0 when there is nothing to see."""

import json
from typing import Any

import nats.errors
import pytest

from contracts import subjects
from supervisor.watches import StreamWatch


class Answer:
    """What the server says."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.data = json.dumps(body).encode()


class Server:
    """A connection on which one question is answered, or nobody is there."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | None = None
        self.asked: list[str] = []

    async def request(self, subject: str, payload: bytes, **_patience: float) -> Answer:
        """Answer."""
        self.asked.append(subject)
        if self.answer is None:
            raise nats.errors.TimeoutError
        return Answer(self.answer)


def holding(messages: int, first: str) -> dict[str, Any]:
    """Return what the server says of a stream with so many messages, the first one of then."""
    return {"state": {"messages": messages, "first_ts": first}}


@pytest.fixture
def server() -> Server:
    """Give a server that does not answer yet."""
    return Server()


def watch_at(server: Server, now_s: list[float]) -> StreamWatch:
    """Return a watch whose clock shows the last of *now_s*."""
    return StreamWatch(server, subjects.DEAD, now=lambda: now_s[-1])  # type: ignore[arg-type]  # a fake


async def test_depth_is_of_the_last_look_and_age_of_now(server: Server) -> None:
    """A scrape between two looks sees the oldest grow older."""
    clock = [60.0]
    watch = watch_at(server, clock)
    server.answer = holding(3, "1970-01-01T00:00:20.123456789Z")
    await watch.look()
    assert (watch.waiting(), round(watch.oldest_s(), 2)) == (3, 39.88)
    clock.append(70.0)
    assert round(watch.oldest_s(), 2) == 49.88
    assert server.asked == ["$JS.API.STREAM.INFO.DEAD"]


async def test_an_empty_stream_has_no_oldest(server: Server) -> None:
    """The server gives the year one for it."""
    watch = watch_at(server, [60.0])
    server.answer = holding(0, "0001-01-01T00:00:00Z")
    await watch.look()
    assert (watch.waiting(), watch.oldest_s()) == (0, 0.0)


async def test_what_was_seen_is_forgotten_when_nobody_answers(server: Server) -> None:
    """A number that nobody can confirm is no number; the next look sees it again."""
    watch = watch_at(server, [60.0])
    assert (watch.waiting(), watch.oldest_s()) == (0, 0.0)
    found = holding(3, "1970-01-01T00:00:20Z")
    server.answer = found
    await watch.look()
    server.answer = None
    await watch.look()
    assert (watch.waiting(), watch.oldest_s()) == (0, 0.0)
    server.answer = {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}
    await watch.look()
    assert (watch.waiting(), watch.oldest_s()) == (0, 0.0)
    server.answer = found
    await watch.look()
    assert (watch.waiting(), watch.oldest_s()) == (3, 40.0)


async def test_a_clock_that_is_behind_the_servers_makes_nothing_younger_than_now(server: Server) -> None:
    """Ages are not negative."""
    watch = watch_at(server, [10.0])
    server.answer = holding(1, "1970-01-01T00:00:20Z")
    await watch.look()
    assert watch.oldest_s() == 0.0
