"""How a desk obeys the ledger: deliveries that are cancelled, suspect, replaced, or another worker's."""

import asyncio
from typing import Any

import pytest

from tasklore import Context
from tasklore.contracts.errors import MemoryUnavailable, RunReplaced
from tasklore.memory.ledger.runs import Ended, RunPermission
from tests.unit.workers.execution.fake_worker import FakeWorker, a_task, raising


@pytest.fixture
def worker() -> FakeWorker:
    """Give a desk whose tasks succeed."""
    return FakeWorker()


async def _until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the loop's own turns
            await asyncio.sleep(0)


async def test_a_task_that_is_to_be_cancelled_is_reported_and_never_run() -> None:
    """The wish came while it waited in its queue."""
    worker = FakeWorker()
    await worker.ledger.cancel("t1", None, "no need")
    await worker.work(a_task(task="mutter"))
    report = worker.report()
    assert (worker.runs, report.status) == ([], "cancelled")
    assert report.error is not None
    assert report.error.message == "no need"
    assert len(worker.engine.settled) == 1


async def test_a_wish_that_comes_while_it_runs_beats_its_success() -> None:
    """The run was not reached by it, and completes in vain."""

    async def wish(_word: str, _context: Context) -> None:
        await worker.ledger.cancel("t1", None, "no need")

    worker = FakeWorker(wish)
    await worker.work(a_task(task="mutter"))
    assert (worker.runs, worker.report().status, worker.report().result) == (
        ["hello"],
        "cancelled",
        None,
    )


async def test_a_served_answer_does_not_overwrite_a_cancellation() -> None:
    """Remembered or not, the task is cancelled."""
    worker = FakeWorker()
    await worker.work(a_task(task_id="before"))
    await worker.ledger.cancel("t1", None, "no need")
    await worker.work(a_task())
    assert [report.status for report in worker.outbox.reports()] == [
        "completed",
        "cancelled",
    ]


async def test_a_child_of_a_cancelled_task_is_not_begun() -> None:
    """It learns of it from the ledger."""
    worker = FakeWorker()
    await worker.ledger.cancel("parent", None, "no need")
    await worker.work(a_task(task="mutter", parent_id="parent"))
    assert (worker.runs, worker.report().status) == ([], "cancelled")


async def test_what_waits_for_an_identical_question_is_cancelled_too() -> None:
    """The one that computes goes on."""
    begun = asyncio.Event()
    done = asyncio.Event()

    async def wait(_word: str, _context: Context) -> None:
        begun.set()
        await done.wait()

    worker = FakeWorker(wait)
    leader = asyncio.create_task(worker.work(a_task(task_id="leader")))
    await begun.wait()
    follower = asyncio.create_task(worker.work(a_task(task_id="follower")))
    await _until(
        lambda: worker.consumer.jobs.cancel("follower", "not me") == (True, set())
    )
    await follower
    done.set()
    await leader
    assert {report.task_id: report.status for report in worker.outbox.reports()} == {
        "follower": "cancelled",
        "leader": "completed",
    }


async def test_a_worker_that_leaves_hands_back_what_waits_and_keeps_what_runs() -> None:
    """At once, and unharmed."""
    begun = asyncio.Event()
    done = asyncio.Event()

    async def wait(_word: str, _context: Context) -> None:
        begun.set()
        await done.wait()

    worker = FakeWorker(wait)
    running = asyncio.create_task(worker.work(a_task(task_id="running")))
    await begun.wait()
    waiting = asyncio.create_task(worker.work(a_task(task_id="waiting")))
    await _until(lambda: len(worker.consumer.jobs._all) == 2)
    await asyncio.sleep(0)
    worker.consumer.jobs.leave()
    await waiting
    assert [
        (delivery.reply, pause_s) for delivery, pause_s in worker.engine.handed_back
    ] == [("$JS.ACK.waiting.1", 0.0)]
    done.set()
    await running
    assert worker.report().task_id == "running"


@pytest.mark.parametrize(
    ("task", "crashes", "expected"),
    [
        ("mutter", 1, [["early"], ["early", "suspect"], ["early", "suspect", "late"]]),
        ("mutter", 2, [["early"], ["early", "suspect"], ["early", "suspect", "late"]]),
        ("mutter", 3, [["early"], ["suspect"], ["late"]]),
        ("swear", 1, [["early"], ["suspect"], ["late"]]),
    ],
)
async def test_a_suspect_runs_beside_others_at_first_and_then_alone(
    task: str, crashes: int, expected: list[list[str]]
) -> None:
    """What must not run twice is alone at once: a neighbour's crash would cost it a run that it may need."""
    inside: list[str] = []
    seen: list[list[str]] = []
    early = asyncio.Event()

    async def note(word: str, _context: Context) -> None:
        inside.append(word)
        seen.append(list(inside))
        if word == "early":
            await early.wait()
        elif word == "suspect" and len(expected[-1]) > 1:
            await _until(lambda: len(seen) == 3)
        await asyncio.sleep(0)
        inside.remove(word)

    worker = FakeWorker(note)
    for number in range(crashes):
        assert isinstance(
            await worker.ledger.begin("suspect", 1, f"{number}", 0, 0, most_crashes=9),
            RunPermission,
        )
    works = [
        asyncio.create_task(worker.work(a_task("early", "mutter", task_id="early")))
    ]
    await _until(lambda: seen == [["early"]])
    works.append(
        asyncio.create_task(worker.work(a_task("suspect", task, task_id="suspect")))
    )
    await _until(lambda: worker.counts.seen["crashed"] == 1)
    works.append(
        asyncio.create_task(worker.work(a_task("late", "mutter", task_id="late")))
    )
    if len(expected[-1]) > 1:
        await _until(lambda: len(seen) == 3)
    early.set()
    await asyncio.gather(*works)
    assert seen == expected
    assert {report.status for report in worker.outbox.reports()} == {"completed"}


