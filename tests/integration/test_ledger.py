"""The ledger on a real store: runs, leases, crashes, cancel requests, effects, the one report of a task, and counts."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.crc import key_slot

from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import TaskName
from tasklore.memory import keys
from tasklore.memory.ledger.journal import Journal
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import (
    CancelOutcome,
    CancelRequest,
    Ended,
    Finish,
    Held,
    NotDue,
    RunName,
    RunPermission,
    Suspect,
    Woken,
)
from tasklore.memory.ledger.tally import Tally
from tasklore.runtime.servers.embedded import ValkeyServer
from tests.ledger_layouts import AGENT, LayoutUnderTest
from tests.servers import PATIENCE_S

TASK = "0199-aaaa"
LEASE_MS = 30_000


@pytest.fixture
def ledger(valkey_or_redis: Redis, layout: LayoutUnderTest) -> Ledger:
    return Ledger(valkey_or_redis, deadline_s=PATIENCE_S)


async def test_an_accepted_task_runs_and_is_recorded(ledger: Ledger) -> None:
    assert await ledger.read(TASK) is None
    await ledger.accept(TASK, 1, b"{}")
    accepted = (await ledger.read(TASK)).generations[1]
    assert (accepted.state, accepted.assignment) == ("accepted", b"{}")
    assert await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS) == RunPermission(1)
    await ledger.begin("quick", 1, "w1", 1000, LEASE_MS)
    await ledger.accept(
        "quick", 1, b"{}"
    )  # the worker may be quicker than the note of the supervisor
    assert (await ledger.read("quick")).generations[1].state == "running"
    running = (await ledger.read(TASK)).generations[1]
    assert (
        running.state,
        running.attempts,
        running.worker_id,
        running.started_at_ms,
    ) == ("running", 1, "w1", 1000)
    assert running.report is None


async def test_the_first_report_of_a_task_counts_and_the_task_runs_no_more(
    ledger: Ledger,
) -> None:
    """A rival gets the first report, to publish that instead; the same report after a lost reply is no rival."""
    await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS)
    assert [await ledger.finish(TASK, 1, "completed", b"first") for _ in range(2)] == [
        None,
        None,
    ]
    assert await ledger.finish(TASK, 1, "failed", b"second") == b"first"
    assert await ledger.begin(TASK, 1, "w2", 2000, LEASE_MS) == b"first"
    first = (await ledger.read(TASK)).generations[1]
    assert (first.state, first.report, first.refused) == ("completed", b"first", 1)
    assert await ledger.cancel(TASK, None, "no need") == b"first"
    assert await ledger.cancel_request(TASK) is None


async def test_each_run_is_counted_once_over_workers_streams_and_lost_replies(
    ledger: Ledger,
) -> None:
    for number in (1, 2, 3):
        for _ in range(2):
            assert await ledger.begin(
                TASK, 1, f"w{number}", 1000, LEASE_MS, token=f"t{number}"
            ) == RunPermission(number)
        await ledger.release([Ended(TASK, 1, f"t{number}")])
    entry = await ledger.read(TASK)
    assert (entry.generations[1].attempts, entry.generations[1].worker_id) == (3, "w3")
    # A copy out of another stream says how many runs there were.
    assert await ledger.begin(
        "copy", 1, "w", 1000, LEASE_MS, before=2, token="a"
    ) == RunPermission(3)
    assert await ledger.begin(
        "copy", 1, "w", 1000, LEASE_MS, before=2, token="b"
    ) == RunPermission(4)
    assert await ledger.begin(
        "copy", 1, "w", 1000, LEASE_MS, token="c"
    ) == RunPermission(5)


async def test_an_excused_run_is_counted_apart_and_an_uncounted_one_not_at_all(
    ledger: Ledger,
) -> None:
    """Once, however often it is released or parked; the token of another run releases nothing."""
    await ledger.begin(TASK, 1, "w", 1000, LEASE_MS, token="a")
    await ledger.release([Ended(TASK, 1, "stranger", excused=True)])
    for _ in range(2):
        await ledger.release(
            [Ended(TASK, 1, "a", excused=True), Ended("unknown", 1, "a", excused=True)]
        )
    assert await ledger.begin(TASK, 1, "w", 1000, LEASE_MS, token="b") == RunPermission(
        2, 0, 1
    )
    await ledger.park(Ended(TASK, 1, "b", excused=True), 0)
    for token in ("c", "d", "e"):
        assert await ledger.begin(
            TASK, 1, "w", 1000, LEASE_MS, token=token
        ) == RunPermission(3, 0, 2)
        for _ in range(2):
            if token == "c":
                await ledger.park(Ended(TASK, 1, token, uncounted=True), 0)
            else:
                await ledger.release([Ended(TASK, 1, token, uncounted=True)])
    assert await ledger.read("unknown") is None


async def test_a_task_that_runs_at_another_worker_is_held(ledger: Ledger) -> None:
    assert await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS) == RunPermission(1)
    held = await ledger.begin(TASK, 1, "w2", 1000, LEASE_MS)
    assert isinstance(held, Held)
    assert 0 < held.wait_ms <= LEASE_MS
    assert await ledger.begin(
        TASK, 1, "w1", 1000, LEASE_MS, token="another"
    ) == RunPermission(2)
    assert await ledger.begin(TASK, 2, "w2", 1000, LEASE_MS) == RunPermission(1)


async def crash(ledger: Ledger, *, alone: bool = False) -> Suspect:
    """Let a run begin and end without a word; return what the ledger says of it."""
    assert isinstance(
        await ledger.begin(TASK, 1, "w1", 1000, 1, alone=alone, token=f"crash {alone}"),
        RunPermission,
    )
    async with asyncio.timeout(60):
        while isinstance(  # noqa: ASYNC110 - a clock
            found := await ledger.begin(TASK, 1, "w2", 1000, LEASE_MS), Held
        ):
            await asyncio.sleep(0.001)
    assert isinstance(found, Suspect)
    return found


async def test_a_lease_ends_by_itself_and_only_its_holder_renews_it(
    ledger: Ledger,
) -> None:
    await crash(ledger)
    assert await ledger.begin(
        TASK, 1, "w2", 1000, LEASE_MS, alone=True
    ) == RunPermission(2, crashes=1)
    assert await ledger.hold([(TASK, 1), ("unknown", 1)], "w1", LEASE_MS) == [(TASK, 1)]
    assert await ledger.hold([(TASK, 1)], "w2", LEASE_MS) == []
    assert isinstance(await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS), Held)


def without_worker(found: object) -> Suspect:
    """Return what is *found* without the worker that was lost."""
    assert isinstance(found, Suspect)
    return found._replace(lost=None)


async def test_a_crashed_run_makes_its_task_suspect_until_it_runs_alone(
    ledger: Ledger,
) -> None:
    found = await crash(ledger)
    assert without_worker(found) == Suspect(1, 0, 1, is_news=True)
    again = await ledger.begin(TASK, 1, "w3", 1000, LEASE_MS)
    assert without_worker(again) == Suspect(1, 0, 1)
    for number in (2, 3):
        found = await crash(ledger, alone=True)
        assert without_worker(found) == Suspect(
            number, number - 1, number, is_news=True
        )
    entry = await ledger.read(TASK)
    assert (entry.generations[1].attempts, entry.generations[1].crashes) == (3, 3)


async def test_the_worker_of_a_crashed_run_is_named(ledger: Ledger) -> None:
    """With when its lease ended, to whoever tries the task, and to readers of its past."""
    before = datetime.now(UTC) - timedelta(seconds=5)
    found = await crash(ledger)
    assert found.lost is not None
    assert found.lost.worker_id == "w1"
    assert before < found.lost.silent_since < datetime.now(UTC) + timedelta(seconds=5)
    assert (await ledger.past(TASK, 1)).lost == found.lost
    again = await ledger.begin(TASK, 1, "w3", 1000, LEASE_MS)
    assert isinstance(again, Suspect)
    assert again.lost == found.lost


async def test_crashes_alone_count_anew_once_a_task_gets_further(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    """A step that was there before, or another one in its place, is no way forward."""
    journal = Journal(valkey_or_redis, deadline_s=PATIENCE_S)
    run = RunName(TASK, 1, "w1")
    found = []
    for head in (None, "digest name", "digest name", "other name"):
        if head is not None:
            await journal.write(run, 0, head, b"1")
        found.append(await crash(ledger, alone=True))
    assert [(one.crashes, one.crashes_alone) for one in found] == [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 3),
    ]


async def test_tolerated_crashes_let_a_run_begin_beside_others(ledger: Ledger) -> None:
    found = await crash(ledger)
    assert without_worker(found) == Suspect(1, 0, 1, is_news=True)
    assert await ledger.begin(
        TASK, 1, "w1", 1000, 1, most_crashes=1, token="b"
    ) == RunPermission(2, crashes=1)
    async with asyncio.timeout(60):
        while isinstance(  # noqa: ASYNC110 - a clock
            found := await ledger.begin(TASK, 1, "w2", 1000, LEASE_MS, most_crashes=2),
            Held,
        ):
            await asyncio.sleep(0.001)
    assert found == RunPermission(3, crashes=2, is_news=True)
    assert await ledger.begin(
        TASK, 1, "w2", 1000, LEASE_MS, most_crashes=2
    ) == RunPermission(3, crashes=2)
    suspect = await ledger.begin(
        TASK, 1, "w2", 1000, LEASE_MS, most_crashes=1, token="c"
    )
    assert without_worker(suspect) == Suspect(2, 0, 3)


async def test_a_released_or_parked_run_is_no_crash(ledger: Ledger) -> None:
    assert await ledger.begin(TASK, 1, "w1", 1000, 1, token="a") == RunPermission(1)
    await ledger.park(Ended(TASK, 1, "a"), 0)
    assert await ledger.hold([(TASK, 1)], "w1", LEASE_MS) == []
    assert await ledger.begin(
        TASK, 1, "w2", 1000, LEASE_MS, token="b"
    ) == RunPermission(2)
    await ledger.release([Ended(TASK, 1, "b")])
    assert await ledger.begin(
        TASK, 1, "w3", 1000, LEASE_MS, token="c"
    ) == RunPermission(3)


async def test_a_parked_task_is_not_begun_before_it_is_due(ledger: Ledger) -> None:
    await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS, token="a")
    await ledger.park(Ended(TASK, 1, "stranger"), 60_000, b"{}")
    assert isinstance(await ledger.begin(TASK, 1, "w2", 1000, LEASE_MS), Held)
    await ledger.park(Ended(TASK, 1, "a"), 60_000, b"{}")
    held = await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS)
    entry = await ledger.read(TASK)
    assert isinstance(held, NotDue)
    assert 50_000 < held.wait_ms <= 60_000
    assert (entry.generations[1].state, entry.generations[1].assignment) == (
        "waiting",
        b"{}",
    )
    await ledger.begin("soon", 1, "w1", 1000, LEASE_MS, token="a")
    await ledger.park(Ended("soon", 1, "a"), 1)
    async with asyncio.timeout(60):
        while isinstance(await ledger.begin("soon", 1, "w2", 1000, LEASE_MS), NotDue):  # noqa: ASYNC110 - a clock passes
            await asyncio.sleep(0.001)


async def test_a_cancel_request_refuses_runs_and_any_other_report(
    ledger: Ledger,
) -> None:
    await ledger.accept(TASK, 1, b"{}")
    assert await ledger.cancel(TASK, None, "no need") == CancelOutcome(
        1, "accepted", b"{}"
    )
    assert await ledger.begin(TASK, 1, "w", 1000, LEASE_MS) == CancelRequest("no need")
    assert await ledger.cancel_request(TASK) == CancelRequest("no need")
    assert await ledger.finish(TASK, 1, "completed", b"done") == CancelRequest(
        "no need"
    )
    assert await ledger.finish(TASK, 1, "cancelled", b"stopped") is None
    assert await ledger.cancel_request(TASK) == CancelRequest("no need")
    assert await ledger.finish(TASK, 1, "completed", b"done") == b"stopped"


async def test_who_cancels_is_told_what_the_task_waits_for(ledger: Ledger) -> None:
    """What a worker wrote that is no reason is none."""
    now = datetime.now(UTC)
    wait = RunWait(kind="limit", name="x", text="a place", since=now, until=now)
    await ledger.accept(TASK, 1, b"{}")
    await ledger.note_wait(TASK, 1, wait)
    found = await ledger.cancel(TASK, None, "no need")
    assert isinstance(found, CancelOutcome)
    assert found.waits_for == wait


async def test_since_when_a_task_waits_stays_while_it_waits_for_the_same(
    ledger: Ledger,
) -> None:
    """What it waits for is a kind and a name: another limit is another wait."""
    first = datetime(2026, 1, 1, tzinfo=UTC)
    second = first + timedelta(hours=1)
    await ledger.accept(TASK, 1, b"{}")
    for name, since, kept in (
        ("x", first, first),
        ("x", second, first),
        ("y", second, second),
    ):
        wait = RunWait(
            kind="limit", name=name, text="a place", since=since, until=second
        )
        await ledger.note_wait(TASK, 1, wait)
        noted = (await ledger.read(TASK)).generations[1].waits_for
        assert (noted.name, noted.since) == (name, kept)


async def test_a_task_that_is_woken_is_due_at_once(ledger: Ledger) -> None:
    """Its next run may begin though its time has not come."""
    await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS, token="t")
    await ledger.park(Ended(TASK, 1, "t", excused=True), 600_000, assignment=b"{}")
    early = await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS, token="u")
    assert isinstance(early, NotDue)
    assert await ledger.wake(TASK, 1) == Woken(1, b"{}", "")
    assert await ledger.begin(
        TASK, 1, "w1", 1000, LEASE_MS, token="u"
    ) == RunPermission(2, excused=1)


async def test_the_newest_generation_is_cancelled_unless_one_is_named(
    ledger: Ledger,
) -> None:
    await ledger.finish(TASK, 1, "failed", b"one")
    await ledger.accept(TASK, 2, b"{}")
    assert await ledger.cancel(TASK, None, "why") == CancelOutcome(2, "accepted", b"{}")
    assert await ledger.cancel(TASK, 1, "why") == b"one"
    assert await ledger.cancel("unheard of", None, "why") == CancelOutcome(
        1, "unknown", None
    )
    assert await ledger.begin("unheard of", 1, "w", 1000, LEASE_MS) == CancelRequest(
        "why"
    )
    assert await ledger.cancel_request("never") is None
    await ledger.finish("child", 1, "cancelled", b"with its parent")
    assert await ledger.cancel_request("child") == CancelRequest("it was cancelled")
    assert await ledger.cancel_request("never", "child") == CancelRequest(
        "it was cancelled"
    )


async def test_an_effect_is_made_by_one_call_of_one_run(ledger: Ledger) -> None:
    await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS)
    assert await ledger.once(TASK, 1, "w1", "mail:1", "call-1") is True
    assert await ledger.once(TASK, 1, "w1", "mail:1", "call-1") is True
    assert await ledger.once(TASK, 1, "w1", "mail:1", "call-2") is False
    assert await ledger.once(TASK, 1, "w1", "other", "call-3") is True
    assert await ledger.once(TASK, 2, "w2", "mail:1", "call-4") is False
    entry = await ledger.read(TASK)
    assert list(entry.generations) == [1]


async def test_a_replaced_ended_or_cancelled_run_makes_no_effect(
    ledger: Ledger,
) -> None:
    await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS)
    assert await ledger.once(TASK, 1, "w2", "mail", "call-1") is None
    await ledger.cancel(TASK, 1, "why")
    assert await ledger.once(TASK, 1, "w1", "mail", "call-2") is None
    await ledger.finish("done", 1, "failed", b"x")
    assert await ledger.once("done", 1, "w1", "mail", "call-3") is None


async def test_each_generation_gets_exactly_one_report_of_its_own(
    ledger: Ledger,
) -> None:
    await ledger.finish(TASK, 1, "failed", b"one")
    assert await ledger.finish(TASK, 3, "completed", b"three") is None
    assert await ledger.begin(TASK, 1, "w", 1, LEASE_MS) == b"one"
    assert await ledger.begin(TASK, 2, "w", 1, LEASE_MS) == RunPermission(1)
    assert await ledger.finish(TASK, 2, "failed", b"two") is None
    assert await ledger.begin(TASK, 2, "w", 1, LEASE_MS) == b"two"
    entry = await ledger.read(TASK)
    assert {number: one.report for number, one in entry.generations.items()} == {
        1: b"one",
        2: b"two",
        3: b"three",
    }
    assert entry.newest == 3


async def test_a_hundred_finishes_at_once_have_one_winner(ledger: Ledger) -> None:
    reports = [b"report %d" % number for number in range(100)]
    outcomes = await asyncio.gather(
        *(ledger.finish(TASK, 1, "completed", report) for report in reports)
    )
    (winner,) = [
        report
        for report, outcome in zip(reports, outcomes, strict=True)
        if outcome is None
    ]
    assert {outcome for outcome in outcomes if outcome is not None} == {winner}
    entry = await ledger.read(TASK)
    assert (entry.generations[1].report, entry.generations[1].refused) == (winner, 99)


async def test_a_batch_keeps_its_order(ledger: Ledger) -> None:
    await ledger.finish("b", 1, "completed", b"earlier")
    finished = [
        Finish("a", 1, "completed", b"A"),
        ("b", 1, "failed", b"B"),
        Finish("a", 1, "failed", b"C"),
    ]
    assert await ledger.finish_many(finished) == [None, b"earlier", b"A"]
    assert await ledger.finish_many([]) == []


async def test_foreign_values_unknown_fields_and_lost_scripts_stop_no_task(
    ledger: Ledger, valkey_or_redis: Redis, layout: LayoutUnderTest
) -> None:
    """Neither the task itself nor the other tasks of a batch; a task is known for seven days unless said otherwise."""
    await valkey_or_redis.set(layout.key(TASK), b"a string")
    assert await ledger.finish_many(
        [(TASK, 1, "completed", b"x"), ("other", 1, "completed", b"y")]
    ) == [None, None]
    await valkey_or_redis.script_flush()
    assert await ledger.begin(TASK, 1, "w", 1, LEASE_MS) == b"x"
    await valkey_or_redis.hset(
        layout.key("novel"), mapping={"note": b"x", "note:of": b"y", ":1": b"z"}
    )
    assert await ledger.read(TaskName(AGENT, "novel")) is None
    await ledger.finish("novel", 1, "completed", b"x")
    assert list((await ledger.read("novel")).generations) == [1]
    await ledger.begin("begun", 1, "w", 1, LEASE_MS)
    for task_id in ("novel", "begun"):
        assert (
            604_000_000 < await valkey_or_redis.pttl(layout.key(task_id)) <= 604_800_000
        )
    await Ledger(
        valkey_or_redis, keep=timedelta(minutes=1), deadline_s=PATIENCE_S
    ).finish("brief", 1, "failed", b"x")
    assert 0 < await valkey_or_redis.pttl(layout.key("brief")) <= 60_000


async def test_a_frozen_stopped_or_missing_server_is_unavailable_and_found_again(
    tmp_path: Path,
) -> None:
    """The connection that was given up is closed: no later call reads an answer that was meant for an earlier one."""
    async with Redis(host="127.0.0.1", port=1) as nowhere:
        with pytest.raises(MemoryUnavailable):
            await Ledger(nowhere, deadline_s=0.1).finish(TASK, 1, "completed", b"x")
    server = ValkeyServer(tmp_path)
    await server.start()
    async with Redis.from_url(server.url) as client:
        patient = Ledger(client, deadline_s=60.0)
        await patient.finish(TASK, 1, "completed", b"first")
        server.pause()
        with pytest.raises(MemoryUnavailable):
            await Ledger(client, deadline_s=0.1).finish(TASK, 1, "completed", b"second")
        server.resume()
        assert await patient.begin("new", 1, "w", 1, LEASE_MS) == RunPermission(1)
        assert await patient.begin(TASK, 1, "w", 1, LEASE_MS) == b"first"
        await server.stop()
        await server.start()
        assert await patient.begin("newer", 1, "w", 1, LEASE_MS) == RunPermission(1)
    await server.stop()


@pytest.mark.parametrize("before", ["nothing", "another", "the same", "a wish"])
async def test_an_adopted_report_becomes_the_one_report(
    ledger: Ledger, valkey_or_redis: Redis, before: str
) -> None:
    stored = Finish(TASK, 1, "completed", b"stored", "token")
    await ledger.finish(TASK, 2, "failed", b"two")
    assert await ledger.once(TASK, 1, "w", "pay", "t")
    if before == "a wish":
        await ledger.cancel(TASK, 1, "no need")
    elif before != "nothing":
        await ledger.finish(
            TASK, 1, "expired", b"stored" if before == "the same" else b"rival"
        )
    for _ in range(2):
        await ledger.adopt_many([stored])

    entry = await ledger.read(TASK)
    assert (entry.generations[1].report, entry.generations[2].report) == (
        b"stored",
        b"two",
    )
    assert entry.generations[1].state == (
        "expired" if before == "the same" else "completed"
    )
    assert await ledger.finish(TASK, 1, "cancelled", b"late") == b"stored"
    assert await ledger.once(TASK, 1, "w", "pay", "t")
    state = entry.generations[1].state
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {
        state: 1,
        "failed": 1,
    }


async def test_an_entry_costs_little_beside_its_report(
    ledger: Ledger, valkey_or_redis: Redis, layout: LayoutUnderTest
) -> None:
    report = b"r" * 420
    task_id = "0199c0de-1234-7abc-8def-0123456789ab"
    token = "$JS.ACK.TASKS.BudgetTrackerAgent.1.100.100.17639000000.0"
    await ledger.accept(task_id, 1, b"a" * 500)
    await ledger.begin(
        task_id,
        1,
        "budget-worker-7d9f-1234-abcdef12",
        1763900000000,
        LEASE_MS,
        token=token,
    )
    await ledger.finish_many(
        [Finish(task_id, 1, "completed", report, "dXNlci0xMjM0NTY3ODkw")]
    )
    cost = await valkey_or_redis.memory_usage(layout.key(task_id), samples=0)
    assert cost is not None
    assert cost - (0 if layout.is_by_agent else len(report)) <= 400
    assert (
        await ledger.hold([(task_id, 1)], "budget-worker-7d9f-1234-abcdef12", LEASE_MS)
        == []
    )
    await ledger.release([Ended(task_id, 1, token, excused=True)])
    end = b"finished_at:1" if layout.is_by_agent else b"report:1"
    left = {b"state:1", end, b"user"}
    assert set(await valkey_or_redis.hkeys(layout.key(task_id))) == left


@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_an_entry_at_rest_has_the_same_fields_however_its_task_came_to_its_end(
    ledger: Ledger, valkey_or_redis: Redis, layout: LayoutUnderTest, status: str
) -> None:
    """What was noted of a task that had not begun, of a run, or only after the end, goes with it."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    wait = RunWait(kind="limit", name="budget", text="", since=now, until=now)
    for number, path in enumerate(
        ("none", "accepted", "due", "bound", "run", "parked", "late")
    ):
        task_id = f"t{number}"
        if path == "due":
            await ledger.accept(task_id, 1, b"{}", "trace", 1_000)
        elif path not in ("none", "late"):
            await ledger.accept(task_id, 1, b"{}", "trace")
        if path == "bound":
            await ledger.note_wait(task_id, 1, wait)
        if path in ("run", "parked"):
            await ledger.begin(task_id, 1, "w", 1000, LEASE_MS, token="t")
        if path == "parked":
            await ledger.park(Ended(task_id, 1, "t", excused=True), 0)
        await ledger.finish_many([Finish(task_id, 1, status, b"report", "token")])
        if path == "late":
            await ledger.accept(task_id, 1, b"{}", "trace")
        kept = {b"state:1", b"user"}
        kept.add(b"finished_at:1" if layout.is_by_agent else b"report:1")
        if status == "failed" and path != "none":
            kept |= {b"assignment:1", b"trace:1"}
        assert set(await valkey_or_redis.hkeys(layout.key(task_id))) == kept, path


