"""How many tasks ended, counted in the same breath as their reports are stored."""

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
    """A repetition of the same report, and a rival's, count nothing; a task that was sent again counts again."""
    for report in (b"first", b"first", b"rival"):
        await ledger.finish("t1", 1, "completed", report)
    await ledger.finish("t1", 2, "failed", b"again")
    await ledger.finish_many([(f"u{number}", 1, "completed", b"done") for number in range(500)])
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {"completed": 501, "failed": 1}


async def test_a_report_that_is_not_taken_does_not_count(ledger: Ledger, valkey_or_redis: Redis) -> None:
    """Of a task that is to be cancelled only a cancelled report is."""
    await ledger.cancel("t1", 1, "enough")
    await ledger.finish("t1", 1, "completed", b"late")
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {}
    await ledger.finish("t1", 1, "cancelled", b"as wished")
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {"cancelled": 1}


async def test_a_counter_that_is_no_number_counts_nothing(ledger: Ledger, valkey_or_redis: Redis) -> None:
    """A worker may write one: it ended each supervisor that counted, as soon as it had started."""
    await ledger.finish("t1", 1, "completed", b"done")
    for value in (b"\xff", b"1e400", b"9" * 5000, b""):
        await valkey_or_redis.hset(keys.end_counts(keys.task("t2")), "failed", value)  # type: ignore[arg-type]
        assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {"completed": 1}


async def test_what_is_forgotten_was_counted(ledger: Ledger, valkey_or_redis: Redis) -> None:
    """Neither a time to live nor forgetting takes anything off the counters."""
    await ledger.finish("t1", 1, "completed", b"done")
    await valkey_or_redis.unlink(keys.task("t1"))
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {"completed": 1}
    assert await valkey_or_redis.ttl(keys.end_counts(keys.task("t1"))) == -1


async def test_something_else_under_a_counters_key_does_not_stop_a_report(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    """It is replaced, as the ledger replaces what lies in the place of a task."""
    await valkey_or_redis.set(keys.end_counts(keys.task("t1")), b"not a counter")
    assert await ledger.finish("t1", 1, "completed", b"done") is None
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {"completed": 1}


@pytest.mark.parametrize("task_id", ["0199-aaaa", "with {braces}:and/more", "ümläut", "x" * 512])
def test_a_task_and_its_counter_lie_in_one_slot(task_id: str) -> None:
    """By the client library's own reckoning, so that a cluster takes both in one script."""
    task = keys.task(task_id)
    assert key_slot(task.encode()) == key_slot(keys.end_counts(task).encode())
    assert keys.end_counts(task) in set(keys.every_ended())


def test_every_slot_has_one_counter() -> None:
    """None is read twice and none left out."""
    assert {key_slot(key.encode()) for key in keys.every_ended()} == set(range(16_384))
