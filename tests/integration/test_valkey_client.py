"""The Redis client on a real server that is frozen, killed, restarted, crowded or refuses us."""

import asyncio
import socket

import pytest
import uvloop
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.claims import free_port
from tasklore.runtime.servers.embedded import EmbeddedServers

PATIENCE_S = 60.0
SET = "return redis.call('SET', KEYS[1], ARGV[1])"


async def test_commands_scripts_and_pipelines_answer_in_bytes(
    servers: EmbeddedServers,
) -> None:
    async with valkey.connect(servers.redis_url, name="worker-7") as client:
        await client.check()
        await client.set("valkey-client:a", "1")
        sha = await client.script_load(SET)
        pipeline = client.pipeline(transaction=False)
        for number in range(40):
            pipeline.evalsha(sha, 1, f"valkey-client:{number}", str(number))
        assert await pipeline.execute() == [b"OK"] * 40
        assert await client.mget(
            ["valkey-client:a", "valkey-client:39", "valkey-client:none"]
        ) == [b"1", b"39", None]
        assert valkey.client_name("worker-7") in [
            one["name"] for one in await client.client_list()
        ]


async def test_a_reconnection_is_reported_and_the_first_connection_is_not(
    servers: EmbeddedServers,
) -> None:
    seen: list[None] = []
    async with (
        valkey.connect(
            servers.redis_url, name="lost", reconnected=lambda: seen.append(None)
        ) as client,
        valkey.connect(servers.redis_url) as other,
    ):
        await client.ping()
        assert seen == []
        [number] = [
            one["id"]
            for one in await other.client_list()
            if one["name"] == valkey.client_name("lost")
        ]
        await other.client_kill_filter(_id=number)
        await client.ping()
        assert seen == [None]


async def test_more_callers_than_connections_wait_for_one(
    servers: EmbeddedServers,
) -> None:
    async with valkey.connect(
        servers.redis_url, name="crowd", max_connections=3, deadline_s=PATIENCE_S
    ) as client:
        await client.set("valkey-client:crowd", "1")
        assert set(
            await asyncio.gather(
                *(client.get("valkey-client:crowd") for _ in range(300))
            )
        ) == {b"1"}
        assert [one["name"] for one in await client.client_list()].count(
            valkey.client_name("crowd")
        ) <= 3


async def test_batches_leave_connections_to_other_commands(
    servers: EmbeddedServers,
) -> None:
    async with valkey.connect(
        servers.redis_url, name="batches", max_connections=3, deadline_s=PATIENCE_S
    ) as client:
        batches = CommandBatch(client, PATIENCE_S)
        for _ in range(20):
            await batches.run([("SET", "valkey-client:batch", "1")])
        assert [one["name"] for one in await client.client_list()].count(
            valkey.client_name("batches")
        ) == 2
        await asyncio.gather(
            *(batches.run([("GET", "valkey-client:batch")]) for _ in range(100))
        )
        assert {await client.get("valkey-client:batch") for _ in range(10)} == {b"1"}
        assert [one["name"] for one in await client.client_list()].count(
            valkey.client_name("batches")
        ) <= 4


async def test_a_batch_reconnects_connections_closed_meanwhile(
    servers: EmbeddedServers,
) -> None:
    async with (
        valkey.connect(servers.redis_url, name="kept", deadline_s=PATIENCE_S) as client,
        valkey.connect(servers.redis_url) as other,
    ):
        batches = CommandBatch(client, PATIENCE_S)
        await asyncio.gather(
            *(batches.run([("SET", "valkey-client:kept", "1")]) for _ in range(40))
        )
        for one in await other.client_list():
            if one["name"] == valkey.client_name("kept"):
                await other.client_kill_filter(_id=one["id"])
        found = await asyncio.gather(
            *(batches.run([("GET", "valkey-client:kept")]) for _ in range(40))
        )
        assert found == [[b"1"]] * 40


async def test_on_a_frozen_server_every_kind_of_call_ends_at_its_deadline(
    own_servers: EmbeddedServers,
) -> None:
    async with valkey.connect(own_servers.redis_url, deadline_s=PATIENCE_S) as client:
        single = client.client()
        await single.set("a", "1")
        own_servers.valkey.pause()
        client.deadline_s = single.deadline_s = 0.2
        async with asyncio.timeout(PATIENCE_S):
            pipeline = client.pipeline()
            pipeline.get("a")
            for call in (
                client.get("a"),
                pipeline.execute(),
                client.pipeline().watch("a"),
                single.get("a"),
            ):
                with pytest.raises(RedisTimeoutError):
                    await call
        own_servers.valkey.resume()
        client.deadline_s = single.deadline_s = PATIENCE_S
        async with asyncio.timeout(PATIENCE_S):
            while not await is_answering(client):
                pass
            assert await client.get("a") == b"1"
            assert await single.get("a") == b"1"
        await single.aclose()


