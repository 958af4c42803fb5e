"""A desk with fakes all around it: an engine, an outbox, a ledger and a memory that can be away."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import Any, cast

from pydantic import BaseModel

from tasklore import Agent, Context, Parameters
from tasklore.contracts.admission.limits import Limits
from tasklore.contracts.errors import MemoryUnavailable, NotAccepted
from tasklore.contracts.messages import CompletionReport
from tasklore.memory.ledger.runs import Beginning, CancelRequest
from tasklore.runtime.messaging.outbox import Settled
from tasklore.runtime.messaging.pull import Delivery
from tasklore.workers.execution.acknowledger import Acknowledger
from tasklore.workers.execution.bounded_runs import BoundedRuns
from tasklore.workers.execution.consumer import Consumer
from tasklore.workers.execution.crash_isolation import CrashIsolation
from tasklore.workers.execution.executor import Executor
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.recall import NearMatches
from tasklore.workers.execution.report_publisher import Metering, ReportPublisher
from tasklore.workers.execution.retry_decision import RetryPolicy
from tasklore.workers.execution.retry_scheduling import Retries
from tasklore.workers.execution.run_slot import RunSlot
from tasklore.workers.execution.stores import Stores
from tasklore.workers.middleware import Hooks, Middleware
from tasklore.workers.testing import KitServices, ScriptedLlm
from tasklore.workers.testing.flights import KitFlights
from tasklore.workers.testing.waits import KitWaits
from tests.fakes.ledger import FakeLedger
from tests.fakes.sessions import FakeSessions
from tests.fakes.stores import FakeLongTermMemory

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Call(Parameters):
    """What the task is told."""

    word: str


class Said(BaseModel):
    """What the task says."""

    word: str


class FakeEngine:
    """An engine that notes the last word on each delivery."""

    def __init__(self) -> None:
        self.settled: list[Delivery] = []
        self.forgotten: list[Delivery] = []
        self.handed_back: list[tuple[Delivery, float]] = []

    def settle(self, delivery: Delivery) -> None:
        """Note that it is dealt with."""
        self.settled.append(delivery)

    def forget(self, delivery: Delivery) -> None:
        """Note that nothing is said on it."""
        self.forgotten.append(delivery)

    def lend(self, delivery: Delivery) -> bool:
        """Give its slot to nobody."""
        return bool(delivery)

    async def reclaim(self, delivery: Delivery) -> None:
        """Have the slot still."""

    def hand_back(self, delivery: Delivery, delay_s: float = 0.0) -> None:
        """Note that it is given back."""
        self.handed_back.append((delivery, delay_s))


class FakeOutbox:
    """An outbox that stores at once, or refuses."""

    def __init__(self, order: list[str]) -> None:
        self.stored: list[tuple[str, bytes, str]] = []
        self.headers: list[dict[str, str]] = []
        self.refuses: set[str] = set()
        self._order = order

    def send(
        self,
        subject: str,
        body: bytes,
        message_id: str,
        settled: Settled,
        **_options: Any,
    ) -> None:
        """Store a letter, and tell."""
        kind = subject.partition(".")[0]
        if kind in self.refuses:
            settled(NotAccepted(f"{subject}: not stored"))
            return
        self._order.append(kind)
        self.stored.append((subject, body, message_id))
        settled(None)

    async def put(
        self,
        subject: str,
        body: bytes,
        message_id: str,
        *,
        headers: Any = None,
        **_options: Any,
    ) -> None:
        """Store a letter, or raise."""
        if subject.partition(".")[0] in self.refuses:
            raise NotAccepted(f"{subject}: not stored")
        self._order.append(subject.partition(".")[0])
        self.stored.append((subject, body, message_id))
        self.headers.append(dict(headers or {}))

    def reports(self) -> list[CompletionReport]:
        """Return every stored report."""
        return [
            CompletionReport.model_validate_json(body)
            for subject, body, _ in self.stored
            if subject.startswith("reports.") and not subject.startswith("reports.~")
        ]


class Counts:
    """A meter that counts by what happened."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def count_tasks(self, agent: str, task: str, outcome: str, number: int) -> None:
        """Count terminal reports."""
        self.seen[f"{task}:{outcome}"] += number

    def observe_task(
        self, agent: str, task: str, *, queued_s: float, run_s: float | None
    ) -> None:
        """Count measured runs."""
        self.seen["ran"] += run_s is not None

    def count_lookup(self, agent: str, outcome: str, number: int = 1) -> None:
        """Count what the memory had to do with them."""
        self.seen[outcome] += number

    def count_saved(self, seconds: float) -> None:
        """Count that something was saved."""
        self.seen["saved"] += 1

    def count_stale_report(self) -> None:
        """Count a loser."""
        self.seen["stale"] += 1

    def count_dead_letter(self, reason: str) -> None:
        """Count a burial."""
        self.seen[f"dead:{reason}"] += 1

    def count_crashed_run(self) -> None:
        """Count a crash."""
        self.seen["crashed"] += 1

    def count_replaced_run(self) -> None:
        """Count a run that came to nothing."""
        self.seen["replaced"] += 1

    def count_retry(self, how: str) -> None:
        """Count a run to come."""
        self.seen[f"retry:{how}"] += 1

    def count_waiting(self, model: str, task_id: str, pause_s: float) -> None:
        """Count a task that waits for a model."""
        self.seen[f"waiting:{model}"] += 1

    def time_lookup(self) -> AbstractContextManager[object]:
        """Measure nothing."""
        return nullcontext()


