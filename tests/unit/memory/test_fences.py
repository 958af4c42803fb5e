"""What a desk does with what the ledger says: cancelled, suspect, replaced, or to be left to somebody else."""

import asyncio
from typing import Any

import pytest

from contracts.errors import MemoryUnavailable, RunReplaced
from memory.ledger.runs import Ended, Run
from tests.unit.workers.office import Office, a_task, raising
from workers import Context


@pytest.fixture
def office() -> Office:
    """Give a desk whose tasks succeed."""
    return Office()


async def _until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the loop's own turns
            await asyncio.sleep(0)


async def test_a_task_that_is_to_be_cancelled_is_reported_and_never_run() -> None:
    """The wish came while it waited in its queue."""
    office = Office()
    await office.ledger.cancel("t1", None, "no need")
    await office.work(a_task(task="mutter"))
    report = office.report()
    assert (office.runs, report.status) == ([], "cancelled")
    assert report.error is not None
    assert report.error.message == "no need"
    assert len(office.line.settled) == 1


async def test_a_wish_that_comes_while_it_runs_beats_its_success() -> None:
    """The run was not reached by it, and completes in vain."""

    async def wish(_word: str, _context: Context) -> None:
        await office.ledger.cancel("t1", None, "no need")

    office = Office(wish)
    await office.work(a_task(task="mutter"))
    assert (office.runs, office.report().status, office.report().result) == (["hello"], "cancelled", None)


async def test_a_served_answer_does_not_overwrite_a_cancellation() -> None:
    """Remembered or not, the task is cancelled."""
    office = Office()
    await office.work(a_task(task_id="before"))
    await office.ledger.cancel("t1", None, "no need")
    await office.work(a_task())
    assert [report.status for report in office.post.reports()] == ["completed", "cancelled"]


async def test_a_child_of_a_cancelled_task_is_not_begun() -> None:
    """It learns of it from the ledger."""
    office = Office()
    await office.ledger.cancel("parent", None, "no need")
    await office.work(a_task(task="mutter", parent_id="parent"))
    assert (office.runs, office.report().status) == ([], "cancelled")


async def test_what_waits_for_an_identical_question_is_cancelled_too() -> None:
    """The one that computes goes on."""
    begun, done = asyncio.Event(), asyncio.Event()

    async def wait(_word: str, _context: Context) -> None:
        begun.set()
        await done.wait()

    office = Office(wait)
    leader = asyncio.create_task(office.work(a_task(task_id="leader")))
    await begun.wait()
    follower = asyncio.create_task(office.work(a_task(task_id="follower")))
    await _until(lambda: office.desk.cancel("follower", "not me") == (True, set()))
    await follower
    done.set()
    await leader
    assert {report.task_id: report.status for report in office.post.reports()} == {
        "follower": "cancelled",
        "leader": "completed",
    }


async def test_a_worker_that_leaves_hands_back_what_waits_and_keeps_what_runs() -> None:
    """At once, and unharmed."""
    begun, done = asyncio.Event(), asyncio.Event()

    async def wait(_word: str, _context: Context) -> None:
        begun.set()
        await done.wait()

    office = Office(wait)
    running = asyncio.create_task(office.work(a_task(task_id="running")))
    await begun.wait()
    waiting = asyncio.create_task(office.work(a_task(task_id="waiting")))
    await _until(lambda: len(office.desk._runner.attendance._all) == 2)
    await asyncio.sleep(0)
    office.desk.leave()
    await waiting
    assert [(delivery.reply, pause_s) for delivery, pause_s in office.line.handed_back] == [("$JS.ACK.waiting.1", 0.0)]
    done.set()
    await running
    assert office.report().task_id == "running"


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

    office = Office(note)
    for number in range(crashes):
        assert isinstance(await office.ledger.begin("suspect", 1, f"{number}", 0, 0, most_crashes=9), Run)
    works = [asyncio.create_task(office.work(a_task("early", "mutter", task_id="early")))]
    await _until(lambda: seen == [["early"]])
    works.append(asyncio.create_task(office.work(a_task("suspect", task, task_id="suspect"))))
    await _until(lambda: office.counts.seen["crashed"] == 1)
    works.append(asyncio.create_task(office.work(a_task("late", "mutter", task_id="late"))))
    if len(expected[-1]) > 1:
        await _until(lambda: len(seen) == 3)
    early.set()
    await asyncio.gather(*works)
    assert seen == expected
    assert {report.status for report in office.post.reports()} == {"completed"}


