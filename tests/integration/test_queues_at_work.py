"""Queues on a real store under load: concurrent claims, the index of owners, killed claimers, and costs."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.queues import scripts as queue_scripts
from tasklore.memory.queues.claims import Closing, closing_arguments
from tasklore.memory.queues.queue import Mended, PersonalQueue
from tasklore.memory.scripts import read
from tasklore.runtime.servers.embedded import ValkeyServer
from tests.integration.waiting import (
    BLINK_MS,
    LATER,
    LEASE_MS,
    NOW,
    OWNER,
    TABLE,
    after_a_crash,
    claimed,
    closing_all,
    ids,
    states,
    until,
)
from tests.servers import PATIENCE_S


@pytest.fixture
def queue(valkey_or_redis: Redis) -> PersonalQueue:
    return PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)


async def test_a_closed_row_is_known_no_longer_than_it_is_kept(
    valkey_or_redis: Redis,
) -> None:
    keep = timedelta(milliseconds=BLINK_MS)
    queue = PersonalQueue(valkey_or_redis, "turns", keep=keep, deadline_s=PATIENCE_S)
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue, limit=2)
    await queue.close(claim, closing_all(claim))

    async def is_new(queue: PersonalQueue = queue) -> bool | None:
        return True if await queue.append(OWNER, [("a", b"1")]) else None

    await until(is_new)
    assert {"a", "c"} <= (await states(queue)).keys()
    assert (await queue.counts(OWNER)).closed["done"] <= 1


async def test_keys_of_an_owner_without_open_rows_expire(
    valkey_or_redis: Redis,
) -> None:
    queue = PersonalQueue(
        valkey_or_redis, "facts", keep=timedelta(hours=1), deadline_s=PATIENCE_S
    )
    of = keys.queue("facts", user_token(OWNER))
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    await queue.close(claim, closing_all(claim))
    await queue.release(claim)
    present = [key.decode() for key in await valkey_or_redis.keys(f"{of.rows}*")]
    assert sorted(present) == sorted([of.rows, of.state, of.closed, of.fence])
    assert {0 < await valkey_or_redis.pttl(key) <= 3_600_000 for key in present} == {
        True
    }
    await queue.append(OWNER, [("d", b"4")])
    assert {await valkey_or_redis.pttl(key) for key in present} == {-1}


class Slow(PersonalQueue):
    """Runs *meanwhile* between looking at an owner and settling its place in the index."""

    meanwhile: Callable[[], Awaitable[object]]

    async def _settle(self, token: str, seen: object, look: int) -> None:
        await self.meanwhile()
        await super()._settle(token, seen, look)


async def test_an_owner_stays_in_the_index_whatever_happens_while_another_looks(
    queue: PersonalQueue, valkey_or_redis: Redis
) -> None:
    """An append while a claim finds nothing, or nothing left; and a release while a claim finds the rows taken."""
    slow = Slow(valkey_or_redis, "facts")
    await queue.append(OWNER, [])
    slow.meanwhile = lambda: queue.append(OWNER, [("a", b"1")])
    assert (
        await slow.claim(OWNER, holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=NOW)
        is None
    )
    assert await queue.owners_due(NOW, 9) == [OWNER]
    last = await claimed(queue)
    await queue.close(last, closing_all(last))
    slow.meanwhile = lambda: queue.append(OWNER, [("b", b"2")])
    await slow.release(last)
    assert await queue.owners_due(NOW, 9) == [OWNER]
    claim = await claimed(queue)
    assert ids(claim) == ["b"]
    slow.meanwhile = lambda: queue.release(claim)
    assert (
        await slow.claim(OWNER, holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=NOW)
        is None
    )
    assert await queue.owners_due(NOW, 9) == [OWNER]


async def test_a_late_settlement_does_not_hide_released_rows(
    valkey_or_redis: Redis,
) -> None:
    holder = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
    late = Slow(valkey_or_redis, "facts")
    await holder.append(OWNER, TABLE)
    claim = await claimed(holder)
    has_looked = asyncio.Event()
    may_write = asyncio.Event()

    async def write_late() -> None:
        has_looked.set()
        await may_write.wait()

    late.meanwhile = write_late
    exchange = holder._batch

    class Torn:
        """Lets the others in between the two commands of giving back."""

        async def run(self, commands: Sequence[Command]) -> list[Any]:
            if len(commands) == 1:
                return await exchange.run(commands)
            seen = await exchange.run(commands[:1])
            await PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S).append(
                OWNER, [("d", b"4")]
            )
            group.create_task(
                late.claim(OWNER, holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=NOW)
            )
            await has_looked.wait()
            return seen + await exchange.run(commands[1:])

    holder._batch = cast("CommandBatch", Torn())
    async with asyncio.TaskGroup() as group:
        await holder.release(claim)
        may_write.set()
    assert await PersonalQueue(
        valkey_or_redis, "facts", deadline_s=PATIENCE_S
    ).owners_due(NOW, 9) == [OWNER]


async def test_an_owner_that_the_index_lost_is_found_again(
    queue: PersonalQueue, valkey_or_redis: Redis
) -> None:
    for owner in ("ada", "bob", "cy"):
        await queue.append(owner, TABLE)
    claim = await claimed(queue, "cy")
    await queue.close(claim, closing_all(claim))
    await queue.release(claim)
    await valkey_or_redis.unlink(keys.owners("facts"))
    await queue.append("ada", TABLE)
    assert await queue.owners_due(NOW, 9) == ["ada"]
    put_back, cursor = await queue.mend(1)
    while cursor:
        found = await queue.mend(1, cursor)
        put_back = put_back + found.put_back
        cursor = found.cursor
    assert put_back == 1
    assert sorted(await queue.owners_due(NOW, 9)) == ["ada", "bob"]
    assert await queue.mend(1000) == Mended(0, 0)


async def test_workers_that_follow_the_index_close_each_row_once_in_order(
    queue: PersonalQueue, valkey_or_redis: Redis
) -> None:
    """Four workers, while rows come for 20 owners, never two at once for one owner; at the end the index is empty."""
    done: list[tuple[str, str]] = []
    inside: set[str] = set()
    expected = [(f"owner{number % 20}", str(number)) for number in range(400)]

    async def work(holder: str) -> None:
        own = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
        while len(done) < len(expected):
            for owner in await own.owners_due(NOW, 3):
                claim = await own.claim(
                    owner, holder=holder, limit=2, lease_ms=LEASE_MS, now_ms=NOW
                )
                if claim is None:
                    continue
                assert owner not in inside
                inside.add(owner)
                assert await own.renew(claim, LEASE_MS)
                done.extend((owner, row_id) for row_id in ids(claim))
                assert await own.close(claim, closing_all(claim))
                inside.remove(owner)
                await own.release(claim)

    async with asyncio.TaskGroup() as group, asyncio.timeout(60):
        for number in range(4):
            group.create_task(work(f"w{number}"))
        for owner, row_id in expected:
            await queue.append(owner, [(row_id, b"x")])
    owners = sorted({owner for owner, _ in expected})
    for owner in owners:
        assert [row_id for who, row_id in done if who == owner] == [
            one for who, one in expected if who == owner
        ]
    for owner in await queue.owners_due(LATER, 99):
        assert (
            await queue.claim(owner, holder="w", limit=1, lease_ms=LEASE_MS, now_ms=NOW)
            is None
        )
    assert await queue.owners_due(LATER, 99) == []
    turns = PersonalQueue(valkey_or_redis, "turns", deadline_s=PATIENCE_S)
    assert (
        await turns.append("owner0", [("0", b"a turn of the same owner and id")]) == 1
    )
    await queue.append("owner0", [("noted", b"x"), ("parked", b"x")])
    claim = await claimed(queue, "owner0")
    await queue.close(
        claim,
        [
            Closing(row_id="noted", state="retry", note=b"note"),
            Closing(row_id="parked", state="needs_model"),
        ],
    )
    for owner in owners:
        await queue.forget(owner)
    assert await turns.forget("owner0") == 1
    assert await valkey_or_redis.keys("*") == []


_CLAIMER = """
import asyncio, sys
from redis.asyncio import Redis
from tasklore.memory.queues.queue import PersonalQueue