class AwayLedger(FakeLedger):
    """A ledger that can be away, for beginnings or for ends, and notes when it took a report."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        self.begins_away = self.finishes_away = self.parks_away = False
        self._order = order

    async def begin(self, *arguments: Any, **options: Any) -> Beginning:
        """Answer, unless away."""
        if self.begins_away:
            raise MemoryUnavailable("away")
        return await super().begin(*arguments, **options)

    async def park(self, *arguments: Any, **options: Any) -> None:
        """Note it, unless away."""
        if self.parks_away:
            raise MemoryUnavailable("away")
        await super().park(*arguments, **options)

    async def finish_many(self, reports: Any) -> list[bytes | CancelRequest | None]:
        """Answer, unless away."""
        if self.finishes_away:
            raise MemoryUnavailable("away")
        self._order.append("ledger")
        return await super().finish_many(reports)


class AwayMemory(FakeLongTermMemory):
    """A memory that can be away, and counts how often it was asked."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        self.is_away = False
        self.asked: list[int] = []
        self.answers_when = asyncio.Event()
        self.answers_when.set()
        self._order = order

    async def recall_many(self, entry_keys: Any) -> Any:
        """Answer, unless away."""
        self.asked.append(len(entry_keys))
        await self.answers_when.wait()
        if self.is_away:
            raise MemoryUnavailable("away")
        return await super().recall_many(entry_keys)

    async def remember(self, *arguments: Any, **options: Any) -> None:
        """Store, unless away."""
        if self.is_away:
            raise MemoryUnavailable("away")
        await super().remember(*arguments, **options)
        self._order.append("memory")


