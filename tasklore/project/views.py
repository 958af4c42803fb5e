"""`tasklore project search|history|show|list`: looking at what projects remember."""

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from contracts.errors import InvalidInput
from memory.projects.lines import as_document
from memory.projects.project import Kind, ProjectInfo, Record
from memory.projects.records import kind_of
from memory.projects.words import words_of
from memory.times import spell_time
from tasklore.memory.lines import one_line
from tasklore.project.stores import found_record, meant_project, open_projects, time_of
from tasklore.render.durations import read_aloud
from tasklore.render.screen import patience, print_json, print_paragraph, print_table, printable, say, styled

#: Characters of a text in a list; `show` prints it whole.
_GIST = 160


class Wish(NamedTuple):
    """What is looked for, as it was typed; None is no condition."""

    words: str = ""
    tags: tuple[str, ...] = ()
    kind: str | None = None
    since: str | None = None
    until: str | None = None
    in_force: bool = False
    before: str | None = None


async def print_found(project: str | None, wish: Wish, limit: int, *, as_json: bool) -> None:
    """Print a line for each of at most *limit* records that fit, the newest first.

    Raises:
        InvalidInput: a condition can be none, or it is not clear which project is meant.
        Unreachable: Redis does not answer.
    """
    if wish.words.strip() and not words_of(wish.words):
        raise InvalidInput(f"{wish.words!r} has no word to look for; say a letter or a number of it")
    now = datetime.now(UTC)
    kind: Kind | None = None if wish.kind is None else kind_of(wish.kind)
    since, until = time_of(wish.since, "--since", now), time_of(wish.until, "--until", now)
    async with open_projects() as memory, patience("searching"):
        name = await meant_project(memory, project)
        # One more than is shown tells whether there is more.
        found = await memory.search(
            name,
            kind=kind,
            tags=wish.tags,
            text=wish.words,
            since_ms=since,
            until_ms=until,
            in_force=wish.in_force,
            limit=limit + 1,
            before=wish.before,
        )
    shown = found[:limit]
    if as_json:
        print_documents([as_document(record) for record in shown])
        return
    if not shown:
        print(f"Nothing that fits is remembered in project {name}.")
        return
    _print_records(shown, now)
    if len(found) > limit:
        say(f"these are the newest {len(shown):,}; --before {shown[-1].record_id} shows the next")


async def print_record(record_id: str, project: str | None, *, as_json: bool) -> None:
    """Print a record whole, and the chain of those that it supersedes and that supersede it.

    Raises:
        InvalidInput: there is no such record, or it is not clear which project is meant.
        Unreachable: Redis does not answer.
    """
    async with open_projects() as memory, patience("reading"):
        name = await meant_project(memory, project)
        record = await found_record(memory, name, record_id)
        chain = await memory.chain(name, record_id)
    if as_json:
        print_documents({"project_id": name, **as_document(record), "chain": [as_document(one) for one in chain]})
        return
    now = datetime.now(UTC)
    print(f"{styled(record.record_id, 'bold')}, a {_NOUNS[record.kind]} of project {name}{_standing(record)}")
    for title, value in _facts(record, now):
        print(f"{styled(title.ljust(12), 'dim')}{printable(value)}")
    print()
    print_paragraph(printable(record.text), "  ")
    if record.data:
        print()
        print(json.dumps(dict(record.data), indent=2, ensure_ascii=True))
    if len(chain) > 1:
        print("\nHow it came about, the oldest first:")
        _print_records(chain, now, mark=record.record_id)


async def print_projects(*, as_json: bool) -> None:
    """Print a line for every project that remembers something, the one with the newest record first.

    Raises:
        Unreachable: Redis does not answer.
    """
    async with open_projects() as memory, patience("reading"):
        found = await memory.projects()
    if as_json:
        print_json([_as_document(info) for info in found])
        return
    if not found:
        print("No project remembers anything yet.")
        return
    now_ms = datetime.now(UTC).timestamp() * 1000
    counts = ("DECISIONS", "STANDARDS", "HISTORY")
    print_table(
        ("PROJECT", *counts, "LAST"),
        [
            (
                info.project_id,
                f"{info.decisions:,}",
                f"{info.standards:,}",
                f"{info.history:,}",
                f"{read_aloud(max(0, now_ms - info.last_ms))} ago",
            )
            for info in found
        ],
        right=(*counts, "LAST"),
        whole=("PROJECT",),
    )


def print_documents(value: Any) -> None:
    """Write *value* to stdout as JSON, escaped where an agent left half of a surrogate pair in its data."""
    try:
        print_json(value)
    except UnicodeEncodeError:
        print(json.dumps(value, indent=2))


_NOUNS: dict[Kind, str] = {"decision": "decision", "standard": "standard", "history": "note in the history"}


def _print_records(records: list[Record], now: datetime, mark: str | None = None) -> None:
    """Print a line each; the id *mark* is marked."""
    rows = [
        (
            f"{record.record_id}{' *' if record.record_id == mark else ''}",
            read_aloud(max(0, now.timestamp() * 1000 - record.at_ms)),
            one_line(record.by or ""),
            one_line(", ".join(record.tags)),
            f"{_superseded(record)}{one_line(record.text, _GIST)}",
        )
        for record in records
    ]
    columns = ("ID", "AGE", "BY", "TAGS", "TEXT")
    # A column in which nothing stands only takes room.
    kept = [
        place for place, name in enumerate(columns) if name not in ("BY", "TAGS") or any(row[place] for row in rows)
    ]
    print_table(
        [columns[place] for place in kept],
        [[row[place] for place in kept] for row in rows],
        right=("AGE",),
        whole=("ID",),
    )


def _superseded(record: Record) -> str:
    return f"(superseded by {record.superseded_by}) " if record.superseded_by is not None else ""


def _standing(record: Record) -> str:
    if record.superseded_by is not None:
        return f", superseded by {record.superseded_by}"
    return "" if record.kind == "history" else ", in force"


def _facts(record: Record, now: datetime) -> list[tuple[str, str]]:
    """Return what is known of a record beside its text, each with its title."""
    age = read_aloud(max(0, now.timestamp() * 1000 - record.at_ms))
    facts = [("noted", f"{spell_time(record.at_ms)}, {age} ago")]
    if record.by is not None:
        facts.append(("by", record.by))
    if record.tags:
        facts.append(("tags", ", ".join(record.tags)))
    if record.supersedes is not None:
        facts.append(("supersedes", record.supersedes))
    if record.session_id is not None:
        facts.append(("session", record.session_id))
    if record.redacted_ms is not None:
        facts.append(("redacted", f"{spell_time(record.redacted_ms)}, when its author was forgotten"))
    return facts


def _as_document(info: ProjectInfo) -> dict[str, str | int]:
    return {
        "project_id": info.project_id,
        "decisions": info.decisions,
        "standards": info.standards,
        "history": info.history,
        "last_at": spell_time(info.last_ms),
    }
