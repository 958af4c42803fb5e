"""Dead letters that were sent again or deleted, or would be: of which agent and error, and why others stay."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.render.tables import places_of, table_lines
from tasklore.commands.render.words import count_of, one_line

#: Letters that stay and are named one by one; the others are only counted.
_NAMED = 10
#: Characters of a cell, and of a reason.
_CELL = 64
_WHY = 2000
_COLUMNS = ("AGENT", "ERROR", "LETTERS", "EXAMPLE", "MESSAGE")


def draw(view: Mapping[str, Any]) -> str:
    """Return what was done, or of a dry run what would be."""
    return "\n".join(_lines(view))


def code_of(view: Mapping[str, Any]) -> int:
    """Return the exit code: a letter that stays is no success."""
    return FAILED if view.get("kept") else OK


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    is_trial = view["dry_run"]
    concerns = view["concerns"]
    kept = view.get("kept")
    done, would = ("Deleted", "delete") if kept is None else ("Sent", "send")
    tail = "" if kept is None else " again"
    if concerns:
        if is_trial:
            yield from _table(view["groups"])
        verb = f"Would {would}" if is_trial else done
        yield f"{verb} {count_of(concerns, 'dead letter')}{tail}."
    elif not kept:
        yield f"Nothing fits; nothing was {done.lower()}."
    if kept:
        yield from _kept(view, kept)


def _kept(view: Mapping[str, Any], kept: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in kept[:_NAMED]:
        yield one_line(one["why"], _WHY)
    if view["kept_in_all"] > 1:
        yield f"{count_of(view['kept_in_all'], 'dead letter')} stayed where they are"
    if view["stopped"] is not None:
        yield "stopped there: the rest was not tried"


def _table(groups: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each agent and error, the most first; several calls may have counted some of one."""
    counts: dict[tuple[str, str], int] = {}
    examples: dict[tuple[str, str], Mapping[str, Any]] = {}
    for group in groups:
        place = group["agent_id"] or "-", group["error_type"]
        counts[place] = counts.get(place, 0) + group["count"]
        examples[place] = group["example"]
    rows = [
        (
            one_line(place[0], _CELL),
            one_line(place[1], _CELL),
            f"{count:,}",
            str(examples[place]["sequence"]),
            one_line(examples[place]["error"]["message"], _CELL),
        )
        for place, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]
    widths = [max(map(places_of, cells)) for cells in zip(_COLUMNS, *rows, strict=True)]
    yield from table_lines(_COLUMNS, rows, widths, right=("LETTERS", "EXAMPLE"))