class AwaySessions(FakeSessions):
    """Sessions that can be away, or answer with an error, and note when they take something."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        self.error: Exception | None = None
        self._order = order

    async def set_many(self, *arguments: Any, **options: Any) -> None:
        """Store, unless there is something wrong."""
        if self.error is not None:
            raise self.error
        await super().set_many(*arguments, **options)
        self._order.append("session")


class FakeWorker:
    """A desk with everything around it; `does` is what its tasks do.

    *ledger*, *memory* and *sessions* are real stores for those that do without stand-ins.
    """

    def __init__(
        self,
        does: Callable[[str, Context], Any] | None = None,
        *,
        worker_id: str = "w1",
        ledger: Any = None,
        memory: Any = None,
        sessions: Any = None,
        middleware: Sequence[Middleware] = (),
        declare: Callable[[Agent], object] = lambda _agent: None,
    ) -> None:
        #: The time, where it is asked for.
        self.now = NOW
        self.runs: list[str] = []
        self.order: list[str] = []
        self.engine = FakeEngine()
        self.outbox = FakeOutbox(self.order)
        self.counts = Counts()
        self.hits = Counter[str]()
        self.ledger: AwayLedger = ledger or AwayLedger(self.order)
        self.memory: AwayMemory = memory or AwayMemory(self.order)
        self.sessions: AwaySessions = sessions or AwaySessions(self.order)
        self.does = does or (lambda word, _context: None)
        self.agent = self._make_agent()
        declare(self.agent)
        services = KitServices(ScriptedLlm(), NOW)
        services.sessions = self.sessions
        self.services = services

        def make_context(job: Job, _slot: RunSlot) -> Context:
            return Context(job.task, job.assignment, services, attempt=job.attempt)

        async def read_no_limits() -> Limits:
            return Limits()

        counts: Any = self.counts
        post: Any = self.outbox
        none: Any = None
        self.stores = Stores(
            self.memory,
            self.ledger,
            KitFlights[bytes](),
            self.sessions,
            self.hits,
        )  # type: ignore[arg-type]
        hooks = Hooks(
            [
                NearMatches(self.memory),
                Metering(self.agent.agent_id, self.agent.tasks, counts),
                *middleware,
            ]
        )
        acknowledger = Acknowledger(hooks)
        publisher = ReportPublisher(
            self.agent.agent_id,
            self.ledger,
            post,
            counts,
            acknowledger=acknowledger,
            hooks=hooks,
            ledger_pause_s=0.01,
        )
        self.waits = KitWaits()
        executor = Executor(
            worker_id=worker_id,
            stores=self.stores,
            publisher=publisher,
            retries=Retries(
                self.stores,
                cast("Any", self.waits),
                post,
                counts,
                acknowledger,
                now=lambda: self.now,
            ),
            retry=RetryPolicy(1.0, 8.0),
            make_context=make_context,
            metrics=counts,
            exclusive=CrashIsolation(),
            bounded=BoundedRuns(
                worker_id=worker_id,
                store=none,
                held=none,
                ledger=none,
                client=none,
                retries=none,
                read_limits=read_no_limits,
            ),
            hooks=hooks,
            now=lambda: self.now,
        )
        self.consumer = Consumer(
            self.agent,
            worker_id,
            stores=self.stores,
            executor=executor,
            publisher=publisher,
            metrics=counts,
            hooks=hooks,
            now=lambda: self.now,
        )

    def _make_agent(self) -> Agent:
        agent = Agent("DeskAgent")

        async def speak(call: Call, context: Context) -> Said:
            """Say the word."""
            self.runs.append(call.word)
            done = self.does(call.word, context)
            if asyncio.iscoroutine(done):
                await done
            return Said(word=call.word)

        agent.task(name="speak", remember="shared")(speak)
        agent.task(name="mutter", remember=False)(speak)
        agent.task(name="swear", remember=False, idempotent=False)(speak)
        return agent

    async def work(self, *deliveries: Delivery) -> None:
        """Let the desk work on a batch."""
        async with asyncio.timeout(60):
            await self.consumer.work(list(deliveries), self.engine)  # type: ignore[arg-type]  # a fake

    def report(self) -> CompletionReport:
        """Return the only report."""
        [report] = self.outbox.reports()
        return report


def a_task(
    word: str = "hello",
    task: str = "speak",
    *,
    task_id: str = "t1",
    deliveries: int = 1,
    **fields: Any,
) -> Delivery:
    """Return a delivery of an assignment."""
    headers = fields.pop("headers", None)
    whole = {
        "task_id": task_id,
        "agent_id": "DeskAgent",
        "supervisor_id": "S",
        "task": {"name": task, "parameters": {"word": word}},
        "created_at": "2026-01-01T12:00:00Z",
    }
    body = json.dumps(whole | fields).encode()
    return Delivery(
        subject=f"tasks.DeskAgent.{task}",
        body=body,
        headers=headers,
        reply=f"$JS.ACK.{task_id}.{deliveries}",
        deliveries=deliveries,
        sequence=7,
        arrived_at=0.0,
    )


def raising(error: BaseException) -> Callable[[str, Context], None]:
    """Return what a task does to fail with *error*."""

    def does(_word: str, _context: Context) -> None:
        raise error

    return does
