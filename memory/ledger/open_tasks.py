"""The tasks that are still to be done, read out of the ledger without holding it.

A generation of a task is open while the ledger has no report of it. Where all is in layout 2, the index of runs names
every open task, and some that have ended. Before, the whole ledger is looked through: field names tell what is open, so
that of a million finished tasks neither assignments nor reports are moved.
"""

import contextlib
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import TaskName
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.ledger import scripts
from tasklore.memory.ledger.layouts import Layout, entry_of_layout_2, read_mark
from tasklore.memory.ledger.ledger import LedgerEntry, entry_of, number_in
from tasklore.memory.ledger.task_index import TaskIndex

#: Keys looked at in one step of the server: under a millisecond of its time.
SCAN_COUNT = 1000
#: Tasks asked for at once: some milliseconds of our time, which is how long whoever else is served waits.
_BATCH = 200
#: Assignments read at once; each may have almost a mebibyte.
_BODIES = 16
#: Seconds for one step: a server that is busy loading its data may take a while.
STEP_S = 5.0

#: What is read of an open generation.
_READ = ("assignment", "attempts", "state", "trace", "report", "finished_at")
_FIELD = re.compile(rb"(assignment|report|finished_at):([1-9][0-9]{0,17})")


async def read_layout(batch: CommandBatch) -> Layout:
    """Return the layout of the ledger as it is now, whatever this process knew of it."""
    return read_mark((await batch.run([("GET", keys.ledger_layout())]))[0])


async def existing_entries(
    batch: CommandBatch, agent_id: str, task_ids: Sequence[str]
) -> list[bytes]:
    """Return the keys of the entries that *task_ids* of an agent have in layout 2.

    Workers may list any text, and write a key of any type: of these there is no entry.
    """
    named: list[bytes] = []
    for task_id in task_ids:
        with contextlib.suppress(InvalidInput):
            named.append(keys.entry(TaskName(agent_id, task_id)).encode())
    types = await batch.run([("TYPE", key) for key in named])
    return [key for key, one in zip(named, types, strict=True) if one == b"hash"]


async def task_keys(batch: CommandBatch) -> AsyncIterator[list[bytes]]:
    """Yield the key of every task, some 200 at a time; one may come twice.

    One that moves to layout 2 meanwhile may pass the place that is looked at. It moves once: another look finds it.
    """
    began = await read_layout(batch)
    async for found in _scan(batch):
        yield found
    ended = await read_layout(batch)
    if began != ended or began == "migrating":
        async for found in _scan(batch):
            yield found


async def _scan(batch: CommandBatch) -> AsyncIterator[list[bytes]]:
    cursor = b"0"
    while True:
        # A key of another type is not ours: asking it for fields would fail the whole step.
        scan = (
            "SCAN",
            cursor,
            "MATCH",
            keys.task_pattern(),
            "COUNT",
            SCAN_COUNT,
            "TYPE",
            "hash",
        )
        cursor, found = (await batch.run([scan]))[0]
        for first in range(0, len(found), _BATCH):
            yield found[first : first + _BATCH]
        if int(cursor) == 0:
            return


class OpenTask(NamedTuple):
    """A generation without a report: *assignment* is its JSON bytes, *attempts* how many runs of it began.

    *is_waiting* is True when one of them ended and the next one is to follow. *trace* is its trace, as a
    `TraceContext` is spelled, "" for nothing.
    """

    task_id: str
    generation: int
    assignment: bytes
    attempts: int
    is_waiting: bool
    trace: str = ""


