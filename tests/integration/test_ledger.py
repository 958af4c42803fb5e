"""The ledger's contract, for the store on real servers and for the fake that stands for it."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from contracts.errors import MemoryUnavailable
from memory import keys
from memory.fakes import FakeLedger
from memory.ledger import Finish, Held, Ledger
from runtime.embedded import ValkeyServer

TASK = "0199-aaaa"
LEASE_MS = 30_000


@pytest.fixture(params=["store", "fake"])
def ledger(request: pytest.FixtureRequest, valkey_or_redis: Redis) -> Ledger | FakeLedger:
    """Return each kind of ledger."""
    return Ledger(valkey_or_redis) if request.param == "store" else FakeLedger()


async def test_a_first_attempt_may_run_and_is_recorded(ledger: Ledger | FakeLedger) -> None:
    """With its worker, number and start."""
    assert await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS) == 1
    entry = await ledger.read(TASK)
    assert entry is not None
    running = entry.generations[1]
    assert (running.state, running.attempts, running.worker_id, running.started_at_ms) == ("running", 1, "w1", 1000)
    assert running.report is None


async def test_the_first_report_is_the_one(ledger: Ledger | FakeLedger) -> None:
    """A later one gets the first back, to publish it instead, and is counted."""
    assert await ledger.finish(TASK, 1, "completed", b"first") is None
    assert await ledger.finish(TASK, 1, "failed", b"second") == b"first"
    entry = await ledger.read(TASK)
    assert entry is not None
    assert (entry.generations[1].state, entry.generations[1].report, entry.generations[1].refused) == (
        "completed",
        b"first",
        1,
    )


async def test_the_same_report_again_is_still_the_one(ledger: Ledger | FakeLedger) -> None:
    """A repeat after a lost reply must not read as a rival."""
    assert await ledger.finish(TASK, 1, "completed", b"first") is None
    assert await ledger.finish(TASK, 1, "completed", b"first") is None


async def test_a_finished_task_does_not_run_again(ledger: Ledger | FakeLedger) -> None:
    """Its redelivery is told the report."""
    await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS)
    await ledger.finish(TASK, 1, "completed", b"done")
    assert await ledger.begin(TASK, 1, "w2", 2000, LEASE_MS) == b"done"
    entry = await ledger.read(TASK)
    assert entry is not None
    assert (entry.generations[1].attempts, entry.generations[1].worker_id) == (1, "w1")


async def test_runs_are_counted_whoever_runs_them(ledger: Ledger | FakeLedger) -> None:
    """One after the other, each let go before the next; what is handed back unstarted is none."""
    for number in (1, 2, 3):
        assert await ledger.begin(TASK, 1, f"w{number}", 1000 + number, LEASE_MS) == number
        await ledger.hold([(TASK, 1)], f"w{number}", 0)
    entry = await ledger.read(TASK)
    assert entry is not None
    assert (entry.generations[1].attempts, entry.generations[1].worker_id) == (3, "w3")


async def test_runs_that_others_counted_are_counted_on(ledger: Ledger | FakeLedger) -> None:
    """A copy out of another stream says how many there were; what is known here is never forgotten for it."""
    assert await ledger.begin(TASK, 1, "w", 1000, LEASE_MS, before=2) == 3
    assert await ledger.begin(TASK, 1, "w", 1000, LEASE_MS, before=2) == 4
    assert await ledger.begin(TASK, 1, "w", 1000, LEASE_MS) == 5


async def test_what_runs_elsewhere_is_held_until_its_lease_ends(ledger: Ledger | FakeLedger) -> None:
    """A copy at another worker waits; the same worker, and another generation, do not."""
    assert await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS) == 1
    held = await ledger.begin(TASK, 1, "w2", 1000, LEASE_MS)
    assert isinstance(held, Held)
    assert 0 < held.wait_ms <= LEASE_MS
    assert await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS) == 2
    assert await ledger.begin(TASK, 2, "w2", 1000, LEASE_MS) == 1


async def test_a_lease_ends_by_itself_and_only_its_holder_renews_it(ledger: Ledger | FakeLedger) -> None:
    """A worker that died holds nothing for long, and nobody prolongs a stranger's run."""
    assert await ledger.begin(TASK, 1, "w1", 1000, 1) == 1
    await ledger.hold([(TASK, 1)], "w2", LEASE_MS)
    async with asyncio.timeout(5):
        while isinstance(await ledger.begin(TASK, 1, "w2", 1000, LEASE_MS), Held):  # noqa: ASYNC110 - a clock passes
            await asyncio.sleep(0.001)
    await ledger.hold([(TASK, 1)], "w2", LEASE_MS)
    assert isinstance(await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS), Held)


