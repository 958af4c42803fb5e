"""The tasks of one user, found in the ledger, and removed from it.

A task that has ended names its user's token; one that is open has an assignment that does. Field names are read first,
as `tasklore.memory.ledger.open_tasks` does, so that of a million tasks only assignments of others that are still open
are moved.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import NamedTuple

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.ledger.ledger import number_in
from tasklore.memory.ledger.open_tasks import STEP_S, task_keys

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

    async def read(
        self, token: str, is_theirs: Callable[[bytes], bool]
    ) -> AsyncIterator[UserTask]:
        """Yield the tasks of the user *token*; *is_theirs* reads that out of an assignment.

        Whatever the ledger has from the beginning to the end is found; a task may come twice.
        """
        async for found in task_keys(self._batch):
            for task in await self._among(found, token.encode(), is_theirs):
                yield task

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

        Return the ids of these. The others have no report, or one of which *make* makes None, and stay as they are.
        """
        wanted = list(task_ids)
        replaced = set[str]()
        for first in range(0, len(wanted), _BODIES):
            page = wanted[first : first + _BODIES]
            fields = await self._batch.run(
                [("HKEYS", keys.task(task_id)) for task_id in page]
            )
            told = [_newest(names, b"report:") or b"report" for names in fields]
            reports = await self._batch.run(
                [
                    ("HGET", keys.task(task_id), field)
                    for task_id, field in zip(page, told, strict=True)
                ]
            )
            commands: list[Command] = []
            for task_id, names, field, body in zip(
                page, fields, told, reports, strict=True
            ):
                if body is None or (report := make(body)) is None:
                    continue
                replaced.add(task_id)
                kept = (field, field.replace(b"report:", b"state:"))
                others = [name for name in names if name not in kept]
                commands.append(("HSET", keys.task(task_id), field, report))
                if others:
                    commands.append(("HDEL", keys.task(task_id), *others))
                commands.append(
                    ("UNLINK", *keys.steps(task_id), keys.children(task_id))
                )
            await self._batch.run(commands)
        return replaced

    async def remove(self, task_ids: Iterable[str]) -> int:
        """Remove all that is known of *task_ids*; return how many of them were known."""
        doomed = list(task_ids)
        commands: list[Command] = [("UNLINK", keys.task(task_id)) for task_id in doomed]
        commands += [
            ("UNLINK", *keys.steps(task_id), keys.children(task_id))
            for task_id in doomed
        ]
        return sum((await self._batch.run(commands))[: len(doomed)])

    async def strip(self, task_id: str, generation: int, report: bytes) -> None:
        """Leave of a task only that *generation* ended as cancelled, with *report*, which holds no words of a user.

        A worker that runs it still finds that it has ended.
        """
        key = keys.task(task_id)
        state = f"state:{generation}"
        told = f"report:{generation}"
        fields: list[bytes] = (await self._batch.run([("HKEYS", key)]))[0]
        others = [
            field for field in fields if field not in (state.encode(), told.encode())
        ]
        beside = *keys.steps(task_id), keys.children(task_id)
        commands: list[Command] = [
            ("HSET", key, state, "cancelled", told, report),
            ("UNLINK", *beside),
        ]
        if others:
            commands.append(("HDEL", key, *others))
        await self._batch.run(commands)


def _newest(fields: Sequence[bytes], name: bytes) -> bytes | None:
    """Return the field *name*, such as `report:`, of the highest generation that has one."""
    numbers = [
        number_in(field.removeprefix(name)) or 0
        for field in fields
        if field.startswith(name)
    ]
    return name + b"%d" % max(numbers) if any(numbers) else None
