"""Watches over queues, dead letters and the ledger: figures as of the last look, and none while nobody answers."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import nats.errors
import pytest

from tasklore.contracts import subjects
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory.shared_values import AgedValue
from tasklore.supervisor import watches
from tasklore.supervisor.reports.reports import UNKNOWN_S, RunTimes
from tasklore.supervisor.watches import (
    MOST_AGENTS,
    BacklogWatch,
    LedgerWatch,
    StreamWatch,
    TaskBacklog,
)
from tests.unit.supervisor.reports import report


class Server:
    """A NATS connection that answers every request with `answer`; None: with a timeout."""

    def __init__(self, answer: dict[str, Any] | None) -> None:
        self.answer = answer
        self.client = self

    async def request(self, _subject: str, _payload: bytes, **_patience: float) -> Any:
        if self.answer is None:
            raise nats.errors.TimeoutError
        return type("Answer", (), {"data": json.dumps(self.answer).encode()})


class Unshared:
    """A process that reads for itself; a store that is away while `is_away`."""

    is_away = False

    async def take(
        self, read: Callable[[], Awaitable[TaskBacklog]]
    ) -> AgedValue[TaskBacklog]:
        if self.is_away:
            raise MemoryUnavailable("away")
        return AgedValue(await read(), 0.0)


def tasks_waiting(subjects: dict[str, int]) -> dict[str, Any]:
    """Return JetStream's description of TASKS with so many messages on each subject."""
    return {"state": {"first_ts": "1970-01-01T00:00:20Z", "subjects": subjects}}


def letters_waiting(messages: int, first: str) -> dict[str, Any]:
    """Return JetStream's description of DEAD with so many messages, the first of them as old as *first*."""
    return {"state": {"messages": messages, "first_ts": first}}


