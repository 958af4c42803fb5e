"""What was removed from the store is in none of its files once they are rewritten."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import ConfigurationError, MemoryUnavailable
from tasklore.memory.compaction import rewrite
from tasklore.runtime.servers.embedded import ValkeyServer

SECRET = b"likes omelettes"
OTHER = b"likes pasta"
#: Too much to be stored in one piece with its neighbours, and nothing that a snapshot could compress.
REST = random.Random(1).randbytes(1000)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ValkeyServer]:
    running = ValkeyServer(tmp_path / "valkey")
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def client(server: ValkeyServer) -> AsyncIterator[Redis]:
    async with Redis.from_url(server.url, socket_timeout=30) as opened:
        yield opened


def files_with(server: ValkeyServer, secret: bytes) -> list[str]:
    return [
        file.name
        for file in server.data_dir.rglob("*")
        if file.is_file() and secret in file.read_bytes()
    ]


async def said(client: Redis, count: int = 20) -> None:
    """Store a secret in a value and in a field, and what somebody else said beside it."""
    await client.set("secret", SECRET + REST)
    await client.hset(
        "others", mapping={"secret": SECRET + REST, "other": OTHER + REST}
    )
    for number in range(count):
        await client.set(f"filler{number}", REST)


async def forgotten(client: Redis) -> None:
    await client.unlink("secret")
    await client.hdel("others", "secret")


async def test_removed_values_are_in_no_file(
    server: ValkeyServer, client: Redis
) -> None:
    await said(client)
    await rewrite(client)
    await forgotten(client)
    assert sorted(name.partition(".")[0] for name in files_with(server, SECRET)) == [
        "appendonly",
        "dump",
    ]
    await rewrite(client)
    assert files_with(server, SECRET) == []
    assert len(files_with(server, OTHER)) == 2
    assert await client.hget("others", "other") == OTHER + REST


async def test_a_restart_after_a_rewrite_brings_nothing_back(
    server: ValkeyServer, client: Redis
) -> None:
    await said(client)
    await forgotten(client)
    assert files_with(server, SECRET) != []
    await rewrite(client)
    server.kill()
    await server.start()
    async with Redis.from_url(server.url) as again:
        assert await again.exists("secret") == 0
        assert await again.hgetall("others") == {b"other": OTHER + REST}
    assert files_with(server, SECRET) == []


@pytest.mark.parametrize("earlier", ["BGREWRITEAOF", "BGSAVE"])
async def test_a_rewrite_that_began_before_the_removal_is_followed_by_another(
    server: ValkeyServer, client: Redis, earlier: str
) -> None:
    await said(client, 200)
    # Microseconds for each value: the earlier one is still at work when the secret is removed.
    await client.config_set("rdb-key-save-delay", 3000)
    await client.execute_command(earlier)
    await forgotten(client)
    await client.config_set("rdb-key-save-delay", 0)
    await rewrite(client)
    assert files_with(server, SECRET) == []


class Rival(Redis):
    """Has somebody else rewrite the append-only file just before the first snapshot."""

    rivals = 1

    async def bgsave(self, schedule: bool = True, **options: object) -> object:
        if self.rivals:
            self.rivals -= 1
            await self.bgrewriteaof()
        return await super().bgsave(schedule, **options)


async def test_a_rewrite_that_the_server_refuses_is_tried_again(
    server: ValkeyServer, client: Redis
) -> None:
    await said(client, 200)
    await rewrite(client)
    await forgotten(client)
    await client.config_set("rdb-key-save-delay", 1000)
    async with Rival.from_url(server.url) as rival:
        await rewrite(rival)
        assert rival.rivals == 0
    assert files_with(server, SECRET) == []


async def test_concurrent_rewrites_each_return_when_their_own_removal_is_off_the_disk(
    server: ValkeyServer, client: Redis
) -> None:
    await said(client)

    async def forget_and_rewrite(number: int) -> None:
        name = b"person%d " % number
        await client.set(name, name + REST)
        await client.unlink(name)
        await rewrite(client)
        assert files_with(server, name + REST) == []

    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(forget_and_rewrite(number))


async def test_without_an_append_only_file_the_snapshot_is_rewritten(
    server: ValkeyServer, client: Redis
) -> None:
    await client.config_set("appendonly", "no")
    await said(client)
    await rewrite(client)
    await forgotten(client)
    assert "dump.rdb" in files_with(server, SECRET)
    await rewrite(client)
    assert "dump.rdb" not in files_with(server, SECRET)


async def test_a_failed_snapshot_is_an_error(
    server: ValkeyServer, client: Redis
) -> None:
    (server.data_dir / "dump.rdb").mkdir()
    with pytest.raises(MemoryUnavailable, match="rdb_last_bgsave_status"):
        await rewrite(client)


async def test_a_working_or_frozen_server_is_an_error_after_the_deadline(
    server: ValkeyServer, client: Redis
) -> None:
    await said(client, 500)
    await client.config_set("rdb-key-save-delay", 20_000)
    with pytest.raises(MemoryUnavailable, match=r"within 0\.1 s"):
        await rewrite(client, 0.1)
    server.pause()
    try:
        with pytest.raises(MemoryUnavailable, match=r"within 0\.1 s"):
            await rewrite(client, 0.1)
    finally:
        server.resume()


async def test_a_server_that_forbids_rewriting_is_an_error_for_the_operator(
    server: ValkeyServer, client: Redis
) -> None:
    await client.execute_command(
        "ACL",
        "SETUSER",
        "guest",
        "on",
        "nopass",
        "~*",
        "+@all",
        "-bgrewriteaof",
        "-bgsave",
    )
    async with Redis.from_url(server.url, username="guest", password="any") as guest:
        with pytest.raises(ConfigurationError, match="the administrator of the server"):
            await rewrite(guest)
