"""The store of what the models of runs saw: appended by the worker that runs a task, fenced by the task's entry.

Messages lie in the slot of their task, below its agent, so that a worker reaches those of its own agents alone. A list
of each owner's tasks at each agent bounds their bytes, and leads to those of a user who is forgotten. It is written in
the same round trip, before the messages: whatever is kept is listed.
"""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from redis.asyncio import Redis

from tasklore.contracts.identifiers import TaskName, user_token
from tasklore.contracts.run_messages import RunMessage, read_run_message
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.key_parts import MAX_FREE_ID, is_name
from tasklore.memory.ledger.layouts import Entries
from tasklore.memory.ledger.runs import RunName
from tasklore.memory.run_messages import scripts

#: Bytes of the messages of one task; beyond it the oldest go.
MOST_OF_TASK = 1024 * 1024
#: Bytes of those of all tasks of one owner at one agent; beyond it those of the tasks that went on least lately go.
MOST_OF_OWNER = 32 * 1024 * 1024
#: Seconds in which a process does not note again that an agent has messages.
_NOTED_S = 3600.0
#: Tasks whose messages are removed by one command.
_AT_ONCE = 200


class KeptMessages(NamedTuple):
    """The messages of a task, oldest first; of *dropped* older ones nothing but their number and bytes is known."""

    messages: tuple[RunMessage, ...]
    dropped: int
    dropped_bytes: int
    left_ms: int


class RunMessages:
    """Keeps messages and reads them; every method may raise MemoryUnavailable, after *deadline_s*.

    Args:
        keep: How long the messages of a task are kept after the last of them.
    """

    def __init__(
        self,
        client: Redis,
        *,
        keep: timedelta = timedelta(days=1),
        most_of_task: int = MOST_OF_TASK,
        most_of_owner: int = MOST_OF_OWNER,
        deadline_s: float = 1.0,
        breaker: Breaker | None = None,
    ) -> None:
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._most_of_task = most_of_task
        self._most_of_owner = most_of_owner
        self._batch = CommandBatch(client, deadline_s, breaker, has_large_replies=True)
        self._entries = Entries(client, self._batch)
        self._noted: dict[str, float] = {}

    async def append(
        self, run: RunName, agent_id: str, owner: str, messages: Sequence[bytes]
    ) -> bool:
        """Keep *messages* of *run*, each a RunMessage as JSON; return False where the run counts no more.

        That is where another worker has taken its task, or it has ended, or the ledger knows nothing of it, as of one
        whose user was forgotten: then nothing is kept.
        """
        task = TaskName(agent_id, run.task_id)
        index = keys.run_messages_of(agent_id, owner)
        place = keys.run_messages(task)
        entry = await self._entries.make(task)
        size = sum(map(len, messages))
        bounds = self._most_of_task, self._most_of_owner, self._keep_ms
        kept = run.generation, run.worker_id, self._keep_ms, self._most_of_task
        gone, done = (
            await self._batch.run(
                [
                    *self._noting(agent_id),
                    ("FCALL", scripts.NOTE, 2, *index, task, size, *bounds),
                    entry.call(scripts.APPEND, *kept, *messages, more=(place,)),
                ]
            )
        )[-2:]
        if gone:
            await self._remove(agent_id, [one.decode(errors="replace") for one in gone])
        if done < 0 and not await self._batch.exists(place):
            await self._batch.run([("FCALL", scripts.UNLIST, 2, *index, task)])
        return bool(done > 0)

    def _noting(self, agent_id: str) -> list[Command]:
        """Return the command that notes, once an hour, that *agent_id* has runs: forgetting looks at those alone."""
        now = time.monotonic()
        if now - self._noted.get(agent_id, float("-inf")) < _NOTED_S:
            return []
        self._noted[agent_id] = now
        now_ms = time.time_ns() // 1_000_000
        return [("ZADD", keys.run_agents(), "GT", now_ms, agent_id)]

    async def read(self, task: TaskName) -> KeptMessages | None:
        """Return the messages of *task*, None where there are none, or none any more."""
        place = keys.run_messages(task)
        kind, left_ms = await self._batch.run([("TYPE", place), ("PTTL", place)])
        if kind != b"hash":
            # There are none, or a worker wrote something else to the keys of its agent.
            return None
        fields = as_mapping((await self._batch.run([("HGETALL", place)]))[0])
        numbers = sorted(int(name) for name in fields if name.isdigit())
        return KeptMessages(
            tuple(read_run_message(fields[b"%d" % number]) for number in numbers),
            dropped=_number(fields.get(b"dropped")),
            dropped_bytes=_number(fields.get(b"dropped_bytes")),
            left_ms=max(0, left_ms),
        )

    async def forget(self, user_id: str) -> int:
        """Remove the messages of every task of *user_id*; return of how many tasks there were any."""
        removed = 0
        for agent_id, task_ids in await self._tasks_of(user_id):
            await self._remove(agent_id, task_ids)
            index = keys.run_messages_of(agent_id, user_token(user_id))
            await self._batch.run([("UNLINK", *index)])
            removed += len(task_ids)
        return removed

    async def count(self, user_id: str) -> int:
        """Return of how many tasks of *user_id* there are messages."""
        return sum(len(task_ids) for _, task_ids in await self._tasks_of(user_id))

    async def _tasks_of(self, user_id: str) -> list[tuple[str, list[str]]]:
        """Return the ids of the tasks of *user_id* that are listed, by agent, without agents that have none."""
        (listed,) = await self._batch.run([("ZRANGE", keys.run_agents(), 0, -1)])
        agents = [name for one in listed if is_name(name := one.decode("ascii", "?"))]
        indexes = [keys.run_messages_of(agent, user_token(user_id)) for agent in agents]
        kinds = await self._batch.run([("TYPE", one.until) for one in indexes])
        found: list[tuple[str, list[str]]] = []
        for agent, index, kind in zip(agents, indexes, kinds, strict=True):
            if kind == b"none":
                continue
            # A worker may write anything to the keys of its agents: that goes too.
            listed = [b""]
            if kind == b"zset":
                listed = (await self._batch.run([("ZRANGE", index.until, 0, -1)]))[0]
            found.append((agent, [one.decode(errors="replace") for one in listed]))
        return found

    async def _remove(self, agent_id: str, task_ids: Sequence[str]) -> None:
        """Remove the messages of *task_ids*; one that no task has, as a worker may list it, has none."""
        places = [
            keys.run_messages(TaskName(agent_id, one))
            for one in task_ids
            if 1 <= len(one) <= MAX_FREE_ID
        ]
        for first in range(0, len(places), _AT_ONCE):
            page = places[first : first + _AT_ONCE]
            await self._batch.run([("UNLINK", place) for place in page])


def _number(spelled: bytes | None) -> int:
    return int(spelled) if spelled is not None and spelled.isdigit() else 0
