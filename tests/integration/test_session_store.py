"""Sessions on a real store: concurrent writers, round trips, times to live, and keys of wrong types."""

import asyncio
import base64
import json
import random
import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.sessions import scripts as session_scripts
from tasklore.memory.sessions.session import NewEntry, SessionCache
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.sessions import (
    BLINK,
    KEY,
    SESSION,
    StoreStage,
    until_over,
    values,
)


@pytest.fixture
def stage(valkey_or_redis: Redis) -> StoreStage:
    return StoreStage(valkey_or_redis)


async def test_three_clients_at_once_lose_no_entry_and_no_use(
    redis: Redis, servers: EmbeddedServers
) -> None:
    """While they invalidate and delete beside each other."""
    cache = SessionCache(redis, deadline_s=60.0)
    await cache.create(SESSION)
    await cache.set(SESSION, KEY, 1, computation_ms=7)

    async def work(other: SessionCache, name: str, number: int) -> None:
        await other.set(SESSION, f"{name}:x:{number}", number)
        await other.set(SESSION, f"{name}:gone:{number}", number)
        await other.get(SESSION, KEY)
        await other.get(SESSION, KEY, reader="shared")
        await other.delete(SESSION, f"{name}:gone:{number}")
        await other.invalidate_phases(SESSION, ["unheard-of"])

    async def client(name: str) -> None:
        async with Redis.from_url(servers.redis_url) as own:
            other = SessionCache(own, deadline_s=60.0)
            await asyncio.gather(*(work(other, name, number) for number in range(100)))
            await other.get(SESSION, f"{name}:x:0")

    await asyncio.gather(*map(client, "abc"))
    entries = await cache.entries(SESSION)
    assert {entry.key for entry in entries} == {
        KEY,
        *(f"{name}:x:{number}" for name in "abc" for number in range(100)),
    }
    assert len({entry.number for entry in entries}) == len(entries)
    stats = await cache.stats(SESSION)
    assert (stats.total_hits, stats.total_saved_time_ms) == (
        3 * 101 + 1,
        7 * (3 * 100 + 1),
    )


async def test_a_lookup_is_one_command(
    stage: StoreStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, 1)
    sent: list[Command] = []
    run = CommandBatch.run

    async def noting(exchange: CommandBatch, commands: Sequence[Command]) -> list[Any]:
        sent.extend(commands)
        return await run(exchange, commands)

    monkeypatch.setattr(CommandBatch, "run", noting)
    await stage.cache.get(SESSION, KEY, reader="t1")
    await stage.cache.get_many(SESSION, [KEY, "a:b", "c:d"])
    assert [command[0] for command in sent] == ["FCALL", "FCALL"]


async def test_every_key_of_a_session_expires_with_its_root(stage: StoreStage) -> None:
    of = keys.session(SESSION)
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, 1)
    for part in (of.phases, of.tasks, of.corrected, of.seen):
        await stage.client.hset(part, "a", "b")
    await stage.cache.set(SESSION, "b:x", 1)
    await stage.cache.get(SESSION, KEY)
    await stage.cache.get(SESSION, KEY, reader="t1")
    times = {part: await stage.client.pttl(part) for part in of[:8]}
    assert all(0 < ms <= 3_600_000 for ms in times.values()), times
    await stage.client.hset(of.root, "state", "running")
    await stage.cache.set(SESSION, "b:x", 2)
    present = [
        part for part in of if part != of.lease and await stage.client.exists(part)
    ]
    assert {await stage.client.pttl(part) for part in present} == {-1}
    await stage.cache.get(SESSION, KEY, reader="t2")
    assert await stage.client.pttl(of.uses) == -1


async def test_a_new_session_inherits_no_leftover_key(stage: StoreStage) -> None:
    """As when a root was lost, and the rest was not; and creating it again after a lost reply succeeds."""
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, 1)
    await stage.put_task("analysis", "t1")
    await stage.put_correction("b", "analysis")
    of = keys.session(SESSION)
    await stage.client.hset(of.lease, "holder", "gone")
    await stage.client.delete(of.root)
    assert await values(stage.cache, KEY, "b:map") == ["-", "-"]
    cache = SessionCache(stage.client, deadline_s=60.0, new_token=lambda: "one")
    assert await cache.create(SESSION)
    assert [part for part in of if await stage.client.exists(part)] == [of.root]
    assert await cache.create(SESSION)
    assert not await stage.cache.create(SESSION)


