"""Cancelling a task that has ended already, without servers."""

from typing import Any

from tasklore.contracts.messages import Status
from tasklore.supervisor.cancellation import Canceller, Cancelling
from tests.fakes.ledger import FakeLedger
from tests.unit.supervisor.reports import report


class FakeOutbox:
    """Stores what is put into it."""

    def __init__(self) -> None:
        self.stored: list[tuple[str, bytes]] = []

    async def put(
        self, subject: str, body: bytes, _message_id: str, **_options: object
    ) -> None:
        """Store a letter."""
        self.stored.append((subject, body))


def a_report(status: Status) -> bytes:
    """Return the report of a task that ended as *status*."""
    return report(supervisor_id="S", status=status).model_dump_json().encode()


async def cancel(status: Status) -> tuple[Cancelling, list[tuple[str, bytes]]]:
    """Cancel a task that the ledger knows as ended; return the result, and what was published."""
    ledger: Any = FakeLedger()
    outbox: Any = FakeOutbox()
    client: Any = None
    await ledger.finish("t1", 1, status, a_report(status))
    # Nothing of a task that has ended waits any more: there is nothing to take away.
    waiting: Any = None
    canceller = Canceller(client, outbox, ledger, "S-2", waiting=waiting)
    result = await canceller.cancel("t1", "changed my mind")
    return result, outbox.stored


async def test_a_cancelled_task_that_is_cancelled_again_is_reported_again() -> None:
    """The process that cancelled it may have died before the report was stored."""
    result, published = await cancel("cancelled")
    assert result == Cancelling("cancelled", "cancelled")
    assert published == [("reports.S.t1.1", a_report("cancelled"))]


async def test_a_completed_task_is_not_cancelled() -> None:
    """Its report stands, and is not published once more."""
    assert await cancel("completed") == (Cancelling("too_late", "completed"), [])