async def test_a_higher_generation_reopens_the_task(ledger: Ledger | FakeLedger) -> None:
    """A redrive runs although the generation before failed."""
    await ledger.finish(TASK, 1, "failed", b"one")
    assert await ledger.begin(TASK, 2, "w", 1, LEASE_MS) == 1
    assert await ledger.finish(TASK, 2, "completed", b"two") is None
    entry = await ledger.read(TASK)
    assert entry is not None
    assert [one.report for one in entry.generations.values()] == [b"one", b"two"]
    assert entry.newest == 2


async def test_a_generation_left_behind_still_gets_exactly_one_report(ledger: Ledger | FakeLedger) -> None:
    """Its own, whether it was reported before the redrive or not."""
    await ledger.finish(TASK, 1, "failed", b"one")
    await ledger.finish(TASK, 3, "completed", b"three")
    assert await ledger.begin(TASK, 1, "w", 1, LEASE_MS) == b"one"
    assert await ledger.begin(TASK, 2, "w", 1, LEASE_MS) == 1
    assert await ledger.finish(TASK, 2, "failed", b"two") is None
    assert await ledger.begin(TASK, 2, "w", 1, LEASE_MS) == b"two"


async def test_accepting_notes_the_assignment_and_undoes_nothing(ledger: Ledger | FakeLedger) -> None:
    """The worker may be quicker than the supervisor's note."""
    await ledger.accept(TASK, 1, b"{}")
    await ledger.begin("quick", 1, "w", 1, LEASE_MS)
    await ledger.accept("quick", 1, b"{}")
    accepted, quick = await ledger.read(TASK), await ledger.read("quick")
    assert accepted is not None
    assert quick is not None
    assert (accepted.generations[1].state, accepted.generations[1].assignment) == ("accepted", b"{}")
    assert (quick.generations[1].state, quick.generations[1].attempts) == ("running", 1)


async def test_a_report_published_without_the_ledger_is_repaired(ledger: Ledger | FakeLedger) -> None:
    """As if it had been finished, but never over another."""
    assert await ledger.repair(TASK, 1, "completed", b"published") is None
    assert await ledger.begin(TASK, 1, "w", 1, LEASE_MS) == b"published"
    assert await ledger.repair(TASK, 1, "completed", b"other") == b"published"


async def test_an_unknown_task_is_none(ledger: Ledger | FakeLedger) -> None:
    """Not an empty entry."""
    assert await ledger.read("never") is None


async def test_a_hundred_finishes_at_once_have_one_winner(ledger: Ledger | FakeLedger) -> None:
    """The ninety-nine others all get the winner's report."""
    reports = [b"report %d" % number for number in range(100)]
    outcomes = await asyncio.gather(*(ledger.finish(TASK, 1, "completed", report) for report in reports))
    (winner,) = [report for report, outcome in zip(reports, outcomes, strict=True) if outcome is None]
    assert {outcome for outcome in outcomes if outcome is not None} == {winner}
    entry = await ledger.read(TASK)
    assert entry is not None
    assert (entry.generations[1].report, entry.generations[1].refused) == (winner, 99)


