"""The desk and its runner on fakes: serving, running, and the end of each delivery."""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tasklore import Context
from tasklore.contracts import subjects
from tasklore.contracts.errors import GiveUp, MemoryUnavailable
from tasklore.contracts.identifiers import TaskName, user_token
from tasklore.memory.ledger.runs import PastRuns, RunPermission
from tasklore.runtime.messaging.pull import Delivery
from tasklore.workers.execution.executor import JOIN_S
from tasklore.workers.execution.job_reader import JobReader
from tests.unit.workers.execution.fake_worker import NOW, FakeWorker, a_task, raising


@pytest.fixture
def worker() -> FakeWorker:
    """Open an worker whose tasks just answer."""
    return FakeWorker()


async def test_a_task_is_run_remembered_written_to_the_ledger_reported_and_settled(
    worker: FakeWorker,
) -> None:
    """In this order, so that a crash anywhere in between repeats at most what counts once."""
    delivery = a_task()
    await worker.work(delivery)
    assert (worker.report().status, worker.report().result) == (
        "completed",
        {"word": "hello"},
    )
    assert (worker.report().memory.outcome, worker.report().fence) == ("miss", "ledger")
    assert worker.order == ["memory", "ledger", "reports"]
    assert worker.engine.settled == [delivery]
    [(subject, _, message_id)] = worker.outbox.stored
    assert (subject, message_id) == ("reports.S.t1.1", "t1:1:report")


async def test_a_batch_is_recalled_at_once_and_hits_are_served_without_a_run(
    worker: FakeWorker,
) -> None:
    """One question to the memory for all of them, and nothing of the answer is computed again."""
    await worker.work(a_task())
    await worker.work(
        *(a_task(task_id=f"again-{number}") for number in range(5)),
        a_task("other", task_id="new"),
    )
    assert worker.runs == ["hello", "other"]
    assert 6 in worker.memory.asked
    outcomes = Counter(report.memory.outcome for report in worker.outbox.reports())
    assert outcomes == {"miss": 2, "hit": 5}
    assert sum(worker.hits.values()) == 5
    assert worker.counts.seen["hit"] == 5


async def test_a_remembered_answer_says_how_old_it_is(worker: FakeWorker) -> None:
    await worker.work(a_task())
    worker.now += timedelta(seconds=5)
    await worker.work(a_task(task_id="again"))
    [_, report] = worker.outbox.reports()
    assert (report.memory.outcome, report.memory.age_ms) == ("hit", 5_000)


async def test_identical_questions_in_one_batch_are_computed_once(
    worker: FakeWorker,
) -> None:
    """The others join the one that runs."""
    await worker.work(*(a_task(task_id=f"t{number}") for number in range(10)))
    assert worker.runs == ["hello"]
    assert Counter(report.memory.outcome for report in worker.outbox.reports()) == {
        "miss": 1,
        "joined": 9,
    }
    assert len(worker.engine.settled) == 10


async def test_an_answer_that_is_computed_anew_takes_the_place_of_the_remembered_one(
    worker: FakeWorker,
) -> None:
    await worker.work(a_task())
    await worker.work(a_task(task_id="again", memory="refresh"))
    assert worker.runs == ["hello", "hello"]
    assert worker.order.count("memory") == 2


async def test_copies_of_one_task_are_run_once(worker: FakeWorker) -> None:
    await worker.work(a_task(task="mutter"), a_task(task="mutter"))
    await worker.work(a_task(task="mutter", deliveries=2))
    assert worker.runs == ["hello"]
    first, second, third = (body for _, body, _ in worker.outbox.stored)
    assert first == second == third
    assert len(worker.engine.settled) == 3


async def test_a_later_result_than_the_ledgers_is_refused_and_counted(
    worker: FakeWorker,
) -> None:
    """Whichever attempt finishes first wins; the other publishes the winner's words."""
    winner = b'{"won": true}'

    async def overtaken(_word: str, _context: Context) -> None:
        await worker.ledger.finish("t1", 1, "completed", winner)

    worker.does = overtaken
    await worker.work(a_task(task="mutter"))
    assert [body for _, body, _ in worker.outbox.stored] == [winner]
    assert worker.counts.seen["stale"] == 1
    assert len(worker.engine.settled) == 1


