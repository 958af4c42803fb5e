"""Reads of a project's records: one, a search, a chain, all of them; and the list of projects."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.projects import scripts
from tasklore.memory.projects.records import (
    LETTERS,
    Kind,
    ProjectInfo,
    Record,
    author_of,
    check_tags,
    kind_of,
    kind_of_id,
    record_of,
    refuse_unknown,
)
from tasklore.memory.projects.search import (
    MAX_LIMIT,
    IndexCondition,
    SearchFilter,
    conditions_of,
    read_filter,
    tag_text,
    vocabulary_lookup,
)

#: Records or projects that are read in one write.
BATCH = 100
#: Records that one script looks at: 1 to 3 ms of the server's, in which nobody else is served.
_BUDGET = 2_000
#: Records of a chain that one script follows.
_STEPS = 500


class ProjectReader:
    """Finds records, for `ProjectMemory`, which adds them; MemoryUnavailable when Redis is late."""

    def __init__(
        self,
        client: Redis,
        *,
        deadline_s: float = 1.0,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)
        self._clock_ms = clock_ms

    async def read(self, project_id: str, record_id: str) -> Record | None:
        """Return a record, None when there is none of that id.

        Raises:
            InvalidInput: *project_id* or *record_id* can be none.
        """
        kind_of_id(record_id)
        return (await self._read(project_id, [record_id]))[0]

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
        """Return what meets all conditions, newest first: at most *limit*, 1 to 1,000.

        Each word of *text* has to be the beginning of a word of the record, and every one of *tags* has to be on it;
        neither heeds capitals. Times are ms since 1970: from *since_ms* on, before *until_ms*. *before* is the id of a
        record, such as the last of an earlier answer: only older records.

        Raises:
            InvalidInput: a field is invalid, or *before* is not there.
        """
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
        return await self._find(project_id, wish) if wish is not None else []

    async def standards(
        self, project_id: str, tags: Sequence[str] = ()
    ) -> list[Record]:
        """Return the standards in force with any of *tags*, all of them without tags; newest first.

        Raises:
            InvalidInput: a tag can be none.
        """
        wish = SearchFilter(
            kind="standard",
            tags=check_tags(tags),
            in_force=True,
            limit=MAX_LIMIT,
            any_tag=True,
        )
        found: list[Record] = []
        while len(page := await self._find(project_id, wish)) == MAX_LIMIT:
            found += page
            wish = replace(wish, before=page[-1].record_id)
        return found + page

    async def chain(self, project_id: str, record_id: str) -> list[Record]:
        """Return what a record superseded, itself, and what superseded it, oldest first; [] for an unknown one.

        Raises:
            InvalidInput: *record_id* can be none.
        """
        record = await self.read(project_id, record_id)
        if record is None:
            return []
        earlier = await self._follow(project_id, record_id, "predecessors")
        return [
            *reversed(earlier),
            record,
            *await self._follow(project_id, record_id, "successors"),
        ]

    async def marks(
        self, project_id: str, kind: Kind, tags: Sequence[str]
    ) -> dict[str, str]:
        """Return for each of *tags* a mark that changes whenever a record of *kind* with it changes what holds.

        That is when one is added, superseded or redacted. The mark is "" when there never was one.

        Raises:
            InvalidInput: a tag or *kind* can be none.
        """
        letter = LETTERS[kind_of(kind)]
        names = [tag_text(tag) for tag in tags if check_tags([tag])]
        if not names:
            return {}
        marks = (
            "HMGET",
            keys.project_part(project_id, "marks"),
            *(letter + name for name in names),
        )
        found = (await self._batch.run([marks]))[0]
        return {
            tag: (mark or b"").decode() for tag, mark in zip(tags, found, strict=True)
        }

    async def export(self, project_id: str) -> AsyncIterator[Record]:
        """Yield every record, oldest first, as `load` takes them."""
        timeline = keys.project_part(project_id, "timeline")
        after = "-inf"
        while True:
            page: Command = (
                "ZRANGE",
                timeline,
                after,
                "+inf",
                "BYSCORE",
                "LIMIT",
                0,
                BATCH,
                "WITHSCORES",
            )
            ids, last = _read_places((await self._batch.run([page]))[0])
            for record in await self._read(project_id, ids):
                if record is not None:
                    yield record
            if len(ids) < BATCH:
                return
            after = f"({last}"

    async def count_by(self, user_id: str) -> int:
        """Return how many records tell that they are by *user_id*.

        Raises:
            InvalidInput: *user_id* can be none.
        """
        return sum([len(ids) async for _, ids in self._find_by_author(user_id)])

    async def projects(self) -> list[ProjectInfo]:
        """Return every project that has a record, the one with the newest first."""
        names = await self._names()
        found = list[ProjectInfo]()
        for start in range(0, len(names), BATCH):
            batch = names[start : start + BATCH]
            commands: list[Command] = []
            for name in batch:
                commands += [
                    ("ZCARD", keys.project_part(name, "kind", kind)) for kind in LETTERS
                ]
                commands.append(
                    (
                        "ZRANGE",
                        keys.project_part(name, "timeline"),
                        -1,
                        -1,
                        "WITHSCORES",
                    )
                )
            replies = await self._batch.run(commands)
            for place, name in enumerate(batch):
                decisions, standards, history, newest = replies[
                    4 * place : 4 * place + 4
                ]
                if newest:
                    found.append(
                        ProjectInfo(
                            project_id=name,
                            decisions=decisions,
                            standards=standards,
                            history=history,
                            last_ms=_read_places(newest)[1] // 1024,
                        )
                    )
        return sorted(found, key=lambda project: (-project.last_ms, project.project_id))

    async def _read(
        self, project_id: str, record_ids: Sequence[str]
    ) -> list[Record | None]:
        if not record_ids:
            return []
        stored, later = await self._batch.run(
            [
                ("HMGET", keys.project(project_id), *record_ids),
                ("HMGET", keys.project_part(project_id, "successors"), *record_ids),
            ]
        )
        return [
            record_of(record_id, body, by) if body is not None else None
            for record_id, body, by in zip(record_ids, stored, later, strict=True)
        ]

    async def _find(self, project_id: str, wish: SearchFilter) -> list[Record]:
        known = await self._batch.run(vocabulary_lookup(project_id, wish.words))
        if not all(known):
            return []
        conditions = conditions_of(project_id, wish, known)
        found = list[Record]()
        place = f"{wish.until_ms * 1024}"
        while True:
            command = _search(
                project_id,
                wish=wish,
                conditions=conditions,
                place=place,
                limit=min(BATCH, wish.limit - len(found)),
            )
            next_place, *records = (await self._batch.run([command]))[0]
            if next_place == b"unknown":
                raise refuse_unknown(project_id, wish.before or "", "before")
            found += _read_flat(records)
            if not next_place or len(found) == wish.limit:
                return found
            place = next_place.decode()

    async def _follow(
        self, project_id: str, record_id: str, links: str
    ) -> list[Record]:
        """Return the records to which *links* lead, the nearest first."""
        part = keys.project_part
        found = list[Record]()
        tables = (
            keys.project(project_id),
            part(project_id, "successors"),
            part(project_id, links),
        )
        while True:
            reply = (
                await self._batch.run(
                    [("FCALL", scripts.FOLLOW, 3, *tables, record_id, _STEPS)]
                )
            )[0]
            page = _read_flat(reply)
            found += page
            if len(page) < _STEPS:
                return found
            record_id = page[-1].record_id

    async def _names(self) -> list[str]:
        """Return the projects that are listed, some of which may have no record."""
        return [
            name.decode()
            for name in (
                await self._batch.run([("ZRANGE", keys.index("projects"), 0, -1)])
            )[0]
        ]

    async def _find_by_author(
        self, user_id: str
    ) -> AsyncIterator[tuple[str, list[str]]]:
        """Yield the projects with records by *user_id*, and the ids of those."""
        author = author_of(user_id)
        names = await self._names()
        for start in range(0, len(names), BATCH):
            batch = names[start : start + BATCH]
            commands: list[Command] = [
                ("ZRANGE", keys.project_part(name, "by", author), 0, -1)
                for name in batch
            ]
            for name, ids in zip(batch, await self._batch.run(commands), strict=True):
                if ids:
                    yield name, [record_id.decode() for record_id in ids]


def _search(
    project_id: str,
    wish: SearchFilter,
    conditions: Sequence[IndexCondition],
    place: str,
    limit: int,
) -> Command:
    """Return the command that searches before *place*."""
    part = keys.project_part
    tables = (
        part(project_id, "timeline"),
        keys.project(project_id),
        part(project_id, "words"),
        part(project_id, "successors"),
    )
    indexes = [index for condition in conditions for index in condition.indexes]
    asked: list[str | int] = []
    for condition in conditions:
        asked += [len(condition.texts), len(condition.indexes), *condition.texts]
    is_in_force = int(wish.in_force)
    first = (
        place,
        wish.since_ms * 1024,
        limit,
        _BUDGET,
        is_in_force,
        wish.before or "",
        len(conditions),
    )
    return (
        "FCALL",
        scripts.SEARCH,
        len(tables) + len(indexes),
        *tables,
        *indexes,
        *first,
        *asked,
    )


def _read_flat(reply: Sequence[Any]) -> list[Record]:
    """Return the records of a script's reply: of each its id, stored form, and successor."""
    return [
        record_of(
            reply[at].decode(),
            reply[at + 1],
            reply[at + 2] if at + 2 < len(reply) else None,
        )
        for at in range(0, len(reply), 3)
    ]


def _read_places(reply: Sequence[Any]) -> tuple[list[str], int]:
    """Return the ids of a reply with scores, and the last score: protocol 3 sends pairs, protocol 2 a flat list."""
    if reply and isinstance(reply[0], bytes):
        reply = list(zip(reply[::2], reply[1::2], strict=True))
    return [record_id.decode() for record_id, _ in reply], int(
        float(reply[-1][1])
    ) if reply else 0
