"""A project memory in this process only, for unit tests; it passes the contract suite of the real one."""

import time
from bisect import insort
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from contracts.errors import InvalidInput
from contracts.identifiers import checked_name
from memory.projects.records import (
    LETTERS,
    Kind,
    LoadReport,
    ProjectInfo,
    Record,
    Refusal,
    checked_loaded,
    checked_new,
    checked_tags,
    checked_token,
    checked_user,
    difference,
    kind_of,
    kind_of_id,
    redacted,
    superseded,
    unknown,
    younger,
)
from memory.projects.search import MAX_LIMIT, Wish, wish_of
from memory.projects.words import tag_name


@dataclass
class _Project:
    """What one project remembers: records by id, ids by their place, and what the store keeps beside them."""

    records: dict[str, Record] = field(default_factory=dict)
    order: list[tuple[int, int, str]] = field(default_factory=list)
    last: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    marks: dict[tuple[str, str], str] = field(default_factory=dict)
    at_ms: int = 0

    def add(self, record: Record) -> None:
        """Keep *record*, and what it supersedes as superseded."""
        letter, number = record.record_id[0], int(record.record_id[1:])
        self.last[letter] = max(self.last.get(letter, 0), number)
        self.records[record.record_id] = record
        insort(self.order, (record.at_ms, len(self.order), record.record_id))
        self.mark(record, record.record_id)
        if record.supersedes is not None:
            old = self.records[record.supersedes]
            self.records[old.record_id] = replace(old, superseded_by=record.record_id)
            self.mark(old, record.record_id)

    def mark(self, record: Record, record_id: str) -> None:
        """Change the marks of the tags of *record*."""
        for tag in record.tags:
            count = int(self.marks.get((record.kind, tag_name(tag)), "0").partition(" ")[0])
            self.marks[record.kind, tag_name(tag)] = f"{count + 1} {record_id}"

    def demand_supersedable(self, project_id: str, record: Record) -> Record | None:
        """Return what *record* supersedes; raises InvalidInput when that is not there, or superseded already."""
        if record.supersedes is None:
            return None
        old = self.records.get(record.supersedes)
        if old is None:
            raise unknown(project_id, record.supersedes, "supersedes")
        if old.superseded_by is not None:
            raise superseded(record.supersedes, old.superseded_by)
        return old


