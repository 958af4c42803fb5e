"""Runs that nobody has listed are listed a moment later, one that cannot be apart from the others."""

from collections.abc import Sequence

from tasklore.memory.ledger.late_rows import LateRows
from tasklore.memory.ledger.run_rows import RunRow


class NotedIndex:
    """Stands for `RunIndex`: keeps what was listed."""

    def __init__(self) -> None:
        self.listed: list[str] = []

    async def write(self, rows: Sequence[RunRow]) -> None:
        self.listed += [row.task_id for row in rows]


async def test_a_row_that_cannot_be_made_holds_up_no_others() -> None:
    index = NotedIndex()
    late = LateRows(index)  # type: ignore[arg-type]  # a fake

    def fail() -> RunRow:
        raise ValueError("no agent has that name")

    late.add("odd", fail)
    late.add("sound", lambda: RunRow("sound", "A", "look", 1))
    await late._writing
    assert index.listed == ["sound"]
    late.add("later", lambda: RunRow("later", "A", "look", 1))
    await late._writing
    assert index.listed == ["sound", "later"]