async def test_reading_renews_nothing(stage: StoreStage) -> None:
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, 1)
    of = keys.session(SESSION)
    for part in of:
        await stage.client.pexpire(part, 1_000_000)
    await stage.cache.get(SESSION, KEY, reader="t1")
    await stage.cache.entries(SESSION)
    await stage.cache.stats(SESSION)
    await stage.cache.cleanup(SESSION)
    assert await stage.client.pttl(of.root) <= 1_000_000
    assert 0 < await stage.client.pttl(of.hits) <= 1_000_000
    await stage.cache.delete(SESSION, "b:x")
    assert await stage.client.pttl(of.root) > 1_000_000


async def test_a_large_value_is_compressed_when_that_pays(stage: StoreStage) -> None:
    await stage.cache.create(SESSION)
    noise = base64.b64encode(random.Random(7).randbytes(6_000)).decode()
    for key, value in {
        "a:small": {"ü": [1]},
        "a:large": ["ü"] * 5_000,
        "a:noise": noise,
    }.items():
        await stage.cache.set(SESSION, key, value)
    small, large = await stage.client.hmget(
        keys.session(SESSION).entries, "a:small", "a:large"
    )
    assert small == '{"ü":[1]}'.encode()
    assert json.loads(zlib.decompress(large)) == ["ü"] * 5_000
    assert len(large) < 500
    assert (
        await stage.client.hget(keys.session(SESSION).entries, "a:noise")
        == f'"{noise}"'.encode()
    )
    assert await values(stage.cache, "a:small", "a:large", "a:noise") == [
        {"ü": [1]},
        ["ü"] * 5_000,
        noise,
    ]


async def test_listing_sessions_does_not_read_their_entries(redis: Redis) -> None:
    cache = SessionCache(redis, deadline_s=60.0)
    for at in range(0, 120, 40):
        await asyncio.gather(
            *(fill(cache, f"s{number:04}") for number in range(at, at + 40))
        )
    before = (await redis.info("stats"))["total_net_output_bytes"]
    page = await cache.sessions(limit=50)
    listed = []
    while page:
        listed += page
        page = await cache.sessions(limit=50, before=page[-1])
    cost = (await redis.info("stats"))["total_net_output_bytes"] - before
    assert len({root.session_id for root in listed}) == len(listed) == 120
    assert {root.entries for root in listed} == {50}
    # The entries are 6 MB; a root is some 200 bytes.
    assert cost < 120_000


async def fill(cache: SessionCache, name: str) -> None:
    """Create a session of fifty entries."""
    await cache.create(name)
    await cache.set_many(
        name,
        [NewEntry(key=f"p{number}:x", value=[number] * 300) for number in range(50)],
    )


