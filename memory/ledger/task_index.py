"""The index of runs: a list of the tasks of each agent, so that nobody looks for them in the whole ledger.

All keys of one agent have one tag, so that one script writes them together, in the batch of commands that writes the
ledger: before the entry of a task that opens, after that of one that ends. So each task without a report is among
those that are open; one of these may have ended, where a process died in between. A run leaves them once the ledger has
said that it took its end, which it refuses to a task that is to be cancelled. A row is what a writer knew: how far an
open task is stands in the ledger alone.

Ended runs are listed as long as the ledger keeps them, and at most `MOST_RUNS` of an agent. The set of a user has every
run of theirs of which the ledger has anything, so that forgetting finds them.
"""

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable, UserForgotten
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.key_parts import is_name
from tasklore.memory.ledger import scripts
from tasklore.memory.ledger.task_rows import (
    FORGOTTEN,
    USER_PIECE,
    TaskRow,
    read_row,
)

#: Runs of one agent that are listed; beyond that the oldest go.
MOST_RUNS = 100_000
#: Entries that one command reads or writes.
MOST_AT_ONCE = 200
#: How long an open run is found for its user after the last word of it: longer than any wait, or time in LATER.
KEEP_OPEN = timedelta(days=40)
#: Runs written by one command, and how many old ones every so many remove: twice as many.
_WRITTEN_AT_ONCE = 25
_TRIMMED = 2 * _WRITTEN_AT_ONCE
#: Seconds in which a process does not note again that an agent has runs, and after which it removes old ones anyway.
_NOTED_S = 3_600.0
_TRIM_S = 60.0
#: Entries that a step of a scan returns, or some more.
_SCANNED = 100


class CancelledRun(NamedTuple):
    """An open run that was cancelled since its user is forgotten, at *ended_ms*."""

    agent_id: str
    task_id: str
    generation: int
    task: str
    ended_ms: int


