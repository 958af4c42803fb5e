"""Which of its two layouts entries of the ledger are made in, and where that of a task lies.

In layout 1 an entry lies below the id of its task, and holds its reports. In layout 2 it lies below its agent and that
id, so that a worker can be held to the entries of its own agents; reports lie beside it, for a time of their own, and a
pointer leads from the id to the agent. A key says how far a deployment is, so that no two processes ever fence one task
on two entries:

| there | entries are read in | made in |
|---|---|---|
| nothing | layout 1 | layout 1 |
| `prepared` | both | layout 1 |
| `migrating` | both | layout 2 |
| `2` | layout 2 | layout 2 |

Each step is safe beside the one before: a script is given the keys of both layouts, and uses the entry that exists. A
process knows the key as it was `KNOWN_S` seconds ago at most, and asks nothing of the ledger while it cannot read it.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args
from weakref import WeakKeyDictionary

from redis.asyncio import ConnectionPool, Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import TaskName
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.key_parts import is_name

#: Seconds for which a process goes by its last look: two of them make a step as long as it takes to wait for all.
KNOWN_S = 10.0
#: Seconds between notes that an agent has entries.
_NOTED_S = 3600.0

#: How a script is told which entries to read, and in which layout to make one, by the table above.
Layout = Literal["1", "prepared", "migrating", "2"]
#: What the key says, by the layout; "1" is that it is not there.
MARKS: dict[Layout, bytes] = {
    layout: layout.encode() for layout in get_args(Layout) if layout != "1"
}
_LAYOUTS: dict[bytes, Layout] = {mark: layout for layout, mark in MARKS.items()}


class LedgerLayout:
    """The layout as one process knows it; all stores over one pool of connections share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._read_at = float("-inf")
        self._layout: Layout = "1"
        self._noted: dict[str, float] = {}

    async def current(self, batch: CommandBatch) -> Layout:
        """Return the layout; once in `KNOWN_S` it is read with *batch*.

        Raises:
            MemoryUnavailable: it could not be read, so that nothing may be begun by an older answer.
            InvalidInput: a newer version wrote what this one does not know.
        """
        asked_at = self._clock()
        if asked_at - self._read_at >= KNOWN_S:
            self._layout = read_mark((await batch.run([_ASK]))[0])
            self._read_at = asked_at
        return self._layout

    def forget(self) -> None:
        """Read it again before the next call."""
        self._read_at = float("-inf")

    async def note(self, batch: CommandBatch, agent_id: str) -> None:
        """Note, once an hour, that *agent_id* has entries of layout 2."""
        if self._clock() - self._noted.get(agent_id, float("-inf")) >= _NOTED_S:
            await batch.run([("SADD", keys.ledger_agents(), agent_id)])
            self._noted[agent_id] = self._clock()


_ASK: Command = ("GET", keys.ledger_layout())
_known: WeakKeyDictionary[ConnectionPool, LedgerLayout] = WeakKeyDictionary()


def read_mark(mark: bytes | None) -> Layout:
    """Return the layout that *mark* says, which lies in the key.

    Raises:
        InvalidInput: it is none of this version.
    """
    if mark is None:
        return "1"
    if (layout := _LAYOUTS.get(mark)) is None:
        raise InvalidInput(
            f"the ledger has layout {mark.decode(errors='replace')!r}, which this version does not know; "
            "run the version that wrote it"
        )
    return layout


class EntryKeys(NamedTuple):
    """Where the entry of a task lies: the keys of which a script chooses, and its first argument.

    *children* is where its children lie in layout 1, if that is read.
    """

    layout: Layout
    agent_id: str
    keys: tuple[str, ...]
    children: tuple[str, ...]

    @property
    def entry_keys(self) -> tuple[str, ...]:
        """Where it may lie, that of layout 1 first."""
        return self.keys[: len(self.keys) - (self.layout != "1")]

    def call(
        self, script: str, *words: str | bytes | float, more: tuple[str, ...] = ()
    ) -> Command:
        """Return the call of *script* for this entry and *more* keys."""
        return self._spell("FCALL", script, more, words)

    def ask(
        self, script: str, *words: str | bytes | float, more: tuple[str, ...] = ()
    ) -> Command:
        """Return the call of *script*, which only reads, for this entry and *more* keys."""
        return self._spell("FCALL_RO", script, more, words)

    def _spell(
        self,
        command: str,
        script: str,
        more: tuple[str, ...],
        words: tuple[str | bytes | float, ...],
    ) -> Command:
        places = self.keys + more
        told = f"{self.layout} {self.agent_id}" if self.agent_id else self.layout
        return (command, script, len(places), *places, told, *words)


class EntryReply(NamedTuple):
    """The *reply* to a command about a task whose entry lies at *entry*."""

    entry: EntryKeys
    reply: Any


