"""Reads a user's documents and their history; writes nothing but when a place was last shown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from pydantic_core import from_json
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import user_of, user_token
from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.paths import Path, parse, resolve
from tasklore.memory.documents.plans import Document, Snapshot, resource_of
from tasklore.memory.documents.provenance import touching
from tasklore.memory.documents.storage.bodies import Bodies
from tasklore.memory.documents.storage.history import (
    LogEntry,
    PlanRecord,
    read_entry,
    read_record,
    rewind,
    whole_records,
)
from tasklore.memory.documents.storage.repository import (
    DocumentRepository,
    StoredDocument,
    StoredDocuments,
)
from tasklore.memory.times import EPOCH, milliseconds

#: Characters of a user id, as on the wire.
MAX_USER_ID = 256


def token_of(user_id: str) -> str:
    """Return the token under which the documents of *user_id* lie.

    Raises:
        InvalidInput: it is no text, or an empty one.
    """
    named: object = user_id
    if not isinstance(named, str) or not named.strip() or len(named) > MAX_USER_ID:
        shown = (
            f"{named[:20]!r}..."
            if isinstance(named, str) and len(named) > MAX_USER_ID
            else repr(named)
        )
        raise InvalidInput(
            f"user_id {shown} must be a text of 1 to {MAX_USER_ID} characters; documents belong to one user each"
        )
    try:
        return user_token(named)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"user_id {named!r} holds half of a surrogate pair; send valid Unicode"
        ) from error


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found: documents, and the last entries of their logs, oldest first, of those that are stored."""

    snapshot: Snapshot
    logs: Mapping[str, Sequence[LogEntry]]

    def entries(self) -> dict[tuple[str, str], LogEntry]:
        """Return the entries by plan id and resource id."""
        return {
            (entry.plan_id, resource_id): entry
            for resource_id, log in self.logs.items()
            for entry in log
        }


class DocumentReader:
    """Reads documents; every call names the user, and fails with InvalidInput when the id is empty.

    Every call raises MemoryUnavailable when Redis does not answer in time.

    Args:
        kinds: Templates of documents that are not stored yet.
        deadline_s: Seconds for one exchange with the server; some calls need two or three.
    """

    def __init__(self, client: Redis, kinds: Kinds, *, deadline_s: float = 1.0) -> None:
        self._repository: DocumentRepository = DocumentRepository(client, deadline_s)
        self._kinds = kinds
        self._bodies = Bodies()

    def of(self, user_id: str) -> "OwnDocuments":
        """Return a reader of the documents of *user_id* alone."""
        return OwnDocuments(self, user_id)

    async def snapshot(
        self, user_id: str, resources: Sequence[str] | None = None
    ) -> Snapshot:
        """Return *resources* as they all are at one moment; None: those of all kinds, and whatever else is stored.

        A kind that is not stored yet is its template, at revision 0. Others are left out.
        """
        return (await self._look(user_id, resources)).snapshot

    async def history(
        self, user_id: str, resource: str | None = None, limit: int = 100
    ) -> tuple[PlanRecord, ...]:
        """Return the last *limit* plans applied, newest first; those that changed *resource* when it is given."""
        if limit < 1:
            return ()
        look = await self._look(user_id, None, entries=limit)
        own = (
            look.logs.values()
            if resource is None
            else [look.logs.get(resource_of(resource), ())]
        )
        numbered = {entry.plan_id: entry.number for log in own for entry in log}
        newest = sorted(numbered, key=numbered.__getitem__, reverse=True)[:limit]
        return await self._records(user_id, newest, look.entries())

    async def at(self, user_id: str, resource: str, revision: int) -> Document:
        """Return a document as it was at *revision*; 0 is the template that it began with.

        Raises:
            InvalidInput: there is no such document or revision, or the history no longer reaches back to it.
        """
        document, log = await self._with_log(user_id, resource)
        return rewind(document, log, revision)

    async def explain(
        self, user_id: str, resource: str, path: Path | str
    ) -> tuple[PlanRecord, ...]:
        """Return the plans that touched the value now at *path*, newest first, wherever it was then.

        Raises:
            InvalidPath: *path* cannot be read.
            UnknownPath: nothing is there now.
            InvalidInput: there is no such document.
        """
        document, log = await self._with_log(user_id, resource)
        place = resolve(document.body, parse(path) if isinstance(path, str) else path)
        known = {(entry.plan_id, document.resource_id): entry for entry in log}
        return await self._records(user_id, touching(log, place), known)

    async def note_reads(
        self, user_id: str, places: Iterable[tuple[str, str]], at: datetime
    ) -> None:
        """Note that *places* were shown at *at*: each a resource id and a name that stays, not an index."""
        ms = milliseconds(at)
        await self._repository.note_reads(
            token_of(user_id), {f"{resource} {place}": ms for resource, place in places}
        )

    async def reads(self, user_id: str) -> dict[tuple[str, str], datetime]:
        """Return when each place was last shown, as it was noted."""
        found = await self._repository.reads(token_of(user_id))
        split = ((field.partition(" "), ms) for field, ms in found.items())
        return {
            (name[0], name[2]): EPOCH + timedelta(milliseconds=ms) for name, ms in split
        }

    async def _with_log(
        self, user_id: str, resource: str
    ) -> tuple[Document, Sequence[LogEntry]]:
        """Return a document and its whole log."""
        resource_id = resource_of(resource)
        look = await self._look(user_id, [resource_id], entries=-1)
        if resource_id not in look.snapshot.documents:
            known = ", ".join(self._kinds.ids)
            raise InvalidInput(
                f"user {user_id!r} has no document {resource!r}; the kinds of documents are {known}"
            )
        return look.snapshot.documents[resource_id], look.logs.get(resource_id, ())

    async def _look(
        self, user_id: str, resources: Sequence[str] | None, entries: int = 0
    ) -> Look:
        """Return documents and the last *entries* of their logs, -1 for all, as they are at one moment."""
        token = token_of(user_id)
        asked = list(
            dict.fromkeys(
                self._kinds.ids if resources is None else map(resource_of, resources)
            )
        )
        found, documents = await self._read(token, asked, entries)
        if resources is None and not found.resources <= set(asked):
            asked += sorted(found.resources - set(asked))
            found, documents = await self._read(token, asked, entries)
        logs = {
            one: [read_entry(raw) for raw in stored.entries]
            for one, stored in found.documents.items()
            if stored
        }
        return Look(Snapshot(user_id, documents), logs)

    async def _read(
        self, token: str, asked: Sequence[str], entries: int
    ) -> tuple[StoredDocuments, dict[str, Document]]:
        """Return the stored documents, raw and parsed; a body that is known here already is not sent again."""
        kept = {
            one: document
            for one in asked
            if (document := self._bodies.get(token, one)) is not None
        }
        known = {
            one: (document.revision, document.born) for one, document in kept.items()
        }
        found = await self._repository.read(token, asked, entries, known)
        documents: dict[str, Document] = {}
        for resource_id, stored in found.documents.items():
            kind = self._kinds.get(resource_id)
            if stored is not None:
                document = (
                    kept[resource_id]
                    if stored.body is None
                    else _parse(resource_id, stored)
                )
                self._bodies.put(token, document)
                documents[resource_id] = document
            elif kind is not None:
                documents[resource_id] = Document(
                    resource_id=resource_id, revision=0, body=kind.template
                )
        return found, documents

    async def _records(
        self,
        user_id: str,
        plan_ids: Sequence[str],
        known: Mapping[tuple[str, str], LogEntry],
    ) -> tuple[PlanRecord, ...]:
        """Return the records of *plan_ids*, newest first, with their changes in every document."""
        token = token_of(user_id)
        stored = await self._repository.records(token, plan_ids)
        records = [
            read_record(plan_id, *found)
            for plan_id, found in zip(plan_ids, stored, strict=True)
            if found is not None
        ]
        missing = [
            (record.plan_id, resource_id, revision)
            for record in records
            for resource_id, revision in record.revisions.items()
            if (record.plan_id, resource_id) not in known
        ]
        entries = dict(known)
        fetched = await self._repository.entries(
            token, [(resource_id, revision) for _, resource_id, revision in missing]
        )
        for (plan_id, resource_id, _), raw in zip(missing, fetched, strict=True):
            # A document that was forgotten and made again has other plans at its revisions.
            if raw is not None and (entry := read_entry(raw)).plan_id == plan_id:
                entries[plan_id, resource_id] = entry
        return whole_records(records, entries)


