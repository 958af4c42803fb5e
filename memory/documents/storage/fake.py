"""A store of documents in this process only, for unit tests; it passes the contract suite of the real one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from redis.asyncio import Redis

from contracts.errors import InvalidInput
from memory import keys
from memory.documents.guard import LIMITS, Limits
from memory.documents.kinds import Kinds
from memory.documents.storage.history import read_entry
from memory.documents.storage.repository import Deed, DocumentShelf, Forgotten, Found, Stored, Word, Written
from memory.documents.storage.store import DocumentStore
from memory.documents.storage.writer import KEEP_REVISIONS
from memory.queues.fake import FakeQueue


class FakeDocumentStore(DocumentStore):
    """Stands for `memory.documents.storage.store.DocumentStore`; *queues* by name are those whose rows it closes."""

    def __init__(
        self,
        kinds: Kinds,
        *,
        queues: Mapping[str, FakeQueue] | None = None,
        limits: Limits = LIMITS,
        keep_revisions: int = KEEP_REVISIONS,
    ) -> None:
        # A client that connects to nothing until it is asked, which nobody does.
        super().__init__(Redis(), kinds, limits=limits, keep_revisions=keep_revisions)
        self._shelf = _FakeShelf(queues or {})


@dataclass(slots=True)
class _Kept:
    """A document and its log."""

    revision: int
    born: str
    form: str
    body: bytes
    entries: list[bytes]


@dataclass(slots=True)
class _Table:
    """Everything of one user."""

    documents: dict[str, _Kept] = field(default_factory=dict)
    plans: dict[str, bytes] = field(default_factory=dict)
    undone: dict[str, str] = field(default_factory=dict)
    reads: dict[str, int] = field(default_factory=dict)
    last: int = 0


class _FakeShelf(DocumentShelf):
    def __init__(self, queues: Mapping[str, FakeQueue]) -> None:
        self._queues = queues
        self._tables: dict[str, _Table] = {}

    async def read(
        self, token: str, resources: Sequence[str], entries: int, known: Mapping[str, tuple[int, str]]
    ) -> Found:
        table = self._table(token, resources)
        found: dict[str, Stored | None] = {}
        for one in resources:
            kept = table.documents.get(one)
            if kept is None:
                found[one] = None
                continue
            first = 0 if entries < 0 else max(0, len(kept.entries) - entries)
            same = known.get(one) == (kept.revision, kept.born)
            found[one] = Stored(kept.revision, kept.born, kept.form, None if same else kept.body, kept.entries[first:])
        return Found(found, frozenset(table.documents))

    async def entries(self, token: str, wanted: Sequence[tuple[str, int]]) -> list[bytes | None]:
        table = self._table(token, [resource for resource, _ in wanted])
        by_place = {
            (resource, entry.revision): raw
            for resource, kept in table.documents.items()
            for raw in kept.entries
            if (entry := read_entry(raw))
        }
        return [by_place.get(place) for place in wanted]

    async def records(self, token: str, plan_ids: Sequence[str]) -> list[tuple[bytes, str | None] | None]:
        table = self._table(token)
        return [(table.plans[one], table.undone.get(one)) if one in table.plans else None for one in plan_ids]

    async def commit(self, token: str, deed: Deed) -> tuple[Word, tuple[str, ...]]:
        table = self._table(token, deed.documents)
        queue = None if deed.claim is None else self._queue(deed.claim.queue)
        if queue is not None and deed.claim is not None and not await queue.close(deed.claim, ()):
            return "lease", ()
        known = tuple(plan.plan_id for plan in deed.plans if plan.plan_id in table.plans)
        if known and len(known) < len(deed.plans):
            return "partly", known
        moved = tuple(one for one, written in deed.documents.items() if _has_moved(table, one, written))
        if moved and not known:
            return "moved", moved
        if not known:
            _write(table, deed)
        if queue is not None and deed.claim is not None:
            await queue.close(deed.claim, deed.closings)
        return ("known", known) if known else ("done", ())

    async def note_reads(self, token: str, reads: Mapping[str, int]) -> None:
        self._table(token).reads.update(reads)

    async def reads(self, token: str) -> dict[str, int]:
        return dict(self._table(token).reads)

    async def forget(self, token: str, resources: Iterable[str]) -> Forgotten:
        gone = self._table(token, resources)
        del self._tables[token]
        entries = sum(len(kept.entries) for kept in gone.documents.values())
        return Forgotten(len(gone.documents), entries, len(gone.plans), len(gone.reads))

    def _queue(self, name: str) -> FakeQueue:
        if name not in self._queues:
            raise InvalidInput(f"this fake knows no queue {name!r}; give it one in `queues`")
        return self._queues[name]

    def _table(self, token: str, resources: Iterable[str] = ()) -> _Table:
        for resource_id in resources:
            keys.document(token, resource_id)
        return self._tables.setdefault(token, _Table())


def _has_moved(table: _Table, resource_id: str, written: Written) -> bool:
    kept = table.documents.get(resource_id)
    stored = (0, "") if kept is None else (kept.revision, kept.born)
    return stored != (written.found_revision, written.found_born)


def _write(table: _Table, deed: Deed) -> None:
    def numbered(place: int, text: bytes) -> bytes:
        return b'{"number":%d,' % (table.last + place) + text

    for place, plan in enumerate(deed.plans, 1):
        table.plans[plan.plan_id] = numbered(place, plan.record)
        if plan.undoes in table.plans:
            table.undone[plan.undoes] = plan.plan_id
    for resource_id, written in deed.documents.items():
        if written.body is None:
            continue
        former = table.documents.get(resource_id)
        entries = [] if former is None else former.entries
        entries += [numbered(place, entry) for place, entry in written.entries]
        table.documents[resource_id] = _Kept(written.revision, written.born, written.form, written.body, entries)
        dropped, entries[:] = entries[: -deed.keep], entries[-deed.keep :]
        _drop(table, dropped)
    table.last += len(deed.plans)


def _drop(table: _Table, dropped: Sequence[bytes]) -> None:
    """Drop the plans of log entries that are gone, unless another log still has them."""
    if not dropped:
        return
    living = {read_entry(raw).plan_id for kept in table.documents.values() for raw in kept.entries}
    for plan_id in {read_entry(raw).plan_id for raw in dropped} - living:
        table.plans.pop(plan_id, None)
        table.undone.pop(plan_id, None)