async def main():
    async with Redis.from_url(sys.argv[1]) as client:
        queue = PersonalQueue(client, "facts")
        claim = await queue.claim("ada", holder="mortal", limit=2, lease_ms=60_000, now_ms=0)
        print([row.row_id for row in claim.rows], flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_a_claimer_that_is_killed_loses_and_doubles_nothing(
    valkey_or_redis: Redis, store_server: ValkeyServer
) -> None:
    queue = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
    await queue.append(OWNER, TABLE)
    claimer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CLAIMER, store_server.url, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert claimer.stdout is not None
        assert await claimer.stdout.readline() == b"['a', 'b']\n"
        assert (
            await queue.claim(
                OWNER, holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=LATER
            )
            is None
        )
    finally:
        claimer.kill()
        await claimer.wait()
    await valkey_or_redis.pexpire(
        keys.queue("facts", user_token(OWNER)).lease, BLINK_MS
    )
    seen: list[tuple[str, int]] = []
    while len(seen) < 3:
        claim = await after_a_crash(queue)
        seen += [(row.row_id, row.crashes) for row in claim.rows]
        assert await queue.close(claim, closing_all(claim))
        await queue.release(claim)
    assert seen == [("a", 1), ("b", 1), ("c", 0)]


async def test_a_claim_repeated_after_a_lost_reply_is_the_same_claim(
    valkey_or_redis: Redis,
) -> None:
    queue = PersonalQueue(
        valkey_or_redis, "facts", new_token=lambda: "one call", deadline_s=PATIENCE_S
    )
    await queue.append(OWNER, TABLE)
    first = await claimed(queue)
    assert await claimed(queue) == first
    assert await queue.close(first, closing_all(first))


async def test_another_script_closes_rows_in_the_same_step(
    queue: PersonalQueue, valkey_or_redis: Redis
) -> None:
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    script = f"""{read(Path(queue_scripts.__file__).parent / "close_rows.lua")}
if not lease_held(2, 3) then return redis.error_reply('lost') end
redis.call('SET', KEYS[1], ARGV[1])
return close_rows(2, 3)
"""
    document = keys.document(claim.owner_token, "r1")
    closings = closing_arguments(
        claim,
        [
            Closing(row_id="a", state="done", plan_id="p"),
            Closing(row_id="c", state="needs_model"),
        ],
    )

    async def commit() -> object:
        words: Sequence[str | bytes | int] = (
            document,
            *claim.keys,
            "body",
            "other",
            *closings,
        )
        return (
            await CommandBatch(valkey_or_redis, 1.0).run([("EVAL", script, 7, *words)])
        )[0]

    assert await commit() == 2
    assert await commit() == 1, "the parked one is said to be parked again"
    assert await states(queue) == {"a": "done", "b": "waiting", "c": "needs_model"}
    await queue.release(claim)
    with pytest.raises(MemoryUnavailable, match="lost"):
        await commit()


async def test_counting_rows_asks_once_an_owner(
    queue: PersonalQueue, valkey_or_redis: Redis
) -> None:
    for number in range(100):
        await queue.append(f"owner{number}", [(str(row), b"x") for row in range(50)])
    await valkey_or_redis.config_resetstat()
    assert await queue.pending_total() == 5_000
    statistics = await valkey_or_redis.info("commandstats")
    calls = {
        name.removeprefix("cmdstat_"): entry["calls"]
        for name, entry in statistics.items()
    }
    assert calls.pop("zcount") == 101
    assert sum(calls.values()) <= 5


@pytest.mark.parametrize("protocol", [2, 3])
async def test_either_protocol_serves(
    store_server: ValkeyServer, valkey_or_redis: Redis, protocol: int
) -> None:
    async with Redis.from_url(store_server.url, protocol=protocol) as client:
        queue = PersonalQueue(client, "turns")
        await queue.append(OWNER, TABLE)
        claim = await claimed(queue, limit=1)
        await queue.close(claim, [Closing(row_id="a", state="needs_model")])
        await queue.release(claim)
        assert await queue.resume_all() == 1
        assert await queue.oldest() is not None
        assert await queue.pending_total() == 3
        assert (await queue.counts(OWNER)).waiting == 3
        assert await queue.mend(1000) == Mended(0, 0)
        assert len(await queue.rows(OWNER, 9)) == 3
        assert await queue.forget(OWNER) == 3
