"""The store of holdings: how many bytes each owner lets be kept, by kind, and how many more they may.

Every kind that an owner can make grow is a row of `HOLDING_KINDS`: in which store it lies, for how long, and what
keeping one costs beside its own bytes, so that a bound of bytes is one of numbers too. An owner may keep as much as is
left free of the owners' part of a store: one alone has three quarters of it, and a newcomer always finds room.
"""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.holdings import scripts
from tasklore.memory.ledger.layouts import Entries
from tasklore.memory.ledger.open_tasks import open_generations
from tasklore.memory.ledger.scripts import READ_END

#: Where a kind lies: in the queues of NATS and beside them in the ledger, or in Redis alone.
Store = Literal["queue", "store"]
Kind = Literal[
    "tasks",
    "results",
    "remembered",
    "words",
    "turns",
    "runs",
    "signals",
    "responses",
]

#: The part of a store that all owners have; the rest is a reserve for the deployment.
OWNERS_PART = 0.8
#: The part of what others leave of that which one owner may have.
OWNER_PART = 0.75
#: Seconds between two looks at how much the server may use, and what stands for a server that has no bound.
_ASK_S = 60.0
_MAXMEMORY = re.compile(rb"^maxmemory:(\d+)", re.MULTILINE)
_UNBOUNDED = 1 << 53
#: How many things are looked at in one step: some milliseconds.
_PAGE = 500
#: After which a task or run that its store does not know is over: it is counted before it is kept there.
_SETTLED = timedelta(minutes=1)
_MS = timedelta(milliseconds=1)


class HoldingKind(NamedTuple):
    """A kind of holding: where it lies, for how long unless it says so itself, and the bytes it costs beside its own.

    *aside* is set aside in the store of results for the report of one.
    """

    store: Store
    keep: timedelta
    beside: int
    aside: int = 0


#: How long things count that are kept for ever, and turns in the time that is shipped.
LONGEST = timedelta(days=730)
#: Every kind, as the page on deployment lists them.
HOLDING_KINDS: Mapping[Kind, HoldingKind] = {
    "tasks": HoldingKind("queue", timedelta(days=7), 1024, aside=1536),
    "results": HoldingKind("store", timedelta(days=7), 512),
    "remembered": HoldingKind("store", timedelta(days=30), 512),
    "words": HoldingKind("store", timedelta(days=30), 2048),
    "turns": HoldingKind("store", LONGEST, 1024),
    "runs": HoldingKind("store", timedelta(days=30), 8192),
    "signals": HoldingKind("store", timedelta(days=36), 512),
    "responses": HoldingKind("store", LONGEST, 4096),
}


class Holding(NamedTuple):
    """A thing that is kept, of so many bytes of its own; without an *id* it ends with its time alone.

    Several without one may be taken as one, with their bytes together, and their *number*: one of a kind at a time.
    """

    kind: Kind
    size: int
    id: str = ""
    keep: timedelta | None = None
    number: int = 1


class EndedTask(NamedTuple):
    """A task that has ended, the bytes of its report, and whether its result went into the long-term memory."""

    task_id: str
    size: int
    is_remembered: bool = False


class NoRoom(NamedTuple):
    """The reason why an owner may not keep more: its bytes in a store, by kind too, and how many it may have now."""

    store: Store
    kept: int
    most: int
    kinds: Mapping[Kind, int]


