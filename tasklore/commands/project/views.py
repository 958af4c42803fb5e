"""`tasklore project search|history|show|list`: the records of projects."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tasklore.commands.project.stores import (
    choose_project,
    find_record,
    open_projects,
    time_of,
)
from tasklore.commands.render.columns import Column, print_facts, print_records
from tasklore.commands.render.screen import (
    patience,
    print_json,
    print_paragraph,
    printable,
    say,
    styled,
)
from tasklore.commands.render.words import age, one_line
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.projects.lines import as_document
from tasklore.memory.projects.project import Kind, ProjectInfo, Record
from tasklore.memory.projects.records import kind_of
from tasklore.memory.projects.words import words_of
from tasklore.memory.times import spell_time

#: Characters of a text in a list; `show` prints it whole.
_LONGEST_GIST = 160
_NOUNS: dict[Kind, str] = {
    "decision": "decision",
    "standard": "standard",
    "history": "note in the history",
}

RECORDS = (
    Column[Record]("ID", lambda record: record.record_id, whole=True),
    Column[Record]("AGE", lambda record: age(record.at_ms), right=True),
    Column[Record]("BY", lambda record: one_line(record.by or ""), optional=True),
    Column[Record](
        "TAGS", lambda record: one_line(", ".join(record.tags)), optional=True
    ),
    Column[Record](
        "TEXT",
        lambda record: (
            (
                f"(superseded by {record.superseded_by}) "
                if record.superseded_by is not None
                else ""
            )
            + one_line(record.text, _LONGEST_GIST)
        ),
    ),
)
PROJECTS = (
    Column[ProjectInfo]("PROJECT", lambda info: info.project_id, whole=True),
    Column[ProjectInfo]("DECISIONS", lambda info: f"{info.decisions:,}", right=True),
    Column[ProjectInfo]("STANDARDS", lambda info: f"{info.standards:,}", right=True),
    Column[ProjectInfo]("HISTORY", lambda info: f"{info.history:,}", right=True),
    Column[ProjectInfo]("LAST", lambda info: f"{age(info.last_ms)} ago", right=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """The conditions of a search, as they are typed; None is no condition."""

    words: str = ""
    tags: tuple[str, ...] = ()
    kind: str | None = None
    since: str | None = None
    until: str | None = None
    in_force: bool = False
    before: str | None = None


async def print_found(
    project: str | None, only: RecordFilter, limit: int, *, as_json: bool
) -> None:
    """Print a line for each of at most *limit* records that fit, the newest first.

    Raises:
        InvalidInput: a condition cannot be read, or the project is not clear.
        Unreachable: Redis does not answer.
    """
    if only.words.strip() and not words_of(only.words):
        raise InvalidInput(
            f"{only.words!r} has no word to look for; say a letter or a number of it"
        )
    now = datetime.now(UTC)
    conditions: dict[str, Any] = {
        "kind": None if only.kind is None else kind_of(only.kind),
        "since_ms": time_of(only.since, "--since", now),
        "until_ms": time_of(only.until, "--until", now),
        "tags": only.tags,
        "text": only.words,
        "in_force": only.in_force,
        "before": only.before,
    }
    async with open_projects() as memory, patience("searching"):
        name = await choose_project(memory, project)
        # One more than is shown tells whether there is more.
        found = await memory.search(name, **conditions, limit=limit + 1)
    shown = found[:limit]
    if as_json:
        print_documents([as_document(record) for record in shown])
    elif shown:
        print_records(RECORDS, shown)
    else:
        print(f"Nothing that fits is remembered in project {name}.")
    if len(found) > limit and not as_json:
        say(
            f"these are the newest {len(shown):,}; --before {shown[-1].record_id} shows the next"
        )


async def print_record(record_id: str, project: str | None, *, as_json: bool) -> None:
    """Print a record whole, and the chain of those that it supersedes and that supersede it.

    Raises:
        InvalidInput: there is no such record, or the project is not clear.
        Unreachable: Redis does not answer.
    """
    async with open_projects() as memory, patience("reading"):
        name = await choose_project(memory, project)
        record = await find_record(memory, name, record_id)
        chain = await memory.chain(name, record_id)
    if as_json:
        print_documents(
            {
                "project_id": name,
                **as_document(record),
                "chain": [as_document(one) for one in chain],
            }
        )
        return
    state = "" if record.kind == "history" else ", in force"
    if record.superseded_by is not None:
        state = f", superseded by {record.superseded_by}"
    print(
        f"{styled(record.record_id, 'bold')}, a {_NOUNS[record.kind]} of project {name}{state}"
    )
    redacted = (
        ""
        if record.redacted_ms is None
        else f"{spell_time(record.redacted_ms)}, when its author was forgotten"
    )
    print_facts(
        {
            "noted": f"{spell_time(record.at_ms)}, {age(record.at_ms)} ago",
            "by": record.by or "",
            "tags": ", ".join(record.tags),
            "supersedes": record.supersedes or "",
            "session": record.session_id or "",
            "redacted": redacted,
        }
    )
    print()
    print_paragraph(printable(record.text), "  ")
    if record.data:
        print()
        print(json.dumps(dict(record.data), indent=2, ensure_ascii=True))
    if len(chain) > 1:
        print("\nHow it came about, the oldest first:")
        marked = Column[Record](
            "ID",
            lambda one: f"{one.record_id}{' *' if one == record else ''}",
            whole=True,
        )
        print_records((marked, *RECORDS[1:]), chain)


async def print_projects(*, as_json: bool) -> None:
    """Print a line for every project with a record, the one with the newest record first.

    Raises:
        Unreachable: Redis does not answer.
    """
    async with open_projects() as memory, patience("reading"):
        found = await memory.projects()
    if as_json:
        fields = ("project_id", "decisions", "standards", "history")
        print_json(
            [
                {name: getattr(info, name) for name in fields}
                | {"last_at": spell_time(info.last_ms)}
                for info in found
            ]
        )
    elif found:
        print_records(PROJECTS, found)
    else:
        print("No project remembers anything yet.")


def print_documents(value: Any) -> None:
    """Write *value* to stdout as JSON, escaped where an agent left half of a surrogate pair in its data."""
    try:
        print_json(value)
    except UnicodeEncodeError:
        print(json.dumps(value, indent=2))