async def test_a_run_whose_task_another_worker_took_is_stopped_without_a_report() -> (
    None
):
    """And without a word on its delivery, which is that worker's by now."""
    begun = asyncio.Event()

    async def forever(_word: str, _context: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = FakeWorker(forever)
    work = asyncio.create_task(worker.work(a_task(task="mutter")))
    await begun.wait()
    assert worker.consumer.jobs.running() == [("t1", 1)]
    worker.consumer.jobs.replace([("t1", 1), ("unknown", 1)])
    await work
    assert (
        worker.outbox.stored,
        len(worker.engine.forgotten),
        worker.counts.seen["replaced"],
    ) == ([], 1, 1)
    assert worker.consumer.jobs.running() == []


async def test_a_run_that_may_make_no_effect_any_more_ends_without_a_report() -> None:
    """`context.once` says so by an error of its own."""
    worker = FakeWorker(raising(RunReplaced("taken")))
    await worker.work(a_task(task="mutter"))
    assert (
        worker.outbox.stored,
        len(worker.engine.forgotten),
        worker.counts.seen["replaced"],
    ) == ([], 1, 1)


@pytest.mark.parametrize("task", ["mutter", "swear"])
async def test_a_task_whose_time_is_over_when_its_turn_comes_is_not_started(
    task: str,
) -> None:
    """It waited behind another one; the clock of the worker stands still, so its deadline is now."""
    worker = FakeWorker()
    delivery = a_task(task=task, deadline="2026-01-01T12:00:00.000001Z")
    worker.consumer._executor._now = lambda: worker.consumer._now().replace(second=1)
    await worker.work(delivery)
    assert (worker.runs, worker.report().status) == ([], "expired")


async def test_a_worker_that_leaves_in_the_middle_excuses_the_run() -> None:
    """A task that may run once is run again by the next worker, as it was none of its doing."""
    begun = asyncio.Event()

    async def forever(_word: str, _context: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = FakeWorker(forever)
    work = asyncio.create_task(worker.work(a_task(task="mutter", max_attempts=1)))
    await begun.wait()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    worker.does = lambda _word, _context: None
    await worker.work(a_task(task="mutter", max_attempts=1, deliveries=2))
    assert (worker.report().status, worker.report().attempt) == ("completed", 2)


async def test_a_run_that_fails_for_want_of_the_ledger_is_excused() -> None:
    """The last run that a task may have is not lost to an outage of ours."""
    worker = FakeWorker(raising(MemoryUnavailable("away")))
    await worker.work(a_task(task="mutter", max_attempts=1))
    worker.does = lambda _word, _context: None
    await worker.work(a_task(task="mutter", max_attempts=1, deliveries=2))
    assert worker.report().status == "completed"


async def test_a_word_that_the_ledger_missed_is_told_when_it_is_back() -> None:
    """Otherwise the task would be taken for one that kills its worker."""
    worker = FakeWorker(raising(ValueError("again")))
    worker.ledger.parks_away = True
    await worker.work(a_task(task="mutter"))
    worker.ledger.parks_away = False
    await worker.stores.ended.flush(worker.ledger)
    await worker.stores.ended.flush(worker.ledger)
    assert await worker.ledger.begin(
        "t1", 1, "elsewhere", 0, 60_000, token="next"
    ) == RunPermission(2)


async def offer_a_copy_of_what_is_due_in(worker: FakeWorker, seconds: float) -> None:
    await worker.ledger.begin("t1", 1, "w0", 0, 60_000, token="first")
    await worker.ledger.park(Ended("t1", 1, "first"), int(seconds * 1000))
    await worker.work(a_task(task="mutter"))


@pytest.mark.parametrize("hours", [2, 24])
async def test_a_task_that_is_not_due_is_laid_aside_until_it_is(
    worker: FakeWorker, hours: int
) -> None:
    """It is not delivered meanwhile, and looked at each hour."""
    await offer_a_copy_of_what_is_due_in(worker, hours * 3600)
    assert worker.runs == []
    [(subject, _, _)] = worker.outbox.stored
    [headers] = worker.outbox.headers
    assert (subject, headers["Nats-Schedule"]) == (
        "schedules.tasks.t1.1",
        "@at 2026-01-01T13:00:00Z",
    )
    assert (len(worker.engine.settled), worker.engine.handed_back) == (1, [])


async def test_a_task_that_is_due_in_a_moment_is_handed_back(
    worker: FakeWorker,
) -> None:
    await offer_a_copy_of_what_is_due_in(worker, 4.0)
    assert (worker.outbox.stored, worker.engine.settled) == ([], [])
    [(_, pause_s)] = worker.engine.handed_back
    assert 3.0 < pause_s <= 4.0


@pytest.mark.parametrize("open_waits", [[], ["a question"]])
async def test_where_schedules_are_refused_only_what_the_notifier_wakes_is_laid_aside(
    worker: FakeWorker, monkeypatch: pytest.MonkeyPatch, open_waits: list[str]
) -> None:
    async def find_open(_task_id: str) -> list[str]:
        return open_waits

    monkeypatch.setattr(worker.waits, "of", find_open, raising=False)
    worker.outbox.refuses = {"schedules"}
    await offer_a_copy_of_what_is_due_in(worker, 3600)
    assert len(worker.engine.settled) == len(open_waits)
    assert len(worker.engine.handed_back) == 1 - len(open_waits)
