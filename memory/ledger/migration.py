"""Moving a ledger from layout 1 to layout 2 under load, in steps that can be interrupted at any point and repeated.

Each step is one value of the key that `layouts` explains. Between two of them passes more time than any process goes by
its last look at the key, so that processes side by side are never more than one step apart.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json
from redis.asyncio import Redis

from tasklore.contracts.identifiers import TaskName, user_token
from tasklore.contracts.messages import CompletionReport, TaskAssignment
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.key_parts import is_name
from tasklore.memory.ledger import scripts
from tasklore.memory.ledger.layouts import MARKS, Layout
from tasklore.memory.ledger.ledger import number_in
from tasklore.memory.ledger.open_tasks import read_layout, task_keys
from tasklore.memory.ledger.task_index import KEEP_OPEN, TaskIndex
from tasklore.memory.ledger.task_rows import (
    END_STATES,
    TaskRow,
    row_of,
    row_of_report,
    token_or_none,
)

#: Seconds after a step until every process knows it: six times as long as one goes by what it read.
SETTLED_S = 60.0
#: Seconds that a task which names no agent is given to end, or to wait with its assignment, and between looks.
_NAMED_WITHIN_S = 60.0
_AGAIN_S = 1.0
#: Entries read at once: each may hold a report and an assignment of almost a mebibyte.
_AT_ONCE = 16
#: Seconds for one exchange.
_DEADLINE_S = 30.0

#: Shows a line of progress.
Tell = Callable[[str], None]


@dataclass(slots=True)
class Moved:
    """How many entries were moved, and the ids of tasks that could not be.

    *unknown* name no agent; *twice* are those that are in both layouts, as a process that knows nothing of layout 2
    makes them.
    """

    entries: int = 0
    unknown: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)


class Migration:
    """Takes the ledger of one server to layout 2.

    Args:
        settled_s: Seconds after each step until every process knows it.
        named_within_s: Seconds that a task which names no agent has to end.
        demand_new_ones: Raises while a process is connected that knows nothing of layout 2; asked before each step.
    """

    def __init__(
        self,
        client: Redis,
        *,
        settled_s: float = SETTLED_S,
        named_within_s: float = _NAMED_WITHIN_S,
        demand_new_ones: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._batch = CommandBatch(client, _DEADLINE_S, has_large_replies=True)
        # For longer than any ledger keeps an entry, so that no list of a user ends before it.
        self._index = TaskIndex(client, keep=KEEP_OPEN, deadline_s=_DEADLINE_S)
        self._settled_s = settled_s
        self._named_within_s = named_within_s
        self._demand_new_ones = demand_new_ones

    async def layout(self) -> Layout:
        """Return how far it is.

        Raises:
            MemoryUnavailable: the server did not answer.
            InvalidInput: a newer version wrote what this one does not know.
        """
        return await read_layout(self._batch)

    async def run(
        self,
        tell: Tell,
        *,
        drops_unknown: bool = False,
        before_last: Callable[[], Awaitable[None]] | None = None,
    ) -> Moved:
        """Move the ledger from its present step to the end; return the count of moved entries.

        The last step is not made where tasks name no agent, unless *drops_unknown*: then they are dropped; nor where
        one is in both layouts, or where *before_last*, which is called then, raises. Of two that run side by side, each
        goes on from where the other has come to.

        Raises:
            MemoryUnavailable: the server did not answer; go on later.
        """
        moved = Moved()
        while (layout := await self.layout()) != "2":
            if layout == "1":
                await self._mark("1", "prepared")
            elif layout == "prepared":
                await self._settle(tell, "reads both layouts")
                await self._mark("prepared", "migrating")
            else:
                await self._settle(tell, "makes new entries in layout 2")
                moved = await self.convert(tell)
                while drops_unknown and not await self._drop(moved.unknown):
                    # Some have named their agents meanwhile.
                    later = await self.convert(tell)
                    later.entries += moved.entries
                    moved = later
                if moved.twice or (moved.unknown and not drops_unknown):
                    break
                if before_last is not None:
                    await before_last()
                await self._mark("migrating", "2")
        return moved

    async def convert(self, tell: Tell) -> Moved:
        """Move every entry that is left in layout 1, until a look at all finds none but those that name no agent."""
        moved = Moved()
        loop = asyncio.get_running_loop()
        gives_up_at = loop.time() + self._named_within_s
        while True:
            found = await self._look(moved)
            if not found and moved.unknown and loop.time() < gives_up_at:
                await asyncio.sleep(min(_AGAIN_S, self._named_within_s))
            elif not found:
                return moved
            tell(f"{moved.entries:,} entries are moved")

    async def _look(self, moved: Moved) -> int:
        """Look at all entries once; return how many were moved, and keep in *moved* those that could not be."""
        before = moved.entries
        moved.unknown.clear()
        moved.twice.clear()
        async for page in self._pages():
            # Before they move: each is listed as soon as it is looked for in the list alone.
            await self._index.write(
                [row for key, fields in page for row in _rows_of(key, fields)]
            )
            commands = [_conversion(key, fields) for key, fields in page]
            done = await self._batch.run(commands)
            agents = {str(one[7]) for one in commands if one[7]}
            if agents:
                await self._batch.run([("SADD", keys.ledger_agents(), *agents)])
            moved.entries += sum(one == 1 for one in done)
            for (key, _), one in zip(page, done, strict=True):
                # A scan may show a key twice.
                left = {-1: moved.unknown, -2: moved.twice}.get(one, [])
                if (task_id := keys.parse_task(key)) not in left:
                    left.append(task_id)
        return moved.entries - before

    async def _pages(self) -> AsyncIterator[list[tuple[bytes, dict[bytes, bytes]]]]:
        """Yield keys of layout 1 with their fields."""
        async for found in task_keys(self._batch):
            own = [
                key for key in found if not isinstance(keys.parse_task(key), TaskName)
            ]
            for first in range(0, len(own), _AT_ONCE):
                page = own[first : first + _AT_ONCE]
                asked: list[Command] = [("HGETALL", key) for key in page]
                replies = await self._batch.run(asked)
                fields = map(as_mapping, replies)
                yield list(zip(page, fields, strict=True))

    async def _drop(self, task_ids: Sequence[str]) -> bool:
        """Remove each of *task_ids* that still names no agent; return whether all are gone."""
        dropped = await self._batch.run(
            [
                (
                    "FCALL",
                    scripts.DROP_UNKNOWN,
                    2,
                    keys.task(task_id),
                    keys.children(task_id),
                )
                for task_id in task_ids
            ]
        )
        return all(dropped)

    async def _mark(self, before: Layout, after: Layout) -> None:
        """Make the step from one layout to the next, unless another run has made it."""
        if self._demand_new_ones is not None:
            await self._demand_new_ones()
        marks = MARKS.get(before, b""), MARKS[after]
        command = "FCALL", scripts.MARK, 1, keys.ledger_layout(), *marks
        await self._batch.run([command])

    async def _settle(self, tell: Tell, what: str) -> None:
        tell(f"In {self._settled_s:g} s every process {what}.")
        await asyncio.sleep(self._settled_s)


def _rows_of(key: bytes, fields: dict[bytes, bytes]) -> list[TaskRow]:
    """Return the row of the newest generation of the entry at *key*, none of one that has no assignment or report yet.

    A task that is open in any generation is listed as open.
    """
    task_id = keys.parse_task(key)
    named = {field.decode(errors="replace"): value for field, value in fields.items()}
    agent_id = _agent_of(fields)
    generations = {
        number
        for name in named
        if (number := number_in(name.rpartition(":")[2].encode())) is not None
    }
    if not agent_id or not generations:
        return []
    newest = max(generations)
    assignments = {one: named.get(f"assignment:{one}") for one in generations}
    reports = {one: named.get(f"report:{one}") for one in generations}
    opened = [one for one in generations if assignments[one] and not reports[one]]
    assignment = assignments[newest] or (assignments[max(opened)] if opened else None)
    row = None if assignment is None else _open_row(assignment, agent_id, newest)
    report = reports[newest]
    if report is None or opened:
        return [row._replace(task_id=task_id)] if row is not None else []
    state = named.get(f"state:{newest}", b"").decode(errors="replace")
    user = named.get("user", b"").decode(errors="replace")
    ended = _ended_row(report, state, user)
    placed = ended._replace(task_id=task_id, agent_id=agent_id, generation=newest)
    return [placed.complete(row)]


def _open_row(assignment: bytes, agent_id: str, generation: int) -> TaskRow:
    """Return the row of an open task; of an assignment that cannot be read, whose it is."""
    try:
        read = TaskAssignment.model_validate_json(assignment)
    except ValidationError:
        user_id = _read(assignment).get("user_id")
        user = user_token(user_id) if isinstance(user_id, str) and user_id else ""
        return _unreadable_row(_now_ms(), user)._replace(
            agent_id=agent_id, generation=generation
        )
    return row_of(read, generation, agent_id)


def _ended_row(report: bytes, state: str, user: str) -> TaskRow:
    """Return the row of a task that has ended with *report*, in *state* where that cannot be read."""
    try:
        return row_of_report(CompletionReport.model_validate_json(report), user)
    except ValidationError:
        ended_ms = _end_in(_read(report)) or _now_ms()
    return _unreadable_row(ended_ms, token_or_none(user))._replace(
        state=state if state in END_STATES else "failed", ended_ms=ended_ms
    )


def _unreadable_row(created_ms: int, user: str) -> TaskRow:
    return TaskRow(
        task_id="", agent_id="", task="unknown", created_ms=created_ms, user=user
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _agent_of(fields: dict[bytes, bytes]) -> str:
    """Return the agent that an entry names, "" where it names none."""
    found = ""
    for field_name, value in sorted(fields.items()):
        name = field_name.decode(errors="replace").rpartition(":")[0]
        if name in ("assignment", "report") or field_name.startswith(b"wait."):
            found = found or _agent_in(_read(value))
    return found


def _conversion(key: bytes, fields: dict[bytes, bytes]) -> Command:
    """Return the command that moves the entry at *key*."""
    task_id = keys.parse_task(key)
    agent_id = _agent_of(fields)
    ends: list[str] = []
    for field_name, value in sorted(fields.items()):
        name, _, number = field_name.decode(errors="replace").rpartition(":")
        if name == "report" and number_in(number.encode()) is not None:
            ended_ms = _end_in(_read(value))
            ends += [number, str(ended_ms)] if ended_ms else []
    # A name that is none leads to no key; the script takes it for nothing.
    entry = keys.entry(TaskName(agent_id or "unknown", task_id))
    where = keys.task(task_id), keys.children(task_id), entry, keys.task_agent(task_id)
    return ("FCALL", scripts.CONVERT, len(where), *where, agent_id, *ends)


def _read(body: bytes) -> dict[str, Any]:
    """Return the members of a JSON object, none of anything else: workers may write any text."""
    try:
        read = from_json(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _agent_in(body: dict[str, Any]) -> str:
    agent_id = body.get("agent_id")
    return agent_id if isinstance(agent_id, str) and is_name(agent_id) else ""


def _end_in(body: dict[str, Any]) -> int | None:
    """Return when a report says that its task ended, in ms since 1970."""
    try:
        at = datetime.fromisoformat(str(body.get("finished_at")))
        # Other programs may leave the zone out; the wire is in UTC.
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return int(at.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None


def unknown_tasks(task_ids: Sequence[str]) -> str:
    """Return *task_ids* for a sentence: the first of them, and how many there are."""
    shown = ", ".join(map(repr, task_ids[:5]))
    return shown if len(task_ids) <= 5 else f"{shown} and {len(task_ids) - 5:,} more"
