"""The desk and its runner on fakes: what is served, what runs, and how each delivery comes to its end."""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import GiveUp, RetryLater
from memory.ledger.runs import Run
from runtime.messaging.pull import Delivery
from tests.unit.workers.office import NOW, Office, a_task, raising
from workers import Context
from workers.execution import consumer as desk


@pytest.fixture
def office() -> Office:
    """Open an office whose tasks just answer."""
    return Office()


async def test_a_task_is_run_remembered_written_to_the_ledger_reported_and_settled(office: Office) -> None:
    """In this order, so that a crash anywhere in between repeats at most what counts once."""
    delivery = a_task()
    await office.work(delivery)
    assert (office.report().status, office.report().result) == ("completed", {"word": "hello"})
    assert (office.report().memory.outcome, office.report().fence) == ("miss", "ledger")
    assert office.order == ["memory", "ledger", "reports"]
    assert office.line.settled == [delivery]
    [(subject, _, message_id)] = office.post.stored
    assert (subject, message_id) == ("reports.S.t1.1", "t1:1:report")


async def test_a_batch_is_recalled_at_once_and_hits_are_served_without_a_run(office: Office) -> None:
    """One question to the memory for all of them, and nothing of the answer is computed again."""
    await office.work(a_task())
    await office.work(*(a_task(task_id=f"again-{number}") for number in range(5)), a_task("other", task_id="new"))
    assert office.runs == ["hello", "other"]
    assert 6 in office.memory.asked
    outcomes = Counter(report.memory.outcome for report in office.post.reports())
    assert outcomes == {"miss": 2, "hit": 5}
    assert sum(office.hits.values()) == 5
    assert office.counts.seen["hit"] == 5


async def test_identical_questions_in_one_batch_are_computed_once(office: Office) -> None:
    """The others join the one that runs."""
    await office.work(*(a_task(task_id=f"t{number}") for number in range(10)))
    assert office.runs == ["hello"]
    assert Counter(report.memory.outcome for report in office.post.reports()) == {"miss": 1, "joined": 9}
    assert len(office.line.settled) == 10


async def test_copies_of_one_task_in_one_batch_are_run_once(office: Office) -> None:
    """Also when its answer is remembered for nobody: the copy waits, and repeats the report of the first."""
    await office.work(a_task(task="mutter"), a_task(task="mutter"))
    assert office.runs == ["hello"]
    first, second = (body for _, body, _ in office.post.stored)
    assert first == second
    assert len(office.line.settled) == 2


async def test_a_redelivery_of_a_finished_task_repeats_its_report(office: Office) -> None:
    """Word for word, without another run."""
    await office.work(a_task(task="mutter"))
    await office.work(a_task(task="mutter", deliveries=2))
    assert office.runs == ["hello"]
    first, second = (body for _, body, _ in office.post.stored)
    assert first == second


async def test_a_later_result_than_the_ledgers_is_refused_and_counted(office: Office) -> None:
    """Whichever attempt finishes first wins; the other publishes the winner's words."""
    winner = b'{"won": true}'

    async def overtaken(_word: str, _context: Context) -> None:
        await office.ledger.finish("t1", 1, "completed", winner)

    office.does = overtaken
    await office.work(a_task(task="mutter"))
    assert [body for _, body, _ in office.post.stored] == [winner]
    assert office.counts.seen["stale"] == 1
    assert len(office.line.settled) == 1


async def test_a_task_whose_memory_is_being_asked_when_the_worker_leaves_is_handed_back(office: Office) -> None:
    """It has not begun to run; waiting for another's answer, it would hold the worker for its whole grace period."""
    office.memory.answers_when.clear()
    work = asyncio.create_task(office.work(a_task(), a_task(task="mutter", task_id="t2")))
    while not office.memory.asked:  # noqa: ASYNC110 - the loop's own turns
        await asyncio.sleep(0)
    office.desk.leave()
    office.memory.answers_when.set()
    await work
    assert (office.runs, office.post.stored) == ([], [])
    assert [pause_s for _, pause_s in office.line.handed_back] == [0.0, 0.0]


async def test_without_the_memory_a_task_is_computed_and_says_so(office: Office) -> None:
    """Nothing waits for what is only an optimisation."""
    office.memory.is_away = True
    await office.work(a_task())
    assert (office.report().status, office.report().memory.outcome) == ("completed", "unavailable")


async def test_without_the_ledger_a_task_runs_unfenced(office: Office) -> None:
    """The report says that only the stream keeps it from being told twice."""
    office.ledger.begins_away = office.ledger.finishes_away = True
    await office.work(a_task())
    assert (office.report().status, office.report().fence) == ("completed", "none")
    assert len(office.line.settled) == 1


