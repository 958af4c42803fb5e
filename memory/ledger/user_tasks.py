"""The tasks of one user, found in the ledger, and removed from it.

A task that has ended names its user's token; one that is open has an assignment that does. Where all is in layout 2,
the index of runs names every task of a user. Before, the whole ledger is looked through: field names are read first, as
`tasklore.memory.ledger.open_tasks` does, so that of a million tasks only assignments of others that are still open are
moved.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import NamedTuple

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.ledger import scripts
from tasklore.memory.ledger.layouts import Entries
from tasklore.memory.ledger.ledger import number_in
from tasklore.memory.ledger.open_tasks import (
    STEP_S,
    existing_entries,
    read_layout,
    task_keys,
)
from tasklore.memory.ledger.task_index import TaskIndex

#: Assignments read in one round trip: each may have almost a mebibyte.
_BODIES = 16


class UserTask(NamedTuple):
    """A task of the user; *assignment* is that of its newest generation as far as the ledger still has it."""

    task_id: str
    assignment: bytes | None


class UserTasks:
    """Finds and removes what the ledger has of a user. MemoryUnavailable after `step_s` for each step."""

    def __init__(self, client: Redis, *, step_s: float = STEP_S) -> None:
        self._batch = CommandBatch(client, step_s, has_large_replies=True)
        self._entries = Entries(client, self._batch)
        self._index = TaskIndex(client, deadline_s=step_s)

    async def read(
        self, token: str, is_theirs: Callable[[bytes], bool]
    ) -> AsyncIterator[UserTask]:
        """Yield the tasks of the user *token*; *is_theirs* reads that out of an assignment.

        Whatever the ledger has from the beginning to the end is found; a task may come twice.
        """
        async for found in self._candidates(token):
            for task in await self._among(found, token.encode(), is_theirs):
                yield task

    async def _candidates(self, token: str) -> AsyncIterator[list[bytes]]:
        """Yield keys among which are those of every task of the user *token*."""
        if await read_layout(self._batch) == "2":
            async for agent_id, task_ids in self._index.user_runs(token):
                yield await existing_entries(self._batch, agent_id, task_ids)
            return
        async for found in task_keys(self._batch):
            yield found

    async def _among(
        self, found: Sequence[bytes], token: bytes, is_theirs: Callable[[bytes], bool]
    ) -> list[UserTask]:
        asked: list[Command] = [
            command
            for key in found
            for command in (("HGET", key, "user"), ("HKEYS", key))
        ]
        replies = await self._batch.run(asked)
        named = list(
            zip(
                found,
                replies[::2],
                [_newest(fields, b"assignment:") for fields in replies[1::2]],
                strict=True,
            )
        )
        # Whose task an open one is stands in its assignment alone.
        wanted = [
            (key, user, field)
            for key, user, field in named
            if user == token or (user is None and field)
        ]
        theirs = []
        for first in range(0, len(wanted), _BODIES):
            page = wanted[first : first + _BODIES]
            bodies = await self._batch.run(
                [("HGET", key, field or "assignment") for key, _, field in page]
            )
            theirs += [
                UserTask(keys.parse_task(key), body)
                for (key, user, _), body in zip(page, bodies, strict=True)
                if user == token or (body is not None and is_theirs(body))
            ]
        return theirs

    async def replace_reports(
        self, task_ids: Iterable[str], make: Callable[[bytes], bytes | None]
    ) -> set[str]:
        """Leave of tasks that have ended only their state, and what *make* returns for their newest report.

        Of one whose report has expired only its state and when it ended are left: a late copy of it runs no more.
        Return the ids of these. The others have not ended, or have a report of which *make* makes None, and stay as
        they are.
        """
        wanted = list(task_ids)
        replaced = set[str]()
        for first in range(0, len(wanted), _BODIES):
            page = wanted[first : first + _BODIES]
            entries = dict(zip(page, await self._entries.find_many(page), strict=True))
            known = {one: entry for one, entry in entries.items() if entry is not None}
            bodies = await self._batch.run(
                [entry.ask(scripts.READ_ENTRY) for entry in known.values()]
            )
            commands: list[Command] = []
            for (task_id, entry), body in zip(known.items(), bodies, strict=True):
                fields = as_mapping(body)
                told = _newest(
                    [field.replace(b"finished_at:", b"report:") for field in fields],
                    b"report:",
                )
                if told is None:
                    continue
                report = make(fields[told]) if told in fields else b""
                if report is None:
                    continue
                replaced.add(task_id)
                state = fields.get(told.replace(b"report:", b"state:"), b"")
                left = told.partition(b":")[2], report, state
                commands.append(entry.call(scripts.STRIP, *left, more=entry.children))
            await self._batch.run(commands)
        return replaced

    async def remove(self, task_ids: Iterable[str]) -> int:
        """Remove all that is known of *task_ids*; return how many of them were known."""
        found = await self._entries.find_many(list(task_ids))
        commands = [
            entry.call(scripts.REMOVE, more=entry.children)
            for entry in found
            if entry is not None
        ]
        return sum(await self._batch.run(commands))

    async def strip(self, task_id: str, generation: int, report: bytes) -> None:
        """Leave of a task only that *generation* ended as cancelled, with *report*, which holds no words of a user.

        A worker that runs it still finds that it has ended.
        """
        entry = await self._entries.find(task_id)
        if entry is not None:
            left = generation, report, "cancelled"
            await self._batch.run(
                [entry.call(scripts.STRIP, *left, more=entry.children)]
            )


def _newest(fields: Sequence[bytes], name: bytes) -> bytes | None:
    """Return the field *name*, such as `report:`, of the highest generation that has one."""
    numbers = [
        number_in(field.removeprefix(name)) or 0
        for field in fields
        if field.startswith(name)
    ]
    return name + b"%d" % max(numbers) if any(numbers) else None