class FakeProject:
    """Stands for `memory.projects.project.ProjectMemory`."""

    def __init__(self, *, clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._clock_ms = clock_ms
        self._projects: dict[str, _Project] = {}

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
        """Add a record and return it; with a *token* that was used before, return the record of that time."""
        record = checked_new(kind, text, tags, by=by, supersedes=supersedes, session_id=session_id, data=data)
        known, project = checked_token(token) if token is not None else None, self._of(project_id)
        if known is not None and known in project.tokens:
            return project.records[project.tokens[known]]
        old = project.demand_supersedable(project_id, record)
        project.at_ms = max(project.at_ms, self._clock_ms())
        letter, at_ms = LETTERS[kind], max(project.at_ms, 0 if old is None else old.at_ms)
        record = replace(record, record_id=f"{letter}{project.last.get(letter, 0) + 1}", at_ms=at_ms)
        project.add(record)
        if known is not None:
            project.tokens[known] = record.record_id
        return record

    async def read(self, project_id: str, record_id: str) -> Record | None:
        """Return a record, None when there is none of that id."""
        kind_of_id(record_id)
        return self._of(project_id).records.get(record_id)

    async def search(
        self,
        project_id: str,
        *,
        kind: Kind | None = None,
        tags: Sequence[str] = (),
        text: str = "",
        since_ms: int | None = None,
        until_ms: int | None = None,
        in_force: bool = False,
        limit: int = 20,
        before: str | None = None,
    ) -> list[Record]:
        """Return what meets all conditions, newest first."""
        wish = wish_of(
            kind=kind,
            tags=tags,
            text=text,
            since_ms=since_ms,
            until_ms=until_ms,
            in_force=in_force,
            limit=limit,
            before=before,
        )
        return self._find(project_id, wish) if wish is not None else []

    async def standards(self, project_id: str, tags: Sequence[str] = ()) -> list[Record]:
        """Return the standards in force with any of *tags*, all of them without tags; newest first."""
        wish = Wish("standard", checked_tags(tags), in_force=True, limit=MAX_LIMIT**2, any_tag=True)
        return self._find(project_id, wish)

    async def chain(self, project_id: str, record_id: str) -> list[Record]:
        """Return what a record superseded, itself, and what superseded it, oldest first; [] for an unknown one."""
        record = await self.read(project_id, record_id)
        records, chain = self._of(project_id).records, [record] if record is not None else []
        while chain and (earlier := chain[0].supersedes) is not None:
            chain.insert(0, records[earlier])
        while chain and (later := chain[-1].superseded_by) is not None:
            chain.append(records[later])
        return chain

    async def marks(self, project_id: str, kind: Kind, tags: Sequence[str]) -> dict[str, str]:
        """Return for each of *tags* a mark that changes with what holds."""
        marks = self._of(project_id).marks
        return {tag: marks.get((kind_of(kind), tag_name(tag)), "") for tag in tags if checked_tags([tag])}

    async def export(self, project_id: str) -> AsyncIterator[Record]:
        """Yield every record, oldest first."""
        project = self._of(project_id)
        for _, _, record_id in list(project.order):
            yield project.records[record_id]

    async def load(self, project_id: str, records: Iterable[Record]) -> LoadReport:
        """Add *records* under the ids and times that they have."""
        added, known, refused, project = 0, 0, list[Refusal](), self._of(project_id)
        for given in records:
            try:
                record = replace(checked_loaded(given), superseded_by=None)
                stored = project.records.get(record.record_id)
                if stored is None:
                    old = project.demand_supersedable(project_id, record)
                    if old is not None and record.at_ms < old.at_ms:
                        raise younger(old.record_id)
                    project.add(record)
            except InvalidInput as error:
                refused.append(Refusal(given.record_id, str(error)))
                continue
            why = difference(stored, record) if stored is not None else None
            if why is not None:
                refused.append(Refusal(given.record_id, why))
            added, known = added + (stored is None), known + (stored is not None and why is None)
        return LoadReport(added, known, tuple(refused))

    async def redact(self, user_id: str) -> int:
        """Take what *user_id* said, and their name, out of all records, and return how many those were."""
        signed = self._signed(user_id)
        for project, record in signed:
            project.records[record.record_id] = replace(redacted(record), redacted_ms=self._clock_ms())
            project.mark(record, record.record_id)
        return len(signed)

    async def count_by(self, user_id: str) -> int:
        """Return how many records tell that they are by *user_id*."""
        return len(self._signed(user_id))

    async def projects(self) -> list[ProjectInfo]:
        """Return every project that has a record, the one with the newest first."""
        found = [
            ProjectInfo(
                project_id,
                *_counts(project),
                project.order[-1][0],
            )
            for project_id, project in self._projects.items()
            if project.records
        ]
        return sorted(found, key=lambda project: (-project.last_ms, project.project_id))

    def _of(self, project_id: str) -> _Project:
        return self._projects.setdefault(checked_name(project_id, "project id"), _Project())

    def _find(self, project_id: str, wish: Wish) -> list[Record]:
        project = self._of(project_id)
        ids = [record_id for _, _, record_id in reversed(project.order)]
        if wish.before is not None:
            if wish.before not in ids:
                raise unknown(project_id, wish.before, "before")
            ids = ids[ids.index(wish.before) + 1 :]
        found = [project.records[record_id] for record_id in ids]
        return [record for record in found if wish.is_met_by(record)][: wish.limit]

    def _signed(self, user_id: str) -> list[tuple[_Project, Record]]:
        author = checked_user(user_id)
        return [
            (project, project.records[record_id])
            for project in self._projects.values()
            for _, _, record_id in project.order
            if project.records[record_id].by == author
        ]


def _counts(project: _Project) -> tuple[int, int, int]:
    kinds = [record.kind for record in project.records.values()]
    return kinds.count("decision"), kinds.count("standard"), kinds.count("history")
