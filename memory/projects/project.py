"""Project memory: decisions, standards and the history of runs, appended and never deleted."""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.memory import keys
from tasklore.memory.command_batch import Command
from tasklore.memory.projects import scripts
from tasklore.memory.projects.reader import BATCH, ProjectReader
from tasklore.memory.projects.records import (
    LETTERS,
    Kind,
    ProjectInfo,
    ProjectLoadReport,
    Record,
    RefusedRecord,
    author_of,
    body_of,
    check,
    check_loaded,
    check_tags,
    check_token,
    difference,
    redact,
    refuse_superseded,
    refuse_unknown,
)
from tasklore.memory.projects.search import indexes_of, line_of

__all__ = ["Kind", "ProjectInfo", "ProjectLoadReport", "ProjectMemory", "Record"]

#: What lies beside a project's records, in the order in which the script that appends takes it.
_TABLES = (
    "words",
    "timeline",
    "state",
    "successors",
    "predecessors",
    "tokens",
    "marks",
    "vocabulary",
)


#: Characters of texts that are loaded in one write: the server takes half a second for them when each is a word.
_BATCH_LETTERS = 50_000
#: Records that are redacted in one write: one of 8,000 words takes the server 40 ms.
_REDACTED = 10


class ProjectMemory(ProjectReader):
    """Appends records to projects and finds them; nothing takes one away, and no time ends one.

    A project is there as soon as it has a record.

    Args:
        deadline_s: Seconds for one look at the server; then MemoryUnavailable.
        clock_ms: The time in ms since 1970, by which projects are listed; records have the server's.
    """

    async def append(
        self,
        project_id: str,
        kind: Kind,
        text: str,
        *,
        tags: Sequence[str] = (),
        by: str | None = None,
        supersedes: str | None = None,
        session_id: str | None = None,
        data: Mapping[str, JsonValue] | None = None,
        token: str | None = None,
    ) -> Record:
        """Add a record and return it; with a *token* that was used before, return the record of that time.

        *supersedes* is a record of the same kind that stays readable and is no longer in force.

        Raises:
            InvalidInput: a field is invalid, or *supersedes* is not there or superseded already.
            MemoryUnavailable: no answer in time; appending again with the same token is safe.
        """
        own = {} if data is None else data
        record = check(
            Record(
                record_id="",
                kind=kind,
                text=text,
                tags=check_tags(tags),
                at_ms=0,
                by=by,
                supersedes=supersedes,
                superseded_by=None,
                session_id=session_id,
                data=own,
            )
        )
        # A lost reply has the script sent again: without a token of its own it would append twice.
        named = check_token(token) if token is not None else secrets.token_hex(8)
        # Listed first: what is not listed is not found when somebody is to be forgotten.
        word, *found = (
            await self._batch.run(
                [self._list(project_id), _append(project_id, record, named)]
            )
        )[1]
        match word:
            case b"new":
                return replace(record, record_id=found[0].decode(), at_ms=int(found[1]))
            case b"known":
                stored = await self.read(project_id, found[0].decode())
                if stored is not None:
                    return stored
        raise _refusal_of(project_id, record, word, found)

    async def load(
        self, project_id: str, records: Iterable[Record]
    ) -> ProjectLoadReport:
        """Add *records* under the ids and times that they have; superseded records have to come before them.

        Loading them again changes nothing. One that does not fit a stored one is refused, and the others are loaded.

        Raises:
            InvalidInput: *project_id* can be none.
            MemoryUnavailable: no answer in time; some are loaded, so load again.
        """
        report = ProjectLoadReport()
        sound = list[Record]()
        for record in records:
            try:
                sound.append(check_loaded(record))
            except InvalidInput as error:
                report = _with_refusal(report, record, str(error))
        for batch in _batches(sound):
            report = await self._load(project_id, batch, report)
        return report

    async def redact(self, user_id: str) -> int:
        """Take what *user_id* said, and their name, out of all records, and return how many those were.

        The records stay, with kind, tags, times and links; nothing finds them by their words any more.

        Raises:
            InvalidInput: *user_id* can be none.
            MemoryUnavailable: no answer in time; some are redacted, so redact again.
        """
        count = 0
        async for project_id, ids in self._find_by_author(user_id):
            for start in range(0, len(ids), _REDACTED):
                count += await self._redact(
                    project_id, ids[start : start + _REDACTED], author_of(user_id)
                )
        return count

    def _list(self, project_id: str) -> Command:
        return ("ZADD", keys.index("projects"), "GT", self._clock_ms(), project_id)

    async def _load(
        self, project_id: str, records: Sequence[Record], report: ProjectLoadReport
    ) -> ProjectLoadReport:
        """Load *records* and return *report* with the outcome."""
        stored = await self._read_known(project_id, records)
        missing = [record for record in records if record.record_id not in stored]
        for record in records:
            if record.record_id in stored:
                report = _compare(report, stored[record.record_id], record)
        commands = [
            _append(project_id, record, "", is_loaded=True) for record in missing
        ]
        _, *replies = await self._batch.run([self._list(project_id), *commands])
        if any(word == b"exists" for word, *_ in replies):
            # Twice in what is loaded, or loaded by somebody else meanwhile.
            stored = await self._read_known(project_id, missing)
        for record, (word, *found) in zip(missing, replies, strict=True):
            if word == b"new":
                report = replace(report, added=report.added + 1)
            elif word == b"exists":
                report = _compare(report, stored[record.record_id], record)
            else:
                report = _with_refusal(
                    report, record, str(_refusal_of(project_id, record, word, found))
                )
        return report

    async def _read_known(
        self, project_id: str, records: Sequence[Record]
    ) -> dict[str, Record]:
        found = await self._read(project_id, [record.record_id for record in records])
        return {record.record_id: record for record in found if record is not None}

    async def _redact(
        self, project_id: str, record_ids: Sequence[str], author: str
    ) -> int:
        part = keys.project_part
        by = part(project_id, "by", author)
        words_key = part(project_id, "words")
        tables = (
            keys.project(project_id),
            words_key,
            part(project_id, "marks"),
            part(project_id, "vocabulary"),
            by,
        )
        lines = (await self._batch.run([("HMGET", words_key, *record_ids)]))[0]
        commands: list[Command] = []
        for record, line in zip(
            await self._read(project_id, record_ids), lines, strict=True
        ):
            if record is None:
                continue
            words = [
                word
                for word in line.decode().split(" ")
                if word and word[0] not in ":#"
            ]
            indexes = [part(project_id, "word", word) for word in words]
            bare = replace(redact(record), redacted_ms=0)
            changed = (record.record_id, line, line_of(bare), body_of(bare), *words)
            commands.append(
                (
                    "FCALL",
                    scripts.REDACT,
                    len(tables) + len(words),
                    *tables,
                    *indexes,
                    *changed,
                )
            )
        return sum(await self._batch.run(commands))


