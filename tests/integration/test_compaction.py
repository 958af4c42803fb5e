"""What was removed from the store is in none of its files once these are written anew."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from contracts.errors import ConfigurationError, MemoryUnavailable
from memory.compaction import rewrite
from runtime.servers.embedded import ValkeyServer

SECRET, OTHER = b"likes omelettes", b"likes pasta"
#: Too much to be stored in one piece with its neighbours, and nothing that a snapshot could compress.
REST = random.Random(1).randbytes(1000)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ValkeyServer]:
    """Run a server whose files nobody else writes."""
    running = ValkeyServer(tmp_path / "valkey")
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def client(server: ValkeyServer) -> AsyncIterator[Redis]:
    """Open a client of *server*."""
    async with Redis.from_url(server.url, socket_timeout=30) as opened:
        yield opened


def files_with(server: ValkeyServer, secret: bytes) -> list[str]:
    """Return which files of *server* hold *secret*."""
    return [file.name for file in server.data_dir.rglob("*") if file.is_file() and secret in file.read_bytes()]


async def said(client: Redis, count: int = 20) -> None:
    """Store a secret in a value and in a field, and what somebody else said beside it."""
    await client.set("secret", SECRET + REST)
    await client.hset("others", mapping={"secret": SECRET + REST, "other": OTHER + REST})
    for number in range(count):
        await client.set(f"filler{number}", REST)


async def forgotten(client: Redis) -> None:
    """Remove the secrets."""
    await client.unlink("secret")
    await client.hdel("others", "secret")


async def test_what_was_removed_is_in_no_file(server: ValkeyServer, client: Redis) -> None:
    """Although the append-only file and the snapshot had it; what others said is still there."""
    await said(client)
    await rewrite(client)
    await forgotten(client)
    assert sorted(name.partition(".")[0] for name in files_with(server, SECRET)) == ["appendonly", "dump"]
    await rewrite(client)
    assert files_with(server, SECRET) == []
    assert len(files_with(server, OTHER)) == 2
    assert await client.hget("others", "other") == OTHER + REST


async def test_what_is_only_in_the_newest_commands_goes_too(server: ValkeyServer, client: Redis) -> None:
    """Of a server that has never written its files anew."""
    await said(client)
    await forgotten(client)
    assert files_with(server, SECRET) != []
    await rewrite(client)
    assert files_with(server, SECRET) == []


async def test_a_restart_brings_nothing_back(server: ValkeyServer, client: Redis) -> None:
    """And loses nothing of the others."""
    await said(client)
    await forgotten(client)
    await rewrite(client)
    server.kill()
    await server.start()
    async with Redis.from_url(server.url) as again:
        assert await again.exists("secret") == 0
        assert await again.hgetall("others") == {b"other": OTHER + REST}
    assert files_with(server, SECRET) == []


@pytest.mark.parametrize("earlier", ["BGREWRITEAOF", "BGSAVE"])
async def test_one_that_began_before_does_not_count(server: ValkeyServer, client: Redis, earlier: str) -> None:
    """It writes down what was removed meanwhile; another follows it."""
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
        """Start the other one first."""
        if self.rivals:
            self.rivals -= 1
            await self.bgrewriteaof()
        return await super().bgsave(schedule, **options)


async def test_who_is_refused_asks_again(server: ValkeyServer, client: Redis) -> None:
    """The server does one of both at a time, and somebody else may have begun the other."""
    await said(client, 200)
    await rewrite(client)
    await forgotten(client)
    await client.config_set("rdb-key-save-delay", 1000)
    async with Rival.from_url(server.url) as rival:
        await rewrite(rival)
        assert rival.rivals == 0
    assert files_with(server, SECRET) == []


async def test_several_at_once_do_not_disturb_one_another(server: ValkeyServer, client: Redis) -> None:
    """Each of them returns when its own removal is off the disk."""
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


async def test_without_an_append_only_file_there_is_still_the_snapshot(server: ValkeyServer, client: Redis) -> None:
    """A server may have only that."""
    await client.config_set("appendonly", "no")
    await said(client)
    await rewrite(client)
    await forgotten(client)
    assert "dump.rdb" in files_with(server, SECRET)
    await rewrite(client)
    assert "dump.rdb" not in files_with(server, SECRET)


async def test_a_server_that_fails_is_not_taken_for_done(server: ValkeyServer, client: Redis) -> None:
    """Its word on the last snapshot counts."""
    (server.data_dir / "dump.rdb").mkdir()
    with pytest.raises(MemoryUnavailable, match="rdb_last_bgsave_status"):
        await rewrite(client)


async def test_a_server_that_takes_too_long_is_told(server: ValkeyServer, client: Redis) -> None:
    """Working or frozen."""
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


async def test_a_server_that_does_not_allow_it_is_told(server: ValkeyServer, client: Redis) -> None:
    """Hosted ones forbid these commands; whoever runs them has to act."""
    await client.execute_command("ACL", "SETUSER", "guest", "on", "nopass", "~*", "+@all", "-bgrewriteaof", "-bgsave")
    async with Redis.from_url(server.url, username="guest", password="any") as guest:
        with pytest.raises(ConfigurationError, match="whoever runs the server"):
            await rewrite(guest)
