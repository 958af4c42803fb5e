"""The matches of a search in a memory, with the day and the speaker of each."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.render.memory_lines import fold_line
from tasklore.commands.render.screen import styled


def draw(view: Mapping[str, Any]) -> str:
    """Return a line for each match; one that says so when there is none."""
    if not view["memories"]:
        return "Nothing was said about that."
    return "\n".join(_lines(view))


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    if view["is_nothing_said"]:
        yield "Nothing answers that; this comes nearest."
    for one in view["memories"]:
        until = "" if one["until"] is None else f", until {one['until']}"
        about = "" if one["subject"] is None else f", about {fold_line(one['subject'])}"
        place = one["reference"].partition(":")[2].rpartition(".")[0]
        who = f"stored in {place}" if one["source"] == "item" else one["speaker"]
        day = styled(one["at"] or "-", "dim")
        yield f"{day} {fold_line(who)}{until}{about}: {fold_line(one['text'])}"
    if not view["is_complete"]:
        yield "Turns could not be looked up; only items were searched."