class Entries:
    """Finds entries for one store, with its *batch* of commands."""

    def __init__(self, client: Redis, batch: CommandBatch) -> None:
        self._batch = batch
        pool = client.connection_pool
        self._layout = _known.setdefault(pool, LedgerLayout())

    async def layout(self) -> Layout:
        """Return the layout as it is known; raises as `LedgerLayout.current`."""
        return await self._layout.current(self._batch)

    async def find(self, task_id: str) -> EntryKeys | None:
        """Return where the entry of *task_id* is, as `find_many`."""
        layout = await self._layout.current(self._batch)
        if layout == "1":
            return _of_layout_1(task_id)
        if isinstance(task_id, TaskName):
            return _entry(layout, task_id)
        return (await self.find_many([task_id]))[0]

    async def find_many(self, task_ids: Sequence[str]) -> list[EntryKeys | None]:
        """Return where the entry of each of *task_ids* is, if there is any; None where it is known that there is none.

        Of one that is no `TaskName` its pointer is asked.
        """
        layout = await self._layout.current(self._batch)
        if layout == "1":
            return [_of_layout_1(task_id) for task_id in task_ids]
        unnamed = [one for one in task_ids if not isinstance(one, TaskName)]
        pointers = dict(zip(unnamed, await self._agents_of(unnamed), strict=True))
        found: list[EntryKeys | None] = []
        for task_id in task_ids:
            if isinstance(task_id, TaskName):
                found.append(_entry(layout, task_id))
            elif agent_id := pointers[task_id]:
                found.append(_entry(layout, TaskName(agent_id, task_id)))
            else:
                found.append(None if layout == "2" else _of_layout_1(task_id))
        return found

    async def ask_many(
        self,
        task_ids: Sequence[str],
        spell: Callable[[int, EntryKeys], Command],
        is_unknown: Callable[[Any], bool],
    ) -> list[EntryReply | None]:
        """Return the reply to what *spell* makes for the entry of each of *task_ids*, by its place; None for no entry.

        A task may move to layout 2 between the look at its pointer, which was not there, and the command: where a reply
        *is_unknown* the pointer is asked again.
        """
        found: list[EntryReply | None] = [None] * len(task_ids)
        places = list(range(len(task_ids)))
        while places:
            entries = await self.find_many([task_ids[place] for place in places])
            asked = [
                (place, entry)
                for place, entry in zip(places, entries, strict=True)
                if entry is not None and (found[place] is None or entry.agent_id)
            ]
            replies = await self._batch.run([spell(*one) for one in asked])
            for (place, entry), reply in zip(asked, replies, strict=True):
                found[place] = EntryReply(entry, reply)
            may_move = await self.layout() != "1"
            places = [
                place
                for (place, entry), reply in zip(asked, replies, strict=True)
                if may_move and not entry.agent_id and is_unknown(reply)
            ]
        return found

    async def make(self, task_id: str) -> EntryKeys:
        """Return where the entry of *task_id* is made unless it exists.

        Raises:
            InvalidInput: layout 2 needs its agent, and *task_id* is a plain id.
        """
        entry = await self.find(task_id)
        if entry is None or (
            entry.layout == "1" and await self.layout() == "migrating"
        ):
            raise InvalidInput(
                f"the agent of task {task_id!r} is not known; say it with a TaskName"
            )
        if entry.agent_id:
            await self._layout.note(self._batch, entry.agent_id)
        return entry

    async def make_many(self, task_ids: Sequence[str]) -> list[EntryKeys]:
        """Return `make` of each of *task_ids*."""
        return [await self.make(task_id) for task_id in task_ids]

    async def name(self, task_id: str) -> str:
        """Return *task_id* with its agent where any has, or had, an entry of it; for a person who may ask late.

        A pointer is kept as long as the report: later every agent that has entries is tried.
        """
        layout = await self._layout.current(self._batch)
        if layout == "1" or isinstance(task_id, TaskName):
            return task_id
        if agent_id := (await self._agents_of([task_id]))[0]:
            return TaskName(agent_id, task_id)
        agents = (await self._batch.run([("SMEMBERS", keys.ledger_agents())]))[0]
        named = [
            TaskName(agent, task_id)
            for agent in map(_read_agent, agents)
            if agent is not None
        ]
        there = await self._batch.run([("EXISTS", keys.entry(one)) for one in named])
        return next(
            (one for one, is_there in zip(named, there, strict=True) if is_there),
            task_id,
        )

    async def _agents_of(self, task_ids: Sequence[str]) -> list[str | None]:
        """Return the agent that the pointer of each of *task_ids* names, None for none."""
        found = await self._batch.run(
            [("GET", keys.task_agent(task_id)) for task_id in task_ids]
        )
        return [read_pointer(pointer)[0] for pointer in found]


class CancelMark(NamedTuple):
    """A request to cancel a generation of a task, as it stands in its pointer."""

    generation: int
    reason: str


def read_pointer(pointer: bytes | None) -> tuple[str | None, CancelMark | None]:
    """Return the agent that *pointer* names, and its cancel request; workers may write any text there."""
    if pointer is None:
        return None, None
    agent, *rest = pointer.split(b"!", 2)
    request = None
    if len(rest) == 2 and rest[0].isdigit():
        request = CancelMark(int(rest[0][:18]), rest[1].decode(errors="replace"))
    return _read_agent(agent), request


def _read_agent(spelled: bytes) -> str | None:
    agent_id = spelled.decode("ascii", errors="replace")
    return agent_id if is_name(agent_id) else None


def _of_layout_1(task_id: str) -> EntryKeys:
    return EntryKeys("1", "", (keys.task(task_id),), (keys.children(task_id),))


def entry_of_layout_2(task: TaskName) -> EntryKeys:
    """Return where the entry of *task* lies that was found in layout 2."""
    return _entry("2", task)


def _entry(layout: Layout, task: TaskName) -> EntryKeys:
    own = keys.entry(task), keys.task_agent(task)
    if layout == "2":
        return EntryKeys(layout, task.agent_id, own, ())
    return EntryKeys(
        layout, task.agent_id, (keys.task(task), *own), (keys.children(task),)
    )