def _batches(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Yield *records* in batches of which each is written well within a deadline."""
    batch = list[Record]()
    letters = 0
    for record in records:
        if batch and (
            len(batch) == BATCH or letters + len(record.text) > _BATCH_LETTERS
        ):
            yield batch
            batch = []
            letters = 0
        batch.append(record)
        letters += len(record.text)
    if batch:
        yield batch


def _compare(
    report: ProjectLoadReport, stored: Record, loaded: Record
) -> ProjectLoadReport:
    why = difference(stored, loaded)
    return (
        replace(report, known=report.known + 1)
        if why is None
        else _with_refusal(report, loaded, why)
    )


def _with_refusal(
    report: ProjectLoadReport, record: Record, why: str
) -> ProjectLoadReport:
    return replace(
        report, refused=(*report.refused, RefusedRecord(record.record_id, why))
    )


def _append(
    project_id: str, record: Record, token: str, *, is_loaded: bool = False
) -> Command:
    part = keys.project_part
    tables = [keys.project(project_id), *(part(project_id, table) for table in _TABLES)]
    indexes = indexes_of(project_id, record)
    if record.by is not None:
        indexes.append(part(project_id, "by", author_of(record.by)))
    own = (
        (record.record_id, record.at_ms, record.redacted_ms or 0)
        if is_loaded
        else ("", 0, 0)
    )
    return (
        "FCALL", scripts.APPEND, len(tables) + len(indexes), *tables, *indexes,
        LETTERS[record.kind], body_of(record), token, record.supersedes or "", line_of(record), *own,
    )  # fmt: skip


def _refusal_of(
    project_id: str, record: Record, word: bytes, found: Sequence[Any]
) -> InvalidInput:
    """Return why *record* was not appended."""
    old = record.supersedes or ""
    match word:
        case b"superseded":
            return refuse_superseded(old, found[0].decode())
        case b"younger":
            return InvalidInput(
                f"supersedes {old!r} is younger; a record comes after what it supersedes, correct the time"
            )
        case _:
            return refuse_unknown(project_id, old, "supersedes")
