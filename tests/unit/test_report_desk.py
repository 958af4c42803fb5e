"""Reports that were published without the ledger: stored in it all at once, or offered again when it is away."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts.errors import MemoryUnavailable
from contracts.messages import CompletionReport, Fence, MemoryNote, TaskAssignment, TaskCall, Usage
from memory.fake_ledger import FakeLedger
from memory.ledger import LedgerEntry
from memory.runs import Finish, Wish
from runtime.pull import Delivery
from supervisor.reports import ReportDesk
from tests.unit.office import Line

BATCH = 256
#: Seconds for what takes none.
PATIENCE_S = 60.0


class CountingLedger(FakeLedger):
    """A ledger that counts how often it was asked, and may be away."""

    def __init__(self, *, is_away: bool = False) -> None:
        super().__init__()
        self.asked = 0
        self._is_away = is_away

    async def finish_many(self, reports: Sequence[Finish | tuple[str, int, str, bytes]]) -> list[bytes | Wish | None]:
        """Answer, unless away."""
        self._ask()
        return [await super(CountingLedger, self).finish(*report[:4]) for report in reports]

    async def finish(self, task_id: str, generation: int, status: str, report: bytes) -> bytes | Wish | None:
        """Answer, unless away."""
        self._ask()
        return await super().finish(task_id, generation, status, report)

    def _ask(self) -> None:
        self.asked += 1
        if self._is_away:
            raise MemoryUnavailable("away")


class ReadingLedger(FakeLedger):
    """A ledger that notes what it was read for."""

    def __init__(self) -> None:
        super().__init__()
        self.read_for: list[str] = []

    async def read(self, task_id: str) -> LedgerEntry | None:
        """Answer, and note it."""
        self.read_for.append(task_id)
        return await super().read(task_id)


def an_assignment(task_id: str) -> TaskAssignment:
    """Return the assignment that a report answers."""
    call = TaskCall(name="x")
    return TaskAssignment(task_id=task_id, agent_id="A", supervisor_id="S", task=call, created_at=datetime.now(UTC))


def a_report(task_id: str, fence: Fence = "none") -> Delivery:
    """Return a stored report as a supervisor is offered it."""
    report = CompletionReport(
        task_id=task_id,
        agent_id="A",
        supervisor_id="S",
        task_name="x",
        status="completed",
        memory=MemoryNote(outcome="off"),
        attempt=1,
        fence=fence,
        worker_id="w1",
        queued_ms=0,
        run_ms=1,
        usage=Usage(),
        finished_at=datetime.now(UTC),
    )
    return Delivery(f"reports.S.{task_id}.1", report.model_dump_json().encode(), None, f"ack.{task_id}", 1, 1, 0.0)


async def work(ledger: CountingLedger, *deliveries: Delivery) -> Line:
    """Let a desk with *ledger* take *deliveries*, and return what it said on them."""
    line = Line()
    await ReportDesk(Client(), ledger).work(list(deliveries), line)  # type: ignore[arg-type]  # fakes
    return line


@pytest.mark.parametrize("is_away", [False, True])
async def test_a_batch_of_unfenced_reports_asks_the_ledger_once(is_away: bool) -> None:
    """One after the other each would wait until the ledger is given up, while nobody else is served."""
    ledger = CountingLedger(is_away=is_away)
    batch = [a_report(f"t{number}") for number in range(BATCH)]
    fenced = a_report("fenced", "ledger")
    line = await work(ledger, *batch, fenced)
    assert ledger.asked == 1
    if is_away:
        assert line.settled == [fenced]
        assert [delivery for delivery, _ in line.handed_back] == batch
        return
    assert {delivery.reply for delivery in line.settled} == {delivery.reply for delivery in [*batch, fenced]}
    for number in (0, BATCH - 1):
        entry = await ledger.read(f"t{number}")
        assert entry is not None
        assert (entry.generations[1].state, entry.generations[1].report) == ("completed", batch[number].body)


async def test_what_the_ledger_does_not_take_is_dealt_with() -> None:
    """It has an earlier report of one, and a wish to cancel the other: neither is offered for ever."""
    ledger = CountingLedger()
    await ledger.finish("t1", 1, "failed", b"earlier")
    await ledger.cancel("t2", 1, "enough")
    batch = [a_report("t1"), a_report("t2")]
    line = await work(ledger, *batch)
    assert line.settled == batch
    assert line.handed_back == []


async def test_where_nothing_is_to_be_repaired_the_ledger_is_not_asked() -> None:
    """Reports that the ledger knows, and what is no report, are settled at once."""
    ledger = CountingLedger()
    batch = [a_report("t1", "ledger"), Delivery("reports.S.t2.1", b"rubbish", None, "ack.t2", 1, 1, 0.0)]
    line = await work(ledger, *batch)
    assert (line.settled, ledger.asked) == (batch, 0)


@pytest.mark.parametrize(("fence", "asked"), [("ledger", 0), ("none", 1)])
async def test_a_hint_that_passed_the_ledger_is_served_as_it_is(fence: Fence, asked: int) -> None:
    """The subject also carries what the stream refused: of the other kind the ledger is asked."""
    ledger = ReadingLedger()
    desk = ReportDesk(Client(), ledger)  # type: ignore[arg-type]  # a fake
    told = a_report("t1", fence)
    await ledger.finish("t1", 1, "completed", told.body)
    waiting = asyncio.create_task(desk.report_of(an_assignment("t1"), PATIENCE_S, is_new=True))
    await asyncio.sleep(0)
    await desk.hear_hint(Msg(Client(), told.subject, data=told.body))
    report = await waiting
    assert report is not None
    assert (report.task_id, ledger.read_for) == ("t1", ["t1"] * asked)


async def test_a_hint_of_a_task_that_was_sent_again_is_looked_up() -> None:
    """An earlier generation may be published once more while the next one runs."""
    ledger = ReadingLedger()
    desk = ReportDesk(Client(), ledger)  # type: ignore[arg-type]  # a fake
    told = CompletionReport.model_validate_json(a_report("t1", "ledger").body).model_copy(update={"generation": 2})
    await ledger.finish("t1", 2, "completed", told.model_dump_json().encode())
    waiting = asyncio.create_task(desk.report_of(an_assignment("t1"), PATIENCE_S, is_new=True))
    await asyncio.sleep(0)
    await desk.hear_hint(Msg(Client(), "reports.S.t1.2", data=told.model_dump_json().encode()))
    assert (await waiting) is not None
    assert ledger.read_for == ["t1"]
