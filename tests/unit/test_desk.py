"""The desk and its runner on fakes: what is served, what runs, and how each delivery comes to its end."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from contracts.errors import GiveUp, MemoryUnavailable, NotAccepted, RetryLater
from contracts.messages import CompletionReport
from memory.fakes import FakeLedger, FakeLongTermMemory, FakeSingleFlight
from runtime.outbox import Settled
from runtime.pull import Delivery
from workers import Agent, Context, Parameters
from workers.conclusion import Conclusion
from workers.desk import TaskDesk
from workers.judgement import RetryPolicy
from workers.order import Order
from workers.runner import Runner, Stores
from workers.testing import KitServices, ScriptedLlm

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Call(Parameters):
    """What the task is told."""

    word: str


class Said(BaseModel):
    """What the task says."""

    word: str


class Line:
    """An engine that notes the last word on each delivery."""

    def __init__(self) -> None:
        self.settled: list[Delivery] = []
        self.handed_back: list[tuple[Delivery, float]] = []

    def settle(self, delivery: Delivery) -> None:
        """Note that it is dealt with."""
        self.settled.append(delivery)

    def hand_back(self, delivery: Delivery, delay_s: float = 0.0) -> None:
        """Note that it is given back."""
        self.handed_back.append((delivery, delay_s))


class Post:
    """An outbox that stores at once, or refuses."""

    def __init__(self, order: list[str]) -> None:
        self.stored: list[tuple[str, bytes, str]] = []
        self.refuses: set[str] = set()
        self._order = order

    def send(self, subject: str, body: bytes, message_id: str, settled: Settled, **_options: Any) -> None:
        """Store a letter, and tell."""
        kind = subject.partition(".")[0]
        if kind in self.refuses:
            settled(NotAccepted(f"{subject}: not stored"))
            return
        self._order.append(kind)
        self.stored.append((subject, body, message_id))
        settled(None)

    async def put(self, subject: str, body: bytes, message_id: str, **_options: Any) -> None:
        """Store a letter, or raise."""
        if subject.partition(".")[0] in self.refuses:
            raise NotAccepted(f"{subject}: not stored")
        self._order.append(subject.partition(".")[0])
        self.stored.append((subject, body, message_id))

    def reports(self) -> list[CompletionReport]:
        """Return every stored report."""
        return [
            CompletionReport.model_validate_json(body)
            for subject, body, _ in self.stored
            if subject.startswith("reports.")
        ]


class Counts:
    """A meter that counts by what happened."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def count_tasks(self, agent: str, task: str, outcome: str, number: int) -> None:
        """Count terminal reports."""
        self.seen[f"{task}:{outcome}"] += number

    def observe_task(self, agent: str, task: str, *, queued_s: float, run_s: float | None) -> None:
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

    def time_lookup(self) -> AbstractContextManager[object]:
        """Measure nothing."""
        return nullcontext()


class AwayLedger(FakeLedger):
    """A ledger that can be away, for beginnings or for ends, and notes when it took a report."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        self.begins_away = self.finishes_away = False
        self._order = order

    async def begin(self, task_id: str, generation: int, attempt: int, worker_id: str, now_ms: int) -> bytes | None:
        """Answer, unless away."""
        if self.begins_away:
            raise MemoryUnavailable("away")
        return await super().begin(task_id, generation, attempt, worker_id, now_ms)

    async def finish_many(self, reports: Any) -> list[bytes | None]:
        """Answer, unless away."""
        if self.finishes_away:
            raise MemoryUnavailable("away")
        self._order.append("ledger")
        return await super().finish_many(reports)


class AwayMemory(FakeLongTermMemory):
    """A memory that can be away, and counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.asked: list[int] = []

    async def recall_many(self, entry_keys: Any) -> Any:
        """Answer, unless away."""
        self.asked.append(len(entry_keys))
        if self.is_away:
            raise MemoryUnavailable("away")
        return await super().recall_many(entry_keys)

    async def remember(self, *arguments: Any, **options: Any) -> None:
        """Store, unless away."""
        if self.is_away:
            raise MemoryUnavailable("away")
        await super().remember(*arguments, **options)


