"""The fast path of a connection, which rests on private parts of nats-py, against a real server."""

import asyncio
from collections.abc import AsyncIterator

import nats
import pytest

from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Arrival, Link, read_headers
from tasklore.runtime.servers.embedded import EmbeddedServers

PATIENCE_S = 60.0


class Heard:
    """What a sink was given, and a way to wait for it."""

    def __init__(self) -> None:
        self.arrivals: asyncio.Queue[Arrival] = asyncio.Queue()

    def __call__(self, arrival: Arrival) -> None:
        self.arrivals.put_nowait(arrival)

    async def next(self) -> Arrival:
        async with asyncio.timeout(PATIENCE_S):
            return await self.arrivals.get()


@pytest.fixture
async def link(servers: EmbeddedServers) -> AsyncIterator[Link]:
    async with connected(servers.nats_url, "test-link") as client:
        yield Link(client)


async def test_a_message_arrives_with_subject_reply_headers_and_body(
    link: Link,
) -> None:
    heard = Heard()
    await link.listen("link.one.*", heard)

    link.send("link.one.x", b"body", "answers.y", "Name: value\r\nOther: more\r\n")

    arrival = await heard.next()
    assert (arrival.subject, arrival.reply, arrival.body) == (
        "link.one.x",
        "answers.y",
        b"body",
    )
    assert read_headers(arrival.headers) == {"Name": "value", "Other": "more"}


async def test_bodies_of_every_size_and_content_come_through_whole_and_in_order(
    link: Link,
) -> None:
    heard = Heard()
    await link.listen("link.sizes", heard)
    odd = [b"", b"\r\n", b"MSG a 1 2\r\nPING\r\n", b"x" * 900_000, b"\x00\xff" * 5000]
    bodies = [*odd, *(b"%d" % number for number in range(2000))]
    for body in bodies:
        link.send("link.sizes", body)
    # The answer to a ping is a protocol line between messages.
    await link.client.flush(timeout=int(PATIENCE_S))
    assert [(await heard.next()).body for _ in bodies] == bodies


async def test_requests_and_subscriptions_of_the_library_work_beside_the_fast_path(
    link: Link,
) -> None:
    heard = Heard()
    await link.listen("link.fast", heard)

    async def answer(message: nats.aio.msg.Msg) -> None:
        link.send("link.fast", b"meanwhile")
        await message.respond(b"answer")

    await link.client.subscribe("link.slow", cb=answer)

    reply = await link.client.request("link.slow", b"question", timeout=PATIENCE_S)

    assert reply.data == b"answer"
    assert (await heard.next()).body == b"meanwhile"


@pytest.mark.parametrize(
    "head",
    [
        b"NATS/1.0 503\r\nKV-Operation: \xff\r\n\r\n",
        b"NATS/1.0\r\n\xff\xfe: 1\r\n\r\n",
        b"x",
        b"NATS/1.0",
        b"NATS/1.0 503\xe4",
    ],
)
async def test_after_undecodable_headers_the_next_message_arrives(
    link: Link, servers: EmbeddedServers, head: bytes
) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def hear(message: nats.aio.msg.Msg) -> None:
        heard.put_nowait(message.data)

    await link.client.subscribe("link.odd", cb=hear)
    await link.client.flush()
    reader, writer = await asyncio.open_connection("127.0.0.1", servers.nats.port)
    async with asyncio.timeout(PATIENCE_S):
        # The server loses what it reads together with CONNECT.
        writer.write(b'CONNECT {"verbose":false,"headers":true}\r\nPING\r\n')
        await reader.readuntil(b"PONG\r\n")
        writer.write(
            b"HPUB link.odd %d %d\r\n%bodd\r\n" % (len(head), len(head) + 3, head)
        )
        writer.write(b"PUB link.odd 4\r\nnext\r\nPING\r\n")
        await reader.readuntil(b"PONG\r\n")
        while await heard.get() != b"next":
            pass
    writer.close()


async def test_an_empty_answer_without_responders_is_a_status(link: Link) -> None:
    heard = Heard()
    await link.listen("link.answers.*", heard)

    link.send("$JS.API.CONSUMER.MSG.NEXT.NOTHING.nobody", b"{}", "link.answers.1")

    assert (read_headers((await heard.next()).headers) or {})["Status"] == "503"


async def test_after_an_outage_sent_messages_are_delivered_to_the_same_sinks(
    own_servers: EmbeddedServers,
) -> None:
    async with connected(own_servers.nats_url, "test-link") as client:
        link = Link(client)
        heard = Heard()
        await link.listen("link.outage", heard)
        own_servers.nats.kill()
        async with asyncio.timeout(PATIENCE_S):
            while client.is_connected:  # noqa: ASYNC110 - the library has no event for it
                await asyncio.sleep(0.01)
        link.send("link.outage", b"sent while away")
        await own_servers.nats.start()

        assert (await heard.next()).body == b"sent while away"
