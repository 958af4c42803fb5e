"""Small batches of a pool over one connection: many at a time, each with its own replies whatever others do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory import shared_connection
from tasklore.memory.command_batch import CommandBatch
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers

PATIENCE_S = 60.0
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def count_connections(other: valkey.Valkey, name: str) -> int:
    """Return how many connections of that name the server has."""
    return [one["name"] for one in await other.client_list()].count(
        valkey.client_name(name)
    )


def numbered(number: int) -> list[tuple[str | int, ...]]:
    """Return a batch whose replies say whose it is."""
    return [("ECHO", f"first of {number}"), ("ECHO", f"second of {number}")]


def replies(number: int) -> list[bytes]:
    """Return what the server says to the batch of that number."""
    return [f"first of {number}".encode(), f"second of {number}".encode()]


async def test_small_batches_share_a_connection_and_keep_their_replies(
    servers: EmbeddedServers,
) -> None:
    async with (
        valkey.connect(
            servers.redis_url, name="shared", deadline_s=PATIENCE_S
        ) as client,
        valkey.connect(servers.redis_url) as other,
    ):
        batch = CommandBatch(client, PATIENCE_S)
        found = await asyncio.gather(
            *(batch.run(numbered(number)) for number in range(500))
        )
        assert found == [replies(number) for number in range(500)]
        assert await count_connections(other, "shared") == 1


async def test_large_batches_and_large_replies_have_connections_of_their_own(
    servers: EmbeddedServers,
) -> None:
    async with (
        valkey.connect(
            servers.redis_url, name="large", deadline_s=PATIENCE_S
        ) as client,
        valkey.connect(servers.redis_url) as other,
    ):
        small = CommandBatch(client, PATIENCE_S)
        await small.run(numbered(1))
        body = "x" * 100_000
        assert await small.run([("ECHO", body)]) == [body.encode()]
        assert await count_connections(other, "large") == 2
        large = CommandBatch(client, PATIENCE_S, has_large_replies=True)
        both = await asyncio.gather(large.run(numbered(2)), large.run(numbered(3)))
        assert list(both) == [replies(2), replies(3)]
        assert await count_connections(other, "large") == 3


async def test_who_leaves_takes_no_reply_of_another(
    own_servers: EmbeddedServers,
) -> None:
    """Their replies come all the same, and are nobody's."""
    async with valkey.connect(own_servers.redis_url, deadline_s=PATIENCE_S) as client:
        batch = CommandBatch(client, PATIENCE_S)
        await batch.run(numbered(0))
        own_servers.valkey.pause()
        calls = [
            asyncio.create_task(batch.run(numbered(number))) for number in range(60)
        ]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        hasty = CommandBatch(client, 0.02)
        late = await asyncio.gather(
            *(hasty.run(numbered(number)) for number in range(100, 110)),
            return_exceptions=True,
        )
        assert {type(outcome) for outcome in late} == {MemoryUnavailable}
        own_servers.valkey.resume()
        found = await asyncio.gather(*calls[1::2])
        assert found == [replies(number) for number in range(1, 60, 2)]


async def test_a_refused_command_is_the_error_of_its_batch_alone(
    servers: EmbeddedServers,
) -> None:
    async with valkey.connect(servers.redis_url, deadline_s=PATIENCE_S) as client:
        batch = CommandBatch(client, PATIENCE_S)
        await batch.run([("SET", "shared-connection:text", "words")])
        outcomes = await asyncio.gather(
            batch.run(numbered(1)),
            batch.run([("ECHO", "before"), ("INCR", "shared-connection:text")]),
            batch.run(numbered(2)),
            return_exceptions=True,
        )
        assert outcomes[0] == replies(1)
        assert outcomes[2] == replies(2)
        assert isinstance(outcomes[1], MemoryUnavailable)
        assert "not an integer" in str(outcomes[1])


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
async def test_batches_under_way_are_sent_again_when_the_connection_breaks(
    servers: EmbeddedServers, run: Callable[[Awaitable[None]], None]
) -> None:
    async def break_often() -> None:
        async with (
            valkey.connect(
                servers.redis_url, name="broken", deadline_s=PATIENCE_S
            ) as client,
            valkey.connect(servers.redis_url) as other,
        ):
            batch = CommandBatch(client, PATIENCE_S)
            done = asyncio.Event()

            async def keep_breaking() -> None:
                while not done.is_set():
                    for one in await other.client_list():
                        if one["name"] == valkey.client_name("broken"):
                            await other.client_kill_filter(_id=one["id"])
                    await asyncio.sleep(0.01)

            breaking = asyncio.create_task(keep_breaking())
            for start in range(0, 2000, 50):
                found = await asyncio.gather(
                    *(batch.run(numbered(start + number)) for number in range(50))
                )
                assert found == [replies(start + number) for number in range(50)]
            done.set()
            await breaking
            assert await count_connections(other, "broken") <= 1

    await asyncio.to_thread(run, break_often())