class Office:
    """A desk with everything around it; `does` is what its tasks do."""

    def __init__(self, does: Callable[[str, Context], Any] | None = None) -> None:
        self.runs: list[str] = []
        self.order: list[str] = []
        self.line, self.post, self.counts = Line(), Post(self.order), Counts()
        self.ledger, self.memory, self.hits = AwayLedger(self.order), AwayMemory(), Counter[str]()
        self.does = does or (lambda word, _context: None)
        self.agent = self._make_agent()
        services = KitServices(ScriptedLlm(), NOW)

        def make_context(order: Order) -> Context:
            return Context(order.task, order.assignment, services, attempt=order.attempt)

        stores = Stores(self.memory, self.ledger, FakeSingleFlight[bytes](), self.hits)
        conclusion = Conclusion(
            self.agent.agent_id,
            self.agent.tasks,
            self.ledger,
            self.post,  # type: ignore[arg-type]  # a fake
            self.counts,
        )
        runner = Runner("w1", stores, conclusion, make_context, RetryPolicy(1.0, 8.0), now=lambda: NOW)
        self.desk = TaskDesk(
            self.agent,
            "w1",
            stores=stores,
            runner=runner,
            conclusion=conclusion,
            meter=self.counts,
            now=lambda: NOW,
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

        agent.task(name="speak")(speak)
        agent.task(name="mutter", remember=False)(speak)
        agent.task(name="swear", remember=False, idempotent=False)(speak)
        return agent

    async def work(self, *deliveries: Delivery) -> None:
        """Let the desk work on a batch."""
        async with asyncio.timeout(10):
            await self.desk.work(list(deliveries), self.line)  # type: ignore[arg-type]  # a fake

    def report(self) -> CompletionReport:
        """Return the only report."""
        [report] = self.post.reports()
        return report


def a_task(
    word: str = "hello", task: str = "speak", *, task_id: str = "t1", deliveries: int = 1, **fields: Any
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
    return Delivery(f"tasks.DeskAgent.{task}", body, headers, f"$JS.ACK.{task_id}.{deliveries}", deliveries, 7, 0.0)


@pytest.fixture
def office() -> Office:
    """Open an office whose tasks just answer."""
    return Office()


def raising(error: BaseException) -> Callable[[str, Context], None]:
    """Return what a task does to fail with *error*."""

    def does(_word: str, _context: Context) -> None:
        raise error

    return does


async def test_a_task_is_run_remembered_written_to_the_ledger_reported_and_settled(office: Office) -> None:
    """In this order, so that a crash anywhere in between repeats at most what counts once."""
    delivery = a_task()
    await office.work(delivery)
    assert (office.report().status, office.report().result) == ("completed", {"word": "hello"})
    assert (office.report().memory.outcome, office.report().fence) == ("miss", "ledger")
    assert office.order == ["ledger", "reports"]
    assert office.line.settled == [delivery]
    [(subject, _, message_id)] = office.post.stored
    assert (subject, message_id) == ("reports.S.t1.1", "t1:1:report")


async def test_a_batch_is_recalled_at_once_and_hits_are_served_without_a_run(office: Office) -> None:
    """One question to the memory for all of them, and nothing of the answer is computed again."""
    await office.work(a_task())
    await office.work(*(a_task(task_id=f"again-{number}") for number in range(5)), a_task("other", task_id="new"))
    assert office.runs == ["hello", "other"]
    assert office.memory.asked[1:2] == [6]
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
    """What could be told twice is not told at all until the ledger can decide."""
    office.ledger.finishes_away = True
    await office.work(a_task(task="swear"))
    assert office.post.reports() == []
    assert len(office.line.handed_back) == 1


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
    await office.work(a_task(deliveries=attempt))
    assert office.post.stored == []
    [(_, pause_s)] = office.line.handed_back
    assert 0 < pause_s <= min(8.0, 2 ** (attempt - 1))


async def test_the_last_attempt_goes_to_dead_and_then_to_its_sender() -> None:
    """The dead letter is stored before anybody is told of a failure."""
    office = Office(raising(ConnectionError("the bank is closed")))
    await office.work(a_task(deliveries=5))
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
    await office.work(a_task(deliveries=5))
    assert (office.post.stored, office.line.settled) == ([], [])
    assert len(office.line.handed_back) == 1


@pytest.mark.parametrize(
    ("error", "status"), [(GiveUp("no use"), "failed"), (ValueError("no use"), None), (RetryLater("soon", 7.5), None)]
)
async def test_what_an_error_means_for_a_first_attempt(error: Exception, status: str | None) -> None:
    """Giving up ends it; another error, or the wish to come later, means another run."""
    office = Office(raising(error))
    await office.work(a_task())
    assert [report.status for report in office.post.reports()] == ([status] if status else [])
    if isinstance(error, RetryLater):
        assert [pause_s for _, pause_s in office.line.handed_back] == [7.5]


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit()])
async def test_what_would_end_the_process_is_a_failure_of_the_task(error: BaseException) -> None:
    """The desk goes on, and the error is named."""
    office = Office(raising(error))
    await office.work(a_task(deliveries=5))
    report = office.report()
    assert report.status == "failed"
    assert report.error is not None
    assert type(error).__name__ in report.error.message


async def test_a_task_that_takes_its_worker_along_each_time_is_given_up_in_the_end(office: Office) -> None:
    """Deliveries that ended without a word count too, with some to spare for those that were never started."""
    await office.work(a_task(deliveries=10))
    await office.work(a_task(task_id="t2", word="poison", deliveries=11))
    assert office.runs == ["hello"]
    report = office.post.reports()[-1]
    assert (report.status, report.attempt) == ("failed", 11)
    assert office.counts.seen["dead:attempts"] == 1


async def test_a_wish_to_cancel_ends_the_run(office: Office) -> None:
    """The report carries the reason, and a wish about nothing is told apart."""
    begun = asyncio.Event()

    async def forever(_word: str, _context: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    office.does = forever
    work = asyncio.create_task(office.work(a_task(task="mutter")))
    await begun.wait()
    assert not office.desk.cancel("somebody-else", "")
    assert office.desk.cancel("t1", "changed my mind")
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
    await office.work(a_task(deliveries=5))
    report = office.report()
    assert report.status == "failed"
    assert report.error is not None
    assert report.error.type == "TimeoutError"


@pytest.fixture(autouse=True)
def _no_logs(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Keep expected complaints out of the way."""
    yield
    capsys.readouterr()
