"""The session cache: outputs of the phases of one pipeline, for later phases and for the next attempt.

A session lies under one hash tag and changes in scripts, so that writers in many processes lose nothing. Its time to
live starts anew with each update, by the server's clock, and stands still while its pipeline runs; an entry may have a
shorter one. Entries of a phase that another one corrects are hidden behind those of the other. Uses are counted beside.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import JsonValue
from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.sessions import files as session_files
from tasklore.memory.sessions import scripts as session_scripts
from tasklore.memory.sessions.entries import (
    MAX_VALUE_BYTES,
    ROOT_FIELDS,
    TIME_TO_LIVE,
    EntryInfo,
    FoundEntry,
    NewEntry,
    SessionLoadReport,
    SessionRoot,
    State,
    check_key,
    downstream,
    encode,
    head_of,
    milliseconds,
    pack,
    read_head,
    read_root,
    root_words,
    unpack,
)
from tasklore.memory.sessions.index import (
    ListPlace,
    SessionList,
    forgetting,
    noting_user,
)
from tasklore.memory.sessions.refusals import (
    refuse_replaced,
    refuse_running,
    refuse_taken,
    refuse_unknown,
)
from tasklore.memory.sessions.stats import SessionStats, read_states, summarise

__all__ = [
    "EntryInfo",
    "FoundEntry",
    "NewEntry",
    "SessionCache",
    "SessionLoadReport",
    "SessionRoot",
    "SessionStats",
]

T = TypeVar("T")

#: Sessions in one round trip: some 5 ms of this process, and of the server.
PAGE = 200
#: Sessions whose entries are looked through in one round trip: 20 of 1,000 entries cost the server some 100 ms.
_SWEPT_AT_ONCE = 20
#: Bytes of JSON from which (un)packing is done in a thread: above, it would hold up the event loop for milliseconds.
_ASIDE = 256 * 1024
#: Bytes of bodies in one round trip of an export or a load, so that a large session needs no longer deadline.
_BATCH_BYTES = 4 * 1024 * 1024
#: How long entries of a file lie there without their session: far longer than loading the largest one takes.
_LOADING = timedelta(minutes=10)
#: The fields of a root that a listing does without: those of a pipeline may be long.
_LISTED_FIELDS = tuple(
    name for name in ROOT_FIELDS if name not in {"pipeline", "inputs"}
)


class SessionCache:
    """Sessions and their entries; every method may raise MemoryUnavailable, and InvalidInput for an id or a key.

    Args:
        max_value_bytes: Bytes of JSON that one entry takes.
        deadline_s: Seconds for one round trip.
        new_token: Names a call of `create`, so that one repeated after a lost reply is not refused by itself.
    """

    def __init__(
        self,
        client: Redis,
        *,
        max_value_bytes: int = MAX_VALUE_BYTES,
        deadline_s: float = 1.0,
        new_token: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)
        self._list = SessionList(self._batch)
        self._max_bytes = max_value_bytes
        self._new_token = new_token

    async def create(
        self,
        session_id: str,
        *,
        domain: str = "data",
        ttl: timedelta = TIME_TO_LIVE,
        dependencies: Mapping[str, Sequence[str]] | None = None,
        user_id: str | None = None,
        project: str | None = None,
    ) -> bool:
        """Make a session and return True; False, and nothing is changed, when there is one of this id.

        Args:
            session_id: 1 to 64 letters, digits, `_` or `-`.
            domain: Its subject; see `tasklore.contracts.pipelines.KNOWN_DOMAINS`, any other name serves as well.
            ttl: How long it lives after its last update.
            dependencies: The phases that each phase directly depends on, for `invalidate_downstream`.
            user_id: The user it was started for.
            project: The project whose memory its phases see.
        """
        words = root_words(
            session_id,
            domain=domain,
            ttl=ttl,
            dependencies=dependencies,
            user_id=user_id,
            project=project,
        )
        return await self._make(session_id, user_id, ("", "", ""), words)

    async def root(self, session_id: str) -> SessionRoot | None:
        """Return a session without its entries; None when there is none, or its time to live is over."""
        return (await self._roots([session_id], ROOT_FIELDS))[0]

    async def get(
        self, session_id: str, key: str, *, reader: str | None = None
    ) -> FoundEntry | None:
        """Return an entry and count the use; None when there is none, or its time to live is over.

        With *reader*, such as a task's id, only the first use by it is counted.
        """
        return (await self._look(session_id, (key,), reader))[0]

    async def get_many(
        self, session_id: str, wanted: Sequence[str], *, reader: str | None = None
    ) -> list[FoundEntry | None]:
        """Do `get` for every key of *wanted*, in one round trip."""
        return await self._look(session_id, wanted, reader)

    async def peek(
        self, session_id: str, wanted: Sequence[str]
    ) -> list[FoundEntry | None]:
        """Return entries as `get_many` does, without counting a use: for showing them, and for evidence."""
        return await self._look(session_id, wanted, None, mode="peek")

    async def set(
        self,
        session_id: str,
        key: str,
        value: JsonValue,
        *,
        phase: str | None = None,
        agent: str | None = None,
        computation_ms: int = 0,
        ttl: timedelta | None = None,
        task_id: str | None = None,
    ) -> None:
        """Write one entry, as `set_many` does."""
        entry = NewEntry(
            key=key,
            value=value,
            phase=phase,
            agent=agent,
            computation_ms=computation_ms,
            ttl=ttl,
        )
        await self.set_many(session_id, [entry], task_id=task_id)

    async def set_many(
        self,
        session_id: str,
        entries: Sequence[NewEntry],
        *,
        task_id: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Write *entries*, all or none, each with 0 uses; this is an update of the session.

        Args:
            session_id: Of a session that exists.
            entries: At most one a key.
            task_id: The task that writes; refused when another one may write for a phase by now.
            phase: The phase that *task_id* runs as, which alone is asked then; None: those of the entries.

        Raises:
            InvalidInput: a key breaks the naming rule or belongs to another phase, or a value is no JSON.
            EntryTooLarge: a value has more bytes than a session takes.
            UnknownSession: there is no such session, or its time to live is over.
            PhaseReplaced: a phase was invalidated or started anew since *task_id* began.
        """
        if not entries:
            return
        words: list[str | bytes | int] = [task_id or "", phase or ""]
        for entry in entries:
            body, head = await self._encode_entry(entry)
            ttl_ms = (
                ""
                if entry.ttl is None
                else milliseconds(entry.ttl, f"the time to live of {entry.key!r}")
            )
            words += (entry.key, ttl_ms, int(entry.if_absent), head, body)
        outcome = await self._update(session_id, session_scripts.SET, *words)
        if outcome is None:
            raise refuse_unknown(session_id)
        if outcome[0] == b"replaced":
            raise refuse_replaced(
                session_id, outcome[1].decode(), outcome[2].decode(), task_id
            )

    async def delete(self, session_id: str, key: str) -> bool:
        """Remove one entry, also a hidden one; return whether there was one."""
        check_key(key)
        return bool(await self._update(session_id, session_scripts.DELETE, key))

    async def invalidate_phases(
        self, session_id: str, phases: Collection[str]
    ) -> tuple[str, ...]:
        """Remove every entry of *phases* and return their keys, sorted; none when there is no such session.

        A task that runs for one of them writes nothing any more.
        """
        if not phases:
            return ()
        removed = await self._update(session_id, session_scripts.INVALIDATE, *phases)
        return tuple(sorted(key.decode() for key in removed or ()))

    async def invalidate_downstream(
        self, session_id: str, phase: str
    ) -> tuple[str, ...]:
        """Remove the entries of all phases that depend on *phase*, over others too; its own stay. Return their keys.

        In a session without declared dependencies those are the phases whose first entry is younger than its first.
        """
        phases = await self.phases_downstream(session_id, phase)
        return await self.invalidate_phases(session_id, sorted(phases))

    async def phases_downstream(self, session_id: str, phase: str) -> frozenset[str]:
        """Return the phases that `invalidate_downstream` means; none when there is no such session."""
        root = await self.root(session_id)
        if root is None:
            return frozenset()
        entries = () if root.dependencies else await self.entries(session_id)
        return frozenset(downstream(phase, root.dependencies, entries))

    async def clear(self, session_id: str) -> int:
        """Remove every entry and return how many there were; the session stays."""
        return int(await self._update(session_id, session_scripts.CLEAR) or 0)

    async def entries(self, session_id: str) -> list[EntryInfo]:
        """Return every living entry, hidden ones too, in the order in which they were written; no value is read."""
        return (await self._entries(session_id))[0]

    async def stats(self, session_id: str) -> SessionStats:
        """Return what a session has saved; all 0 when it has no entries, or there is no such session."""
        entries, phases, began_ms, now_ms = await self._entries(session_id)
        return summarise(entries, read_states(phases), now_ms, began_ms=began_ms)

    async def cleanup(self, session_id: str) -> int:
        """Remove entries whose time to live is over and return how many; this is no update of the session."""
        return int(
            (
                await self._batch.run(
                    [self._script(session_id, session_scripts.CLEANUP, 0)]
                )
            )[0]
            or 0
        )

    async def sessions(
        self,
        *,
        state: State | None = None,
        limit: int = 100,
        before: SessionRoot | ListPlace | None = None,
    ) -> list[SessionRoot]:
        """Return up to *limit* sessions, last updated first, without reading entries; none when there are no more.

        Args:
            state: Only those in this state.
            limit: At least 1.
            before: The last one of the page before, or its place.
        """
        place = (
            None if before is None else ListPlace(before.listed_ms, before.session_id)
        )
        found: list[SessionRoot] = []
        while len(found) < limit:
            places = await self._list.after(
                place, min(PAGE, limit - len(found)) if state is None else PAGE
            )
            if not places:
                break
            roots = await self._roots(
                [one.session_id for one in places], _LISTED_FIELDS, places
            )
            found += [
                root
                for root in roots
                if root is not None and state in (None, root.state)
            ]
            place = places[-1]
        return found[:limit]

    async def of_user(self, user_id: str) -> list[str]:
        """Return the ids of the sessions that were started for a user, sorted; some may be gone."""
        return await self._list.of_user(user_id)

    async def sweep(
        self, *, grace: timedelta = timedelta(minutes=1), limit: int | None = None
    ) -> list[str]:
        """Remove expired entries, and at most *limit* names of sessions that are gone from the list; return those.

        A running session is left alone, and so is a name that was listed within *grace*: it may just be made.
        """
        gone: list[str] = []
        grace_ms = grace // timedelta(milliseconds=1)
        async for lost in self._lost_pages(is_cleaning=True):
            taking = lost if limit is None else lost[: limit - len(gone)]
            taken = await self._batch.run(
                [
                    self._list.taking_out(one.session_id, one.listed_ms, grace_ms)
                    for one in taking
                ]
            )
            gone += [
                one.session_id for one, done in zip(taking, taken, strict=True) if done
            ]
        return gone

    async def find_gone(self, *, grace: timedelta = timedelta(minutes=1)) -> list[str]:
        """Return the names that `sweep` would take out of the list; nothing is changed."""
        seconds, micros = (await self._batch.run([("TIME",)]))[0]
        now_ms = int(seconds) * 1000 + int(micros) // 1000
        last_ms = now_ms - grace // timedelta(milliseconds=1)
        return [
            one.session_id
            async for lost in self._lost_pages(is_cleaning=False)
            for one in lost
            if one.listed_ms <= last_ms
        ]

    async def count_expired(self) -> int:
        """Return how many entries have expired and lie there still, those of running sessions left out."""
        count = 0
        place = None
        while places := await self._list.after(place, PAGE):
            place = places[-1]
            ids = [one.session_id for one in places]
            for at in range(0, len(ids), _SWEPT_AT_ONCE):
                some = ids[at : at + _SWEPT_AT_ONCE]
                found = await self._batch.run(
                    [self._script(name, session_scripts.CLEANUP, 1, 1) for name in some]
                )
                # A session that is gone, or runs, has none to sweep.
                count += sum(int(one or 0) for one in found)
        return count

    async def _lost_pages(self, *, is_cleaning: bool) -> AsyncIterator[list[ListPlace]]:
        """Yield pages of places in the list whose sessions are gone, on the way *is_cleaning* the others."""
        place = None
        while places := await self._list.after(place, PAGE):
            place = places[-1]
            ids = [one.session_id for one in places]
            for at in range(0, len(ids) if is_cleaning else 0, _SWEPT_AT_ONCE):
                some = ids[at : at + _SWEPT_AT_ONCE]
                await self._batch.run(
                    [self._script(name, session_scripts.CLEANUP, 1) for name in some]
                )
            there = await self._batch.run(
                [("EXISTS", keys.session(name).root) for name in ids]
            )
            yield [one for one, exists in zip(places, there, strict=True) if not exists]

    async def drop(self, session_id: str, *, force: bool = False) -> bool:
        """Remove a session with everything in it; return whether there was one.

        Raises:
            InvalidInput: its pipeline runs; cancel it first, or *force* it.
        """
        of = keys.session(session_id)
        told = (
            await self._batch.run(
                [("FCALL", session_scripts.DROP, len(of), *of, int(force))]
            )
        )[0]
        if told == 0:
            raise refuse_running(session_id)
        user_id, supervisor_id = (
            ("", "") if told is None else (word.decode() for word in told)
        )
        await self._batch.run(forgetting(session_id, user_id, supervisor_id))
        return told is not None

    async def export(self, session_id: str) -> dict[str, Any]:
        """Return a session as a file holds it, see `tasklore.memory.sessions.files`; hidden entries are left out.

        Raises:
            UnknownSession: there is no such session, or its time to live is over.
        """
        root = await self.root(session_id)
        if root is None:
            raise refuse_unknown(session_id)
        shown = [
            entry for entry in await self.entries(session_id) if entry.hidden_by is None
        ]
        found: list[FoundEntry | None] = []
        for batch in session_files.batches(
            shown, lambda entry: entry.stored_bytes, _BATCH_BYTES
        ):
            found += await self.peek(session_id, [entry.key for entry in batch])
        return session_files.document_of(
            root, [one for one in found if one is not None]
        )

    async def load(
        self, file: Mapping[str, Any], session_id: str | None = None
    ) -> SessionLoadReport:
        """Make a session out of *file*, an exported one, under its own id or *session_id*; its time to live starts now.

        An entry whose own time to live is over by its `created_at`, or that breaks a rule, is not loaded but reported;
        nothing is made when that leaves none and one was refused.

        Raises:
            InvalidInput: the file has not the form of a session, or there is one of this id.
        """
        seconds, micros = (await self._batch.run([("TIME",)]))[0]
        now_ms = int(seconds) * 1000 + int(micros) // 1000
        read = session_files.read(file, session_id, now_ms, self._max_bytes)
        if read.refused and not read.entries:
            return SessionLoadReport(read.session_id, 0, read.expired, read.refused)
        name = read.session_id
        root = read.root_words
        keep_ms = _LOADING // timedelta(milliseconds=1)
        packed = [
            (one, await _aside(len(one.body), pack, one.body)) for one in read.entries
        ]
        # Of two that load at once the later one has all, and the earlier one is refused.
        token = self._new_token()
        batches = list(
            session_files.batches(packed, lambda one: len(one[1]), _BATCH_BYTES)
        ) or [[]]
        for at, batch in enumerate(batches):
            words = [word for one, stored in batch for word in one.words(stored)]
            command = self._script(
                name, session_scripts.LOAD, token, int(at == 0), keep_ms, *words
            )
            if not (await self._batch.run([command]))[0]:
                raise refuse_taken(name)
        if not await self._make(
            name, None, (token, read.created_ms, read.updated_ms), root
        ):
            raise refuse_taken(name)
        return SessionLoadReport(name, len(read.entries), read.expired, read.refused)

    async def _make(
        self,
        session_id: str,
        user_id: str | None,
        terms: tuple[str | int, ...],
        words: Sequence[str | bytes | int],
    ) -> bool:
        of = keys.session(session_id)
        commands: list[Command] = []
        # Looked at first: lists are written to before the script can refuse. What is no hash is replaced by it.
        if await self._batch.run([("TYPE", of.root)]) != [b"hash"]:
            commands += noting_user(user_id, session_id) if user_id is not None else []
            commands.append(self._list.listing(session_id))
        commands.append(
            (
                "FCALL",
                session_scripts.CREATE,
                len(of),
                *of,
                self._new_token(),
                *terms,
                *words,
            )
        )
        return bool((await self._batch.run(commands))[-1])

    async def _roots(
        self,
        names: Sequence[str],
        fields: Sequence[str],
        places: Sequence[ListPlace] | None = None,
    ) -> list[SessionRoot | None]:
        commands: list[Command] = []
        for name in names:
            of = keys.session(name)
            commands.append(
                ("FCALL", session_scripts.READ_ROOT, 2, of.root, of.entries, *fields)
            )
        replies = await self._batch.run(commands)
        listed = (
            [one.listed_ms for one in places]
            if places is not None
            else [0] * len(replies)
        )
        return [
            None
            if reply is None
            else read_root(
                dict(zip(fields, reply[2:], strict=True)), reply[0], reply[1], ms
            )
            for reply, ms in zip(replies, listed, strict=True)
        ]

    async def _look(
        self,
        session_id: str,
        wanted: Sequence[str],
        reader: str | None,
        mode: str = "count",
    ) -> list[FoundEntry | None]:
        if not wanted:
            return []
        for key in wanted:
            check_key(key)
        of = keys.session(session_id)
        places = of.root, of.entries, of.hits, of.uses, of.corrected
        terms = ("once", reader) if reader is not None else (mode, "")
        replies = (
            await self._batch.run(
                [("FCALL", session_scripts.GET, 5, *places, *terms, *wanted)]
            )
        )[0]
        return [await _read_found(*reply) if reply else None for reply in replies] or [
            None
        ] * len(wanted)

    async def _entries(
        self, session_id: str
    ) -> tuple[list[EntryInfo], list[bytes], int | None, int]:
        """Return entries, phases with their states, when the run began (None: no pipeline) and the time, in ms."""
        reply = (
            await self._batch.run([self._script(session_id, session_scripts.ENTRIES)])
        )[0]
        if reply is None:
            return [], [], None, 0
        now_ms, phases, began_ms, *rows = reply
        read = (
            read_head(key.decode(), head, int(hits), by.decode() or None)
            for key, head, hits, by in rows
        )
        entries = sorted(
            (entry for entry in read if entry), key=lambda entry: entry.number
        )
        return entries, phases, int(began_ms) if began_ms else None, int(now_ms)

    async def _encode_entry(self, entry: NewEntry) -> tuple[bytes, bytes]:
        """Return body and head of *entry*."""
        check_key(entry.key, entry.phase)
        body = encode(entry.key, entry.value, self._max_bytes)
        stored = await _aside(len(body), pack, body)
        return stored, head_of(entry, len(body), len(stored))

    async def _update(
        self, session_id: str, sha: str, *words: str | bytes | int
    ) -> Any:
        """Run a script that updates a session, listed first; None when there is none."""
        commands = [
            self._list.listing(session_id),
            self._script(session_id, sha, *words),
        ]
        return (await self._batch.run(commands))[1]

    def _script(self, session_id: str, sha: str, *words: str | bytes | int) -> Command:
        return ("FCALL", sha, 8, *keys.session(session_id)[:8], *words)


async def _read_found(
    key: bytes, head: bytes, hits: int | bytes, stored: bytes
) -> FoundEntry | None:
    """Return the entry that a script found, None when another program wrote it."""
    entry = read_head(key.decode(), head, int(hits))
    if entry is None:
        return None
    try:
        return FoundEntry(await _aside(entry.bytes, unpack, stored), entry)
    except ValueError:
        return None


async def _aside(size: int, work: Callable[[bytes], T], body: bytes) -> T:
    """Return what *work* makes of *body*, in a thread when it is large."""
    return await asyncio.to_thread(work, body) if size > _ASIDE else work(body)
