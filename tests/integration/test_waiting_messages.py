"""Messages of WAITING, in order and by sequence, beside ones that were erased or are large."""

from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.direct import open_direct_reads
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.admission.waiting_messages import HELD_S, WaitingMessages


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def nats_client(own_servers: EmbeddedServers) -> AsyncIterator[Client]:
    """Connect to a server of its own."""
    async with connected(own_servers.nats_url, "test") as client:
        yield client


@pytest.fixture
async def messages(nats_client: Client, clock: Clock) -> AsyncIterator[WaitingMessages]:
    """Read a stream that is there and empty."""
    await declare_streams(nats_client, StreamSizes())
    link = Link(nats_client)
    async with open_direct_reads(link, subjects.WAITING) as reads:
        yield WaitingMessages(link, reads, clock)


async def put(client: Client, number: int, body: bytes = b"x") -> None:
    """Store so many messages of one tenant."""
    for one in range(number):
        await client.jetstream().publish(
            subjects.waiting("A", "normal", "t", "work"),
            body,
            headers={"One": str(one)},
        )


async def read(messages: WaitingMessages) -> list[int]:
    """Return the sequences of what is new."""
    return [message.sequence async for message in messages.read_new(16)]


async def erase(client: Client, sequence: int) -> None:
    """Erase one message as forgetting does."""
    await ask_jetstream(
        client, f"STREAM.MSG.DELETE.{subjects.WAITING}", {"seq": sequence}
    )


async def test_any_messages_are_fetched_in_the_order_asked_for(
    nats_client: Client, messages: WaitingMessages, clock: Clock
) -> None:
    """Held ones, ones that are no longer held, far apart and side by side, but none that was erased."""
    await put(nats_client, 600)
    assert await read(messages) == list(range(1, 601))
    assert await read(messages) == []
    await erase(nats_client, 7)
    clock.now += HELD_S * 2
    await put(nats_client, 10)
    assert await read(messages) == list(range(601, 611))
    wanted = [610, 3, 7, 8, 600, 1, 300, 601, 2]
    found = await messages.fetch(wanted)
    assert [message.sequence for message in found] == [
        one for one in wanted if one != 7
    ]
    assert {message.headers["One"] for message in found[:2]} == {"9", "2"}
    assert await messages.fetch([7]) == []


async def test_what_is_held_is_let_go_in_time(
    nats_client: Client, messages: WaitingMessages, clock: Clock
) -> None:
    """A message that was erased is not moved once that time is over."""
    await put(nats_client, 2)
    assert await read(messages) == [1, 2]
    await erase(nats_client, 1)
    await erase(nats_client, 2)
    assert [message.sequence for message in await messages.fetch([1])] == [1]
    clock.now += HELD_S * 2
    assert await messages.fetch([2]) == []


async def test_large_messages_come_in_several_pages(
    nats_client: Client, messages: WaitingMessages
) -> None:
    """More than is held at once, and more than one answer may have."""
    body = b"x" * 900_000
    await put(nats_client, 45, body)
    assert len(await read(messages)) == 45
    found = await messages.fetch(range(1, 46))
    assert [message.sequence for message in found] == list(range(1, 46))
    assert {message.body for message in found} == {body}


async def test_a_stream_that_was_made_anew_is_read_from_its_beginning(
    nats_client: Client, messages: WaitingMessages
) -> None:
    await messages.find_stream()
    await put(nats_client, 5)
    assert len(await read(messages)) == 5
    await ask_jetstream(nats_client, f"STREAM.DELETE.{subjects.WAITING}")
    await declare_streams(nats_client, StreamSizes())
    await put(nats_client, 2)
    assert await read(messages) == []
    await messages.find_stream()
    assert await read(messages) == [1, 2]
