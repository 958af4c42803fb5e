"""Turns and facts that are not learned yet, or could not be: rows with the reason and the cure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tasklore.contracts.errors import BudgetSpent
from tasklore.memory.queues.claims import KnownRow
from tasklore.memory.queues.queue import PersonalQueue

#: Rows of a table that are looked through for those that wait or failed: some 50 ms of the server.
_MOST_ROWS = 5_000
#: What helps where a row says nothing else, by its state.
CURES = {
    "waiting": "its turn comes",
    "needs_model": "configure a model, or wait until it answers",
    "failed": "say it again in other words",
}
#: What helps where a budget was spent, of which the reason begins with the name of the error.
_BUDGET = "raise the limit, or wait for its next day or month"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRow:
    """A turn or a fact that waits or was set aside; `reason` says why, `cure` what helps."""

    kind: Literal["turn", "fact"]
    row_id: str
    state: str
    reason: str
    cure: str
    attempts: int


async def rows_waiting(
    owner: str, turns: PersonalQueue, facts: PersonalQueue
) -> Sequence[WaitingRow]:
    """Return the rows of *owner* that wait in *turns* and *facts*, turns first.

    Raises:
        MemoryUnavailable: the store did not answer in time.
    """
    tables: tuple[tuple[Literal["turn", "fact"], PersonalQueue], ...] = (
        ("turn", turns),
        ("fact", facts),
    )
    return [
        WaitingRow(
            kind=kind,
            row_id=row.row_id,
            state=row.state,
            reason=row.reason,
            cure=_cure_of(row),
            attempts=row.attempts,
        )
        for kind, table in tables
        for row in await _known_rows(owner, table)
        if row.state in CURES
    ]


async def count_waiting(owner: str, turns: PersonalQueue, facts: PersonalQueue) -> int:
    """Return how many rows of *owner* wait or failed, those among them that `rows_waiting` does not list.

    Raises:
        MemoryUnavailable: the store did not answer in time.
    """
    found = [await table.counts(owner) for table in (turns, facts)]
    return sum(one.waiting + one.parked + one.closed["failed"] for one in found)


def _cure_of(row: KnownRow) -> str:
    if row.state == "needs_model" and row.reason.startswith(BudgetSpent.__name__):
        return _BUDGET
    return CURES[row.state]


async def _known_rows(owner: str, table: PersonalQueue) -> Sequence[KnownRow]:
    """Return the rows of *owner* among which are all that wait or failed; closed ones come behind the others."""
    counts = await table.counts(owner)
    wanted = counts.waiting + counts.parked
    if counts.closed["failed"]:
        wanted += sum(counts.closed.values())
    return await table.rows(owner, min(wanted, _MOST_ROWS)) if wanted else ()
