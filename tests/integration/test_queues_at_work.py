"""Waiting rows on real servers: many at work at once, the index of owners, what is left behind, and what it costs."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from contracts.errors import MemoryUnavailable
from contracts.identifiers import user_token
from memory import keys
from memory.command_batch import Command, CommandBatch
from memory.queues import scripts as queue_scripts
from memory.queues.claims import Closing, closing_arguments
from memory.queues.queue import Mended, PersonalQueue
from memory.queues.scripts import PARKED
from memory.scripts import read
from runtime.servers.embedded import ValkeyServer
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


async def test_a_closed_row_is_known_no_longer_than_it_is_kept(valkey_or_redis: Redis) -> None:
    """Then its id is new again, and it is not counted any more."""
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


async def test_the_two_tables_know_nothing_of_each_other(valkey_or_redis: Redis) -> None:
    """A turn and a fact may have one id."""
    turns, facts = (PersonalQueue(valkey_or_redis, name, deadline_s=PATIENCE_S) for name in ("turns", "facts"))
    await turns.append(OWNER, [("a", b"turn")])
    assert await facts.owners_due(LATER, 9) == []
    assert await facts.append(OWNER, [("a", b"fact")]) == 1
    await claimed(turns)
    assert [row.body for row in (await claimed(facts)).rows] == [b"fact"]


async def test_nothing_of_a_forgotten_user_is_left_in_the_store(valkey_or_redis: Redis) -> None:
    """No key, and no entry of the index."""
    queue = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    await queue.note(claim, "a", b"note")
    await queue.close(claim, [Closing("a", "done"), Closing("b", "needs_model")])
    await queue.forget(OWNER)
    assert await valkey_or_redis.keys("*") == []


async def test_everything_of_a_user_with_nothing_to_do_goes_by_itself(valkey_or_redis: Redis) -> None:
    """Once it is kept long enough; a new row keeps it."""
    queue = PersonalQueue(valkey_or_redis, "facts", keep=timedelta(hours=1), deadline_s=PATIENCE_S)
    of = keys.queue("facts", user_token(OWNER))
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    await queue.close(claim, closing_all(claim))
    await queue.release(claim)
    present = [key.decode() for key in await valkey_or_redis.keys(f"{of.rows}*")]
    assert sorted(present) == sorted([of.rows, of.state, of.closed, of.fence])
    assert {0 < await valkey_or_redis.pttl(key) <= 3_600_000 for key in present} == {True}
    await queue.append(OWNER, [("d", b"4")])
    assert {await valkey_or_redis.pttl(key) for key in present} == {-1}


class Slow(PersonalQueue):
    """Takes so long to write down what it saw of an owner that *meanwhile* is over before."""

    meanwhile: Callable[[], Awaitable[object]]

    async def _settle(self, token: str, seen: object, look: int) -> None:
        await self.meanwhile()
        await super()._settle(token, seen, look)


async def test_an_append_while_somebody_finds_nothing_left_is_not_forgotten(valkey_or_redis: Redis) -> None:
    """Whoever looked before it must not take its owner out of the index after it."""
    producer, slow = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S), Slow(valkey_or_redis, "facts")
    await producer.append(OWNER, [("a", b"1")])
    last = await claimed(producer)
    await producer.close(last, closing_all(last))
    slow.meanwhile = lambda: producer.append(OWNER, [("b", b"2")])
    await slow.release(last)
    assert await producer.owners_due(NOW, 9) == [OWNER]
    assert ids(await claimed(producer)) == ["b"]


async def test_an_append_while_somebody_finds_nothing_at_all_is_not_forgotten(valkey_or_redis: Redis) -> None:
    """As above, for who came in vain after a redelivery."""
    producer, slow = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S), Slow(valkey_or_redis, "facts")
    await producer.append(OWNER, [])
    slow.meanwhile = lambda: producer.append(OWNER, [("a", b"1")])
    assert await slow.claim(OWNER, holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=NOW) is None
    assert await producer.owners_due(NOW, 9) == [OWNER]
    await claimed(producer)


async def test_what_is_given_back_while_somebody_finds_it_claimed_is_offered_at_once(valkey_or_redis: Redis) -> None:
    """Not only when that lease would have ended."""
    first, slow = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S), Slow(valkey_or_redis, "facts")
    await first.append(OWNER, TABLE)
    claim = await claimed(first)
    slow.meanwhile = lambda: first.release(claim)
    assert await slow.claim(OWNER, holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=NOW) is None
    assert await first.owners_due(NOW, 9) == [OWNER]


async def test_what_is_given_back_is_offered_whatever_others_write_down(valkey_or_redis: Redis) -> None:
    """An append marks the owner, another finds it claimed, and writes that down only after it was given back."""
    holder, late = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S), Slow(valkey_or_redis, "facts")
    await holder.append(OWNER, TABLE)
    claim = await claimed(holder)
    has_looked, may_write = asyncio.Event(), asyncio.Event()

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
            await PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S).append(OWNER, [("d", b"4")])
            group.create_task(late.claim(OWNER, holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=NOW))
            await has_looked.wait()
            return seen + await exchange.run(commands[1:])

    holder._batch = cast("CommandBatch", Torn())
    async with asyncio.TaskGroup() as group:
        await holder.release(claim)
        may_write.set()
    assert await PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S).owners_due(NOW, 9) == [OWNER]


async def test_an_owner_that_the_index_lost_is_found_again(valkey_or_redis: Redis) -> None:
    """By a redelivered append, and by looking through the keys; who has nothing to do is left out."""
    queue = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
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
        put_back, cursor = put_back + found.put_back, found.cursor
    assert put_back == 1
    assert sorted(await queue.owners_due(NOW, 9)) == ["ada", "bob"]
    assert await queue.mend(1000) == Mended(0, 0)


async def test_many_claimers_of_one_owner_are_never_two_at_once(valkey_or_redis: Redis) -> None:
    """Eight of them close 400 rows in order, each once, while more are appended."""
    producer = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
    done: list[str] = []
    inside = 0

    async def work(holder: str) -> None:
        nonlocal inside
        queue = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
        while len(done) < 400:
            claim = await queue.claim(OWNER, holder=holder, limit=7, lease_ms=LEASE_MS, now_ms=NOW)
            if claim is None:
                continue
            inside += 1
            assert inside == 1
            assert await queue.renew(claim, LEASE_MS)
            done.extend(ids(claim))
            assert await queue.close(claim, closing_all(claim))
            inside -= 1
            await queue.release(claim)

    async with asyncio.TaskGroup() as group, asyncio.timeout(60):
        for number in range(8):
            group.create_task(work(f"w{number}"))
        for first in range(0, 400, 10):
            await producer.append(OWNER, [(str(number), b"x") for number in range(first, first + 10)])
    assert done == [str(number) for number in range(400)]


async def test_a_crowd_of_owners_is_worked_off_without_forgetting_a_row(valkey_or_redis: Redis) -> None:
    """Four workers follow the index alone, while rows come for 20 owners; at the end the index is empty."""
    producer = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
    done: list[tuple[str, str]] = []
    wanted = [(f"owner{number % 20}", str(number)) for number in range(600)]

    async def work(holder: str) -> None:
        queue = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
        while len(done) < len(wanted):
            for owner in await queue.owners_due(NOW, 3):
                claim = await queue.claim(owner, holder=holder, limit=2, lease_ms=LEASE_MS, now_ms=NOW)
                if claim is not None:
                    done.extend((owner, row_id) for row_id in ids(claim))
                    assert await queue.close(claim, closing_all(claim))
                    await queue.release(claim)

    async with asyncio.TaskGroup() as group, asyncio.timeout(60):
        for number in range(4):
            group.create_task(work(f"w{number}"))
        for owner, row_id in wanted:
            await producer.append(owner, [(row_id, b"x")])
    assert sorted(done) == sorted(wanted)
    for owner in {owner for owner, _ in wanted}:
        assert [row_id for who, row_id in done if who == owner] == [row_id for who, row_id in wanted if who == owner]
    for owner in await producer.owners_due(LATER, 99):
        assert await producer.claim(owner, holder="w", limit=1, lease_ms=LEASE_MS, now_ms=NOW) is None
    assert await producer.owners_due(LATER, 99) == []


_CLAIMER = """
import asyncio, sys
from redis.asyncio import Redis
from memory.queues.queue import PersonalQueue