async def test_without_the_ledger_a_task_that_must_not_run_twice_is_parked(office: Office) -> None:
    """It is handed back unstarted, with a pause."""
    office.ledger.begins_away = True
    await office.work(a_task(task="swear"))
    assert (office.runs, office.post.stored) == ([], [])
    [(_, pause_s)] = office.line.handed_back
    assert pause_s > 0


async def test_when_the_ledger_leaves_during_such_a_task_its_report_waits(office: Office) -> None:
    """It is done, and would run twice if it were handed back: its delivery is kept until the ledger answers."""
    office.ledger.finishes_away = True
    work = asyncio.create_task(office.work(a_task(task="swear")))
    while not office.runs:  # noqa: ASYNC110 - the loop's own turns
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)
    assert (office.post.stored, office.line.handed_back, office.line.settled) == ([], [], [])
    office.ledger.finishes_away = False
    await work
    assert (office.runs, office.report().status, office.report().fence) == (["hello"], "completed", "ledger")


async def test_a_report_that_is_not_stored_is_not_settled(office: Office) -> None:
    """The delivery comes again, and the ledger has its report by then."""
    office.post.refuses = {"reports"}
    await office.work(a_task())
    assert office.line.settled == []
    assert len(office.line.handed_back) == 1
    office.post.refuses = set()
    await office.work(a_task(deliveries=2))
    assert office.runs == ["hello"]
    assert len(office.line.settled) == 1


@pytest.mark.parametrize("attempt", [1, 2, 3, 4])
async def test_a_task_that_raises_is_handed_back_with_a_growing_pause(attempt: int) -> None:
    """At most the base doubled each time, and never above the cap."""
    office = Office(raising(ConnectionError("the bank is closed")))
    await office.work(a_task(headers={"Tasklore-Attempt": str(attempt)}))
    assert office.post.reports() == []
    # A pause above five seconds is spent elsewhere: see test_retries.py.
    assert all(0 <= pause_s <= min(5.0, 2 ** (attempt - 1)) for _, pause_s in office.line.handed_back)
    assert len(office.line.handed_back) + len(office.line.settled) == 1


async def test_the_last_attempt_goes_to_dead_and_then_to_its_sender() -> None:
    """The dead letter is stored before anybody is told of a failure."""
    office = Office(raising(ConnectionError("the bank is closed")))
    await office.work(a_task(headers={"Tasklore-Attempt": "5"}))
    report = office.report()
    assert (report.status, report.attempt) == ("failed", 5)
    assert report.error is not None
    assert (report.error.type, report.error.message) == ("ConnectionError", "the bank is closed")
    assert office.order == ["dead", "ledger", "reports"]
    assert office.post.stored[0][0] == "dead.tasks.DeskAgent.speak"
    assert office.counts.seen["dead:attempts"] == 1


async def test_a_failure_that_cannot_be_kept_in_dead_is_not_told_yet() -> None:
    """The delivery comes again instead: nothing disappears without a trace."""
    office = Office(raising(ConnectionError("the bank is closed")))
    office.post.refuses = {"dead"}
    await office.work(a_task(headers={"Tasklore-Attempt": "5"}))
    assert (office.post.stored, office.line.settled) == ([], [])
    assert len(office.line.handed_back) == 1


@pytest.mark.parametrize(
    ("error", "status"), [(GiveUp("no use"), "failed"), (ValueError("no use"), None), (RetryLater("soon", 4.5), None)]
)
async def test_what_an_error_means_for_a_first_attempt(error: Exception, status: str | None) -> None:
    """Giving up ends it; another error, or the wish to come later, means another run."""
    office = Office(raising(error))
    await office.work(a_task())
    assert [report.status for report in office.post.reports()] == ([status] if status else [])
    if isinstance(error, RetryLater):
        assert [pause_s for _, pause_s in office.line.handed_back] == [4.5]


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit()])
async def test_what_would_end_the_process_is_a_failure_of_the_task(error: BaseException) -> None:
    """The desk goes on, and the error is named."""
    office = Office(raising(error))
    await office.work(a_task(headers={"Tasklore-Attempt": "5"}))
    report = office.report()
    assert report.status == "failed"
    assert report.error is not None
    assert type(error).__name__ in report.error.message


async def test_a_task_that_takes_its_worker_along_each_time_is_given_up_in_the_end(office: Office) -> None:
    """Runs that ended without a word count; deliveries that were never started do not."""
    for number in range(4):
        run = await office.ledger.begin("t2", 1, f"dead{number}", 0, 0, alone=number > 0, token=f"{number}")
        assert run == Run(number + 1, number, is_news=number > 0)
    await office.work(a_task(deliveries=50))
    await office.work(a_task(task_id="t2", word="poison", deliveries=6))
    assert office.runs == ["hello"]
    report = office.post.reports()[-1]
    assert (report.status, report.attempt) == ("failed", 4)
    assert report.error is not None
    assert report.error.type == "WorkerLost"
    assert office.counts.seen["dead:crashes"] == 1


