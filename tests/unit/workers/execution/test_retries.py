"""Another run: when, and where the task waits for it."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest

from tasklore import Agent, Parameters
from tasklore.contracts import subjects
from tasklore.contracts.errors import (
    GiveUp,
    LlmRateLimited,
    LlmUnavailable,
    MemoryUnavailable,
    RetryLater,
)
from tasklore.contracts.moments import spell_moment
from tasklore.memory.ledger.runs import NotDue
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.pull import PullEngine
from tasklore.workers.execution.acknowledger import Acknowledger
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.job_reader import JobReader
from tasklore.workers.execution.retry_decision import (
    RetryDecision,
    RetryPolicy,
    decide_retry,
    longest_wait_s,
)
from tasklore.workers.execution.retry_scheduling import Retries
from tasklore.workers.execution.run_waits import to_retry_wait
from tasklore.workers.testing.waits import KitWaits
from tests.unit.runtime.test_outbox_horizon import DeafLink
from tests.unit.workers.execution.fake_worker import NOW, FakeWorker, a_task, raising

RETRY = RetryPolicy(base_s=1.0, cap_s=8.0)
TASK = FakeWorker().agent.tasks["speak"]


def decide(
    error: Exception, *, attempt: int = 1, left_s: float | None = None
) -> RetryDecision:
    """Return what follows from *error*, five runs allowed."""
    return decide_retry(
        error,
        task=TASK,
        attempt=attempt,
        max_attempts=5,
        retry=RETRY,
        now=NOW,
        left_s=left_s,
    )


@pytest.mark.parametrize("attempt", [1, 2, 3, 4])
def test_pauses_are_drawn_from_the_whole_range(attempt: int) -> None:
    """Full jitter: from nothing to the doubled base, never above the cap."""
    longest_s = min(8.0, 2.0 ** (attempt - 1))
    pauses = [
        decide(ValueError("no"), attempt=attempt).pause_s or 0.0 for _ in range(400)
    ]
    assert 0 <= min(pauses) < longest_s / 4
    assert 3 * longest_s / 4 < max(pauses) <= longest_s


@pytest.mark.parametrize(
    ("error", "pause_s"),
    [
        (RetryLater("soon", 7.5), 7.5),
        (RetryLater("then", at=NOW + timedelta(minutes=10)), 600.0),
        (
            RetryLater(
                "then",
                at=(NOW + timedelta(minutes=1)).astimezone(
                    timezone(timedelta(hours=5))
                ),
            ),
            60.0,
        ),
        (RetryLater("long ago", at=datetime(2020, 1, 1, tzinfo=UTC)), 0.0),
        (LlmRateLimited("slow down", 42.0), 42.0),
    ],
)
def test_a_task_is_parked_until_the_time_it_names(
    error: Exception, pause_s: float
) -> None:
    """Also where that time is a provider's Retry-After."""
    assert decide(error) == RetryDecision(pause_s=pause_s)


@pytest.mark.parametrize(
    "error",
    [
        RetryLater("in 45 days", at=NOW + timedelta(days=45)),
        RetryLater("in the end", at=datetime.max.replace(tzinfo=UTC)),
        RetryLater("a whole number that is no float", 10**400),
        LlmRateLimited("slow down", 1e300),
    ],
)
def test_a_wait_ends_before_the_task_is_forgotten(error: Exception) -> None:
    """It is run earlier than it asked for, and may ask again: what waits longer than it is kept would be lost."""
    assert decide(error) == RetryDecision(
        pause_s=(timedelta(days=7) - timedelta(hours=1)).total_seconds()
    )
    assert decide(error, left_s=timedelta(days=20).total_seconds()) == RetryDecision(
        dead_reason="deadline"
    )


@pytest.mark.parametrize(
    ("keep", "longest"),
    [
        (timedelta(days=7), timedelta(days=6, hours=23)),
        (timedelta(minutes=10), timedelta(minutes=5)),
        (timedelta(days=365), timedelta(days=29)),
    ],
)
def test_the_longest_wait_is_shorter_than_the_ledger_and_later_keep(
    keep: timedelta, longest: timedelta
) -> None:
    """Whatever is set, and for tasks with pauses of their own too."""
    policy = RetryPolicy(longest_s=longest_wait_s(keep))
    agent = Agent("Patient")

    @agent.task(retry_base=timedelta(days=1000))
    async def wait(parameters: Parameters) -> None:
        """Wait."""

    assert policy.of(agent.tasks["wait"]).longest_s == longest.total_seconds()
    assert longest < keep


