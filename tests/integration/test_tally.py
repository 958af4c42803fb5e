"""Counts of ended tasks, made in the same step as their reports are stored."""

import pytest
from redis.asyncio import Redis
from redis.crc import key_slot

from memory import keys
from memory.ledger.ledger import Ledger
from memory.ledger.tally import Tally
from tests.servers import PATIENCE_S


@pytest.fixture
def ledger(valkey_or_redis: Redis) -> Ledger:
    """Return a ledger."""
    return Ledger(valkey_or_redis, deadline_s=PATIENCE_S)


async def test_each_generation_counts_once_in_the_state_it_ended(ledger: Ledger, valkey_or_redis: Redis) -> None:
    for report in (b"first", b"first", b"rival"):
        await ledger.finish("t1", 1, "completed", report)
    await ledger.finish("t1", 2, "failed", b"again")
    await ledger.finish_many([(f"u{number}", 1, "completed", b"done") for number in range(500)])
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {"completed": 501, "failed": 1}


async def test_a_report_that_is_not_taken_does_not_count(ledger: Ledger, valkey_or_redis: Redis) -> None:
    await ledger.cancel("t1", 1, "enough")
    await ledger.finish("t1", 1, "completed", b"late")
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {}
    await ledger.finish("t1", 1, "cancelled", b"as wished")
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {"cancelled": 1}


async def test_a_counter_that_is_no_number_counts_nothing(ledger: Ledger, valkey_or_redis: Redis) -> None:
    await ledger.finish("t1", 1, "completed", b"done")
    for value in (b"\xff", b"1e400", b"9" * 5000, b""):
        await valkey_or_redis.hset(keys.end_counts(keys.task("t2")), "failed", value)  # type: ignore[arg-type]
        assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {"completed": 1}


async def test_a_forgotten_task_stays_counted(ledger: Ledger, valkey_or_redis: Redis) -> None:
    await ledger.finish("t1", 1, "completed", b"done")
    await valkey_or_redis.unlink(keys.task("t1"))
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {"completed": 1}
    assert await valkey_or_redis.ttl(keys.end_counts(keys.task("t1"))) == -1


async def test_a_foreign_value_under_the_key_of_a_counter_stops_no_report(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    await valkey_or_redis.set(keys.end_counts(keys.task("t1")), b"not a counter")
    assert await ledger.finish("t1", 1, "completed", b"done") is None
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {"completed": 1}


def test_a_task_and_its_counter_lie_in_one_slot_and_every_slot_has_one_counter() -> None:
    for task_id in ("0199-aaaa", "with {braces}:and/more", "ümläut", "x" * 512):
        task = keys.task(task_id)
        assert key_slot(task.encode()) == key_slot(keys.end_counts(task).encode())
        assert keys.end_counts(task) in set(keys.every_ended())
    assert {key_slot(key.encode()) for key in keys.every_ended()} == set(range(16_384))