async def test_a_task_that_nobody_told_of_is_ended_without_a_delete(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    """There is nothing to delete, and most of what is remembered ends so."""
    await ledger.finish("warm", 1, "completed", b"report")
    await valkey_or_redis.config_resetstat()
    await ledger.finish(TASK, 1, "completed", b"report")
    calls = await valkey_or_redis.info("commandstats")
    assert calls["cmdstat_fcall"]["calls"] == 1
    assert "cmdstat_hdel" not in calls


@pytest.mark.parametrize("layout", ["1", "prepared", "migrating"], indirect=True)
async def test_the_end_of_one_generation_leaves_the_others(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    key = keys.task(TASK)
    earlier = {
        "state:1": "failed",
        "report:1": "first",
        "worker:1": "w0",
        "attempts:1": "5",
        "assignment:1": "{}",
    }
    await valkey_or_redis.hset(
        key, mapping={**earlier, "once.mail": "m1", "novel": "x", "refused:1": "2"}
    )
    await ledger.begin(TASK, 2, "w1", 1000, LEASE_MS)
    assert await ledger.finish(TASK, 2, "failed", b"second") is None
    fields = {
        name.decode(): value.decode()
        for name, value in (await valkey_or_redis.hgetall(key)).items()
    }
    kept = {"once.mail": "m1", "novel": "x", "refused:1": "2"}
    assert fields == {**earlier, **kept, "state:2": "failed", "report:2": "second"}
    assert await ledger.begin(TASK, 1, "w1", 1000, LEASE_MS) == b"first"
    assert await ledger.once(TASK, 3, "w1", "mail", "m2") is False


async def test_each_generation_counts_once_in_the_state_it_ended(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    for report in (b"first", b"first", b"rival"):
        await ledger.finish("t1", 1, "completed", report)
    await ledger.finish("t1", 2, "failed", b"again")
    await ledger.finish_many(
        [(f"u{number}", 1, "completed", b"done") for number in range(500)]
    )
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {
        "completed": 501,
        "failed": 1,
    }


async def test_a_report_that_is_not_taken_does_not_count(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    await ledger.cancel("t1", 1, "enough")
    await ledger.finish("t1", 1, "completed", b"late")
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {}
    await ledger.finish("t1", 1, "cancelled", b"as wished")
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {
        "cancelled": 1
    }


async def test_a_counter_that_is_no_number_counts_nothing(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    await ledger.finish("t1", 1, "completed", b"done")
    for value in (b"\xff", b"1e400", b"9" * 5000, b""):
        await valkey_or_redis.hset(keys.end_counts(keys.task("t2")), "failed", value)  # type: ignore[arg-type]
        assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {
            "completed": 1
        }


async def test_a_forgotten_task_stays_counted(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    await ledger.finish("t1", 1, "completed", b"done")
    await valkey_or_redis.unlink(keys.task("t1"))
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {
        "completed": 1
    }
    assert await valkey_or_redis.ttl(keys.end_counts(keys.task("t1"))) == -1


async def test_a_foreign_value_under_the_key_of_a_counter_stops_no_report(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    await valkey_or_redis.set(keys.end_counts(keys.task("t1")), b"not a counter")
    assert await ledger.finish("t1", 1, "completed", b"done") is None
    assert await Tally(valkey_or_redis, deadline_s=PATIENCE_S).read() == {
        "completed": 1
    }


async def test_of_many_processes_one_adds_the_counters_up(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    """The others wait for its sums, and each reads all that counted before they were asked for."""
    for number in range(7):
        await ledger.finish(f"t{number}", 1, "completed", b"done")
    await valkey_or_redis.config_resetstat()
    tallies = [Tally(valkey_or_redis, deadline_s=PATIENCE_S) for _ in range(20)]
    found = await asyncio.gather(*(tally.read_shared() for tally in tallies))
    assert [sums.value for sums in found] == [{"completed": 7}] * 20
    assert all(0 <= sums.age_s < PATIENCE_S for sums in found)
    calls = await valkey_or_redis.info("commandstats")
    assert calls["cmdstat_hgetall"]["calls"] == 16_384


@pytest.mark.parametrize(
    "kept", [b"no sums", b"[1]", b'{"completed": -1}', b'{"a": 1e400}']
)
async def test_sums_that_cannot_be_read_are_added_up_again(
    ledger: Ledger, valkey_or_redis: Redis, kept: bytes
) -> None:
    await ledger.finish("t1", 1, "completed", b"done")
    await valkey_or_redis.set(keys.end_sums()[0], kept)
    tally = Tally(valkey_or_redis, deadline_s=PATIENCE_S)
    # Nobody holds the lease for longer than its time.
    assert (await tally.read_shared()).value == {"completed": 1}


def test_a_task_and_its_counter_lie_in_one_slot_and_every_slot_has_one_counter() -> (
    None
):
    for task_id in ("0199-aaaa", "with {braces}:and/more", "ümläut", "x" * 512):
        task = keys.task(task_id)
        assert key_slot(task.encode()) == key_slot(keys.end_counts(task).encode())
        assert keys.end_counts(task) in set(keys.every_ended())
    assert {key_slot(key.encode()) for key in keys.every_ended()} == set(range(16_384))
