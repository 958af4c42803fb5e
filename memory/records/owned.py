"""The store of owned records: records by id, how far each is, when to look at it, whose it is, and who made it.

What may be kept is bounded by owner, by maker and as a whole. A process takes records that are due under a lease, works
on them, and notes how far they are; one that dies in between leaves them due again.
"""

import builtins
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.key_parts import RecordKeys
from tasklore.memory.records import scripts

KeptT = TypeVar("KeptT")


class RecordPlace(NamedTuple):
    """Where a record is listed: its id, its owner, and its maker; each of these has no ":", and is "" for none."""

    id: str
    owner: str = ""
    maker: str = ""


class RecordBounds(NamedTuple):
    """How many records there may be: of one owner, of one maker, and of all."""

    of_owner: int
    of_maker: int
    of_all: int


class RecordReader(Generic[KeptT]):
    """Reads records, by their ids and by their owners; every method raises MemoryUnavailable without an answer in time.

    Args:
        batch: What carries the commands.
        records, states, owned: The keys of these.
        read: Makes one thing of a record and its state, as they are stored.
    """

    def __init__(
        self,
        batch: CommandBatch,
        *,
        records: str,
        states: str,
        owned: str,
        read: Callable[[bytes, bytes], KeptT],
    ) -> None:
        self._batch = batch
        self._records = records
        self._states = states
        self._owned = owned
        self._read = read

    async def read(self, *ids: str) -> builtins.list[KeptT | None]:
        """Return the record of each of *ids*, None for one that is not there."""
        if not ids:
            return []
        found = await self._batch.run(
            [("HMGET", self._records, *ids), ("HMGET", self._states, *ids)]
        )
        return [
            self._read(record, state) if record and state else None
            for record, state in zip(*found, strict=True)
        ]

    async def ids(
        self, owner: str | None = None, *, after: str = "", limit: int = -1
    ) -> builtins.list[str]:
        """Return at most *limit* ids of *owner* in their order, all of them for -1; of every owner, each after another.

        *after* is an id of the page before, of an *owner*; behind "OWNER:ID" goes the page of every owner.
        """
        first, last = _members(owner)
        if after:
            first = f"({after}" if owner is None else f"({owner}:{after}"
        page = ("ZRANGEBYLEX", self._owned, first, last, "LIMIT", 0, limit)
        members = (await self._batch.run([page]))[0]
        return [one.decode().partition(":")[2] for one in members]

    async def count(self, owner: str) -> int:
        """Return how many records *owner* has."""
        counted = ("ZLEXCOUNT", self._owned, *_members(owner))
        return int((await self._batch.run([counted]))[0])


class OwnedRecords(RecordReader[KeptT]):
    """Keeps records of owners; every method raises MemoryUnavailable without an answer in time.

    A stored record is a JSON object with its `version`, which grows by one with each change.

    Args:
        batch: What carries the commands.
        keys: Where the records are.
        read: Makes one thing of a record and its state, as they are stored.
        place: Says where that is listed.
    """

    def __init__(
        self,
        batch: CommandBatch,
        keys: RecordKeys,
        *,
        read: Callable[[bytes, bytes], KeptT],
        place: Callable[[KeptT], RecordPlace],
    ) -> None:
        super().__init__(
            batch,
            records=keys.records,
            states=keys.state,
            owned=keys.owned,
            read=read,
        )
        self._keys = keys
        self._place = place

    async def put(
        self,
        place: RecordPlace,
        record: str,
        *,
        version: int,
        state: str,
        look_at: datetime | None,
        bounds: RecordBounds,
    ) -> int:
        """Store *record*, its version one above that which is there, 1 for a new one; return 1 when that is done.

        0 means that another version is there, -1 that its owner has as many as it may, -2 that there are too many,
        -3 that its maker has. *look_at* is when it is due, None for never.
        """
        words = (
            place.id,
            record,
            version,
            state,
            _spell_ms(look_at),
            f"{place.owner}:{place.id}",
            *_members(place.owner),
            bounds.of_owner,
            bounds.of_all,
            place.maker,
            bounds.of_maker,
        )
        return int(await self._call(scripts.PUT, self._keys, *words))

    async def is_idle(self) -> bool:
        """Return whether there is no record to look at, now or later."""
        return not await self._batch.exists(self._keys.due)

    async def take(
        self, now: datetime, *, lease_ms: int, limit: int
    ) -> builtins.list[str]:
        """Return ids that are due, the longest first; no other process is given them for *lease_ms*."""
        words = (_spell_ms(now), lease_ms, limit)
        found = await self._call(scripts.TAKE, (self._keys.due,), *words)
        return [one.decode() for one in found]

    async def note(
        self,
        record_id: str,
        *,
        version: int,
        before: str,
        state: str,
        look_at: datetime | None,
    ) -> bool:
        """Note that the record has come from the state *before* to *state*, and when to look at it next.

        False when it was changed, removed or noted meanwhile.
        """
        words = (record_id, version, before, state, _spell_ms(look_at))
        keys = (self._keys.records, self._keys.state, self._keys.due)
        return bool(await self._call(scripts.NOTE, keys, *words))

    async def remove(self, place: RecordPlace) -> bool:
        """Remove a record; False when it was gone."""
        words = (
            place.id,
            f"{place.owner}:{place.id}",
            f"{place.maker}:{place.id}",
        )
        return bool(await self._call(scripts.REMOVE, self._keys, *words))

    async def list(
        self, owner: str | None = None, *, after: str = "", limit: int = 200
    ) -> builtins.list[KeptT]:
        """Return at most *limit* records, *after* an id of the page before: those of *owner*, or all.

        Of all, those of each owner are together; of one owner they are in the order of their ids.
        """
        if after and owner is None:
            (last,) = await self.read(after)
            after = f"{self._place(last).owner}:{after}" if last is not None else ""
        found = await self.read(*await self.ids(owner, after=after, limit=limit))
        return [one for one in found if one is not None]

    async def forget(self, owner: str) -> int:
        """Remove every record of *owner*, and return how many there were."""
        ids = await self.ids(owner)
        removed = 0
        for record_id, kept in zip(ids, await self.read(*ids), strict=True):
            place = RecordPlace(record_id, owner)
            removed += await self.remove(place if kept is None else self._place(kept))
        return removed

    async def _call(self, script: str, keys: Sequence[str], *words: str | int) -> Any:
        return (await self._batch.run([("FCALL", script, len(keys), *keys, *words)]))[0]


def _members(owner: str | None) -> tuple[str, str]:
    """Return the first and the last possible member of *owner* in the set of owned records, of everybody for None."""
    return ("-", "+") if owner is None else (f"[{owner}:", f"({owner};")


def _spell_ms(moment: datetime | None) -> str:
    return "" if moment is None else str(int(moment.timestamp() * 1000))
