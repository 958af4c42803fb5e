"""Any view of the API as a person reads it: a table of its rows, else facts, facts within facts, or a tree.

The name of a value says its unit: `run_ms` is a span, `cost_usd` money, `size_bytes` a size. A time is shown by the
clocks of this machine, also one in ms since 1970. `is_new` reads "new", yes or no.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tasklore.commands.render.screen import (
    print_table,
    printable,
    styled,
)
from tasklore.commands.render.words import duration, money, one_line, size

Json = Mapping[str, Any]

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)")
#: Levels that are drawn; what lies deeper is shown as JSON.
_DEEPEST = 16
#: Characters of a cell, and of a value in a cell that holds several; `--json` has all.
_CELL = 160
_PART = 40
#: Characters of a list that is shown in one line.
_LINE = 60
#: Values of a list that a cell names.
_FEW = 3
_UNITS = ("_ms", "_seconds", "_s", "_usd", "_bytes")
#: How names of what is true or not begin.
_ASKS = ("is_", "has_")
#: From so many ms on, which are 31 years, a value is a time since 1970 and no span.
_FIRST_TIME_MS = 1e12


def print_view(view: Any, rows: str = "", columns: Sequence[str] = ()) -> None:
    """Write *view* to stdout: a table of the field *rows* with *columns*, and the facts beside it; else facts."""
    if not isinstance(view, Mapping):
        if view not in (None, ""):
            print(printable(view) if isinstance(view, str) else _as_json(view))
        return
    if rows and isinstance(view.get(rows), list):
        print_rows(view[rows], columns)
        beside = {
            name: value for name, value in view.items() if name not in (rows, "after")
        }
        if any(not _is_empty(value) for value in beside.values()):
            print()
            print_facts_of(beside)
        return
    if isinstance(view.get("children"), list):
        for line in draw_tree(view, columns):
            print(line)
        return
    print_facts_of(view, columns)


def print_rows(records: Sequence[Any], columns: Sequence[str]) -> None:
    """Write a line for each of *records*: a place in it such as `timing.cron` is a column; empty ones are left out."""
    shown = [one if isinstance(one, Mapping) else {"value": one} for one in records]
    if not columns:
        columns = list(dict.fromkeys(name for one in shown for name in one))
    cells = {
        name: [one_line(spell(name, find_value(one, name)), _CELL) for one in shown]
        for name in columns
    }
    kept = [name for name in columns if any(cells[name])] or list(columns)
    titles = _make_titles(kept)
    print_table(
        [titles[name] for name in kept],
        [[cells[name][place] for name in kept] for place in range(len(shown))],
        right=[titles[name] for name in kept if _is_number(shown, name)],
        whole=[titles[name] for name in kept if _is_id(name)],
    )


def print_facts_of(view: Json, names: Sequence[str] = (), depth: int = 0) -> None:
    """Write each field of *view* that says something behind its name, in the order of *names* first."""
    indent = "  " * depth
    order = [*(one for one in names if one in view)]
    order += [one for one in view if one not in order]
    order = [one for one in order if not _is_empty(view[one])]
    simple = [one for one in order if not _is_nested(view[one])]
    width = max((len(spell_title(one)) for one in simple), default=0) + 2
    for name in order:
        value = view[name]
        title = spell_title(name)
        if not _is_nested(value):
            label = f"{indent}{styled(title.ljust(width), 'dim')}"
            _print_fact(label, _spell_whole(name, value), len(indent) + width)
            continue
        print(f"{indent}{styled(title, 'dim')}")
        if depth >= _DEEPEST:
            print(f"{indent}  {one_line(_as_json(value), _CELL)}")
        elif isinstance(value, Mapping):
            print_facts_of(value, depth=depth + 1)
        else:
            _print_records(value, depth + 1)


def _print_records(records: Sequence[Any], depth: int) -> None:
    for number, one in enumerate(records):
        if isinstance(one, Mapping):
            if number:
                print()
            print_facts_of(one, depth=depth)
        else:
            print(f"{'  ' * depth}{one_line(_as_json(one), _CELL)}")


def _spell_whole(name: str, value: Any) -> str:
    """Return *value* in words, all of a list: in a line when it is short, else each in one of its own."""
    if not isinstance(value, list):
        return spell(name, value)
    words = [spell(name, one) for one in value]
    joined = ", ".join(words)
    return joined if len(joined) <= _LINE else "\n".join(words)


def _print_fact(title: str, text: str, indent: int) -> None:
    first, *others = printable(text).splitlines() or [""]
    print(f"{title}{first}")
    for line in others:
        print(f"{' ' * indent}{line}")


def draw_tree(view: Json, columns: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of the tree of *view* and its `children`; a node shows *columns*, else its short values."""
    yield _node(view, columns)
    yield from _branches(view, columns, "", 0)


