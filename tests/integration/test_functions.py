"""Server functions: who loads them, how long they stay, and that every call ends."""

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from tasklore.contracts.errors import Forbidden, MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.conversations import scripts as inbox_scripts
from tasklore.memory.documents.storage import scripts as document_scripts
from tasklore.memory.functions import LIBRARIES, load_functions
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import RunPermission
from tasklore.memory.long_term import scripts as long_term_scripts
from tasklore.memory.projects import scripts as project_scripts
from tasklore.memory.records import scripts as record_scripts
from tasklore.runtime.servers.embedded import ValkeyServer
from tests.servers import PATIENCE_S

LEASE_MS = 30_000
PROJECT = [
    f"tl:project:{{x}}:{name}" for name in ("a", "b", "c", "d", "e", "f", "g", "h", "i")
]
INBOX = [
    f"tl:inbox:{{x}}:{name}" for name in ("said", "ids", "inbox", "state", "digest")
]
#: Calls that went on for ever, or for minutes, with what any role that may call functions can write or say.
ENDLESS: list[tuple[str, list[str], list[Any]]] = [
    (project_scripts.SEARCH, [], [1, "-inf", 10, 10, 0, "", 1, "1e18", 0]),
    (project_scripts.SEARCH, [], [1, "-inf", 10, 10, 0, "", 1, 0, "1e18"]),
    (project_scripts.SEARCH, [], [1, "-inf", 10, 10, 0, "", "1e18", -2, 0]),
    (project_scripts.FOLLOW, PROJECT[:3], ["a", "1e18"]),
    (document_scripts.COMMIT, [], ["1e18", 0, 1, 0, "", "", "", "", "", "", "", -4]),
    (long_term_scripts.AROUND, [], ["1e18", "1e18", 1]),
    (inbox_scripts.TAKE, INBOX, [100, 60_000, "t", 10]),
]


async def test_versions_stand_side_by_side(valkey_or_redis: Redis) -> None:
    await valkey_or_redis.function_flush("SYNC")
    earlier = "redis.register_function{function_name='tl_earlier', callback=function() return 7 end}"
    await valkey_or_redis.function_load(f"#!lua name=tl_earlier\n{earlier}")
    for _ in range(2):
        await load_functions(valkey_or_redis)
    listed = {one[1].decode() for one in await valkey_or_redis.function_list()}
    assert listed == {"tl_earlier", *LIBRARIES}
    assert await valkey_or_redis.fcall("tl_earlier", 0) == 7


async def test_commands_behind_a_missing_function_are_run_behind_it(
    valkey_or_redis: Redis,
) -> None:
    """They may be about what it stores: a time to live was given to no key, and never again."""
    await valkey_or_redis.function_flush("SYNC")
    at = keys.schedules("x")
    put = (record_scripts.PUT, 5, *at, "a", '{"version": 1}', 1, "s", "", ":a")
    within = ("[:", "(;", 1, 1, "", 1)
    batch = CommandBatch(valkey_or_redis, PATIENCE_S)
    assert await batch.run(
        [
            ("SET", "before", 1),
            ("FCALL", *put, *within),
            ("PEXPIRE", at.records, 600_000),
            ("HLEN", at.records),
        ]
    ) == [b"OK", 1, 1, 1]
    assert await valkey_or_redis.pttl(at.records) > 0


async def test_a_missing_function_is_loaded_in_the_middle_of_work(
    valkey_or_redis: Redis,
) -> None:
    ledger = Ledger(valkey_or_redis, deadline_s=PATIENCE_S)
    for number in range(2):
        await valkey_or_redis.function_flush("SYNC")
        assert await ledger.begin(
            f"lacks-{number}", 1, "w1", 0, LEASE_MS
        ) == RunPermission(1)


async def test_functions_outlive_the_server(tmp_path: Path) -> None:
    """Workers that may not load them go on after a restart."""
    server = ValkeyServer(tmp_path)
    for _ in range(2):
        await server.start()
        async with Redis.from_url(server.url) as client:
            if not await client.exists("loaded"):
                await load_functions(client)
                await client.set("loaded", 1)
            await _forbid(client)
        async with Redis.from_url(
            server.url, username="guest", password="guest"
        ) as guest:
            assert (
                await guest.fcall(long_term_scripts.RENEW, 1, "tl:flight:{x}", "t", 1)
                == 0
            )
        await server.stop()