async def test_a_session_larger_than_a_round_trip_is_exported_and_loaded(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    noise = base64.b64encode(random.Random(7).randbytes(800_000)).decode()
    for number in range(8):
        await stage.cache.set(SESSION, f"a:x:{number}", f"{number}{noise}")
    exported = await stage.cache.export(SESSION)
    assert list(exported["cache"]) == [f"a:x:{number}" for number in range(8)]
    await stage.cache.load(exported, "copy")
    assert await stage.cache.export("copy") == {**exported, "session_id": "copy"}


@pytest.mark.parametrize("part", keys.SessionKeys._fields)
async def test_a_key_of_a_wrong_type_is_replaced(stage: StoreStage, part: str) -> None:
    cache = stage.cache
    key = getattr(keys.session(SESSION), part)

    async def spoil() -> None:
        await stage.client.delete(key)
        await stage.client.set(key, "x")

    for use in (
        lambda: cache.get(SESSION, KEY, reader="t1"),
        lambda: cache.get(SESSION, KEY),
        lambda: cache.root(SESSION),
        lambda: cache.entries(SESSION),
        lambda: cache.stats(SESSION),
        lambda: cache.cleanup(SESSION),
        lambda: cache.delete(SESSION, "b:x"),
        lambda: cache.clear(SESSION),
        lambda: cache.invalidate_phases(SESSION, ["b"]),
        lambda: cache.invalidate_downstream(SESSION, "b"),
        lambda: cache.sweep(),
        lambda: cache.sessions(),
    ):
        await cache.create(SESSION)
        await cache.set(SESSION, KEY, 1)
        await spoil()
        await use()
    await spoil()
    await cache.create(SESSION)
    await spoil()
    if part != "root":
        await cache.set(SESSION, KEY, 2, task_id="t1")
        assert await values(cache, KEY) == [2]
    await spoil()
    await cache.drop(SESSION)
    assert await cache.create(SESSION)


async def test_an_index_of_a_wrong_type_is_rebuilt(stage: StoreStage) -> None:
    await stage.cache.create(SESSION)
    await stage.client.delete(keys.index("sessions"))
    for use in (stage.cache.sessions, lambda: stage.cache.set(SESSION, KEY, 1)):
        await stage.client.set(keys.index("sessions"), "x")
        await use()
    assert [root.session_id for root in await stage.cache.sessions()] == [SESSION]


async def test_unreadable_entries_and_circular_corrections_are_passed_over(
    stage: StoreStage,
) -> None:
    await stage.cache.create(SESSION)
    await stage.cache.set(SESSION, KEY, 1)
    entries = keys.session(SESSION).entries
    head = await stage.client.hget(entries, f":{KEY}")
    odd = {
        "a:1": "1",
        ":a:2": head,
        "a:3": "{",
        ":a:3": head,
        "a:4": "1",
        ":a:4": "odd",
        "a:5": "1",
        ":a:5": "0:1:2:3",
    }
    await stage.client.hset(entries, mapping=odd)
    await stage.client.hset(entries, mapping={"a:6": b"x\x01", ":a:6": head})
    asked = [KEY, *(f"a:{number}" for number in range(1, 7))]
    assert await values(stage.cache, *asked) == [1, "-", "-", "-", "-", "-", "-"]
    # Listing reads no value, not even an unreadable one.
    assert {entry.key for entry in await stage.cache.entries(SESSION)} <= {
        KEY,
        "a:3",
        "a:6",
    }
    assert set((await stage.cache.export(SESSION))["cache"]) == {KEY}
    await stage.cache.stats(SESSION)
    for phase, by in {"a": "b", "b": "a"}.items():
        await stage.put_correction(phase, by)
    assert await values(stage.cache, "a:1", KEY) == ["-", 1]


async def test_a_sweep_keeps_a_session_that_is_being_created(stage: StoreStage) -> None:
    await stage.client.zadd(
        keys.index("sessions"), {SESSION: (await stage.client.time())[0] * 1000}
    )
    assert await stage.cache.sweep() == []
    await stage.client.zadd(keys.index("sessions"), {"old": 1})
    assert await stage.cache.sweep() == ["old"]
    assert await stage.cache.create(SESSION)
    assert await stage.cache.sweep(grace=timedelta(0)) == []
    assert [root.session_id for root in await stage.cache.sessions()] == [SESSION]


async def test_a_sweep_goes_through_every_page(stage: StoreStage) -> None:
    await stage.client.zadd(
        keys.index("sessions"),
        {f"old{number}": 1 + number % 2 for number in range(950)},
    )
    await stage.cache.create(SESSION)
    await stage.cache.create("brief", ttl=BLINK)
    await until_over(stage.cache, "brief")
    assert len(await stage.cache.sweep()) == 950
    assert await stage.client.zrange(keys.index("sessions"), 0, -1) in (
        [b"s1", b"brief"],
        [b"brief", b"s1"],
    )


class Waiting(SessionCache):
    """A cache that waits between loading entries and making their session."""

    def __init__(self, client: Redis) -> None:
        super().__init__(client, deadline_s=60.0)
        self.is_loaded = asyncio.Event()
        self.may_end = asyncio.Event()

    async def _make(self, *words: Any) -> bool:
        self.is_loaded.set()
        await self.may_end.wait()
        return await super()._make(*words)


async def test_two_files_loaded_at_once_are_not_mixed(redis: Redis) -> None:
    first = Waiting(redis)
    second = SessionCache(redis, deadline_s=60.0)
    for name in ("one", "two"):
        await second.create(name)
        await second.set(name, f"a:{name}", name)
    one, two = [await second.export(name) for name in ("one", "two")]
    loading = asyncio.create_task(first.load(one, "both"))
    await first.is_loaded.wait()
    assert (await second.load(two, "both")).loaded == 1
    first.may_end.set()
    with pytest.raises(InvalidInput, match="'both' exists already"):
        await loading
    assert [entry.key for entry in await second.entries("both")] == ["a:two"]
    # One that begins anew while another stopped half way takes its place.
    await Waiting(redis)._batch.run(
        [first._script("late", session_scripts.LOAD, "t1", 1, 60_000)]
    )
    assert (await second.load(one, "late")).loaded == 1
    first.may_end.clear()
    first.is_loaded.clear()
    loading = asyncio.create_task(first.load(one, "race"))
    await first.is_loaded.wait()
    await second._batch.run(
        [
            second._script(
                "race", session_scripts.LOAD, "t2", 1, 60_000, "b:x", "1", ":", 0
            )
        ]
    )
    first.may_end.set()
    with pytest.raises(InvalidInput, match="'race' exists already"):
        await loading
    assert await second.root("race") is None
