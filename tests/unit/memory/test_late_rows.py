"""Runs that nobody has listed are listed a moment later, one that cannot be apart from the others."""

from collections.abc import Sequence

from tasklore.memory.ledger.late_rows import LateRows
from tasklore.memory.ledger.task_rows import TaskRow


class NotedIndex:
    """Stands for `TaskIndex`: keeps what was listed."""

    def __init__(self) -> None:
        self.listed: list[str] = []

    async def write(self, rows: Sequence[TaskRow]) -> None:
        self.listed += [row.task_id for row in rows]


async def test_a_row_that_cannot_be_made_holds_up_no_others() -> None:
    index = NotedIndex()
    late = LateRows(index)  # type: ignore[arg-type]  # a fake

    def fail() -> TaskRow:
        raise ValueError("no agent has that name")

    late.add("odd", fail)
    late.add("sound", lambda: TaskRow("sound", "A", "look", 1))
    await late._writing
    assert index.listed == ["sound"]
    late.add("later", lambda: TaskRow("later", "A", "look", 1))
    await late._writing
    assert index.listed == ["sound", "later"]