async def test_calls_cut_off_in_a_crowd_give_their_connections_back(
    own_servers: EmbeddedServers,
) -> None:
    async with valkey.connect(
        own_servers.redis_url, max_connections=4, deadline_s=PATIENCE_S
    ) as client:
        for number in range(50):
            await client.set(f"n{number}", str(number))
        own_servers.valkey.pause()
        client.deadline_s = 0.1
        calls = (client.get(f"n{number % 50}") for number in range(300))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(outcome, RedisTimeoutError) for outcome in outcomes)
        own_servers.valkey.resume()
        client.deadline_s = PATIENCE_S
        own_servers.valkey.pause()
        with pytest.raises(TimeoutError):  # the caller's own, shorter deadline
            async with asyncio.timeout(0.05):
                await client.get("n1")
        own_servers.valkey.resume()
        found = await asyncio.gather(
            *(client.get(f"n{number}") for number in range(50))
        )
        assert found == [str(number).encode() for number in range(50)]
        assert (
            await asyncio.gather(
                *(client.blpop(["empty"], timeout=0.1) for _ in range(4))
            )
            == [None] * 4
        )


async def test_the_next_call_finds_a_restarted_server(
    own_servers: EmbeddedServers,
) -> None:
    async with valkey.connect(own_servers.redis_url, deadline_s=PATIENCE_S) as client:
        await client.set("a", "1")
        own_servers.valkey.kill()
        with pytest.raises(RedisConnectionError):
            await client.get("a")
        await own_servers.valkey.start()
        await client.set("a", "2")
        assert await client.get("a") == b"2"


async def test_a_transport_that_was_closed_is_a_lost_connection_also_to_uvloop(
    servers: EmbeddedServers,
) -> None:
    async def lose() -> bytes | None:
        async with valkey.connect(servers.redis_url) as client:
            await Ledger(client).finish("lost-transport", 1, "completed", b"done")
            for connection in client.connection_pool._available_connections:
                connection._writer.transport.close()
            entry = await Ledger(client).read("lost-transport")
            connection = await client.connection_pool.get_connection()
            connection._writer.transport.abort()
            await asyncio.sleep(0.01)  # uvloop closes the handle in its next turn
            with pytest.raises(RedisConnectionError, match="closed"):
                await connection.send_packed_command(b"PING")
            return entry.generations[1].report if entry is not None else None

    assert await asyncio.to_thread(uvloop.run, lose()) == b"done"


async def test_an_unreachable_server_is_named_with_the_cure_and_without_the_password() -> (
    None
):
    """Whether nothing listens, or it accepts and never answers."""
    async with valkey.connect(f"redis://me:hush@127.0.0.1:{free_port()}/0") as client:
        with pytest.raises(
            Unreachable, match=r"me:\*\*\*@127.*TASKLORE_REDIS_URL"
        ) as caught:
            await client.check()
    assert "hush" not in str(caught.value)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        async with valkey.connect(
            f"redis://127.0.0.1:{deaf.getsockname()[1]}", deadline_s=PATIENCE_S
        ) as client:
            async with asyncio.timeout(PATIENCE_S / 2):
                with pytest.raises(Unreachable):
                    await client.check(deadline_s=0.1)


async def test_a_wrong_password_is_an_error_of_its_own(
    own_servers: EmbeddedServers,
) -> None:
    async with valkey.connect(own_servers.redis_url) as admin:
        await admin.config_set("requirepass", "right")
        url = own_servers.redis_url.replace("://", "://:wrong@")
        async with valkey.connect(url) as client:
            with pytest.raises(Unreachable, match="refuses the user or password"):
                await client.check()
        async with valkey.connect(
            own_servers.redis_url.replace("://", "://:right@")
        ) as client:
            await client.check()


async def test_a_malformed_address_is_refused_with_an_example_and_without_its_password() -> (
    None
):
    for url in ("http://:hush@h", "localhost:6379", "redis://h:port/0", ""):
        with pytest.raises(
            ConfigurationError, match=r"TASKLORE_REDIS_URL.*redis://"
        ) as caught:
            async with valkey.connect(url):
                pass
        assert "hush" not in str(caught.value)


async def test_leaving_closes_every_connection(servers: EmbeddedServers) -> None:
    async with valkey.connect(
        servers.redis_url, name="leaver", deadline_s=PATIENCE_S
    ) as client:
        await asyncio.gather(*(client.ping() for _ in range(10)))
    async with valkey.connect(servers.redis_url) as other, asyncio.timeout(PATIENCE_S):
        while valkey.client_name("leaver") in [
            one["name"] for one in await other.client_list()
        ]:
            pass


async def is_answering(client: valkey.Valkey) -> bool:
    """Return whether the server answers in time."""
    try:
        return bool(await client.ping())
    except RedisTimeoutError:
        return False