class Holdings:
    """Counts the things of owners; every method raises MemoryUnavailable without an answer within *deadline_s*.

    Args:
        client: A client that does not decode responses.
        most: The bytes of each store; without those of `store` it has what the server may use (`maxmemory`), and no
            bound where that has none.
        results_keep: How long the result of an ended task is kept, in layout 1 of the ledger.
        reports_keep: The same in layout 2, at most *results_keep*.
        breaker: When given, a frozen server costs one deadline a rest.
    """

    def __init__(
        self,
        client: Redis,
        most: Mapping[Store, int],
        *,
        results_keep: timedelta = HOLDING_KINDS["results"].keep,
        reports_keep: timedelta = timedelta(days=1),
        deadline_s: float = 1.0,
        breaker: Breaker | None = None,
    ) -> None:
        self._batch = CommandBatch(client, deadline_s, breaker)
        self._entries = Entries(client, self._batch)
        self._most = most
        self._server_bytes = _UNBOUNDED
        self._asked_at = float("-inf")
        self._results_keep = results_keep
        self._reports_keep = min(results_keep, reports_keep)
        self._swept_to: bytes = b"0"

    async def take(
        self, owner: str, things: Sequence[Holding], *, may_refuse: bool
    ) -> NoRoom | None:
        """Count *things* to *owner* and return None; or, where it *may_refuse*, why there is no room for all of them.

        One with an id that is there already takes the place of that.
        """
        words: list[str | int | float] = [
            owner,
            int(may_refuse),
            OWNERS_PART,
            OWNER_PART,
            self._most["queue"],
            await self._store_bytes(),
        ]
        for thing in things:
            kind = HOLDING_KINDS[thing.kind]
            keep = thing.keep or kind.keep
            words += [
                kind.store,
                thing.kind,
                thing.id,
                thing.size + kind.beside * thing.number,
                kind.aside,
                keep // _MS,
            ]
        found = (await self._batch.run([_call(scripts.TAKE, *words)]))[0]
        if not found:
            return None
        store: Store = "queue" if found[0] == b"queue" else "store"
        kinds = await self.kept(owner)
        own = {
            name: kinds[name] for name in kinds if HOLDING_KINDS[name].store == store
        }
        return NoRoom(store, found[1], found[2], own)

    async def _store_bytes(self) -> int:
        """Return the bytes of `store`; those of the server are asked for once a minute."""
        if "store" in self._most:
            return self._most["store"]
        now = time.monotonic()
        if now - self._asked_at >= _ASK_S:
            info = (await self._batch.run([("INFO", "memory")]))[0]
            found = _MAXMEMORY.search(info)
            self._server_bytes = int(found[1]) if found else 0
            self._asked_at = now
        return self._server_bytes or _UNBOUNDED

    async def end_tasks(self, ended: Sequence[EndedTask]) -> int:
        """Count *ended* tasks no longer as such, but their results; return how many of them were counted."""
        if not ended:
            return 0
        words: list[str | int] = []
        has_fences = await self._entries.layout() in ("migrating", "2")
        results_keep = self._reports_keep if has_fences else self._results_keep
        for one in ended:
            kinds: list[Kind] = ["results"] if one.size else []
            kinds += ["remembered"] if one.is_remembered else []
            words += [_name("tasks", one.task_id), len(kinds)]
            for name in kinds:
                kind = HOLDING_KINDS[name]
                keep = results_keep if name == "results" else kind.keep
                words += [kind.store, name, one.size + kind.beside, keep // _MS]
        return await self._end(words)

    async def kept(self, owner: str) -> dict[Kind, int]:
        """Return the bytes that *owner* keeps, by kind, without those of which it keeps nothing."""
        fields = [
            f"{kind.store} {owner} {name}" for name, kind in HOLDING_KINDS.items()
        ]
        found = (await self._batch.run([("HMGET", keys.HOLDINGS.sums, *fields)]))[0]
        return {
            name: int(size)
            for name, size in zip(HOLDING_KINDS, found, strict=True)
            if size is not None
        }

    async def totals(self) -> dict[Store, int]:
        """Return the bytes that all owners keep together in each store."""
        stores: tuple[Store, ...] = ("queue", "store")
        found = (await self._batch.run([("HMGET", keys.HOLDINGS.sums, *stores)]))[0]
        return {name: int(size or 0) for name, size in zip(stores, found, strict=True)}

    async def sweep(self, within_s: float = 5.0) -> int:
        """Look which tasks and runs are over, though nobody noted so; return how many there were.

        A process that dies, or one of 0.2 that takes a report, notes no end. What is not reached within *within_s*
        seconds is looked at first the next time.
        """
        number = 0
        ends_at = time.monotonic() + within_s
        while True:
            scan = ("ZSCAN", keys.HOLDINGS.until, self._swept_to, "COUNT", _PAGE)
            (cursor, found), (seconds, _) = await self._batch.run([scan, ("TIME",)])
            things = _read_page(found, now_ms=int(seconds) * 1000)
            ended = await self._find_ended(
                [one for one in things if one.kind == "tasks"]
            )
            number += await self.end_tasks(ended)
            number += await self._drop_ended_runs(
                [one for one in things if one.kind == "runs"]
            )
            self._swept_to = cursor
            if int(cursor) == 0 or time.monotonic() >= ends_at:
                return number

    async def _find_ended(self, tasks: Sequence["_Found"]) -> list[EndedTask]:
        entries = await self._entries.find_many([one.id for one in tasks])
        asked = [entry.ask(READ_END) for entry in entries if entry is not None]
        replies = iter(await self._batch.run(asked))
        ended = []
        for one, entry in zip(tasks, entries, strict=True):
            names, size = ((), 0) if entry is None else next(replies)
            has_ended = one.is_settled or any(map(_is_of_end, names))
            if has_ended and not open_generations(names):
                ended.append(EndedTask(one.id, size))
        return ended

    async def _drop_ended_runs(self, runs: Sequence["_Found"]) -> int:
        settled = [one.id for one in runs if one.is_settled]
        there = await self._batch.run(
            [("EXISTS", keys.session(one).root) for one in settled]
        )
        gone = [
            one for one, is_there in zip(settled, there, strict=True) if not is_there
        ]
        return await self._end(
            [word for one in gone for word in (_name("runs", one), 0)]
        )

    async def _end(self, words: Sequence[str | int]) -> int:
        if not words:
            return 0
        return int((await self._batch.run([_call(scripts.END, *words)]))[0])


class _Found(NamedTuple):
    """A thing with an id; one that is not *is_settled* may just be on its way to where it is kept."""

    kind: Kind
    id: str
    is_settled: bool


def _is_of_end(field: bytes) -> bool:
    return field.startswith((b"report:", b"finished_at:"))


def _read_page(found: Sequence[bytes], *, now_ms: int) -> list[_Found]:
    """Return the tasks and runs among *found*: names of things, each with the time at which it ends."""
    kinds: tuple[Kind, ...] = ("tasks", "runs")
    things = []
    for name, until in zip(found[::2], found[1::2], strict=True):
        kind, _, thing_id = name.decode().partition(" ")
        for known in kinds:
            if kind == known:
                taken_ms = float(until) - HOLDING_KINDS[known].keep / _MS
                is_settled = taken_ms + _SETTLED / _MS < now_ms
                things.append(_Found(known, thing_id, is_settled))
    return things


def _name(kind: Kind, thing_id: str) -> str:
    return f"{kind} {thing_id}"


def _call(script: str, *words: str | float) -> Command:
    return ("FCALL", script, len(keys.HOLDINGS), *keys.HOLDINGS, *words)