class OpenTasks:
    """Reads the open tasks of the ledger.

    Args:
        keep: How long the ledger knows a task after its last event.
        step_s: Seconds for each step; then MemoryUnavailable.
    """

    def __init__(
        self,
        client: Redis,
        *,
        keep: timedelta = timedelta(days=7),
        step_s: float = STEP_S,
    ) -> None:
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._batch = CommandBatch(client, step_s, has_large_replies=True)
        self._index = TaskIndex(client, keep=keep, deadline_s=step_s)

    async def read(self) -> AsyncIterator[list[OpenTask]]:
        """Yield open tasks in small batches; one that is open from the beginning to the end is never left out.

        A task may come twice, and one that ends meanwhile may come although it has ended.

        Raises:
            MemoryUnavailable: the ledger did not answer in time; tasks yielded so far are right.
        """
        async for found in self._candidates():
            open_ones = await self._open_among(found)
            for start in range(0, len(open_ones), _BODIES):
                yield await self._with_bodies(open_ones[start : start + _BODIES])

    async def close_ended(self) -> int:
        """Take runs out of the open ones that the ledger has ended, and return how many there were.

        A worker does so itself a moment after the end; this is for those that it died before. Each call looks at some
        hundred runs of each agent, and goes on behind the one before.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        if await read_layout(self._batch) != "2":
            return 0
        closed = 0
        async for agents in self._index.every_agent():
            for agent_id in agents:
                listed = await self._index.next_ended(agent_id)
                if not listed:
                    continue
                entries = await existing_entries(self._batch, agent_id, listed)
                still_open = {
                    str(keys.parse_task(key))
                    for key, _ in await self._open_among(entries)
                }
                ended = [one for one in listed if one not in still_open]
                await self._index.close(agent_id, ended)
                closed += len(ended)
        return closed

    async def _candidates(self) -> AsyncIterator[list[bytes]]:
        """Yield keys among which are those of every open task."""
        if await read_layout(self._batch) == "2":
            async for agent_id, task_ids in self._index.open_runs():
                yield await existing_entries(self._batch, agent_id, task_ids)
            return
        async for found in task_keys(self._batch):
            yield found

    async def read_recent(self, seconds: float) -> AsyncIterator[list[LedgerEntry]]:
        """Yield whatever had an event in the last *seconds*, in small batches; each has its time to live from that.

        Raises:
            MemoryUnavailable: the ledger did not answer in time; tasks yielded so far are right.
        """
        async for found in task_keys(self._batch):
            left = await self._batch.run([("PTTL", key) for key in found])
            recent = [
                key
                for key, ms in zip(found, left, strict=True)
                if ms >= self._keep_ms - seconds * 1000
            ]
            for start in range(0, len(recent), _BODIES):
                batch = recent[start : start + _BODIES]
                replies = await self._batch.run([_read_all(key) for key in batch])
                read = (
                    entry_of(keys.parse_task(key), as_mapping(reply))
                    for key, reply in zip(batch, replies, strict=True)
                )
                yield [entry for entry in read if entry is not None]

    async def _open_among(self, found: Sequence[bytes]) -> list[tuple[bytes, int]]:
        """Return key and generation of whatever is open and has an assignment."""
        names = await self._batch.run([("HKEYS", key) for key in found])
        return [
            (key, generation)
            for key, fields in zip(found, names, strict=True)
            for generation in open_generations(fields)
        ]

    async def _with_bodies(
        self, open_ones: Sequence[tuple[bytes, int]]
    ) -> list[OpenTask]:
        asked: list[Command] = [
            ("HMGET", key, *(f"{name}:{generation}" for name in _READ))
            for key, generation in open_ones
        ]
        found = await self._batch.run(asked)
        return [
            OpenTask(
                keys.parse_task(key),
                generation=generation,
                assignment=assignment,
                attempts=number_in(attempts) or 0,
                is_waiting=state == b"waiting",
                trace=(trace or b"").decode(errors="replace"),
            )
            for (key, generation), (
                assignment,
                attempts,
                state,
                trace,
                report,
                finished_at,
            ) in zip(open_ones, found, strict=True)
            # It may have ended, or been forgotten, since its fields were looked at.
            if assignment is not None and report is None and finished_at is None
        ]


def _read_all(key: bytes) -> Command:
    """Return the question for all fields of the entry at *key*, with the reports that lie beside it in layout 2."""
    task_id = keys.parse_task(key)
    if not isinstance(task_id, TaskName):
        return ("HGETALL", key)
    return entry_of_layout_2(task_id).ask(scripts.READ_ENTRY)


def open_generations(fields: Sequence[bytes]) -> list[int]:
    """Return the generations that *fields*, names of a task's hash, tell of an assignment and of no report."""
    named: dict[bytes, set[int]] = defaultdict(set)
    for field in fields:
        if match := _FIELD.fullmatch(field):
            named[match[1]].add(int(match[2]))
    return sorted(named[b"assignment"] - named[b"report"] - named[b"finished_at"])
