"""The limits that hold: who set them, a line for each, and the settings beside them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tasklore.commands.render.columns import Column, cells_of
from tasklore.commands.render.limit_words import (
    Json,
    choice_of,
    size_of,
    spell_scope,
    spell_setting,
)
from tasklore.commands.render.screen import lines_of_table, styled
from tasklore.commands.render.words import age

_COLUMNS = (
    Column[Json]("NAME", lambda one: one["name"], whole=True),
    Column[Json]("LIMIT", size_of),
    Column[Json]("COVERS", lambda one: spell_scope(one) or "everything"),
    Column[Json]("AT THE LIMIT", choice_of),
)
#: What a version without it has.
_DEFAULTS = {"time_zone": "UTC"}


def draw(view: Mapping[str, Any]) -> str:
    """Return the limits of *view* as a table."""
    if not view["version"]:
        return "There are no limits; `tasklore limits set` makes one."
    return "\n".join(_lines(view))


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    since = age(datetime.fromisoformat(view["when"]).timestamp() * 1000)
    told = (
        f"version {view['version']}, set by {view['who']} {since} ago ({view['when']})"
    )
    yield styled(told, "dim")
    yield ""
    if limits := view["limits"].get("limits"):
        yield from lines_of_table(*cells_of(_COLUMNS, limits))
        yield ""
    settings = {**_DEFAULTS, **view["limits"]}
    titles = [name for name in settings if name != "limits"]
    width = max(map(len, titles)) + 2
    for name in titles:
        title = name.replace("_", " ").ljust(width)
        yield f"{styled(title, 'dim')}{spell_setting(settings[name])}"
