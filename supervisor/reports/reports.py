"""Reports: the one report of each assignment, delivered to the request that waits for it.

A report reaches the waiter three ways, whichever is first: the supervisor's durable consumer, of which another replica
may be given it; a hint on the core subject; and a look into stream and ledger every two seconds. The core subject also
carries what the stream refused: so a hint only says that the stream is to be read, unless the consumer is faster.
"""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.admission.limits import NANO_USD
from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.errors import MemoryUnavailable, Unreachable
from tasklore.contracts.messages import CompletionReport, TaskAssignment
from tasklore.contracts.traces import TraceContext, read_context
from tasklore.memory.budgets.store import KEPT_COSTS
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_state import explain_state
from tasklore.runtime import tracing
from tasklore.runtime.messaging.direct import read_last
from tasklore.runtime.messaging.link import Arrival
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.runtime.tracing.letters import processing

log = structlog.get_logger(__name__)

#: Seconds between looks at the ledger while a report is awaited: both other ways may have missed it.
_LOOK_S = 2.0
#: Looks a second in one process, over all that wait: ten thousand every two seconds leave the stores no time for work.
_LOOKS_PER_S = 200
#: Seconds until a report is read again that was not stored yet when it was heard of; doubled each time.
_STORING_S = 0.002
#: Seconds for one direct read of a stored report.
_READ_S = 1.0

#: Seconds that the consumer has to bring a report before it is read by itself: of several replicas one is given it.
HINT_PAUSE_S = 0.002
#: Parts of that pause, each at least a turn of the loop: a busy one takes these to read what the consumer brought.
_CONSUMER_LOOKS = 5
#: Words of the subject of a report: `reports`, the supervisor, the task and its generation.
_REPORT_WORDS = 4

#: Seconds that a task takes of which no report was seen yet.
UNKNOWN_S = 1.0
#: How much a report weighs against all before it: the last twenty or so tell nearly all.
_WEIGHT = 0.1
#: Names of which run times are kept; task names may come from strangers.
_MOST_NAMES = 1000
#: Reports read before the consumer brought them that are remembered, so that each has one span in this process.
_MOST_TRACED = 1000

_Waiter = asyncio.Future[CompletionReport]
NoteEnded = Callable[[Sequence[tuple[CompletionReport, str]]], Awaitable[None]]
NoteSizes = Callable[[Sequence[tuple[CompletionReport, int]]], Awaitable[None]]


class RunTimes:
    """The time that tasks take a slot, a moving mean by agent and task, to estimate a backlog.

    Of runs only, as a remembered answer takes no slot worth counting.
    """

    def __init__(self) -> None:
        self._means: dict[tuple[str, str], float] = {}

    def note(self, report: CompletionReport) -> None:
        """Take *report* into account when its task ran to an end of its own."""
        if report.run_ms <= 0 or report.status not in {"completed", "failed"}:
            return
        name = (report.agent_id, report.task_name)
        run_s = report.run_ms / 1000
        mean = self._means.get(name)
        if mean is not None:
            self._means[name] = mean + _WEIGHT * (run_s - mean)
        elif len(self._means) < _MOST_NAMES:
            self._means[name] = run_s

    def of(self, agent_id: str, task_name: str) -> float:
        """Return the seconds that such a task takes, `UNKNOWN_S` before the first report."""
        return self._means.get((agent_id, task_name), UNKNOWN_S)


class TaskCosts:
    """What reports of tasks had cost since they were last taken, by agent and task, in nano-dollars.

    Of runs that asked a model of a known price, as only these have one.
    """

    def __init__(self) -> None:
        self._costs: dict[tuple[str, str], deque[int]] = {}

    def note(self, report: CompletionReport) -> None:
        """Take *report* into account when its task ran and asked a model."""
        cost_usd = report.usage.cost_usd
        name = (report.agent_id, report.task_name)
        if (
            report.run_ms <= 0
            or not cost_usd
            or (name not in self._costs and len(self._costs) >= _MOST_NAMES)
        ):
            return
        self._costs.setdefault(name, deque(maxlen=KEPT_COSTS)).append(
            round(cost_usd * NANO_USD)
        )

    def take(self) -> dict[tuple[str, str], deque[int]]:
        """Return the costs, and begin anew."""
        costs = self._costs
        self._costs = {}
        return costs


class _Expected:
    """The report that *waiter* gets, by *look* where nothing else brings it; *others* are all that wait."""

    def __init__(
        self,
        waiter: _Waiter,
        look: Callable[[], Awaitable[None]],
        others: Sized,
        *,
        is_new: bool,
    ) -> None:
        self._waiter = waiter
        self._look = look
        self._others = others
        self._is_new = is_new

    async def report(
        self, within_s: float, look_s: float = _LOOK_S
    ) -> CompletionReport | None:
        """Return the report, None when there is none within *within_s* seconds."""
        loop = asyncio.get_running_loop()
        waiter = self._waiter
        gives_up_at = loop.time() + within_s
        # It may have come before it was expected, or long ago when the request is a repeated one.
        if not self._is_new and not waiter.done():
            await self._look()
        self._is_new = False
        while not waiter.done():
            left_s = gives_up_at - loop.time()
            if left_s <= 0:
                return None
            pause_s = max(look_s, len(self._others) / _LOOKS_PER_S)
            await asyncio.wait([waiter], timeout=min(left_s, pause_s))
            if not waiter.done():
                await self._look()
        return waiter.result()


