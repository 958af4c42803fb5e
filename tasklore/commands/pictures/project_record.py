"""A record of a project: its fields, its text and data, and the records around it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.render.columns import Column, cells_of
from tasklore.commands.render.screen import lines_of_table, styled
from tasklore.commands.render.views import spell
from tasklore.commands.render.words import one_line

Json = Mapping[str, Any]

#: Characters of a text in the chain.
_LONGEST_GIST = 160
_NOUNS = {
    "decision": "decision",
    "standard": "standard",
    "history": "note in the history",
}
#: Fields in the order of their lines, each with its title.
_FACTS = {
    "noted": "at",
    "by": "by",
    "tags": "tags",
    "supersedes": "supersedes",
    "session": "session_id",
    "redacted, as its author was forgotten": "redacted_at",
}


def draw(view: Json) -> str:
    """Return the record, and behind it those that it supersedes and that supersede it."""
    return "\n".join(_lines(view))


def _lines(view: Json) -> Iterator[str]:
    state = "" if view["kind"] == "history" else ", in force"
    if view["superseded_by"] is not None:
        state = f", superseded by {view['superseded_by']}"
    name = styled(view["record_id"], "bold")
    yield f"{name}, a {_NOUNS[view['kind']]} of project {view['project_id']}{state}"
    facts = {title: spell(field, view[field]) for title, field in _FACTS.items()}
    given = {title: text for title, text in facts.items() if text}
    width = max(map(len, given)) + 2
    for title, text in given.items():
        yield f"{styled(title.ljust(width), 'dim')}{text}"
    yield ""
    yield from (f"  {line}" for line in view["text"].splitlines())
    if view["data"]:
        yield ""
        yield json.dumps(view["data"], indent=2, ensure_ascii=False)
    if len(view["chain"]) > 1:
        yield "\nHow it came about, the oldest first:"
        yield from lines_of_table(*cells_of(_columns(view["record_id"]), view["chain"]))


def _columns(record_id: str) -> tuple[Column[Json], ...]:
    """Return the columns of the chain of the record of that id, which has a mark."""
    return (
        Column(
            "ID",
            lambda one: (
                f"{one['record_id']}{' *' if one['record_id'] == record_id else ''}"
            ),
            whole=True,
        ),
        Column("AT", lambda one: spell("at", one["at"]), whole=True),
        Column("BY", lambda one: one["by"] or "", optional=True),
        Column("TAGS", lambda one: ", ".join(one["tags"]), optional=True),
        Column("TEXT", lambda one: one_line(one["text"], _LONGEST_GIST)),
    )
