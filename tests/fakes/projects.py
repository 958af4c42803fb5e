"""A project memory of this process only."""

import time
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from tasklore.contracts.identifiers import checked_name
from tasklore.memory.projects.records import (
    LETTERS,
    Kind,
    Record,
    check,
    check_tags,
    check_token,
    kind_of,
    kind_of_id,
    refuse_superseded,
    refuse_unknown,
)
from tasklore.memory.projects.search import MAX_LIMIT, SearchFilter, read_filter
from tasklore.memory.projects.words import tag_name, words_of


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
        """Keep *record*, and those it supersedes as superseded."""
        letter = record.record_id[0]
        number = int(record.record_id[1:])
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
            count = int(
                self.marks.get((record.kind, tag_name(tag)), "0").partition(" ")[0]
            )
            self.marks[record.kind, tag_name(tag)] = f"{count + 1} {record_id}"

    def demand_supersedable(self, project_id: str, record: Record) -> Record | None:
        """Return what *record* supersedes; raises InvalidInput when that is not there, or superseded already."""
        if record.supersedes is None:
            return None
        old = self.records.get(record.supersedes)
        if old is None:
            raise refuse_unknown(project_id, record.supersedes, "supersedes")
        if old.superseded_by is not None:
            raise refuse_superseded(record.supersedes, old.superseded_by)
        return old


class FakeProject:
    """Stands for `tasklore.memory.projects.project.ProjectMemory`."""

    def __init__(
        self, *, clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
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
        known = check_token(token) if token is not None else None
        project = self._of(project_id)
        if known is not None and known in project.tokens:
            return project.records[project.tokens[known]]
        old = project.demand_supersedable(project_id, record)
        project.at_ms = max(project.at_ms, self._clock_ms())
        letter = LETTERS[kind]
        at_ms = max(project.at_ms, 0 if old is None else old.at_ms)
        record = replace(
            record, record_id=f"{letter}{project.last.get(letter, 0) + 1}", at_ms=at_ms
        )
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
        wish = read_filter(
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

    async def standards(
        self, project_id: str, tags: Sequence[str] = ()
    ) -> list[Record]:
        """Return the standards in force with any of *tags*, all of them without tags; newest first."""
        wish = SearchFilter(
            kind="standard",
            tags=check_tags(tags),
            in_force=True,
            limit=MAX_LIMIT**2,
            any_tag=True,
        )
        return self._find(project_id, wish)

    async def chain(self, project_id: str, record_id: str) -> list[Record]:
        """Return what a record superseded, itself, and what superseded it, oldest first; [] for an unknown one."""
        record = await self.read(project_id, record_id)
        records = self._of(project_id).records
        chain = [record] if record is not None else []
        while chain and (earlier := chain[0].supersedes) is not None:
            chain.insert(0, records[earlier])
        while chain and (later := chain[-1].superseded_by) is not None:
            chain.append(records[later])
        return chain

    async def marks(
        self, project_id: str, kind: Kind, tags: Sequence[str]
    ) -> dict[str, str]:
        """Return for each of *tags* a mark that changes with what holds."""
        marks = self._of(project_id).marks
        return {
            tag: marks.get((kind_of(kind), tag_name(tag)), "")
            for tag in tags
            if check_tags([tag])
        }

    def _of(self, project_id: str) -> _Project:
        return self._projects.setdefault(
            checked_name(project_id, "project id"), _Project()
        )

    def _find(self, project_id: str, wish: SearchFilter) -> list[Record]:
        project = self._of(project_id)
        ids = [record_id for _, _, record_id in reversed(project.order)]
        if wish.before is not None:
            if wish.before not in ids:
                raise refuse_unknown(project_id, wish.before, "before")
            ids = ids[ids.index(wish.before) + 1 :]
        found = [project.records[record_id] for record_id in ids]
        return [record for record in found if meets(record, wish)][: wish.limit]


def meets(record: Record, wish: SearchFilter) -> bool:
    """Return whether *record* meets every condition of *wish*, `before` and `limit` aside."""
    tags = {tag_name(tag) for tag in wish.tags}
    own = {tag_name(tag) for tag in record.tags}
    words = () if record.redacted_ms is not None else words_of(record.text)
    return (
        wish.kind in (None, record.kind)
        and (not tags or bool(tags & own) if wish.any_tag else tags <= own)
        and all(
            any(word.startswith(beginning) for word in words)
            for beginning in wish.words
        )
        and wish.since_ms <= record.at_ms < wish.until_ms
        and not (wish.in_force and record.superseded_by is not None)
    )
