"""Where documents lie in Redis: JSON text by key, read at one moment and written in one step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.documents.storage import scripts as document_scripts
from tasklore.memory.queues.claims import Claim, Closing, closing_arguments

#: How a commit can end, see `tasklore.memory.documents.storage.scripts`.
Word = Literal["done", "known", "lease", "partly", "moved"]

#: Keys looked at by one SCAN: some hundred microseconds of the server.
_SCANNED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """One document as it lies there: `body` is None when the one known is that, `entries` come oldest first."""

    revision: int
    born: str
    form: str
    body: bytes | None
    entries: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class StoredDocuments:
    """Documents at one moment, None where none is stored, and the ids of all that are."""

    documents: Mapping[str, StoredDocument | None]
    resources: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentWrite:
    """One document to be written: its former revision must still be stored. Without a body it was only read."""

    found_revision: int
    found_born: str
    revision: int = 0
    born: str = ""
    form: str = ""
    body: bytes | None = None
    #: Each with the place of its plan among those of the commit, counted from 1.
    entries: Sequence[tuple[int, bytes]] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """One plan to be written; `undoes` is empty for an edit."""

    plan_id: str
    record: bytes
    documents: int
    undoes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What one commit writes and closes: all of it or nothing. `keep` is how many entries a log holds."""

    keep: int
    plans: Sequence[Recorded] = ()
    documents: Mapping[str, DocumentWrite] = field(default_factory=dict)
    claim: Claim | None = None
    closings: Sequence[Closing] = ()


@dataclass(frozen=True, slots=True)
class RemovedDocuments:
    """How much there was of a user: documents, log entries, plans and noted reads."""

    documents: int = 0
    entries: int = 0
    plans: int = 0
    reads: int = 0