async def test_a_client_that_may_not_load_functions_is_told_who_does(
    valkey_or_redis: Redis,
) -> None:
    await valkey_or_redis.function_flush("SYNC")
    await _forbid(valkey_or_redis)
    pool = valkey_or_redis.connection_pool.connection_kwargs
    async with Redis(
        host=pool["host"], port=pool["port"], username="guest", password="guest"
    ) as guest:
        with pytest.raises(Forbidden, match="run `tasklore bootstrap`"):
            await load_functions(guest)
        with pytest.raises(MemoryUnavailable, match="run `tasklore bootstrap`"):
            await CommandBatch(guest, PATIENCE_S).run(
                [("FCALL", long_term_scripts.RENEW, 1, "tl:flight:{x}", "t", 1)]
            )


async def test_an_error_other_than_a_wrong_type_removes_nothing(
    valkey_or_redis: Redis,
) -> None:
    ledger = Ledger(valkey_or_redis, deadline_s=PATIENCE_S)
    counter = keys.end_counts(keys.task("odd"))
    await valkey_or_redis.hset(counter, mapping={"completed": "many", "failed": "7"})
    with pytest.raises(MemoryUnavailable, match="not an integer"):
        await ledger.finish("odd", 1, "completed", b"{}")
    assert await valkey_or_redis.hgetall(counter) == {
        b"completed": b"many",
        b"failed": b"7",
    }
    assert await ledger.read("odd") is None
    await valkey_or_redis.set(counter, "another type")
    assert await ledger.finish("odd", 1, "completed", b"{}") is None
    assert await valkey_or_redis.hgetall(counter) == {b"completed": b"1"}


async def test_a_full_server_refuses_whole_writes_and_still_renews_and_reads(
    valkey_or_redis: Redis,
) -> None:
    breaker = Breaker(failures=1)
    ledger = Ledger(valkey_or_redis, deadline_s=PATIENCE_S, breaker=breaker)
    counter = keys.end_counts(keys.task("full"))
    await valkey_or_redis.hset(counter, "completed", 1000)
    await ledger.begin("full", 1, "w1", 0, LEASE_MS, token="t1")
    await load_functions(valkey_or_redis)
    await valkey_or_redis.config_set("maxmemory", 1)
    try:
        for refused in (
            ledger.begin("other", 1, "w1", 0, LEASE_MS),
            ledger.finish("full", 1, "completed", b"{}"),
            ledger.once("full", 1, "w1", "mail", "t"),
            ledger.accept("other", 1, b"{}"),
        ):
            with pytest.raises(MemoryUnavailable, match="maxmemory"):
                await refused
        assert not breaker.is_open
        assert await ledger.hold([("full", 1)], "w1", LEASE_MS) == []
        assert await valkey_or_redis.hget(counter, "completed") == b"1000"
        entry = await ledger.read("full")
        assert entry is not None
        assert entry.generations[1].state == "running"
    finally:
        await valkey_or_redis.config_set("maxmemory", 0)
    assert await ledger.finish("full", 1, "completed", b"{}") is None
    assert await valkey_or_redis.hget(counter, "completed") == b"1001"


async def test_only_scripts_that_take_memory_are_refused_by_a_full_server(
    valkey_or_redis: Redis,
) -> None:
    flags = {
        name.upper(): one["flags"]
        for name, one in (await valkey_or_redis.command()).items()
    }
    for library in LIBRARIES.values():
        called = {
            word.upper() for word in re.findall(r"(?:call|pcall)\('(\w+)'", library)
        }
        if "'no-writes'" not in library and "'allow-oom'" not in library:
            assert any("denyoom" in flags[word] for word in called), library


async def _forbid(client: Redis) -> None:
    await client.acl_setuser(
        "guest",
        enabled=True,
        passwords=["+guest"],
        keys=["*"],
        commands=["+@all", "-function"],
    )


async def test_every_call_ends_whatever_its_arguments(valkey_or_redis: Redis) -> None:
    """A server that runs one without an end answers nobody, and no role may stop it."""
    await load_functions(valkey_or_redis)
    await valkey_or_redis.hset(PROJECT[2], mapping={"a": "b", "b": "a"})
    edge = str(2**53)
    await valkey_or_redis.hset(
        INBOX[3], mapping={"seen": edge, "own": edge, "tasks": "x" * 300_000}
    )
    for name, at, told in ENDLESS:
        with contextlib.suppress(ResponseError):
            async with asyncio.timeout(PATIENCE_S):
                await valkey_or_redis.fcall(name, len(at), *at, *told)
        assert await valkey_or_redis.ping(), (name, told)