@pytest.mark.parametrize("attempt", [1, 5, 1000])
def test_no_task_dies_of_an_outage_of_the_ledger(attempt: int) -> None:
    """Runs that ended for want of it are not held against the task, and the pauses stay short."""
    pause_s = decide_retry(
        MemoryUnavailable("away"),
        task=TASK,
        attempt=attempt,
        max_attempts=5,
        retry=RetryPolicy(60.0, 300.0),
        now=NOW,
    ).pause_s
    assert pause_s is not None
    assert 1.0 <= pause_s <= 5.0
    assert decide(MemoryUnavailable("away"), left_s=0.0) == RetryDecision(
        dead_reason="deadline"
    )


def test_a_run_that_would_begin_after_the_deadline_is_none() -> None:
    assert decide(RetryLater("later", 10), left_s=10.0) == RetryDecision(
        dead_reason="deadline"
    )
    assert decide(RetryLater("later", 10), left_s=10.5) == RetryDecision(pause_s=10)
    assert decide(GiveUp("no"), left_s=0.5) == RetryDecision(dead_reason="gave_up")
    assert decide(ValueError("no"), attempt=5, left_s=0.5) == RetryDecision(
        dead_reason="attempts"
    )


async def test_a_long_pause_is_scheduled_and_the_delivery_settled() -> None:
    """With the attempt counted on, the trace kept, and an id that a repeated publish shares."""
    worker = FakeWorker(raising(RetryLater("later", 60)))
    headers = {
        "traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01",
        "Nats-Msg-Id": "t1:1",
        "Tasklore-Attempt": "2",
    }
    await worker.work(a_task(task="mutter", headers=headers))
    [(subject, body, message_id)] = worker.outbox.stored
    assert (subject, message_id) == ("schedules.tasks.t1.1", "t1:1:a3")
    assert body == a_task(task="mutter").body
    assert worker.outbox.headers == [
        {
            "traceparent": headers["traceparent"],
            "Tasklore-Generation": "1",
            "Tasklore-Attempt": "3",
            "Nats-Schedule": "@at 2026-01-01T12:01:00Z",
            "Nats-Schedule-Target": "due.tasks.DeskAgent.mutter",
            "Nats-Schedule-TTL": "24h",
        }
    ]
    assert len(worker.engine.settled) == 1
    entry = await worker.ledger.read("t1")
    assert entry is not None
    assert (entry.generations[1].state, entry.generations[1].assignment) == (
        "waiting",
        body,
    )
    assert worker.counts.seen["retry:schedule"] == 1


async def test_no_run_begins_before_the_time_of_a_schedule() -> None:
    """A copy of the task that is offered meanwhile waits as long as its schedule, but for the 0.1 s of two clocks."""
    worker = FakeWorker(raising(RetryLater("later", 60)))
    await worker.work(a_task(task="mutter"))
    found = await worker.ledger.begin("t1", 1, "w2", 0, 60_000, token="copy")
    assert isinstance(found, NotDue)
    assert 50_000 < found.wait_ms <= 59_900


async def test_a_pause_that_cannot_be_scheduled_is_spent_in_the_queue() -> None:
    """Nothing is lost with LATER: the delivery is handed back with its whole delay."""
    worker = FakeWorker(raising(RetryLater("later", 60)))
    worker.outbox.refuses = {"schedules"}
    await worker.work(a_task(task="mutter"))
    assert (
        worker.engine.settled,
        [pause_s for _, pause_s in worker.engine.handed_back],
    ) == ([], [60.0])