async def main():
    async with Redis.from_url(sys.argv[1]) as client:
        queue = PersonalQueue(client, "facts")
        claim = await queue.claim("ada", holder="mortal", limit=2, lease_ms=60_000, now_ms=0)
        await queue.note(claim, "a", b"half done")
        print([row.row_id for row in claim.rows], flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_a_claimer_that_is_killed_loses_and_doubles_nothing(
    valkey_or_redis: Redis, store_server: ValkeyServer
) -> None:
    """The next one gets its rows once the lease is over, with what was noted, one by one, in order."""
    queue = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
    await queue.append(OWNER, TABLE)
    claimer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CLAIMER, store_server.url, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert claimer.stdout is not None
        assert await claimer.stdout.readline() == b"['a', 'b']\n"
        assert await queue.claim(OWNER, holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=LATER) is None
    finally:
        claimer.kill()
        await claimer.wait()
    await valkey_or_redis.pexpire(keys.queue("facts", user_token(OWNER)).lease, BLINK_MS)
    seen: list[tuple[str, int, bytes | None]] = []
    while len(seen) < 3:
        claim = await after_a_crash(queue)
        seen += [(row.row_id, row.crashes, row.note) for row in claim.rows]
        assert await queue.close(claim, closing_all(claim))
        await queue.release(claim)
    assert seen == [("a", 1, b"half done"), ("b", 1, None), ("c", 0, None)]


async def test_a_claim_repeated_after_a_lost_reply_is_the_same_claim(valkey_or_redis: Redis) -> None:
    """It is not refused by itself, and counts no crash."""
    queue = PersonalQueue(valkey_or_redis, "facts", new_token=lambda: "one call", deadline_s=PATIENCE_S)
    await queue.append(OWNER, TABLE)
    first = await claimed(queue)
    assert await claimed(queue) == first
    assert await queue.close(first, closing_all(first))


async def test_a_script_of_somebody_else_closes_rows_in_the_same_step(valkey_or_redis: Redis) -> None:
    """The fragment takes its keys and words from where that script has put them."""
    queue = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    script = f"""{read(Path(queue_scripts.__file__).parent / "close_rows.lua")}
if not lease_held(2, 3) then return redis.error_reply('lost') end
redis.call('SET', KEYS[1], ARGV[1])
return close_rows(2, 3)
"""
    document = keys.document(claim.owner_token, "r1")
    closings = closing_arguments(claim, [Closing("a", "done", plan_id="p"), Closing("c", "needs_model")])

    async def commit() -> object:
        words: Sequence[str | bytes | int] = (document, *claim.keys, "body", "other", *closings)
        return (await CommandBatch(valkey_or_redis, 1.0).run([("EVAL", script, 7, *words)]))[0]

    assert await commit() == 2
    assert await commit() == 1, "the parked one is said to be parked again"
    assert await states(queue) == {"a": "done", "b": "waiting", "c": "needs_model"}
    await queue.release(claim)
    with pytest.raises(MemoryUnavailable, match="lost"):
        await commit()


async def test_counting_a_hundred_thousand_rows_asks_once_an_owner(valkey_or_redis: Redis) -> None:
    """However many rows each of them has."""
    queue = PersonalQueue(valkey_or_redis, "facts", deadline_s=20)
    for number in range(100):
        await queue.append(f"owner{number}", [(str(row), b"x") for row in range(1000)])
    await valkey_or_redis.config_resetstat()
    assert await queue.pending_total() == 100_000
    statistics = await valkey_or_redis.info("commandstats")
    calls = {name.removeprefix("cmdstat_"): entry["calls"] for name, entry in statistics.items()}
    assert calls.pop("zcount") == 101
    assert sum(calls.values()) <= 5


def test_parked_numbers_stay_exact() -> None:
    """The sum is a whole number that a double can hold, until every number of today is long past."""
    last = int(datetime(2112, 1, 1, tzinfo=UTC).timestamp() * 1_000_000)
    assert last < PARKED
    assert int(float(PARKED + last)) == PARKED + last


@pytest.mark.parametrize("protocol", [2, 3])
async def test_either_protocol_serves(store_server: ValkeyServer, valkey_or_redis: Redis, protocol: int) -> None:
    """Their replies differ in shape."""
    async with Redis.from_url(store_server.url, protocol=protocol) as client:
        queue = PersonalQueue(client, "turns")
        await queue.append(OWNER, TABLE)
        claim = await claimed(queue, limit=1)
        await queue.close(claim, [Closing("a", "needs_model")])
        await queue.release(claim)
        assert await queue.resume_all() == 1
        assert await queue.oldest() is not None
        assert await queue.pending_total() == 3
        assert (await queue.counts(OWNER)).waiting == 3
        assert await queue.mend(1000) == Mended(0, 0)
        assert len(await queue.rows(OWNER, 9)) == 3
        assert await queue.forget(OWNER) == 3
