"""What waits for workers, told by agent on a fake connection; and how often tasks ended, as of the last look."""

import json
from datetime import UTC, datetime
from typing import Any

import nats.errors
import pytest

from contracts.errors import MemoryUnavailable
from contracts.messages import CompletionReport, MemoryNote
from supervisor import watches
from supervisor.reports.reports import UNKNOWN_S, RunTimes
from supervisor.watches import MOST_AGENTS, BacklogWatch, LedgerWatch


def report(task: str, run_ms: int, status: str = "completed") -> CompletionReport:
    """Return the report of a task of agent A."""
    return CompletionReport(
        task_id="t1",
        agent_id="A",
        supervisor_id="S",
        task_name=task,
        status=status,  # type: ignore[arg-type]  # one of the words
        memory=MemoryNote(outcome="miss"),
        worker_id="w",
        run_ms=run_ms,
        finished_at=datetime.now(UTC),
    )


class Server:
    """What JetStream says of TASKS; None when nobody answers."""

    def __init__(self, subjects: dict[str, int] | None) -> None:
        self.subjects = subjects
        self.client = self

    async def request(self, _subject: str, _payload: bytes, **_patience: float) -> Any:
        """Answer."""
        if self.subjects is None:
            raise nats.errors.TimeoutError
        state = {"first_ts": "1970-01-01T00:00:20Z", "subjects": self.subjects}
        return type("Answer", (), {"data": json.dumps({"state": state}).encode()})


@pytest.fixture
def present(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Give the bucket of workers, to be filled."""
    workers: dict[str, bytes] = {}

    async def read(_link: object, _bucket: str) -> dict[str, bytes]:
        return workers

    monkeypatch.setattr(watches, "read_bucket", read)
    return workers


def watch_of(server: Server, *agents: str, run_times: RunTimes | None = None) -> BacklogWatch:
    """Return a watch at half past the first minute of 1970."""
    return BacklogWatch(server, lambda: agents, run_times or RunTimes(), now=lambda: 90.0)  # type: ignore[arg-type]  # a fake


async def test_what_waits_is_told_by_agent_beside_who_is_there_for_it(present: dict[str, bytes]) -> None:
    """Tasks of each name take as long as they took; an agent without tasks or workers stands at 0."""
    times = RunTimes()
    times.note(report("slow", 4000))
    present.update({"A.w1": b"", "A.w2": b"", "B.w3": b""})
    watch = watch_of(Server({"tasks.A.slow": 3, "tasks.A.new": 2}), "A", "Gone", run_times=times)
    await watch.look()
    assert watch.unfinished() == {"A": 5, "B": 0, "Gone": 0}
    assert watch.slot_s() == {"A": 3 * 4.0 + 2 * UNKNOWN_S, "B": 0, "Gone": 0}
    assert watch.workers() == {"A": 2, "B": 1, "Gone": 0}
    assert watch.oldest_s() == 70.0


async def test_nothing_is_told_while_nobody_answers(present: dict[str, bytes]) -> None:
    """A zero would say that nothing waits."""
    server = Server({"tasks.A.t": 1})
    watch = watch_of(server, "A")
    assert (watch.unfinished(), watch.workers(), watch.oldest_s()) == ({}, {}, 0.0)
    await watch.look()
    assert watch.unfinished() == {"A": 1}
    server.subjects = None
    await watch.look()
    assert (watch.unfinished(), watch.workers(), watch.oldest_s()) == ({}, {}, 0.0)


async def test_strangers_do_not_make_series_without_end(present: dict[str, bytes]) -> None:
    """Agents with most tasks have their own; the others are counted as one."""
    tasks = {f"tasks.S{number}.t": 1 for number in range(2 * MOST_AGENTS)}
    watch = watch_of(Server(tasks | {"tasks.Busy.t": 1000}), "A")
    await watch.look()
    told = watch.unfinished()
    assert (told["Busy"], len(told)) == (1000, MOST_AGENTS + 1)
    assert sum(told.values()) == 1000 + 2 * MOST_AGENTS


def test_run_times_follow_what_runs_and_nothing_else() -> None:
    """The last reports weigh most; what was served, or never began, took no slot."""
    times = RunTimes()
    times.note(report("t", 1000))
    for other in (report("t", 0), report("t", 9000, "expired")):
        times.note(other)
    assert times.of("A", "t") == 1.0
    for _ in range(50):
        times.note(report("t", 3000))
    assert 2.9 < times.of("A", "t") < 3.0


class Counters:
    """The ledger's counters, or nobody."""

    def __init__(self) -> None:
        self.ended: dict[str, int] | None = None

    async def read(self) -> dict[str, int]:
        """Answer, or raise."""
        if self.ended is None:
            raise MemoryUnavailable("away")
        return self.ended


async def test_what_the_ledger_counted_stays_known_while_it_is_away() -> None:
    """Only its age grows; before the first answer nothing is known."""
    counters, clock = Counters(), [100.0]
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