async def test_a_batch_keeps_its_order(ledger: Ledger | FakeLedger) -> None:
    """Each answer belongs to its item, also when one task comes twice."""
    await ledger.finish("b", 1, "completed", b"earlier")
    finished = [Finish("a", 1, "completed", b"A"), ("b", 1, "failed", b"B"), Finish("a", 1, "failed", b"C")]
    assert await ledger.finish_many(finished) == [None, b"earlier", b"A"]
    assert await ledger.finish_many([]) == []


async def test_a_task_is_known_for_the_time_asked(valkey_or_redis: Redis) -> None:
    """Seven days unless said otherwise, from its last event."""
    await Ledger(valkey_or_redis).begin(TASK, 1, "w", 1, LEASE_MS)
    assert 604_000_000 < await valkey_or_redis.pttl(keys.task(TASK)) <= 604_800_000
    await Ledger(valkey_or_redis, keep=timedelta(minutes=1)).finish(TASK, 1, "completed", b"x")
    assert 0 < await valkey_or_redis.pttl(keys.task(TASK)) <= 60_000


async def test_scripts_that_redis_forgot_are_given_again(valkey_or_redis: Redis) -> None:
    """A restart or SCRIPT FLUSH costs a round trip, no task."""
    ledger = Ledger(valkey_or_redis)
    await ledger.finish(TASK, 1, "completed", b"x")
    await valkey_or_redis.script_flush()
    assert await ledger.finish_many([(TASK, 1, "failed", b"y"), ("other", 1, "completed", b"z")]) == [b"x", None]


async def test_a_foreign_value_under_a_task_is_replaced(valkey_or_redis: Redis) -> None:
    """It must not fail every delivery of the task, nor the other tasks of a batch."""
    ledger = Ledger(valkey_or_redis)
    await valkey_or_redis.set(keys.task(TASK), b"a string")
    assert await ledger.finish_many([(TASK, 1, "completed", b"x"), ("other", 1, "completed", b"y")]) == [None, None]
    assert await ledger.begin(TASK, 1, "w", 1, LEASE_MS) == b"x"


async def test_fields_of_a_newer_writer_are_passed_over(valkey_or_redis: Redis) -> None:
    """They neither fail the reading nor pass for a generation."""
    ledger = Ledger(valkey_or_redis)
    await valkey_or_redis.hset(keys.task(TASK), mapping={"note": b"x", "note:of": b"y", ":1": b"z"})
    assert await ledger.read(TASK) is None
    await ledger.finish(TASK, 1, "completed", b"x")
    entry = await ledger.read(TASK)
    assert entry is not None
    assert list(entry.generations) == [1]


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    """Nothing of redis-py gets out."""
    async with Redis(host="127.0.0.1", port=1) as nowhere:
        with pytest.raises(MemoryUnavailable):
            await Ledger(nowhere, deadline_s=0.1).finish(TASK, 1, "completed", b"x")


async def test_a_restarted_server_is_found_again(tmp_path: Path) -> None:
    """The pooled connection is of the process that died; the next call opens another."""
    server = ValkeyServer(tmp_path)
    await server.start()
    async with Redis.from_url(server.url) as client:
        ledger = Ledger(client, deadline_s=5.0)
        await ledger.begin(TASK, 1, "w", 1, LEASE_MS)
        await server.stop()
        await server.start()
        assert await ledger.finish(TASK, 1, "completed", b"x") is None
    await server.stop()


async def test_a_frozen_server_is_unavailable_and_its_late_answers_are_nobodys(tmp_path: Path) -> None:
    """The connection that was given up is closed, so no later call reads what was meant for an earlier one."""
    server = ValkeyServer(tmp_path)
    await server.start()
    async with Redis.from_url(server.url) as client:
        ledger = Ledger(client, deadline_s=0.1)
        await ledger.finish(TASK, 1, "completed", b"first")
        server.pause()
        with pytest.raises(MemoryUnavailable):
            await ledger.finish(TASK, 1, "completed", b"second")
        server.resume()
        patient = Ledger(client, deadline_s=5.0)
        assert await patient.begin("new", 1, "w", 1, LEASE_MS) == 1
        assert await patient.begin(TASK, 1, "w", 1, LEASE_MS) == b"first"
    await server.stop()
