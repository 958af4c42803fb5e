"""The versions of the limits: when each was set, its author, and its changes."""

from collections.abc import Mapping
from typing import Any

from tasklore.commands.render.columns import Column, cells_of
from tasklore.commands.render.limit_words import Json, spell_difference
from tasklore.commands.render.screen import lines_of_table
from tasklore.commands.render.views import spell_time
from tasklore.commands.render.words import count_of, one_line


def _change(version: Json) -> str:
    """Return what *version* changed; how many limits it has where that is not known."""
    difference = version["difference"]
    if difference is None:
        return count_of(len(version["limits"].get("limits", ())), "limit")
    return one_line("; ".join(spell_difference(difference)) or "nothing")


_COLUMNS = (
    Column[Json]("VERSION", lambda one: str(one["version"]), right=True),
    Column[Json]("WHEN", lambda one: spell_time(one["when"]), whole=True),
    Column[Json]("WHO", lambda one: one["who"]),
    Column[Json]("CHANGE", _change),
)


def draw(view: Mapping[str, Any]) -> str:
    """Return a line for each version of *view*."""
    if not view["versions"]:
        return "The limits were never set."
    return "\n".join(lines_of_table(*cells_of(_COLUMNS, view["versions"])))