async def test_a_task_whose_memory_is_being_asked_when_the_worker_leaves_is_handed_back(
    worker: FakeWorker,
) -> None:
    """It has not begun to run; waiting for another's answer, it would hold the worker for its whole grace period."""
    worker.memory.answers_when.clear()
    work = asyncio.create_task(
        worker.work(a_task(), a_task(task="mutter", task_id="t2"))
    )
    while not worker.memory.asked:  # noqa: ASYNC110 - the loop's own turns
        await asyncio.sleep(0)
    worker.consumer.jobs.leave()
    worker.memory.answers_when.set()
    await work
    assert (worker.runs, worker.outbox.stored) == ([], [])
    assert [pause_s for _, pause_s in worker.engine.handed_back] == [0.0, 0.0]


async def test_without_the_memory_a_task_is_computed_and_says_so(
    worker: FakeWorker,
) -> None:
    worker.memory.is_away = True
    await worker.work(a_task())
    assert (worker.report().status, worker.report().memory.outcome) == (
        "completed",
        "unavailable",
    )


async def test_without_the_ledger_a_task_runs_unfenced(worker: FakeWorker) -> None:
    worker.ledger.begins_away = worker.ledger.finishes_away = True
    await worker.work(a_task())
    assert (worker.report().status, worker.report().fence) == ("completed", "none")
    assert len(worker.engine.settled) == 1


async def test_a_report_that_the_ledger_did_not_take_is_compared_before_the_delivery_ends(
    worker: FakeWorker,
) -> None:
    """A supervisor sets the ledger to what the stream has."""
    worker.ledger.begins_away = worker.ledger.finishes_away = True
    await worker.work(a_task())
    (report, _, _), (comparison, body, _) = worker.outbox.stored
    assert (report, body) == ("reports.S.t1.1", b"reports.S.t1.1")
    assert comparison.startswith("reports.~")
    assert len(worker.engine.settled) == 1


async def test_an_answer_of_another_is_waited_for_until_the_deadline_alone(
    worker: FakeWorker,
) -> None:
    waits: list[float] = []
    flights = worker.stores.flights
    join = flights.join

    async def noted(*named: Any, wait_s: float) -> Any:
        waits.append(wait_s)
        return await join(*named, wait_s=wait_s)

    flights.join = noted  # type: ignore[method-assign]  # what it is given
    await worker.work(a_task(deadline="2026-01-01T12:00:05Z"))
    await worker.work(a_task("other", task_id="t2"))
    assert waits == [5.0, JOIN_S]


async def test_without_the_ledger_a_task_that_must_not_run_twice_is_parked(
    worker: FakeWorker,
) -> None:
    """It is handed back unstarted, with a pause."""
    worker.ledger.begins_away = True
    await worker.work(a_task(task="swear"))
    assert (worker.runs, worker.outbox.stored) == ([], [])
    [(_, pause_s)] = worker.engine.handed_back
    assert pause_s > 0


async def test_when_the_ledger_leaves_during_such_a_task_its_report_waits(
    worker: FakeWorker,
) -> None:
    """It is done, and would run twice if it were handed back: its delivery is kept until the ledger answers."""
    worker.ledger.finishes_away = True
    work = asyncio.create_task(worker.work(a_task(task="swear")))
    while not worker.runs:  # noqa: ASYNC110 - the loop's own turns
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)
    assert (worker.outbox.stored, worker.engine.handed_back, worker.engine.settled) == (
        [],
        [],
        [],
    )
    worker.ledger.finishes_away = False
    await work
    assert (worker.runs, worker.report().status, worker.report().fence) == (
        ["hello"],
        "completed",
        "ledger",
    )


async def test_a_dead_letter_says_whose_task_it_was(worker: FakeWorker) -> None:
    """So that forgetting them finds it."""
    worker.does = raising(GiveUp("no"))
    await worker.work(a_task(task="mutter", user_id="ann"))
    assert worker.outbox.headers == [{subjects.USER_HEADER: user_token("ann")}]


async def test_a_report_that_is_not_stored_is_not_settled(worker: FakeWorker) -> None:
    """The delivery comes again, and the ledger has its report by then."""
    worker.outbox.refuses = {"reports"}
    await worker.work(a_task())
    assert worker.engine.settled == []
    assert len(worker.engine.handed_back) == 1
    worker.outbox.refuses = set()
    await worker.work(a_task(deliveries=2))
    assert worker.runs == ["hello"]
    assert len(worker.engine.settled) == 1