class OwnDocuments:
    """Reads the documents of one user: what `DocumentReader` does, without the choice of whose."""

    def __init__(self, reader: DocumentReader, user_id: str) -> None:
        token_of(user_id)
        self._reader = reader
        self._user_id = user_id

    @property
    def user_id(self) -> str:
        """Whose documents these are."""
        return self._user_id

    async def snapshot(self, resources: Sequence[str] | None = None) -> Snapshot:
        """Return the user's documents as they all are at one moment."""
        return await self._reader.snapshot(self._user_id, resources)

    async def history(
        self, resource: str | None = None, limit: int = 100
    ) -> tuple[PlanRecord, ...]:
        """Return the last plans applied to the user's documents, newest first."""
        return await self._reader.history(self._user_id, resource, limit)

    async def at(self, resource: str, revision: int) -> Document:
        """Return one of the user's documents as it was at *revision*."""
        return await self._reader.at(self._user_id, resource, revision)

    async def explain(self, resource: str, path: Path | str) -> tuple[PlanRecord, ...]:
        """Return the plans that touched the value now at *path*, newest first."""
        return await self._reader.explain(self._user_id, resource, path)

    async def note_reads(self, places: Iterable[tuple[str, str]], at: datetime) -> None:
        """Note that *places* were shown at *at*."""
        await self._reader.note_reads(self._user_id, places, at)

    async def reads(self) -> dict[tuple[str, str], datetime]:
        """Return when each place was last shown."""
        return await self._reader.reads(self._user_id)


def _parse(resource_id: str, stored: StoredDocument) -> Document:
    body = stored.body or b"{}"
    return Document(
        resource_id=resource_id,
        revision=stored.revision,
        body=from_json(body),
        form=stored.form,
        born=stored.born,
        size=len(body),
    )


class OwnerPage(NamedTuple):
    """Some of the users, and the cursor to go on with: 0 when every key was looked at."""

    users: tuple[str, ...]
    cursor: int


class DocumentOwners:
    """Finds the users whose documents were ever edited. MemoryUnavailable after `deadline_s` for one page."""

    def __init__(self, client: Redis, *, deadline_s: float = 1.0) -> None:
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)

    async def page(self, cursor: int = 0, limit: int = 1_000) -> OwnerPage:
        """Look at about *limit* keys of the server, from *cursor* on; a user may come twice."""
        scan = ("SCAN", cursor, "MATCH", keys.plans_pattern(), "COUNT", limit)
        reply = (await self._batch.run([scan]))[0]
        users = tuple(user_of(keys.parse_plans(key.decode())) for key in reply[1])
        return OwnerPage(users, int(reply[0]))
