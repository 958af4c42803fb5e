"""The journal of steps on a real server: fenced by the ledger, gone with its task and with its user."""

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import RunReplaced
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.ledger.journal import Journal
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import Ended, Finish, RunName
from tasklore.memory.ledger.user_tasks import UserTasks
from tests.ledger_layouts import LayoutUnderTest, ListingLedger
from tests.servers import PATIENCE_S

TASK = "0199-bbbb"
LEASE_MS = 30_000
RUN = RunName(TASK, 1, "w1")


@pytest.fixture
def ledger(valkey_or_redis: Redis, layout: LayoutUnderTest) -> Ledger:
    """Return a ledger on a server."""
    return ListingLedger(valkey_or_redis, deadline_s=PATIENCE_S)


@pytest.fixture
def journal(valkey_or_redis: Redis) -> Journal:
    """Return a journal on the same server."""
    return Journal(valkey_or_redis, deadline_s=PATIENCE_S)


async def test_steps_are_read_back_by_a_later_run_and_a_later_generation(
    ledger: Ledger, journal: Journal
) -> None:
    """A write whose answer was lost may come again."""
    await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS)
    for position, result in enumerate((b'"one"', b'"two"', b'"two"')):
        await journal.write(
            RUN, min(position, 1), f"digest{min(position, 1)} name", result
        )
    assert await journal.heads(TASK) == {0: "digest0 name", 1: "digest1 name"}
    assert [await journal.result(TASK, position) for position in range(3)] == [
        b'"one"',
        b'"two"',
        None,
    ]
    await ledger.finish(TASK, 1, "failed", b"report")
    await ledger.begin(TASK, 2, "w2", 2000, LEASE_MS)
    await journal.write(RunName(TASK, 2, "w2"), 2, "digest2 name", b"3")
    assert len(await journal.heads(TASK)) == 3


async def test_steps_are_kept_as_long_as_the_task_that_is_to_read_them(
    ledger: Ledger, journal: Journal, valkey_or_redis: Redis, layout: LayoutUnderTest
) -> None:
    """Between two runs may lie days: whatever prolongs the entry prolongs what the next run needs."""
    await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS, token="t")
    await journal.write(RUN, 0, "digest0 name", b"1")
    await ledger.accept_many([], [(TASK, "0199-child", "Scout.look")])
    entry = layout.key(TASK)
    parts = [f"{entry}:steps", f"{entry}:results"]
    if layout.is_by_agent:
        parts.append(layout.children(TASK))

    async def age() -> None:
        for part in parts:
            assert await valkey_or_redis.pexpire(part, 600_000)

    async def demand_kept() -> None:
        left = await valkey_or_redis.pttl(entry)
        assert left > 600_000_000
        for part in parts:
            assert await valkey_or_redis.pttl(part) >= left - 1000

    await age()
    await ledger.park(Ended(TASK, 1, "t"), 0)
    await demand_kept()
    await age()
    await ledger.begin(TASK, 1, "w2", 2000, LEASE_MS)
    await demand_kept()
    await age()
    await ledger.finish(TASK, 1, "failed", b"{}")
    await demand_kept()
    await age()
    await ledger.accept(TASK, 2, b"{}")
    await demand_kept()


async def test_another_step_in_the_place_of_one_takes_those_with_it_that_are_named(
    ledger: Ledger, journal: Journal
) -> None:
    """What may rest on the old step, in the same write; of other branches all stays."""
    await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS)
    for position in range(12):
        await journal.write(RUN, position, f"digest{position} name", b"1")
    await journal.write(RUN, 2, "other name", b"2", range(4, 12))
    assert await journal.heads(TASK) == {
        0: "digest0 name",
        1: "digest1 name",
        2: "other name",
        3: "digest3 name",
    }
    assert [await journal.result(TASK, position) for position in (1, 2, 3, 11)] == [
        b"1",
        b"2",
        b"1",
        None,
    ]


async def test_a_run_that_was_replaced_cancelled_or_has_ended_stores_no_step(
    ledger: Ledger, journal: Journal
) -> None:
    """The journal of the run that counts stays as it is."""
    await ledger.begin(TASK, 1, "w2", 1000, LEASE_MS)
    with pytest.raises(RunReplaced, match="another worker has taken"):
        await journal.write(RUN, 0, "digest name", b"1")
    await journal.write(RunName(TASK, 1, "w2"), 0, "digest name", b"2")
    await ledger.cancel(TASK, 1, "enough")
    with pytest.raises(RunReplaced):
        await journal.write(RunName(TASK, 1, "w2"), 1, "digest name", b"3")
    await ledger.finish(TASK, 1, "cancelled", b"report")
    with pytest.raises(RunReplaced):
        await journal.write(RunName(TASK, 1, "w2"), 1, "digest name", b"4")
    assert await journal.heads(TASK) == {0: "digest name"}


async def test_a_journal_goes_with_its_task_its_user_and_its_time(
    ledger: Ledger,
    journal: Journal,
    valkey_or_redis: Redis,
    layout: LayoutUnderTest,
) -> None:
    """Results of steps may hold a person's words; keys of journals are no tasks."""
    tasks = UserTasks(valkey_or_redis)
    steps = keys.steps(layout.key(TASK))
    token = user_token("ana")

    async def keep() -> None:
        await journal.write(
            RunName(TASK, generation, "w1"), 0, "digest name", b'"Ana lives in Lyon"'
        )
        assert all(
            [0 < await valkey_or_redis.pttl(key) <= 7 * 86_400_000 for key in steps]
        )

    for generation in (1, 2):
        await ledger.begin(TASK, generation, "w1", 1000, LEASE_MS)
        await keep()
        if generation == 1:
            await tasks.strip(TASK, 1, b"{}")
            assert await valkey_or_redis.exists(*steps) == 0
    await ledger.finish_many([Finish(TASK, 2, "failed", b"{}", token)])
    assert {
        found.task_id async for found in tasks.read(token, lambda _body: False)
    } == {TASK}
    assert await tasks.remove([TASK]) == 1
    assert await valkey_or_redis.exists(*steps) == 0