class ReportWaiter:
    """Takes stored reports, and lets requests wait for theirs.

    A program has no *ledger*: None. *hint_pause_s* is how long a report is left to the consumer after its hint, where
    there is one.
    """

    def __init__(
        self, client: Client, ledger: Ledger | None, *, hint_pause_s: float = 0.0
    ) -> None:
        self._client = client
        self._ledger = ledger
        self._hint_pause_s = hint_pause_s
        self._waiters: dict[str, list[_Waiter]] = defaultdict(list)
        self._looking: set[asyncio.Task[None]] = set()
        self._traced: dict[str, None] = {}
        self.run_times = RunTimes()
        """The time that tasks took, by the reports that came here."""
        self.costs = TaskCosts()
        """What they had cost."""
        self.note_ended: NoteEnded | None = None
        """Stores, for webhooks, reports with the tokens of their users; a report is acknowledged only then."""
        self.note_sizes: NoteSizes | None = None
        """Hears of every report and its bytes, for the bounds of owners."""

    async def report_of(
        self, assignment: TaskAssignment, within_s: float, *, is_new: bool = False
    ) -> CompletionReport | None:
        """Return the final report of *assignment*, as `report_on` does."""
        return await self.report_on(
            assignment.supervisor_id, assignment.named, within_s, is_new=is_new
        )

    async def report_on(
        self,
        supervisor_id: str,
        task_id: str,
        within_s: float,
        *,
        is_new: bool = False,
        look_s: float = _LOOK_S,
    ) -> CompletionReport | None:
        """Return the final report of a task, or None when there is none within *within_s* seconds.

        With *is_new* it was not sent before this call, so that there is nothing to look for yet. The stores are looked
        into every *look_s* seconds, or less often while very many wait.
        """
        with self._expect(supervisor_id, task_id, is_new=is_new) as expected:
            return await expected.report(within_s, look_s)

    def expect(
        self, assignment: TaskAssignment, *, is_new: bool = False
    ) -> AbstractContextManager["_Expected"]:
        """Listen for the report of *assignment* within the block, as `report_on` does."""
        return self._expect(assignment.supervisor_id, assignment.named, is_new=is_new)

    @contextlib.contextmanager
    def _expect(
        self, supervisor_id: str, task_id: str, *, is_new: bool
    ) -> Iterator["_Expected"]:
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        waiters = self._waiters[task_id]
        waiters.append(waiter)
        look = partial(self._look, supervisor_id, task_id)
        try:
            yield _Expected(waiter, look, self._waiters, is_new=is_new)
        finally:
            waiters.remove(waiter)
            if not waiters:
                self._waiters.pop(task_id, None)

    async def is_under_way(self, task_id: str) -> bool:
        """Return whether *task_id* runs, as far as is known: its report may be about to come."""
        return await self.state_of(task_id) in ("running", "away")

    async def state_of(self, task_id: str) -> str | None:
        """Return how *task_id* stands in the ledger, None when it is not there; "away" while that is."""
        if self._ledger is None:
            return "away"
        try:
            entry = await self._ledger.read(task_id)
        except MemoryUnavailable:
            return "away"
        return None if entry is None else entry.generations[entry.newest].state

    async def wait_of(self, task_id: str) -> RunWait | None:
        """Return why *task_id* waits, None where it does not, or where that is not known."""
        if self._ledger is None:
            return None
        try:
            entry = await self._ledger.read(task_id)
        except MemoryUnavailable:
            return None
        if entry is None:
            return None
        return explain_state(entry.generations[entry.newest], datetime.now(UTC))

    def hear_hint(self, arrival: Arrival) -> None:
        """Look soon for the report in the stream: the one that was just published, or an earlier one."""
        words = arrival.subject.split(".")
        if len(words) == _REPORT_WORDS and words[2] in self._waiters:
            self._follow(words, _CONSUMER_LOOKS if self._hint_pause_s else 0)

    def _follow(self, words: list[str], looks: int) -> None:
        """Read the report of a hint, unless it comes another way before *looks* pauses are over."""
        _, supervisor_id, task_id, generation = words
        if task_id in self._waiters and looks:
            pause_s = self._hint_pause_s / _CONSUMER_LOOKS
            asyncio.get_running_loop().call_later(
                pause_s, self._follow, words, looks - 1
            )
        elif task_id in self._waiters:
            # Of a task that was sent again an earlier report may be published once more.
            is_first = generation == "1"
            confirm = (
                self._confirm(supervisor_id, task_id)
                if is_first
                else self._look(supervisor_id, task_id)
            )
            look = asyncio.create_task(confirm)
            self._looking.add(look)
            look.add_done_callback(self._looking.discard)

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Wake the requests that wait for these reports, and note how long their tasks took."""
        reports: list[tuple[CompletionReport, str]] = []
        sizes: list[tuple[CompletionReport, int]] = []
        for delivery in batch:
            report = _read_report(delivery.body)
            if report is not None:
                self._trace_delivery(delivery, report)
                self._serve(report)
                self.run_times.note(report)
                self.costs.note(report)
                reports.append(
                    (report, (delivery.headers or {}).get(subjects.USER_HEADER, ""))
                )
                sizes.append((report, len(delivery.body)))
        if self.note_sizes is not None and sizes:
            await self.note_sizes(sizes)
        try:
            if self.note_ended is not None and reports:
                await self.note_ended(reports)
        except MemoryUnavailable as error:
            log.info("webhooks_wait_for_store", error=str(error))
            for delivery in batch:
                line.hand_back(delivery, _READ_S)
            return
        for delivery in batch:
            line.settle(delivery)

    async def _look(self, supervisor_id: str, task_id: str) -> None:
        """Serve the newest report: the stream's counts, the ledger has older ones."""
        if self._ledger is None:
            stored = await self._read_stored(
                subjects.generations_of(supervisor_id, task_id)
            )
            report = _read_report(stored.data) if stored is not None else None
            if stored is not None and report is not None:
                generation = report.generation
                subject = subjects.report(supervisor_id, task_id, generation)
                self._serve_found(report, subject, stored)
            return
        entry = None
        with contextlib.suppress(MemoryUnavailable):
            entry = await self._ledger.read(task_id)
        newest = entry.newest if entry is not None else 1
        subject = subjects.report(supervisor_id, task_id, newest)
        stored = await self._read_stored(subject)
        body = stored.data if stored is not None else None
        if body is None and entry is not None:
            body = entry.generations[newest].report
        report = _read_report(body) if body is not None else None
        if report is not None:
            self._serve_found(report, subject, stored)

    async def _confirm(self, supervisor_id: str, task_id: str) -> None:
        """Serve the first report of *task_id* once the stream has stored it."""
        subject = subjects.report(supervisor_id, task_id, 1)
        pause_s = _STORING_S
        while task_id in self._waiters and pause_s < _LOOK_S:
            stored = await self._read_stored(subject)
            report = _read_report(stored.data) if stored is not None else None
            if report is not None:
                self._serve_found(report, subject, stored)
                return
            await asyncio.sleep(pause_s)
            pause_s *= 2

    async def _read_stored(self, subject: str) -> Msg | None:
        try:
            return await read_last(self._client, subjects.REPORTS, subject, _READ_S)
        except Unreachable:
            return None

    def _serve(self, report: CompletionReport) -> bool:
        """Wake the requests that wait for *report*; return whether any did."""
        waiting = [
            waiter
            for waiter in self._waiters.get(report.task_id, ())
            if not waiter.done()
        ]
        for waiter in waiting:
            waiter.set_result(report)
        return bool(waiting)

    def _serve_found(
        self, report: CompletionReport, subject: str, stored: Msg | None
    ) -> None:
        """Serve *report*, which was read before the consumer brought it.

        Its span is below the message that is *stored*, or below the request where the ledger alone has it.
        """
        if not self._serve(report) or not tracing.is_on():
            return
        parent = read_context(stored.headers) if stored else tracing.current()
        if parent is None:
            return
        _begin_span(report, subject, parent).end()
        self._traced[subject] = None
        if len(self._traced) > _MOST_TRACED:
            del self._traced[next(iter(self._traced))]

    def _trace_delivery(self, delivery: Delivery, report: CompletionReport) -> None:
        """Add to the trace of its task that *report* arrived in *delivery*, unless it was read before."""
        if not tracing.is_on() or (parent := read_context(delivery.headers)) is None:
            return
        if delivery.subject in self._traced:
            del self._traced[delivery.subject]
            return
        delivery.span = _begin_span(report, delivery.subject, parent)


def _read_report(body: bytes) -> CompletionReport | None:
    try:
        return CompletionReport.model_validate_json(body)
    except ValidationError as error:
        log.warning(
            "unreadable_report",
            problems=error.error_count(),
            at=datetime.now(UTC).isoformat(),
        )
        return None


def _begin_span(
    report: CompletionReport, subject: str, parent: TraceContext
) -> tracing.Span:
    """Begin the span of *report*, which was said on *subject*; the caller ends it."""
    attributes = processing(subject) | {
        "tasklore.agent": report.agent_id,
        "tasklore.task": report.task_name,
        "tasklore.task_id": report.task_id,
        "tasklore.status": report.status,
        "tasklore.memory.outcome": report.memory.outcome,
    }
    return tracing.begin(
        f"process {subjects.place(subject)}",
        kind="consumer",
        parent=parent,
        attributes=attributes,
    )
