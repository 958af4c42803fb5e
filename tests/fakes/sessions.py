"""Sessions of this process only."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.sessions import files as session_files
from tasklore.memory.sessions.entries import (
    MAX_VALUE_BYTES,
    TIME_TO_LIVE,
    VERSION,
    EntryInfo,
    FoundEntry,
    NewEntry,
    SessionLoadReport,
    SessionRoot,
    State,
    check_key,
    encode,
    head_of,
    milliseconds,
    pack,
    read_head,
    root_words,
    unpack,
)
from tasklore.memory.sessions.pipeline_records import PhaseState
from tasklore.memory.sessions.refusals import (
    refuse_replaced,
    refuse_running,
    refuse_taken,
    refuse_unknown,
)
from tasklore.memory.sessions.session import SessionCache
from tasklore.memory.sessions.stats import SessionStats, summarise


@dataclass(slots=True)
class _Session:
    """A session; *until_ms* is None while its pipeline runs, *entries* are info and what is kept of the value."""

    root: SessionRoot
    until_ms: int | None = None
    written: int = 0
    is_pipeline: bool = False
    entries: dict[str, tuple[EntryInfo, bytes]] = field(default_factory=dict)
    uses: set[tuple[int, str]] = field(default_factory=set)
    tasks: dict[str, str] = field(default_factory=dict)
    corrected: dict[str, str] = field(default_factory=dict)
    phases: dict[str, PhaseState] = field(default_factory=dict)
    began_ms: int | None = None


class FakeSessions(SessionCache):
    """Stands for `tasklore.memory.sessions.session.SessionCache`; *clock* tells seconds since 1970."""

    def __init__(
        self,
        *,
        max_value_bytes: int = MAX_VALUE_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(Redis(), max_value_bytes=max_value_bytes)
        self._clock = clock
        self._sessions: dict[str, _Session] = {}

    def put_state(self, session_id: str, state: State) -> None:
        """Do what a pipeline does: a running session does not expire."""
        session = self._sessions[session_id]
        session.root = replace(session.root, state=state)
        session.is_pipeline = True
        self._touch(session, self._now_ms())

    def put_task(self, session_id: str, phase: str, task_id: str) -> None:
        """Let nobody but a task write for *phase*; "" is nobody at all."""
        self._sessions[session_id].tasks[phase] = task_id

    def put_correction(self, session_id: str, phase: str, by: str) -> None:
        """Hide *phase* behind the phase *by*."""
        self._sessions[session_id].corrected[phase] = by

    def put_phase(self, session_id: str, phase: str, state: PhaseState) -> None:
        """Note how far *phase* is."""
        self._sessions[session_id].phases[phase] = state

    def put_run(self, session_id: str, began_ms: int) -> None:
        """Note when the latest run of the session's pipeline began, 0 for the first."""
        self._sessions[session_id].began_ms = began_ms

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
        """Make a session, unless there is one."""
        keys.session(session_id)
        root_words(session_id, domain=domain, ttl=ttl)
        now = self._now_ms()
        ttl_ms = milliseconds(ttl, "ttl")
        if self._living(session_id) is not None:
            return False
        direct = {phase: tuple(of) for phase, of in (dependencies or {}).items()}
        root = SessionRoot(
            session_id=session_id,
            version=VERSION,
            domain=domain,
            created_ms=now,
            updated_ms=now,
            ttl_ms=ttl_ms,
            state="open",
            dependencies=direct,
            project=project,
            user_id=user_id,
        )
        self._sessions[session_id] = _Session(root, now + ttl_ms)
        return True

    async def root(self, session_id: str) -> SessionRoot | None:
        """Return a session without its entries."""
        keys.session(session_id)
        session = self._living(session_id)
        if session is None:
            return None
        left = None if session.until_ms is None else session.until_ms - self._now_ms()
        return replace(session.root, entries=len(session.entries), expires_in_ms=left)

    async def _look(
        self,
        session_id: str,
        wanted: Sequence[str],
        reader: str | None,
        mode: str = "count",
    ) -> list[FoundEntry | None]:
        keys.session(session_id)
        parts = [check_key(key) for key in wanted]
        session = self._living(session_id)
        if session is None:
            return [None] * len(parts)
        found: list[FoundEntry | None] = []
        for one in parts:
            phase = one.phase
            while phase in session.corrected:
                phase = session.corrected[phase]
            found.append(
                self._use(session, str(one._replace(phase=phase)), reader, mode)
            )
        return found

    def _use(
        self, session: _Session, key: str, reader: str | None, mode: str
    ) -> FoundEntry | None:
        if not self._is_living(session, key):
            return None
        info, body = session.entries[key]
        use = (info.number, reader)
        if mode == "count" and use not in session.uses:
            info = replace(info, hits=info.hits + 1)
            session.entries[key] = (info, body)
            if reader is not None:
                session.uses.add((info.number, reader))
        return FoundEntry(unpack(body), info)

    async def set_many(
        self,
        session_id: str,
        entries: Sequence[NewEntry],
        *,
        task_id: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Write entries, all or none."""
        keys.session(session_id)
        bodies = []
        for entry in entries:
            check_key(entry.key, entry.phase)
            bodies.append(encode(entry.key, entry.value, self._max_bytes))
            if entry.ttl is not None:
                milliseconds(entry.ttl, f"the time to live of {entry.key!r}")
        if not entries:
            return
        session = self._living(session_id)
        if session is None:
            raise refuse_unknown(session_id)
        if task_id is not None:
            own = (
                {phase}
                if phase is not None
                else {check_key(entry.key).phase for entry in entries}
            )
            self._check_writer(session, own, task_id)
        now = self._now_ms()
        for entry, body in zip(entries, bodies, strict=True):
            if not (entry.if_absent and self._is_living(session, entry.key)):
                self._keep(session, entry, body, now)
        self._touch(session, now)

    def _check_writer(
        self, session: _Session, phases: Collection[str], task_id: str
    ) -> None:
        for phase in phases:
            writer = session.tasks.get(phase, "" if session.is_pipeline else task_id)
            if writer != task_id:
                raise refuse_replaced(session.root.session_id, phase, writer, task_id)

    def _keep(self, session: _Session, entry: NewEntry, body: bytes, now: int) -> None:
        session.written += 1
        stored = pack(body)
        expires = 0 if entry.ttl is None else now + milliseconds(entry.ttl, "ttl")
        numbers = f"{expires}:{now}:{session.written}:".encode()
        info = read_head(entry.key, numbers + head_of(entry, len(body), len(stored)), 0)
        assert info is not None
        session.entries[entry.key] = (info, stored)

    async def delete(self, session_id: str, key: str) -> bool:
        """Remove one entry."""
        check_key(key)
        return bool(self._remove(session_id, lambda info: info.key == key))

    async def invalidate_phases(
        self, session_id: str, phases: Collection[str]
    ) -> tuple[str, ...]:
        """Remove every entry of *phases*."""
        session = self._living(session_id)
        if session is not None:
            session.tasks |= dict.fromkeys(session.tasks.keys() & set(phases), "")
        return (
            tuple(sorted(self._remove(session_id, lambda info: info.phase in phases)))
            if phases
            else ()
        )

    async def clear(self, session_id: str) -> int:
        """Remove every entry."""
        return len(self._remove(session_id, lambda info: True))

    def _remove(
        self, session_id: str, is_meant: Callable[[EntryInfo], bool]
    ) -> list[str]:
        """Remove entries and return the keys of those that were living."""
        keys.session(session_id)
        session = self._living(session_id)
        if session is None:
            return []
        meant = [key for key, (info, _) in session.entries.items() if is_meant(info)]
        living = [key for key in meant if self._is_living(session, key)]
        for key in meant:
            del session.entries[key]
        self._touch(session, self._now_ms())
        return living

    async def _entries(
        self, session_id: str
    ) -> tuple[list[EntryInfo], list[bytes], int | None, int]:
        keys.session(session_id)
        session = self._living(session_id)
        if session is None:
            return [], [], None, 0
        living = [
            info
            for key, (info, _) in session.entries.items()
            if self._is_living(session, key)
        ]
        shown = [
            replace(info, hidden_by=session.corrected.get(info.phase))
            for info in living
        ]
        return (
            sorted(shown, key=lambda info: info.number),
            [],
            session.began_ms,
            self._now_ms(),
        )

    async def stats(self, session_id: str) -> SessionStats:
        """Return what a session has saved."""
        entries, _, began_ms, now_ms = await self._entries(session_id)
        session = self._living(session_id)
        return summarise(
            entries,
            session.phases if session is not None else {},
            now_ms,
            began_ms=began_ms,
        )

    async def drop(self, session_id: str, *, force: bool = False) -> bool:
        """Remove a session."""
        keys.session(session_id)
        session = self._living(session_id)
        if session is None:
            return False
        if session.root.state == "running" and not force:
            raise refuse_running(session_id)
        del self._sessions[session_id]
        return True

    async def load(
        self, file: Mapping[str, Any], session_id: str | None = None
    ) -> SessionLoadReport:
        """Make a session out of a file."""
        read = session_files.read(file, session_id, self._now_ms(), self._max_bytes)
        if read.refused and not read.entries:
            return SessionLoadReport(read.session_id, 0, read.expired, read.refused)
        if not await self.create(read.session_id, domain=read.domain, ttl=read.ttl):
            raise refuse_taken(read.session_id)
        session = self._sessions[read.session_id]
        session.root = replace(
            session.root, created_ms=read.created_ms, updated_ms=read.updated_ms
        )
        session.written = len(read.entries)
        for one in read.entries:
            stored = pack(one.body)
            key, _, head, hits = one.words(stored)
            info = read_head(key, head, hits)
            assert info is not None
            session.entries[one.entry.key] = (info, stored)
        return SessionLoadReport(
            read.session_id, len(read.entries), read.expired, read.refused
        )

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _living(self, session_id: str) -> _Session | None:
        session = self._sessions.get(session_id)
        if (
            session is None
            or session.until_ms is None
            or session.until_ms > self._now_ms()
        ):
            return session
        del self._sessions[session_id]
        return None

    def _is_living(self, session: _Session, key: str) -> bool:
        if key not in session.entries:
            return False
        expires_ms = session.entries[key][0].expires_ms
        return expires_ms is None or expires_ms > self._now_ms()

    def _touch(self, session: _Session, now: int) -> None:
        session.root = replace(session.root, updated_ms=now)
        session.until_ms = (
            None if session.root.state == "running" else now + session.root.ttl_ms
        )