def _branches(
    view: Json, columns: Sequence[str], stem: str, depth: int
) -> Iterator[str]:
    children = view.get("children")
    inner = [one for one in children if isinstance(one, Mapping)] if isinstance(children, list) else []  # fmt: skip
    if inner and depth >= _DEEPEST:
        yield f"{stem}└─ ({len(inner)} more, in --json)"
        return
    for number, child in enumerate(inner):
        is_last = number == len(inner) - 1
        yield f"{stem}{'└─ ' if is_last else '├─ '}{_node(child, columns)}"
        yield from _branches(
            child, columns, f"{stem}{'   ' if is_last else '│  '}", depth + 1
        )


def _node(view: Json, columns: Sequence[str]) -> str:
    names = columns or [
        name
        for name, value in view.items()
        if name != "children" and not _is_nested(value)
    ]
    cells = [one_line(spell(name, find_value(view, name)), _PART) for name in names]
    return "  ".join(cell for cell in cells if cell)


def find_value(record: object, name: str) -> object:
    """Return the value at the place *name*, with dots between its fields; None when it is not there.

    Behind a list that is one value of each of its records.
    """
    first, _, rest = name.partition(".")
    if not isinstance(record, Mapping):
        return None
    value = record.get(first)
    if not rest:
        return value
    if isinstance(value, list):
        found = (find_value(one, rest) for one in value)
        return [one for one in found if one is not None]
    return find_value(value, rest)


def spell_title(name: str) -> str:
    """Return the title of the place *name*: its last field in words, without its unit; the name of a thing is it."""
    last = name.removesuffix(".name").rpartition(".")[2]
    for begin in _ASKS:
        last = last.removeprefix(begin)
    for unit in _UNITS:
        if last.endswith(unit) and last != unit:
            last = last.removesuffix(unit)
            break
    return printable(" ".join(last.replace("_", " ").split()))


def _make_titles(names: Sequence[str]) -> dict[str, str]:
    """Return a title in capitals for each of *names*; two of one last field are named whole."""
    last = [spell_title(name).upper() for name in names]
    return {
        name: title if last.count(title) == 1 else name.upper()
        for name, title in zip(names, last, strict=True)
    }


def spell(name: str, value: Any) -> str:
    """Return *value* in words, by the unit that its *name* says."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _spell_number(name.rpartition(".")[2], value)
    if isinstance(value, str):
        return spell_time(value) if _TIME.fullmatch(value) else value
    if isinstance(value, Mapping):
        return ", ".join(
            f"{spell_title(inner)} {one_line(spell(inner, one), _PART)}"
            for inner, one in value.items()
            if not _is_empty(one)
        )
    words = [one_line(spell(name, one), _PART) for one in value[: _FEW + 1]]
    count = min(len(words), _FEW)
    # A list of times shows the first one alone.
    while count > 1 and len(", ".join(words[:count])) > _PART:
        count -= 1
    left = len(value) - count
    few = ", ".join(words[:count])
    return f"{few} and {left} more" if left > 0 else few


def _spell_number(name: str, value: float) -> str:
    # What a server calls a number may be none that can be reckoned with.
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if name.endswith("_ms"):
        return _spell_span(value) if value < _FIRST_TIME_MS else _spell_moment(value)
    if name.endswith(("_s", "_seconds")):
        return _spell_span(value * 1000)
    if name.endswith("_usd"):
        return money(value)
    if name.endswith("_bytes") or name == "bytes":
        return size(int(value))
    return str(value)


def _spell_moment(milliseconds: float) -> str:
    """Return a time in *milliseconds* since 1970; the number itself where no calendar has it."""
    try:
        return spell_time(datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat())
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)


def _spell_span(milliseconds: float) -> str:
    sign = "-" if milliseconds < 0 else ""
    return f"{sign}{duration(round(abs(milliseconds)))}"


def spell_time(text: str) -> str:
    """Return the time *text*, of RFC 3339, by the clocks of this machine; *text* itself when it is none."""
    try:
        moment = datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        return text
    return f"{moment:%Y-%m-%d %H:%M:%S %Z}".rstrip()


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _is_nested(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and any(
        isinstance(one, Mapping | list) for one in value
    )


def _is_number(records: Sequence[Json], name: str) -> bool:
    values = [find_value(one, name) for one in records]
    known = [one for one in values if one is not None]
    return bool(known) and all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in known
    )


def _is_id(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last == "id" or last.endswith("_id")


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
