"""The outbox on a real stream: stored once however often it is sent, through outages, or given up with the reason."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from contracts.errors import MessageTooLarge, NotAccepted
from contracts.subjects import MAX_BODY
from runtime.connection import connected
from runtime.embedded import EmbeddedServers
from runtime.jetstream import ask_jetstream
from runtime.link import Link
from runtime.outbox import Outbox, open_outbox

PATIENCE_S = 20.0


@dataclass
class Post:
    """An outbox, and the stream that takes its letters."""

    link: Link
    outbox: Outbox
    stream: str

    async def stored(self) -> int:
        """Return how many messages the stream holds."""
        return int((await ask_jetstream(self.link.client, f"STREAM.INFO.{self.stream}"))["state"]["messages"])

    async def make_stream(self, **more: Any) -> None:
        """Create the stream."""
        wanted = {"name": self.stream, "subjects": [f"{self.stream}.>"], "storage": "file"}
        await ask_jetstream(self.link.client, f"STREAM.CREATE.{self.stream}", wanted | more)


class Retries:
    """A meter that tells when a letter was sent again."""

    def __init__(self) -> None:
        self.seen = asyncio.Event()

    def count_publish_retry(self) -> None:
        """Note one."""
        self.seen.set()


@contextlib.asynccontextmanager
async def a_post(url: str, meter: Retries | None = None) -> AsyncIterator[Post]:
    """Open an outbox on a connection of its own."""
    name = f"O{uuid.uuid4().hex}"
    async with connected(url, name) as client:
        link = Link(client)
        async with open_outbox(link, meter) as outbox:
            yield Post(link, outbox, name)


@pytest.fixture
async def post(servers: EmbeddedServers) -> AsyncIterator[Post]:
    """An outbox on the shared server, and a stream of its own."""
    async with a_post(servers.nats_url) as post:
        await post.make_stream()
        yield post
        with contextlib.suppress(Exception):
            await ask_jetstream(post.link.client, f"STREAM.DELETE.{post.stream}")


class Answers:
    """What became of letters that were sent without waiting."""

    def __init__(self, count: int) -> None:
        self.problems: list[NotAccepted | None] = []
        self._count = count
        self._complete = asyncio.Event()

    def __call__(self, problem: NotAccepted | None) -> None:
        """Take one outcome."""
        self.problems.append(problem)
        if len(self.problems) == self._count:
            self._complete.set()

    async def complete(self) -> list[NotAccepted | None]:
        """Return every outcome, once all are there."""
        async with asyncio.timeout(PATIENCE_S):
            await self._complete.wait()
        return self.problems


async def test_a_thousand_letters_at_once_are_all_stored_and_told_of_once(post: Post) -> None:
    """Nothing waits for anything, and each outcome is told once."""
    answers = Answers(1000)
    for number in range(1000):
        post.outbox.send(f"{post.stream}.{number}", b"{}", f"letter-{number}", answers)
    assert await answers.complete() == [None] * 1000
    assert (await post.stored(), post.outbox.waiting) == (1000, 0)


async def test_one_message_id_is_one_message(post: Post) -> None:
    """Both senders are told that it is stored."""
    for _ in range(3):
        await post.outbox.put(f"{post.stream}.x", b"{}", "the-same")
    assert await post.stored() == 1


async def test_a_subject_that_takes_one_message_only_counts_as_stored(servers: EmbeddedServers) -> None:
    """Of two reports on one task the second is refused by the stream, which is what its sender wanted to know."""
    async with a_post(servers.nats_url) as post:
        await post.make_stream(max_msgs_per_subject=1, discard="new", discard_new_per_subject=True)
        await post.outbox.put(f"{post.stream}.x", b"first", "one")
        await post.outbox.put(f"{post.stream}.x", b"second", "two")
        assert await post.stored() == 1


async def test_headers_go_along(post: Post) -> None:
    """The message id and what the sender adds are on the stored message."""
    await post.outbox.put(f"{post.stream}.x", b"{}", "one", headers={"Tasklore-Generation": "2"})
    stored = await post.link.client.jetstream().get_last_msg(post.stream, f"{post.stream}.x")
    assert stored.headers == {"Nats-Msg-Id": "one", "Tasklore-Generation": "2"}


async def test_what_no_stream_takes_is_given_up_with_the_reason(post: Post) -> None:
    """The sender learns of it within its patience, and nothing waits any more."""
    with pytest.raises(NotAccepted, match="no stream takes this subject"):
        await post.outbox.put("nowhere.at.all", b"{}", "one", patience_s=0.5)
    assert post.outbox.waiting == 0


async def test_a_full_stream_is_a_reason_too(servers: EmbeddedServers) -> None:
    """The words of the server reach the sender."""
    async with a_post(servers.nats_url) as post:
        await post.make_stream(max_msgs=1, discard="new")
        await post.outbox.put(f"{post.stream}.x", b"{}", "one")
        with pytest.raises(NotAccepted, match="maximum messages exceeded"):
            await post.outbox.put(f"{post.stream}.y", b"{}", "two", patience_s=0.5)


async def test_a_letter_waits_for_a_stream_that_is_made_later(servers: EmbeddedServers) -> None:
    """What was refused is sent again until it is stored."""
    retries = Retries()
    async with a_post(servers.nats_url, retries) as post:
        waiting = asyncio.create_task(post.outbox.put(f"{post.stream}.x", b"{}", "one", patience_s=PATIENCE_S))
        async with asyncio.timeout(PATIENCE_S):
            await retries.seen.wait()
        await post.make_stream()
        await waiting
        assert await post.stored() == 1


async def test_a_body_that_is_too_large_is_refused_before_it_is_sent(post: Post) -> None:
    """The connection survives, and the largest body that is allowed is stored."""
    with pytest.raises(MessageTooLarge, match=str(MAX_BODY)):
        await post.outbox.put(f"{post.stream}.x", b"x" * (MAX_BODY + 1), "one")
    await post.outbox.put(f"{post.stream}.x", b"x" * MAX_BODY, "two")
    assert await post.stored() == 1


async def test_letters_sent_during_an_outage_are_stored_once_after_it(own_servers: EmbeddedServers) -> None:
    """Before, while and after the server is killed: three hundred letters, three hundred messages."""
    async with a_post(own_servers.nats_url) as post:
        await post.make_stream()
        answers = Answers(300)

        def send(numbers: range) -> None:
            for number in numbers:
                post.outbox.send(f"{post.stream}.{number}", b"{}", f"letter-{number}", answers)

        send(range(100))
        own_servers.nats.kill()
        send(range(100, 200))
        await asyncio.sleep(0)  # one turn of the loop: the connection has not noticed yet
        send(range(200, 300))
        await own_servers.nats.start()
        assert await answers.complete() == [None] * 300
        assert await post.stored() == 300


async def test_an_outbox_that_closes_waits_for_what_is_under_way(servers: EmbeddedServers) -> None:
    """A process that ends in good order leaves no letter behind."""
    async with connected(servers.nats_url, "reader") as client:
        async with a_post(servers.nats_url) as post:
            await post.make_stream()
            answers = Answers(50)
            for number in range(50):
                post.outbox.send(f"{post.stream}.{number}", b"{}", f"letter-{number}", answers)
        assert answers.problems == [None] * 50
        info = await ask_jetstream(client, f"STREAM.INFO.{post.stream}")
        assert info["state"]["messages"] == 50