@pytest.mark.parametrize(("task", "runs"), [("mutter", ["hello"]), ("swear", [])])
async def test_crashes_are_held_only_against_what_must_not_run_twice(
    office: Office, task: str, runs: list[str]
) -> None:
    """A neighbour may have caused them; but such a task has been started as often as it may."""
    assert await office.ledger.begin("t1", 1, "dead", 0, 0) == Run(1)
    await office.work(a_task(task=task, max_attempts=1))
    assert office.runs == runs
    assert office.report().status == ("completed" if runs else "failed")
    assert office.counts.seen["crashed"] == 1


async def test_a_copy_of_what_runs_at_another_worker_is_left_to_it(office: Office) -> None:
    """It comes again, and finds the report by then."""
    assert await office.ledger.begin("t1", 1, "elsewhere", 0, 60_000) == Run(1)
    await office.work(a_task(task="mutter"))
    assert office.runs == []
    assert len(office.line.handed_back) == 1
    await office.ledger.finish("t1", 1, "completed", b"theirs")
    await office.work(a_task(task="mutter", deliveries=2))
    assert office.runs == []
    assert [body for _, body, _ in office.post.stored] == [b"theirs"]


async def test_what_is_to_run_again_may_do_so_anywhere() -> None:
    """The ledger's lease ends with the run, not with its time."""
    office = Office(raising(ConnectionError("the bank is closed")))
    await office.work(a_task())
    assert await office.ledger.begin("t1", 1, "elsewhere", 0, 60_000) == Run(2)


async def test_a_wish_to_cancel_ends_the_run(office: Office) -> None:
    """The report carries the reason, and a wish about nothing is told apart."""
    begun = asyncio.Event()

    async def forever(_word: str, _context: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    office.does = forever
    work = asyncio.create_task(office.work(a_task(task="mutter")))
    await begun.wait()
    assert office.desk.cancel("somebody-else", "") == (False, set())
    assert office.desk.cancel("t1", "changed my mind") == (True, set())
    await work
    report = office.report()
    assert report.status == "cancelled"
    assert report.error is not None
    assert "changed my mind" in report.error.message


async def test_a_desk_that_is_cancelled_hands_everything_back(office: Office) -> None:
    """What outlasts the grace period belongs to another worker at once."""
    begun = asyncio.Event()

    async def forever(_word: str, _context: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    office.does = forever
    both = [a_task(task="mutter"), a_task("two", task="mutter", task_id="t2")]
    work = asyncio.create_task(office.work(*both))
    await begun.wait()
    work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work
    assert {delivery.reply for delivery, _ in office.line.handed_back} == {delivery.reply for delivery in both}
    assert {pause_s for _, pause_s in office.line.handed_back} == {0.0}


async def test_what_cannot_be_read_is_buried_and_its_neighbours_are_served(office: Office) -> None:
    """One broken delivery in a batch costs nobody else anything."""
    broken = Delivery("tasks.DeskAgent.speak", b"\xff", None, "$JS.ACK.broken", 1, 8, 0.0)
    await office.work(
        broken, a_task(), a_task("x", "sing", task_id="t2"), a_task(task_id="t3", deadline="2020-01-01T00:00:00Z")
    )
    statuses = {report.task_id: report.status for report in office.post.reports()}
    assert statuses == {"t1": "completed", "t2": "rejected", "t3": "expired"}
    assert [subject for subject, _, _ in office.post.stored if subject.startswith("dead.")] == [
        "dead.tasks.DeskAgent.speak"
    ]
    assert len(office.line.settled) == 4
    assert office.counts.seen["unknown:rejected"] == 1


async def test_a_deadline_bounds_the_run() -> None:
    """The clock of the desk decides how long is left."""
    office = Office(lambda _word, _context: asyncio.Event().wait())
    deadline = (NOW + timedelta(seconds=0.05)).isoformat()
    await office.work(a_task(task="mutter", deadline=deadline))
    assert office.report().status == "expired"


async def test_a_timeout_of_the_tasks_own_is_an_error_like_any_other() -> None:
    """It is not taken for the deadline."""
    office = Office(raising(TimeoutError("the bank is slow")))
    await office.work(a_task(headers={"Tasklore-Attempt": "5"}))
    report = office.report()
    assert report.status == "failed"
    assert report.error is not None
    assert report.error.type == "TimeoutError"


@pytest.fixture(autouse=True)
def _no_logs(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Keep expected complaints out of the way."""
    yield
    capsys.readouterr()


async def test_a_long_body_is_read_beside_the_loop(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of numbers takes seconds to read, in which no other task of the worker would go on."""
    threads: list[bool] = []
    read = desk.read_order

    def note(*given: Any, **options: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return read(*given, **options)

    monkeypatch.setattr(desk, "read_order", note)
    await office.work(a_task())
    await office.work(a_task("x" * 40_000, task_id="long"))
    assert threads == [True, False]