async def test_a_run_whose_task_another_worker_took_is_stopped_without_a_report() -> None:
    """And without a word on its delivery, which is that worker's by now."""
    begun = asyncio.Event()

    async def forever(_word: str, _context: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    office = Office(forever)
    work = asyncio.create_task(office.work(a_task(task="mutter")))
    await begun.wait()
    assert office.desk.running() == [("t1", 1)]
    office.desk.replace([("t1", 1), ("unknown", 1)])
    await work
    assert (office.post.stored, len(office.line.forgotten), office.counts.seen["replaced"]) == ([], 1, 1)
    assert office.desk.running() == []


async def test_a_run_that_may_make_no_effect_any_more_ends_without_a_report() -> None:
    """`context.once` says so by an error of its own."""
    office = Office(raising(RunReplaced("taken")))
    await office.work(a_task(task="mutter"))
    assert (office.post.stored, len(office.line.forgotten), office.counts.seen["replaced"]) == ([], 1, 1)


@pytest.mark.parametrize("task", ["mutter", "swear"])
async def test_a_task_whose_time_is_over_when_its_turn_comes_is_not_started(task: str) -> None:
    """It waited behind another one; the clock of the office stands still, so its deadline is now."""
    office = Office()
    delivery = a_task(task=task, deadline="2026-01-01T12:00:00.000001Z")
    office.desk._runner._performer._now = lambda: office.desk._now().replace(second=1)
    await office.work(delivery)
    assert (office.runs, office.report().status) == ([], "expired")


async def test_a_worker_that_leaves_in_the_middle_excuses_the_run() -> None:
    """A task that may run once is run again by the next worker, as it was none of its doing."""
    begun = asyncio.Event()

    async def forever(_word: str, _context: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    office = Office(forever)
    work = asyncio.create_task(office.work(a_task(task="mutter", max_attempts=1)))
    await begun.wait()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    office.does = lambda _word, _context: None
    await office.work(a_task(task="mutter", max_attempts=1, deliveries=2))
    assert (office.report().status, office.report().attempt) == ("completed", 2)


async def test_a_run_that_fails_for_want_of_the_ledger_is_excused() -> None:
    """The last run that a task may have is not lost to an outage of ours."""
    office = Office(raising(MemoryUnavailable("away")))
    await office.work(a_task(task="mutter", max_attempts=1))
    office.does = lambda _word, _context: None
    await office.work(a_task(task="mutter", max_attempts=1, deliveries=2))
    assert office.report().status == "completed"


async def test_a_word_that_the_ledger_missed_is_told_when_it_is_back() -> None:
    """Otherwise the task would be taken for one that kills its worker."""
    office = Office(raising(ValueError("again")))
    office.ledger.parks_away = True
    await office.work(a_task(task="mutter"))
    office.ledger.parks_away = False
    await office.releases.tell(office.ledger)
    await office.releases.tell(office.ledger)
    assert await office.ledger.begin("t1", 1, "elsewhere", 0, 60_000, token="next") == Run(2)


async def test_a_task_that_is_not_due_is_left_alone_until_it_is(office: Office) -> None:
    """For the whole time, and not every two seconds."""
    await office.ledger.begin("t1", 1, "w0", 0, 60_000, token="first")
    await office.ledger.park(Ended("t1", 1, "first"), 3_600_000)
    await office.work(a_task(task="mutter"))
    [(_, pause_s)] = office.line.handed_back
    assert 3_590 < pause_s <= 3_600