async def test_the_last_attempt_goes_to_dead_and_then_to_its_sender() -> None:
    worker = FakeWorker(raising(ConnectionError("the bank is closed")))
    await worker.work(a_task(headers={"Tasklore-Attempt": "5"}))
    report = worker.report()
    assert (report.status, report.attempt) == ("failed", 5)
    assert report.error is not None
    assert (report.error.type, report.error.message) == (
        "ConnectionError",
        "the bank is closed",
    )
    assert worker.order == ["dead", "ledger", "reports"]
    assert worker.outbox.stored[0][0] == "dead.tasks.DeskAgent.speak"
    assert worker.counts.seen["dead:attempts"] == 1


@pytest.mark.parametrize(("attempt", "is_closed"), [("1", False), ("2", True)])
@pytest.mark.parametrize("does", [raising(GiveUp("no")), lambda _word, _context: None])
async def test_the_waits_of_earlier_runs_are_closed_with_the_report(
    does: Any, attempt: str, is_closed: bool
) -> None:
    """A first run that asked nobody has none to look for."""
    worker = FakeWorker(does)
    closed: list[str] = []

    async def close(task_id: str) -> None:
        assert worker.outbox.reports()
        assert isinstance(task_id, TaskName)
        closed.append(task_id)

    worker.waits.close = close  # type: ignore[method-assign]  # to be noted
    await worker.work(a_task(headers={"Tasklore-Attempt": attempt}))
    assert closed == ["t1"] * is_closed
    assert not worker.engine.handed_back


async def test_a_failure_that_cannot_be_kept_in_dead_is_not_told_yet() -> None:
    """The delivery comes again instead: nothing disappears without a trace."""
    worker = FakeWorker(raising(ConnectionError("the bank is closed")))
    worker.outbox.refuses = {"dead"}
    await worker.work(a_task(headers={"Tasklore-Attempt": "5"}))
    assert (worker.outbox.stored, worker.engine.settled) == ([], [])
    assert len(worker.engine.handed_back) == 1


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit()],
)
async def test_what_would_end_the_process_is_a_failure_of_the_task(
    error: BaseException,
) -> None:
    """The desk goes on, and the error is named."""
    worker = FakeWorker(raising(error))
    await worker.work(a_task(headers={"Tasklore-Attempt": "5"}))
    report = worker.report()
    assert report.status == "failed"
    assert report.error is not None
    assert type(error).__name__ in report.error.message


async def test_a_task_that_takes_its_worker_along_each_time_is_given_up_in_the_end(
    worker: FakeWorker,
) -> None:
    """Runs that ended without a word count; deliveries that were never started do not."""
    for number in range(4):
        run = await worker.ledger.begin(
            "t2", 1, f"dead{number}", 0, 0, alone=number > 0, token=f"{number}"
        )
        assert run == RunPermission(number + 1, number, is_news=number > 0)
    await worker.work(a_task(deliveries=50))
    await worker.work(a_task(task_id="t2", word="poison", deliveries=6))
    assert worker.runs == ["hello"]
    report = worker.outbox.reports()[-1]
    assert (report.status, report.attempt) == ("failed", 4)
    assert report.error is not None
    assert report.error.type == "WorkerLost"
    assert worker.counts.seen["dead:crashes"] == 1


@pytest.mark.parametrize(("task", "runs"), [("mutter", ["hello"]), ("swear", [])])
async def test_crashes_are_held_only_against_what_must_not_run_twice(
    worker: FakeWorker, task: str, runs: list[str]
) -> None:
    """A neighbour may have caused them; but such a task has been started as often as it may."""
    assert await worker.ledger.begin("t1", 1, "dead", 0, 0) == RunPermission(1)
    await worker.work(a_task(task=task, max_attempts=1))
    assert worker.runs == runs
    report = worker.report()
    assert report.status == ("completed" if runs else "failed")
    assert worker.counts.seen["crashed"] == 1
    if report.error is not None:
        # Nobody knows which of them it was.
        assert "ended in 1 of 1 runs of this task" in report.error.message
        assert "kills" not in report.error.message


async def test_a_copy_of_what_runs_at_another_worker_is_left_to_it(
    worker: FakeWorker,
) -> None:
    """It comes again, and finds the report by then."""
    assert await worker.ledger.begin("t1", 1, "elsewhere", 0, 60_000) == RunPermission(
        1
    )
    await worker.work(a_task(task="mutter"))
    assert worker.runs == []
    assert len(worker.engine.handed_back) == 1
    await worker.ledger.finish("t1", 1, "completed", b"theirs")
    await worker.work(a_task(task="mutter", deliveries=2))
    assert worker.runs == []
    assert [body for _, body, _ in worker.outbox.stored] == [b"theirs"]


