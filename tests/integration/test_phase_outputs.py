"""Outputs of phases on real stores: in the session before the ledger, written once, and fenced by their phase."""

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore import Context
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import CancelRequest, Finish
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.memory.sessions.session import EntryInfo, SessionCache
from tasklore.runtime.messaging.pull import Delivery
from tests.unit.workers.execution.fake_worker import FakeWorker, a_task

#: Seconds that a store may take on a busy machine.
LONG_S = 60.0

PHASE: dict[str, Any] = {"session_id": "s1", "phase": "say", "writes": ["results"]}


class Witness(Ledger):
    """A ledger that notes the entries of the session at each end of a run, and can hold its answer back."""

    def __init__(self, client: Redis, sessions: SessionCache) -> None:
        super().__init__(client, deadline_s=LONG_S)
        self.saw: list[list[str]] = []
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()
        self._sessions = sessions

    async def finish_many(
        self, reports: Sequence[Finish | tuple[str, int, str, bytes]]
    ) -> list[bytes | CancelRequest | None]:
        self.saw.append([entry.key for entry in await self._sessions.entries("s1")])
        self.asked.set()
        await self.answers.wait()
        return await super().finish_many(reports)


class House:
    """Worker processes on one store, and one session."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.sessions = SessionCache(redis, deadline_s=LONG_S)
        self.ledger = Witness(redis, self.sessions)
        self._workers = 0

    def worker(self, sessions: SessionCache | None = None) -> FakeWorker:
        self._workers += 1
        return FakeWorker(
            worker_id=f"w{self._workers}",
            ledger=self.ledger,
            memory=LongTermMemory(self.redis, budget_s=LONG_S),
            sessions=sessions or self.sessions,
        )

    async def entries(self) -> dict[str, EntryInfo]:
        return {entry.key: entry for entry in await self.sessions.entries("s1")}


@pytest.fixture
async def system(redis: Redis) -> House:
    system = House(redis)
    assert await system.sessions.create("s1", project="system")
    return system


async def test_the_session_has_a_result_before_the_ledger_however_it_was_found(
    system: House,
) -> None:
    worker = system.worker()
    worker.does = lambda _word, _context: asyncio.sleep(0.005)
    phases = iter(range(10))

    def a_phase(**fields: Any) -> Delivery:
        number = next(phases)
        return a_task(task_id=f"t{number}", **PHASE | {"phase": f"p{number}"} | fields)

    await worker.work(a_phase(), a_phase())
    await worker.work(a_phase())
    await worker.work(a_phase(memory="bypass"))
    await worker.work(a_phase(memory="refresh"))
    reports = worker.outbox.reports()
    outcomes = [report.memory.outcome for report in reports]
    assert outcomes == ["miss", "joined", "hit", "bypassed", "refreshed"]
    assert [
        f"p{number}:results" in saw for number, saw in enumerate(system.ledger.saw)
    ] == [True] * 5
    found = await system.sessions.peek(
        "s1", [f"p{number}:results" for number in range(5)]
    )
    assert [one.value if one else None for one in found] == [{"word": "hello"}] * 5
    took = [one.entry.computation_ms for one in found if one]
    assert reports[0].run_ms > 0
    assert took == [reports[0].run_ms] * 3 + [reports[3].run_ms, reports[4].run_ms]


async def test_a_phase_cut_off_before_the_ledger_runs_again(system: House) -> None:
    first = system.worker()
    second = system.worker()
    system.ledger.answers.clear()
    dying = asyncio.create_task(first.work(a_task(task="mutter", **PHASE)))
    await system.ledger.asked.wait()
    dying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dying
    assert list(await system.entries()) == ["say:results"]
    system.ledger.answers.set()
    await second.work(a_task(task="mutter", deliveries=2, **PHASE))
    assert (first.outbox.reports(), second.report().status) == ([], "completed")
    assert [entry.hits for entry in (await system.entries()).values()] == [0]


async def test_a_redelivery_after_the_ledger_writes_no_entry(system: House) -> None:
    for number, task in enumerate(("speak", "mutter")):
        first = system.worker()
        second = system.worker()
        phase = PHASE | {"task": task, "task_id": f"t{number}", "phase": f"p{number}"}
        await first.work(a_task(**phase))
        for reader in ("t2", "t3"):
            assert (
                await system.sessions.get("s1", f"p{number}:results", reader=reader)
                is not None
            )
        await second.work(a_task(deliveries=2, **phase))
        assert [body for _, body, _ in first.outbox.stored] == [
            body for _, body, _ in second.outbox.stored
        ]
        assert (second.runs, (await system.entries())[f"p{number}:results"].hits) == (
            [],
            2,
        )


@pytest.mark.parametrize("remembered", [False, True])
async def test_a_task_whose_phase_was_given_to_another_is_cancelled(
    system: House, remembered: bool
) -> None:
    worker = system.worker()
    if remembered:
        await worker.work(a_task(task_id="t0"))
    await system.sessions.set("s1", "say:results", "newer")
    await system.redis.hset(keys.session("s1").tasks, "say", "t9")
    await worker.work(a_task(**PHASE))
    report = worker.outbox.reports()[-1]
    assert report.error is not None
    assert (report.task_id, report.status, report.error.type) == (
        "t1",
        "cancelled",
        "PhaseReplaced",
    )
    assert [
        subject for subject, _, _ in worker.outbox.stored if subject.startswith("dead.")
    ] == []
    found = await system.sessions.get("s1", "say:results")
    assert found.value == "newer"


async def test_a_refusal_of_the_session_fails_the_phase_with_the_cure(
    system: House,
) -> None:
    small = system.worker(
        SessionCache(system.redis, max_value_bytes=1024, deadline_s=LONG_S)
    )
    await small.work(a_task("x" * 2000, **PHASE))
    report = small.report()
    assert (report.status, report.error.type) == ("failed", "EntryTooLarge")
    assert "say:results" in report.error.message
    assert "1024" in report.error.message
    assert await system.entries() == {}
    worker = system.worker()
    await system.sessions.drop("s1")
    await worker.work(a_task(task_id="t2", **PHASE))
    report = worker.report()
    assert (report.status, report.error.type, report.attempt) == (
        "failed",
        "UnknownSession",
        1,
    )
    assert "'s1'" in report.error.message


async def test_outputs_are_timed_by_the_run_and_parts_as_declared(
    system: House,
) -> None:
    worker = system.worker()

    async def write(_word: str, context: Context) -> None:
        await context.session.set("say:part:0", 0)
        await context.session.set("say:part:1", 1, took=timedelta(seconds=3))

    worker.does = write
    await worker.work(a_task(task="mutter", **PHASE | {"writes": ["word", "results"]}))
    took = {
        key: (one.computation_ms, one.is_timed)
        for key, one in (await system.entries()).items()
    }
    ran = worker.report().run_ms, True
    assert took == {
        "say:part:0": (0, False),
        "say:part:1": (3000, True),
        "say:word": ran,
        "say:results": ran,
    }


async def test_a_phase_runs_again_while_the_session_store_is_away(
    system: House,
) -> None:
    class Away(SessionCache):
        is_away = True

        async def set_many(self, *arguments: Any, **options: Any) -> None:
            if self.is_away:
                raise MemoryUnavailable("away")
            await super().set_many(*arguments, **options)

    sessions = Away(system.redis, deadline_s=LONG_S)
    worker = system.worker(sessions)
    for number in (1, 2):
        await worker.work(
            a_task(task="mutter", deliveries=number, max_attempts=1, **PHASE)
        )
    assert (worker.outbox.stored, len(worker.engine.handed_back)) == ([], 2)
    sessions.is_away = False
    await worker.work(a_task(task="mutter", deliveries=3, max_attempts=1, **PHASE))
    assert (worker.report().status, worker.report().attempt) == ("completed", 3)
    assert json.loads(worker.outbox.stored[-1][1])["result"] == {"word": "hello"}