class DocumentRepository:
    """Keeps the documents of users by token; every call raises MemoryUnavailable when Redis does not answer in time."""

    def __init__(self, client: Redis, deadline_s: float) -> None:
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)

    async def read(
        self,
        token: str,
        resources: Sequence[str],
        entries: int,
        known: Mapping[str, tuple[int, str]],
    ) -> StoredDocuments:
        """Return *resources* with the last *entries* of their logs, -1 for all; *known* is each revision and life."""
        held = [
            f"{known[one][0]} {known[one][1]}" if one in known else ""
            for one in resources
        ]
        named = keys.plans(token), *_pairs(token, resources)
        reply = await self._run(document_scripts.READ, named, entries, *held)
        stored = {
            resource: _read_stored(one)
            for resource, one in zip(resources, reply[1:], strict=True)
        }
        return StoredDocuments(stored, frozenset(reply[0].decode().split()))

    async def entries(
        self, token: str, wanted: Sequence[tuple[str, int]]
    ) -> list[bytes | None]:
        """Return the log entries that led to *wanted*, each a resource and a revision; None for one that is gone."""
        if not wanted:
            return []
        named = _pairs(token, [resource for resource, _ in wanted])
        return await self._run(
            document_scripts.ENTRIES, named, *(revision for _, revision in wanted)
        )

    async def records(
        self, token: str, plan_ids: Sequence[str]
    ) -> list[tuple[bytes, str | None] | None]:
        """Return each plan's record and the plan that took it back; None for one that is not there."""
        if not plan_ids:
            return []
        fields = [*plan_ids, *(f"{plan_id}!" for plan_id in plan_ids)]
        found = (await self._batch.run([("HMGET", keys.plans(token), *fields)]))[0]
        both = zip(found[: len(plan_ids)], found[len(plan_ids) :], strict=True)
        return [
            None if record is None else (record, undone and undone.decode())
            for record, undone in both
        ]

    async def commit(
        self, token: str, deed: Transaction
    ) -> tuple[Word, tuple[str, ...]]:
        """Carry out *deed* in one step, and say how that ended: with which plans or resources."""
        named = [keys.plans(token), *_pairs(token, deed.documents)]
        words: list[str | int | bytes] = [
            len(deed.documents),
            len(deed.plans),
            deed.keep,
            int(deed.claim is not None),
        ]
        for plan in deed.plans:
            words += (plan.plan_id, plan.record, plan.documents, plan.undoes)
        for resource_id, written in deed.documents.items():
            words += (
                resource_id,
                written.found_revision,
                written.found_born,
                *_writing(written),
            )
        if deed.claim is not None:
            named += deed.claim.keys
            words += closing_arguments(deed.claim, deed.closings)
        word, *names = await self._run(document_scripts.COMMIT, named, *words)
        return cast("Word", word.decode()), tuple(name.decode() for name in names)

    async def note_reads(self, token: str, reads: Mapping[str, int]) -> None:
        """Note when each place was shown, in ms since 1970."""
        if reads:
            noted = [word for read in reads.items() for word in read]
            await self._batch.run([("HSET", keys.document_reads(token), *noted)])

    async def reads(self, token: str) -> dict[str, int]:
        """Return when each place was shown last, in ms since 1970."""
        found = as_mapping(
            (await self._batch.run([("HGETALL", keys.document_reads(token))]))[0]
        )
        return {place.decode(): int(ms) for place, ms in found.items()}

    async def forget(self, token: str, resources: Iterable[str]) -> RemovedDocuments:
        """Remove *resources* and whatever else lies beside them, and say how much there was."""
        named = keys.plans(token), keys.document_reads(token), *_pairs(token, resources)
        counts = await self._run(document_scripts.FORGET, named)
        pattern = keys.documents_pattern(token)
        cursor = 0
        while True:
            scan: Command = ("SCAN", cursor, "MATCH", pattern, "COUNT", _SCANNED)
            cursor, rest = (await self._batch.run([scan]))[0]
            if rest:
                await self._batch.run([("UNLINK", *rest)])
            if not int(cursor):
                return RemovedDocuments(*counts)

    async def _run(
        self, script: str, named: Sequence[str], *words: str | int | bytes
    ) -> list[Any]:
        command = (
            "FCALL_RO"
            if script in (document_scripts.READ, document_scripts.ENTRIES)
            else "FCALL"
        )
        reply: list[Any] = (
            await self._batch.run([(command, script, len(named), *named, *words)])
        )[0]
        return reply


def _pairs(token: str, resources: Iterable[str]) -> list[str]:
    """Return the keys of each document and its log."""
    return [
        key
        for resource_id in resources
        for key in (
            keys.document(token, resource_id),
            keys.document_log(token, resource_id),
        )
    ]


def _writing(written: DocumentWrite) -> list[str | int | bytes]:
    if written.body is None:
        return ["", "", "", "", 0]
    entries = [word for entry in written.entries for word in entry]
    return [
        written.revision,
        written.born,
        written.form,
        written.body,
        len(written.entries),
        *entries,
    ]


def _read_stored(found: list[Any] | None) -> StoredDocument | None:
    if not found:
        return None
    revision, born, form, entries, *body = found
    return StoredDocument(
        revision=int(revision),
        born=born.decode(),
        form=form.decode(),
        body=body[0] if body else None,
        entries=entries,
    )


@dataclass(frozen=True, slots=True)
class Committed:
    """All is stored: `revisions` of the documents written, by resource id, and the ids of the plans.

    `known` are plans that were stored before, under the same ids: an answer was lost, and nothing was written again.
    """

    revisions: Mapping[str, int]
    plans: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stale:
    """Nothing is stored, since the draft rests on outdated documents: make a new one and decide again.

    `moved` are documents that another writer changed meanwhile. `lease` is True when the claim is another's by now:
    the rows are theirs. `known` are plans of the draft that are applied already, to be left out (`Draft(known=...)`).
    """

    moved: tuple[str, ...] = ()
    lease: bool = False
    known: tuple[str, ...] = ()