async def test_a_wish_to_cancel_ends_the_run(worker: FakeWorker) -> None:
    begun = asyncio.Event()

    async def forever(_word: str, _context: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker.does = forever
    work = asyncio.create_task(worker.work(a_task(task="mutter")))
    await begun.wait()
    assert worker.consumer.jobs.cancel("somebody-else", "") == (False, set())
    assert worker.consumer.jobs.cancel("t1", "changed my mind") == (True, set())
    await work
    report = worker.report()
    assert report.status == "cancelled"
    assert report.error is not None
    assert "changed my mind" in report.error.message


async def test_a_desk_that_is_cancelled_hands_everything_back(
    worker: FakeWorker,
) -> None:
    """What outlasts the grace period belongs to another worker at once."""
    begun = asyncio.Event()

    async def forever(_word: str, _context: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker.does = forever
    both = [a_task(task="mutter"), a_task("two", task="mutter", task_id="t2")]
    work = asyncio.create_task(worker.work(*both))
    await begun.wait()
    work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work
    assert {delivery.reply for delivery, _ in worker.engine.handed_back} == {
        delivery.reply for delivery in both
    }
    assert {pause_s for _, pause_s in worker.engine.handed_back} == {0.0}


async def test_what_cannot_be_read_is_buried_and_its_neighbours_are_served(
    worker: FakeWorker,
) -> None:
    broken = Delivery(
        subject="tasks.DeskAgent.speak",
        body=b"\xff",
        headers=None,
        reply="$JS.ACK.broken",
        deliveries=1,
        sequence=8,
        arrived_at=0.0,
    )
    await worker.work(
        broken,
        a_task(),
        a_task("x", "sing", task_id="t2"),
        a_task(task_id="t3", deadline="2020-01-01T00:00:00Z"),
    )
    statuses = {report.task_id: report.status for report in worker.outbox.reports()}
    assert statuses == {"t1": "completed", "t2": "rejected", "t3": "expired"}
    assert [
        subject for subject, _, _ in worker.outbox.stored if subject.startswith("dead.")
    ] == ["dead.tasks.DeskAgent.speak"]
    assert len(worker.engine.settled) == 4
    assert worker.counts.seen["unknown:rejected"] == 1


async def test_the_ledger_is_asked_side_by_side_about_the_expired_of_a_batch(
    worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it does not answer, the batch waits for one deadline, not for one of each."""
    number = 20
    all_asked = asyncio.Event()
    asked: list[str] = []

    async def past(task_id: str, _generation: int) -> PastRuns:
        asked.append(task_id)
        if len(asked) == number:
            all_asked.set()
        await all_asked.wait()
        raise MemoryUnavailable("away")

    monkeypatch.setattr(worker.ledger, "past", past)
    late = [
        a_task(task_id=f"late{place}", deadline="2020-01-01T00:00:00Z")
        for place in range(number)
    ]
    async with asyncio.timeout(10):
        await worker.work(*late, a_task())
    assert sorted(asked) == sorted(f"late{place}" for place in range(number))
    statuses = Counter(report.status for report in worker.outbox.reports())
    assert statuses == {"expired": number, "completed": 1}


async def test_a_deadline_bounds_the_run() -> None:
    """The clock of the desk decides how long is left, and a run that never ends is too late."""
    worker = FakeWorker(lambda _word, _context: asyncio.sleep(3600))
    deadline = (NOW + timedelta(milliseconds=200)).isoformat()
    await worker.work(a_task(task="mutter", deadline=deadline))
    assert worker.report().status == "expired"


async def test_a_timeout_of_the_tasks_own_is_an_error_like_any_other() -> None:
    """It is not taken for the deadline."""
    worker = FakeWorker(raising(TimeoutError("the bank is slow")))
    await worker.work(a_task(headers={"Tasklore-Attempt": "5"}))
    report = worker.report()
    assert report.status == "failed"
    assert report.error is not None
    assert report.error.type == "TimeoutError"


@pytest.fixture(autouse=True)
def _no_logs(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Keep expected complaints out of the way."""
    yield
    capsys.readouterr()


async def test_a_long_body_is_read_beside_the_loop(
    worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of numbers takes seconds to read, in which no other task of the worker would go on."""
    threads: list[bool] = []
    read = JobReader.read

    def note(*given: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return read(*given)

    monkeypatch.setattr(JobReader, "read", note)
    await worker.work(a_task())
    await worker.work(a_task("x" * 40_000, task_id="long"))
    assert threads == [True, False]