async def test_a_pause_whose_schedule_is_too_large_for_the_server_is_spent_in_the_queue() -> (
    None
):
    """The task only just fitted; with the headers of a schedule it would end the connection of its worker."""
    worker = FakeWorker()
    taken = a_task(task="mutter", headers={"X-Long": "x" * 65_000})
    taken.body += b" " * (subjects.MAX_BODY - len(taken.body))
    job = JobReader(worker.agent).read(taken, NOW)
    assert isinstance(job, Job)
    link = DeafLink(asyncio.get_running_loop())
    outbox = Outbox(link=cast("Link", link))
    retries = Retries(
        worker.stores,
        cast("Any", KitWaits()),
        outbox,
        cast("Any", worker.counts),
        Acknowledger(),
        now=lambda: NOW,
    )
    waits_for = to_retry_wait(OSError("away"), run=1, now=NOW, pause_s=60.0)
    await retries.retry(
        job, 60.0, cast("PullEngine", worker.engine), waits_for=waits_for
    )
    assert (link.sent, worker.engine.settled) == ([], [])
    assert [pause_s for _, pause_s in worker.engine.handed_back] == [60.0]


async def test_a_short_pause_stays_in_the_queue() -> None:
    """Five seconds are not worth a schedule."""
    worker = FakeWorker(raising(RetryLater("later", 5)))
    await worker.work(a_task(task="mutter"))
    assert (
        worker.outbox.stored,
        [pause_s for _, pause_s in worker.engine.handed_back],
    ) == ([], [5.0])
    assert worker.counts.seen["retry:nak"] == 1


def away(away_s: float) -> LlmUnavailable:
    """Return what says that the provider of model `m` is away."""
    error = LlmUnavailable("503")
    error.away_s = away_s
    error.model = "m"
    return error


def test_a_run_that_found_its_model_away_is_none_and_ends_with_the_deadline() -> None:
    """However many attempts there were: it waits for its provider, and expires."""
    assert decide(away(3.0), attempt=5) == RetryDecision(pause_s=3.0)
    assert decide(away(3.0), attempt=5, left_s=2.0) == RetryDecision(pause_s=2.0)
    assert decide(LlmUnavailable("503"), attempt=5) == RetryDecision(
        dead_reason="attempts"
    )


@pytest.mark.parametrize("away_s", [2.0, 9.0])
async def test_a_task_waits_for_its_model_with_all_its_attempts(away_s: float) -> None:
    """In its queue or in LATER, each time under an id of its own, or the stream would swallow the second schedule."""
    worker = FakeWorker(raising(away(away_s)))
    clock = [100.0]
    worker.ledger._clock = lambda: clock[0]
    for number in range(1, 4):
        delivery = a_task(task="mutter", max_attempts=1)
        await worker.work(replace(delivery, sequence=number, reply=f"$JS.ACK.{number}"))
        clock[0] += 10
    assert worker.outbox.reports() == []
    ids = [message_id for _, _, message_id in worker.outbox.stored]
    assert ids == ([] if away_s < 5 else ["t1:1:a1:1", "t1:1:a1:2", "t1:1:a1:3"])
    assert worker.counts.seen["waiting:m"] == 3
    worker.does = lambda _word, _context: None
    await worker.work(a_task(task="mutter", max_attempts=1))
    assert (worker.report().status, worker.report().attempt) == ("completed", 1)


@pytest.mark.parametrize("excused", [0, 1, 7])
def test_a_task_spins_through_no_outage(excused: int) -> None:
    """The pauses grow with the runs that were lost to it, though its own retries follow at once."""
    policy = RetryPolicy(0.0, 0.0)
    error = MemoryUnavailable("full")
    pauses = [
        decide_retry(
            error, attempt=1, max_attempts=1, retry=policy, now=NOW, excused=excused
        ).pause_s
        or 0.0
        for _ in range(200)
    ]
    assert min(pauses) >= max(1.0, min(5.0, 2 ** (1 + excused)) / 2)
    assert max(pauses) <= min(5.0, 2 ** (1 + excused))


async def test_a_task_without_time_for_another_run_says_so() -> None:
    """Before the words of the error, which are those of its last run alone."""
    worker = FakeWorker(raising(RetryLater("the hotel is closed", 60)))
    deadline = NOW + timedelta(seconds=30)
    await worker.work(a_task(task="mutter", deadline=deadline.isoformat()))
    [report] = worker.outbox.reports()
    assert report.error is not None
    assert (report.status, report.error.type, report.error.message) == (
        "failed",
        "RetryLater",
        f"no other run fits before the deadline, {spell_moment(deadline)}: the hotel is closed",
    )