async def test_a_server_that_was_restarted_is_found_within_the_deadline(
    own_servers: EmbeddedServers,
) -> None:
    async with valkey.connect(own_servers.redis_url, deadline_s=PATIENCE_S) as client:
        batch = CommandBatch(client, PATIENCE_S)
        await batch.run(numbered(0))
        own_servers.valkey.kill()
        calls = asyncio.gather(*(batch.run(numbered(number)) for number in range(40)))
        await own_servers.valkey.start()
        assert await calls == [replies(number) for number in range(40)]


async def test_a_silent_connection_is_given_up_and_another_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As behind a firewall that forgot it: the first one never answers, and nothing says so."""
    monkeypatch.setattr(shared_connection, "SILENT_S", 0.1)
    opened = 0

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal opened
        opened += 1
        is_deaf = opened == 1
        while b"ECHO" in await read_command(reader, writer):
            if not is_deaf:
                writer.write(b"$5\r\nhello\r\n")

    async with serve(answer) as url, valkey.connect(url) as client:
        hasty = CommandBatch(client, 0.15)
        with pytest.raises(MemoryUnavailable):
            await hasty.run([("ECHO", "hello")])
        patient = CommandBatch(client, PATIENCE_S)
        assert await patient.run([("ECHO", "hello")]) == [b"hello"]
    assert opened == 2


async def test_a_connection_that_was_given_up_with_much_unsent_is_opened_again(
    own_servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small batches go over connections of their own while commands wait in this process, and share one afterwards."""
    monkeypatch.setattr(shared_connection, "SILENT_S", 0.1)
    async with (
        valkey.connect(
            own_servers.redis_url, name="stalled", deadline_s=PATIENCE_S
        ) as client,
        valkey.connect(own_servers.redis_url) as other,
    ):
        hasty = CommandBatch(client, 0.2)
        await hasty.run(numbered(0))
        own_servers.valkey.pause()
        body = "x" * 15_000
        late = await asyncio.gather(
            *(hasty.run([("ECHO", body)]) for _ in range(2_000)), return_exceptions=True
        )
        assert {type(outcome) for outcome in late} == {MemoryUnavailable}
        own_servers.valkey.resume()
        patient = CommandBatch(client, PATIENCE_S)
        await patient.run(numbered(1))
        opened = await count_connections(other, "stalled")
        found = await asyncio.gather(
            *(patient.run(numbered(number)) for number in range(100))
        )
        assert found == [replies(number) for number in range(100)]
        assert await count_connections(other, "stalled") == opened


@pytest.mark.parametrize(
    "said",
    [b"what is this\r\n", b"$5\r\nhello\r\n$5\r\nhello\r\n"],
    ids=["no reply", "one reply too many"],
)
async def test_what_the_server_should_not_say_costs_one_connection(said: bytes) -> None:
    """A reply too many would be taken for that of the next batch."""
    opened = 0

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal opened
        opened += 1
        is_odd = opened == 1
        while command := await read_command(reader, writer):
            text = command.split(b"\r\n")[4]
            writer.write(said if is_odd else b"$%d\r\n%b\r\n" % (len(text), text))

    async with serve(answer) as url, valkey.connect(url) as client:
        batch = CommandBatch(client, PATIENCE_S)
        await batch.run([("ECHO", "hello")])
        assert await batch.run([("ECHO", "another")]) == [b"another"]
    assert opened == 2


@asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[str]:
    """Listen as a server that introduces itself properly, then behaves as *answer* does; give its address."""

    async def serve_one(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    async with server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def read_command(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bytes:
    """Return the next command that is none of a client's introduction, which is answered; empty at the end."""
    while received := await reader.read(65536):
        introductions = received.count(b"CLIENT") + received.count(b"SELECT")
        if not introductions:
            return received
        writer.write(b"+OK\r\n" * introductions)
    return b""