class TaskIndex:
    """Writes and walks the index of runs. MemoryUnavailable after *deadline_s* for each round trip.

    Args:
        keep: How long the ledger knows a task after its last event.
        most: Runs of one agent that are listed.
    """

    def __init__(
        self,
        client: Redis,
        *,
        keep: timedelta = timedelta(days=7),
        most: int = MOST_RUNS,
        deadline_s: float = 1.0,
        breaker: Breaker | None = None,
    ) -> None:
        self._batch = CommandBatch(client, deadline_s, breaker)
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._keep_open_ms = self._keep_ms + KEEP_OPEN // timedelta(milliseconds=1)
        self._most = most
        #: When each agent was last noted to have runs, by `time.monotonic`.
        self._noted: dict[str, float] = {}
        #: Of each agent runs written since old ones were removed, and when that was.
        self._written: dict[str, tuple[int, float]] = {}
        #: Where `next_ended` goes on, of each agent whose open runs it has not gone through to the end.
        self._cursors: dict[str, bytes] = {}

    def listing(
        self, rows: Sequence[TaskRow], *, is_settled: bool = True
    ) -> list[Command]:
        """Return the commands that write *rows*, to be sent with those of the ledger.

        They may be sent again. A row stays that is of a later generation, or of an end where another one is open.
        Where it is not *is_settled* that the ledger takes these ends, `close` is to follow.
        """
        by_agent: dict[str, list[TaskRow]] = {}
        for row in rows:
            by_agent.setdefault(row.agent_id, []).append(row)
        return [
            command
            for agent_id, theirs in by_agent.items()
            for command in self._listing_of(agent_id, theirs, is_settled)
        ]

    def _listing_of(
        self, agent_id: str, rows: Sequence[TaskRow], is_settled: bool
    ) -> Iterable[Command]:
        now = time.monotonic()
        if now - self._noted.get(agent_id, -_NOTED_S) >= _NOTED_S:
            self._noted[agent_id] = now
            now_ms = time.time_ns() // 1_000_000
            yield ("ZADD", keys.run_agents(), "GT", now_ms, agent_id)
        for first in range(0, len(rows), _WRITTEN_AT_ONCE):
            page = rows[first : first + _WRITTEN_AT_ONCE]
            yield self._command(agent_id, page, is_settled)

    def _command(
        self, agent_id: str, rows: Sequence[TaskRow], is_settled: bool
    ) -> Command:
        own = keys.runs(agent_id)
        users: dict[str, int] = {}
        words: list[str | bytes | int] = []
        for row in rows:
            place = users.setdefault(row.user, len(users) + 1) if row.user else 0
            ended = (1 if is_settled else 2) if row.has_ended else 0
            words += (row.task_id, row.created_ms, row.spell(), ended, place)
        named = (*own, *(own.of_user(user) for user in users))
        trimmed = self._count_written(agent_id, len(rows))
        bounds = trimmed, self._keep_ms, self._keep_open_ms, self._most
        return ("FCALL", scripts.LIST_RUN, len(named), *named, *bounds, *words)

    def _count_written(self, agent_id: str, count: int) -> int:
        """Return how many old runs are to be removed beside *count* that are written: none, but now and then."""
        now = time.monotonic()
        written, trimmed_at = self._written.get(agent_id, (_WRITTEN_AT_ONCE, 0.0))
        if written + count < _WRITTEN_AT_ONCE and now - trimmed_at < _TRIM_S:
            self._written[agent_id] = written + count, trimmed_at
            return 0
        self._written[agent_id] = 0, now
        return _TRIMMED

    def note_failure(self) -> None:
        """Note that commands of `listing` may not have been carried out: agents are noted again."""
        self._noted.clear()

    async def write(self, rows: Sequence[TaskRow]) -> None:
        """Write *rows* as `listing` does.

        Raises:
            MemoryUnavailable: the index did not answer in time.
        """
        try:
            await self._batch.run(self.listing(rows))
        except MemoryUnavailable:
            self.note_failure()
            raise

    async def find(self, rows: Sequence[TaskRow]) -> list[TaskRow | None]:
        """Return how the task of each of *rows* is listed now, None where it is not."""
        found = await self._batch.run(
            [("HGET", keys.runs(one.agent_id).rows, one.task_id) for one in rows]
        )
        return [
            read_row(one.agent_id, one.task_id, body) if body is not None else None
            for one, body in zip(rows, found, strict=True)
        ]

    async def read(self, agent_id: str, task_id: str) -> TaskRow | None:
        """Return how a task of an agent is listed now, None where it is not."""
        found = await self._batch.run([("HGET", keys.runs(agent_id).rows, task_id)])
        return None if found[0] is None else read_row(agent_id, task_id, found[0])

    async def agents(self) -> list[str]:
        """Return the agents that have runs, the last ones first, at most `MOST_AT_ONCE`."""
        command = ("ZRANGE", keys.run_agents(), 0, MOST_AT_ONCE - 1, "REV")
        return [one.decode() for one in (await self._batch.run([command]))[0]]

    async def every_agent(self) -> AsyncIterator[list[str]]:
        """Yield every agent that has runs, some 200 at a time; one may come twice."""
        async for found in self._scan(keys.run_agents()):
            # Workers may write any text there.
            yield [one for one in found if is_name(one)]

    async def open_runs(self) -> AsyncIterator[tuple[str, list[str]]]:
        """Yield each agent with ids of its open runs, some 200 at a time; one may come twice, or have ended.

        One that is open from the beginning to the end is never left out.
        """
        async for agents in self.every_agent():
            for agent_id in agents:
                async for page in self._scan(keys.runs(agent_id).open):
                    yield agent_id, page

    async def next_ended(self, agent_id: str) -> list[str]:
        """Return which of the next hundred open runs of an agent are listed as ended, in any order.

        They end just now, or the process that ended them died before it closed them. Only the ledger knows that it
        took their end. Each call goes on behind the one before.

        Raises:
            MemoryUnavailable: the index did not answer in time.
        """
        own = keys.runs(agent_id)
        if not (
            await self._is(own.open, b"zset") and await self._is(own.rows, b"hash")
        ):
            return []
        cursor = self._cursors.pop(agent_id, b"0")
        scan = ("ZSCAN", own.open, cursor, "COUNT", _SCANNED)
        cursor, found = (await self._batch.run([scan]))[0]
        if int(cursor):
            self._cursors[agent_id] = cursor
        task_ids = [one.decode(errors="replace") for one in found[::2]]
        if not task_ids:
            return []
        bodies = (await self._batch.run([("HMGET", own.rows, *task_ids)]))[0]
        rows = [
            read_row(agent_id, task_id, body)
            for task_id, body in zip(task_ids, bodies, strict=True)
            if body is not None
        ]
        return [row.task_id for row in rows if row is not None and row.has_ended]

    async def user_runs(self, user: str) -> AsyncIterator[tuple[str, list[str]]]:
        """Yield each agent with ids of the runs of the user with the token *user*, some 200 at a time.

        Those are all of which the ledger has anything, and all that are listed; one may come twice.
        """
        piece = USER_PIECE % user.encode()
        async for agents in self.every_agent():
            for agent_id in agents:
                own = keys.runs(agent_id)
                async for page in self._scan(own.of_user(user)):
                    yield agent_id, page
                if not await self._is(own.rows, b"hash"):
                    continue
                # A row that is past its time, and only waits to be removed, is in no set of a user any more.
                for key in (own.listed, own.open):
                    async for page in self._scan(key):
                        bodies = await self._batch.run([("HMGET", own.rows, *page)])
                        rows = zip(page, bodies[0], strict=True)
                        theirs = [one for one, body in rows if body and piece in body]
                        if theirs:
                            yield agent_id, theirs

    async def count_of(self, user: str) -> int:
        """Return how many runs of the user with the token *user* are listed, or would be found for them."""
        found = {
            (agent_id, one)
            async for agent_id, page in self.user_runs(user)
            for one in page
        }
        return len(found)

    async def forget(self, user: str, cancelled: Iterable[CancelledRun] = ()) -> int:
        """Remove the runs of the user with the token *user*, and return how many there were.

        Of those that were *cancelled* for that a row without any word of the user stays until it is past its time.
        """
        stays: dict[str, list[CancelledRun]] = {}
        for run in cancelled:
            stays.setdefault(run.agent_id, []).append(run)
        count = 0
        for agent_id, runs in stays.items():
            rows = [(one.task_id, _spell_forgotten(one)) for one in runs]
            count += await self._remove(agent_id, user, rows)
        async for agent_id, page in self.user_runs(user):
            count += await self._remove(agent_id, user, [(one, b"") for one in page])
        return count

    async def close(self, agent_id: str, task_ids: Sequence[str]) -> None:
        """Take *task_ids* out of the open runs of an agent: the ledger has ended them, and that is listed.

        One that is listed as open stays: it may have been opened since.

        Raises:
            MemoryUnavailable: the index did not answer in time; they stay among the open ones until a supervisor looks.
        """
        own = keys.runs(agent_id)
        for first in range(0, len(task_ids), MOST_AT_ONCE):
            page = task_ids[first : first + MOST_AT_ONCE]
            command: Command = ("FCALL", scripts.CLOSE_RUNS, len(own), *own, *page)
            await self._batch.run([command])

    async def _remove(
        self, agent_id: str, user: str, rows: Sequence[tuple[str, bytes]]
    ) -> int:
        own = keys.runs(agent_id)
        named = (*own, own.of_user(user))
        count = 0
        for first in range(0, len(rows), MOST_AT_ONCE):
            words = [word for row in rows[first : first + MOST_AT_ONCE] for word in row]
            command = ("FCALL", scripts.FORGET_RUNS, len(named), *named, *words)
            count += (await self._batch.run([command]))[0]
        return count

    async def _is(self, key: str, kind: bytes) -> bool:
        """Return whether *key* is there and of its type: a worker may write anything to the keys of its agents."""
        found: bytes = (await self._batch.run([("TYPE", key)]))[0]
        return found == kind

    async def _scan(self, key: str) -> AsyncIterator[list[str]]:
        if not await self._is(key, b"zset"):
            return
        cursor = b"0"
        while True:
            scan = ("ZSCAN", key, cursor, "COUNT", _SCANNED)
            cursor, found = (await self._batch.run([scan]))[0]
            if found:
                yield [one.decode(errors="replace") for one in found[::2]]
            if int(cursor) == 0:
                return


class TaskRange(NamedTuple):
    """Which runs of a list are read: between two scores as ZRANGE takes them, at most *most* behind *passed* ones."""

    highest: str = "+inf"
    lowest: str = "-inf"
    passed: int = 0
    most: int = MOST_AT_ONCE

    def command(self, agent_id: str, key: str) -> Command:
        """Return the command that reads them out of *key*, one of the lists of an agent, the highest scores first."""
        named = (key, keys.runs(agent_id).rows)
        return ("FCALL_RO", scripts.READ_RUNS, len(named), *named, *self)


def _spell_forgotten(run: CancelledRun) -> bytes:
    row = TaskRow(
        task_id=run.task_id,
        agent_id=run.agent_id,
        task=run.task,
        created_ms=run.ended_ms,
        generation=run.generation,
        state=FORGOTTEN,
        error=UserForgotten.__name__,
        ended_ms=run.ended_ms,
    )
    return row.spell()
