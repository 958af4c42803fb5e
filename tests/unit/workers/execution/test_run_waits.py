"""Why a task waits for its next run, and what a report says whose task waited until its time was over."""

from datetime import timedelta
from typing import Any

import pytest

from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.errors import (
    GiveUp,
    LlmError,
    LlmThrottled,
    LlmUnavailable,
    RetryLater,
)
from tasklore.workers.execution.run_waits import LONGEST, run_wait
from tests.unit.workers.execution.fake_worker import NOW, FakeWorker, a_task, raising

WORDS = "Your wallet is empty, dear customer"


def away(said: str = WORDS, model: str = "m") -> LlmUnavailable:
    """Return what says that the provider of *model* is away."""
    error = LlmUnavailable("503")
    error.away_s = 3.0
    error.model = model
    error.said = said
    return error


def throttled() -> LlmThrottled:
    """Return what says that the budget of a tenant is spent until tomorrow."""
    error = LlmThrottled("no room")
    error.away_s = 300.0
    error.model = "m"
    error.limit = "acme"
    error.words = "the budget of tenant acme (2 requests a day)"
    error.room_in_s = 7200.0
    return error


def test_it_says_what_it_waits_for_and_until_when() -> None:
    """A limit by its name, whose it is and how large; a provider by its model, with its own words."""
    limit = run_wait(throttled(), None, NOW)
    assert limit is not None
    assert (limit.kind, limit.name, limit.model) == ("limit", "acme", "m")
    assert limit.sentence == (
        "waits for the budget of tenant acme (2 requests a day), "
        "until 2026-01-01 14:00:00 UTC"
    )
    model = run_wait(away(), None, NOW)
    assert model is not None
    assert model.sentence == (
        f"waits for the provider of model m (it said: {WORDS}), next check at "
        "2026-01-01 12:00:03 UTC"
    )
    assert run_wait(RetryLater("later", 5), None, NOW) is None


def test_it_waits_since_it_first_found_the_same() -> None:
    """Another limit, or another model, is waited for anew."""
    later = NOW + timedelta(hours=2)
    for error in (throttled(), away()):
        first = run_wait(error, None, NOW)
        again = run_wait(error, first, later)
        assert again is not None
        assert again.since == NOW
    other = run_wait(away(model="n"), run_wait(away(), None, NOW), later)
    assert other is not None
    assert other.since == later


@pytest.mark.parametrize(
    ("error", "ends"), [(away(), True), (away(""), True), (throttled(), False)]
)
def test_a_provider_is_waited_for_a_day_and_a_limit_until_it_has_room(
    error: LlmError, ends: bool
) -> None:
    """What a provider refuses for a day in words that nobody knows is not mended by waiting."""
    first = run_wait(error, None, NOW)
    before = NOW + LONGEST - timedelta(seconds=1)
    assert run_wait(error, first, before) is not None
    if not ends:
        assert run_wait(error, first, NOW + 30 * LONGEST) is not None
        return
    with pytest.raises(GiveUp, match="waited 24 hours for the provider of model m"):
        run_wait(error, first, NOW + LONGEST)


async def test_a_task_without_a_deadline_ends_with_the_providers_words() -> None:
    """As a dead letter, which can be sent again once somebody has paid."""
    worker = FakeWorker(raising(away()))
    worker.ledger._clock = lambda: (worker.now - NOW).total_seconds()
    for _ in range(2):
        await worker.work(a_task(task="mutter"))
        worker.now += LONGEST
    [report] = worker.outbox.reports()
    assert report.status == "failed"
    assert report.error is not None
    assert report.error.message == (
        f"it waited 24 hours for the provider of model m (it said: {WORDS}); "
        "fix that and redrive it"
    )
    assert worker.counts.seen["dead:gave_up"] == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (away(), f"the provider of model m (it said: {WORDS})"),
        (throttled(), "the budget of tenant acme (2 requests a day)"),
    ],
)
async def test_a_task_whose_time_is_over_says_what_it_waited_for(
    error: Exception, words: str
) -> None:
    """Its worker was free all the time."""
    worker = FakeWorker(raising(error))
    worker.ledger._clock = lambda: (worker.now - NOW).total_seconds()
    until = NOW + timedelta(hours=1)
    await worker.work(a_task(task="mutter", deadline=until.isoformat()))
    worker.now = until
    await worker.work(a_task(task="mutter", deadline=until.isoformat()))
    [report] = worker.outbox.reports()
    assert report.status == "expired"
    assert report.error is not None
    assert report.error.message == (
        f"the deadline, 2026-01-01 13:00:00 UTC, passed while it waited for {words}, "
        "since 2026-01-01 12:00:00 UTC"
    )


async def test_a_task_whose_worker_died_until_its_time_was_over_says_so() -> None:
    """Whether it killed the process itself or another one beside it did: it was free."""
    worker = FakeWorker()
    clock = [0.0]
    worker.ledger._clock = lambda: clock[0]
    for _ in range(3):
        begun: Any = await worker.ledger.begin(
            "t1", 1, "gone", 0, lease_ms=1000, most_crashes=9, token=f"{clock[0]}"
        )
        clock[0] += 2
    assert begun.number == 3
    until = NOW + timedelta(hours=1)
    worker.now = until
    await worker.work(a_task(task="mutter", deadline=until.isoformat()))
    [report] = worker.outbox.reports()
    assert report.status == "expired"
    assert report.error is not None
    assert report.error.message == (
        "the deadline, 2026-01-01 13:00:00 UTC, passed before it could run again: the worker process ended in 2 "
        "of its 3 runs (worker gone, last heartbeat 1970-01-01 00:00:03 UTC), because of this task or another one in "
        "the same worker"
    )


def test_an_older_worker_reads_past_it() -> None:
    """What is kept is read by whoever knows its fields, and by nobody else."""
    wait = run_wait(throttled(), None, NOW)
    assert wait is not None
    assert RunWait.model_validate_json(wait.model_dump_json()) == wait