@pytest.fixture
def present(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Return the bucket of workers, to be filled."""
    workers: dict[str, bytes] = {}

    async def read(_link: object, _bucket: str) -> dict[str, bytes]:
        return workers

    monkeypatch.setattr(watches, "read_bucket", read)
    return workers


def backlog_watch(
    server: Server, *agents: str, run_times: RunTimes | None = None
) -> BacklogWatch:
    """Return a watch over TASKS at half past the first minute of 1970."""
    return BacklogWatch(
        server,  # type: ignore[arg-type]  # a fake
        Unshared(),  # type: ignore[arg-type]  # a fake
        lambda: agents,
        run_times or RunTimes(),
        now=lambda: 90.0,
    )


def letter_watch(server: Server, now_s: list[float]) -> StreamWatch:
    """Return a watch over DEAD whose clock shows the last of *now_s*."""
    return StreamWatch(server, subjects.DEAD, now=lambda: now_s[-1])  # type: ignore[arg-type]  # a fake


async def test_backlog_is_counted_by_agent_beside_its_workers(
    present: dict[str, bytes],
) -> None:
    """An agent without tasks or workers has 0, and tasks of each name take as long as they took before."""
    times = RunTimes()
    times.note(report(agent_id="A", task_name="slow", run_ms=4000))
    present.update({"A.w1": b"", "A.w2": b"", "B.w3": b""})
    server = Server(tasks_waiting({"tasks.A.slow": 3, "tasks.A.new": 2}))
    watch = backlog_watch(server, "A", "Gone", run_times=times)
    await watch.look()
    assert watch.unfinished() == {"A": 5, "B": 0, "Gone": 0}
    assert watch.slot_s() == {"A": 3 * 4.0 + 2 * UNKNOWN_S, "B": 0, "Gone": 0}
    assert watch.workers() == {"A": 2, "B": 1, "Gone": 0}
    assert watch.oldest_s() == 70.0
    server.answer = None
    await watch.look()
    assert (watch.unfinished(), watch.workers(), watch.oldest_s()) == ({}, {}, 0.0)


async def test_backlog_is_counted_while_nothing_can_be_shared(
    present: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each supervisor asks for itself then."""
    monkeypatch.setattr(Unshared, "is_away", True)
    present["A.w1"] = b""
    watch = backlog_watch(Server(tasks_waiting({"tasks.A.slow": 3})), "A")
    await watch.look()
    assert (watch.unfinished(), watch.workers()) == ({"A": 3}, {"A": 1})


async def test_agents_beyond_the_limit_are_counted_as_one(
    present: dict[str, bytes],
) -> None:
    """The agents with most tasks keep a series of their own, so that strangers make no series without end."""
    tasks = {f"tasks.S{number}.t": 1 for number in range(2 * MOST_AGENTS)}
    watch = backlog_watch(Server(tasks_waiting(tasks | {"tasks.Busy.t": 1000})), "A")
    await watch.look()
    counts = watch.unfinished()
    assert (counts["Busy"], len(counts)) == (1000, MOST_AGENTS + 1)
    assert sum(counts.values()) == 1000 + 2 * MOST_AGENTS


def test_run_times_follow_completed_runs_alone() -> None:
    times = RunTimes()
    times.note(report(run_ms=1000))
    for other in (report(run_ms=0), report(run_ms=9000, status="expired")):
        times.note(other)
    assert times.of("BudgetTrackerAgent", "analyze_budget") == 1.0
    for _ in range(50):
        times.note(report(run_ms=3000))
    assert 2.9 < times.of("BudgetTrackerAgent", "analyze_budget") < 3.0


async def test_dead_letters_grow_older_between_two_looks_and_are_unknown_while_nobody_answers() -> (
    None
):
    clock = [60.0]
    server = Server(letters_waiting(3, "1970-01-01T00:00:20.123456789Z"))
    watch = letter_watch(server, clock)
    await watch.look()
    assert (watch.waiting(), round(watch.oldest_s(), 2)) == (3, 39.88)
    clock.append(70.0)
    assert round(watch.oldest_s(), 2) == 49.88
    for away in (
        None,
        {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}},
    ):
        server.answer = away
        await watch.look()
        assert (watch.waiting(), watch.oldest_s()) == (0, 0.0)


@pytest.mark.parametrize(
    ("count", "first"), [(0, "0001-01-01T00:00:00Z"), (1, "1970-01-01T00:01:20Z")]
)
async def test_an_empty_stream_and_a_clock_behind_the_servers_give_age_zero(
    count: int, first: str
) -> None:
    watch = letter_watch(Server(letters_waiting(count, first)), [60.0])
    await watch.look()
    assert (watch.waiting(), watch.oldest_s()) == (count, 0.0)


class Counters:
    """The ledger's counters; a store that is away while `ended` is None."""

    ended: dict[str, int] | None = None

    #: Seconds since another process added them up.
    age_s = 0.0

    async def read_shared(self) -> AgedValue[dict[str, int]]:
        if self.ended is None:
            raise MemoryUnavailable("away")
        return AgedValue(self.ended, self.age_s)


async def test_ledger_counts_stay_known_and_grow_older_while_it_is_away() -> None:
    counters = Counters()
    clock = [100.0]
    watch = LedgerWatch(counters, now=lambda: clock[-1])  # type: ignore[arg-type]  # a fake
    await watch.look()
    assert watch.ended() == {}
    counters.ended = {"failed": 2}
    clock.append(110.0)
    await watch.look()
    assert (watch.ended(), watch.age_s()) == ({"completed": 0, "failed": 2}, 0.0)
    counters.ended = None
    clock.append(130.0)
    await watch.look()
    assert (watch.ended(), watch.age_s()) == ({"completed": 0, "failed": 2}, 20.0)
    counters.ended = {"failed": 3}
    counters.age_s = 8.0
    await watch.look()
    assert (watch.ended(), watch.age_s()) == ({"completed": 0, "failed": 3}, 8.0)
