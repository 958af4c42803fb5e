"""The layouts of the ledger, for tests that hold in each: `layout` sets one before a store is asked."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import TaskName
from tasklore.memory import keys
from tasklore.memory.ledger import layouts
from tasklore.memory.ledger.layouts import MARKS, EntryKeys, Layout
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.migration import Migration
from tasklore.memory.ledger.runs import Ended, Finish
from tasklore.memory.ledger.task_rows import TaskRow
from tasklore.runtime.servers import valkey
from tests.servers import PATIENCE_S

#: The agent of every task that a test names by its id alone.
AGENT = "TreeAgent"


@dataclass(frozen=True, slots=True)
class LayoutUnderTest:
    """A layout that a server is set to."""

    word: Layout

    @property
    def is_by_agent(self) -> bool:
        """Whether new entries lie below their agents."""
        return self.word in ("migrating", "2")

    def key(self, task_id: str) -> str:
        """Return the key of a task that was made in this layout."""
        if self.is_by_agent:
            return keys.entry(TaskName(AGENT, task_id))
        return keys.task(task_id)

    def children(self, task_id: str) -> str:
        """Return the key of what such a task called."""
        if self.is_by_agent:
            return f"{self.key(task_id)}:children"
        return keys.children(task_id)


def row_for(task_id: str, generation: int = 1) -> TaskRow:
    """Return how a task of `AGENT` is listed."""
    return TaskRow(
        task_id=task_id,
        agent_id=AGENT,
        task="leaf",
        created_ms=1,
        generation=generation,
    )


class ListingLedger(Ledger):
    """A ledger that lists each task of `AGENT`, as processes do, which know more of it than a test says."""

    async def accept(
        self, task_id: str, generation: int, *said: Any, **more: Any
    ) -> None:
        more.setdefault("row", row_for(task_id, generation))
        await super().accept(task_id, generation, *said, **more)

    async def park(self, run: Ended, *said: Any, **more: Any) -> None:
        more.setdefault("row", row_for(run.task_id, run.generation))
        await super().park(run, *said, **more)

    async def finish_many(
        self, reports: Sequence[Finish | tuple[str, int, str, bytes]]
    ) -> list[Any]:
        told = [Finish(*one) for one in reports]
        rows = [
            row_for(one.task_id, one.generation)._replace(
                state=one.status, ended_ms=1, user=one.user
            )
            for one in told
        ]
        return await super().finish_many(
            [one._replace(row=row) for one, row in zip(told, rows, strict=True)]
        )


async def set_layout(client: Redis, layout: Layout) -> None:
    """Let the server of *client* have *layout*."""
    if layout == "1":
        await client.delete(keys.ledger_layout())
    else:
        await client.set(keys.ledger_layout(), MARKS[layout])


async def finish_long_ago(
    client: Redis,
    task: TaskName,
    *,
    generation: int = 1,
    end: str = "completed",
    report: bytes = b"{}",
) -> None:
    """Let *task* have ended in layout 2 for longer than its report, and the pointer to its agent, are kept."""
    await set_layout(client, "2")
    ledger = Ledger(
        client, deadline_s=PATIENCE_S, reports_keep=timedelta(milliseconds=1)
    )
    await ledger.finish(task, generation, end, report)

    async def is_over() -> bool:
        entry = await ledger.read(task)
        assert entry is not None
        # A cancelled one is found by its id as long as it is known: its children ask for it.
        has_pointer = end != "cancelled" and await client.exists(keys.task_agent(task))
        return entry.generations[generation].expired is not None and not has_pointer

    async with asyncio.timeout(PATIENCE_S):
        while not await is_over():  # noqa: ASYNC110 - a server is asked
            await asyncio.sleep(0.01)


async def move(url: str, settled_s: float) -> int:
    """Take the ledger to layout 2, again whenever its server is away; return how many entries were moved last."""
    while True:
        async with valkey.connect(url, name="migration") as client:
            migration = Migration(client, settled_s=settled_s)
            try:
                moved = await migration.run(lambda _: None)
            except MemoryUnavailable:
                await asyncio.sleep(0.2)
                continue
            assert moved.unknown == []
            return moved.entries


@pytest.fixture(
    params=["1", "prepared", "migrating", "2"], ids=lambda word: f"layout-{word}"
)
async def layout(
    request: pytest.FixtureRequest,
    valkey_or_redis: Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> LayoutUnderTest:
    """Set the server to each layout; a task that a test names by its id alone is made for `AGENT`."""
    make = layouts.Entries.make

    async def make_named(self: layouts.Entries, task_id: str) -> EntryKeys:
        named = isinstance(task_id, TaskName)
        return await make(self, task_id if named else TaskName(AGENT, task_id))

    monkeypatch.setattr(layouts.Entries, "make", make_named)
    await set_layout(valkey_or_redis, request.param)
    return LayoutUnderTest(request.param)
