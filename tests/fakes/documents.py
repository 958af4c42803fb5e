"""Documents of this process only: the store whose edits tasks of a testing kit take back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.history import read_entry
from tasklore.memory.documents.storage.repository import (
    DocumentRepository,
    DocumentWrite,
    RemovedDocuments,
    StoredDocument,
    StoredDocuments,
    Transaction,
    Word,
)
from tasklore.memory.documents.storage.store import DocumentStore


class FakeDocumentStore(DocumentStore):
    """Stands for `documents.storage.store.DocumentStore`, without claims and without an end of the history."""

    def __init__(self, kinds: Kinds) -> None:
        # A client that never connects.
        super().__init__(Redis(), kinds)
        self._repository = _FakeRepository()


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


class _FakeRepository(DocumentRepository):
    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}

    async def read(
        self,
        token: str,
        resources: Sequence[str],
        entries: int,
        known: Mapping[str, tuple[int, str]],
    ) -> StoredDocuments:
        table = self._table(token, resources)
        found: dict[str, StoredDocument | None] = {}
        for one in resources:
            kept = table.documents.get(one)
            if kept is None:
                found[one] = None
                continue
            first = 0 if entries < 0 else max(0, len(kept.entries) - entries)
            same = known.get(one) == (kept.revision, kept.born)
            found[one] = StoredDocument(
                revision=kept.revision,
                born=kept.born,
                form=kept.form,
                body=None if same else kept.body,
                entries=kept.entries[first:],
            )
        return StoredDocuments(found, frozenset(table.documents))

    async def entries(
        self, token: str, wanted: Sequence[tuple[str, int]]
    ) -> list[bytes | None]:
        table = self._table(token, [resource for resource, _ in wanted])
        by_place = {
            (resource, entry.revision): raw
            for resource, kept in table.documents.items()
            for raw in kept.entries
            if (entry := read_entry(raw))
        }
        return [by_place.get(place) for place in wanted]

    async def records(
        self, token: str, plan_ids: Sequence[str]
    ) -> list[tuple[bytes, str | None] | None]:
        table = self._table(token)
        return [
            (table.plans[one], table.undone.get(one)) if one in table.plans else None
            for one in plan_ids
        ]

    async def commit(
        self, token: str, deed: Transaction
    ) -> tuple[Word, tuple[str, ...]]:
        table = self._table(token, deed.documents)
        known = tuple(
            plan.plan_id for plan in deed.plans if plan.plan_id in table.plans
        )
        if known and len(known) < len(deed.plans):
            return "partly", known
        moved = tuple(
            one
            for one, written in deed.documents.items()
            if _has_moved(table, one, written)
        )
        if moved and not known:
            return "moved", moved
        if not known:
            _write(table, deed)
        return ("known", known) if known else ("done", ())

    async def note_reads(self, token: str, reads: Mapping[str, int]) -> None:
        self._table(token).reads.update(reads)

    async def reads(self, token: str) -> dict[str, int]:
        return dict(self._table(token).reads)

    async def forget(self, token: str, resources: Iterable[str]) -> RemovedDocuments:
        gone = self._table(token, resources)
        del self._tables[token]
        entries = sum(len(kept.entries) for kept in gone.documents.values())
        return RemovedDocuments(
            len(gone.documents), entries, len(gone.plans), len(gone.reads)
        )

    def _table(self, token: str, resources: Iterable[str] = ()) -> _Table:
        for resource_id in resources:
            keys.document(token, resource_id)
        return self._tables.setdefault(token, _Table())


def _has_moved(table: _Table, resource_id: str, written: DocumentWrite) -> bool:
    kept = table.documents.get(resource_id)
    stored = (0, "") if kept is None else (kept.revision, kept.born)
    return stored != (written.found_revision, written.found_born)


def _write(table: _Table, deed: Transaction) -> None:
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
        table.documents[resource_id] = _Kept(
            written.revision,
            born=written.born,
            form=written.form,
            body=written.body,
            entries=entries,
        )
    table.last += len(deed.plans)
