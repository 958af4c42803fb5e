"""The lines of tables and keys in a TOML document, which `tomllib` does not tell."""

import re

from supervisor.pipelines.declaration.problems import Place

_SKIPPED = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|(?P<text>"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\')|#[^\n]*', re.DOTALL
)
_PART = r'(?:"(?:\\.|[^"\\])*"|\'[^\']*\'|[A-Za-z0-9_-]+)'
_KEY = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_STATEMENT = re.compile(rf"[ \t]*(?:\[(?P<list>\[?)[ \t]*(?P<table>{_KEY})[ \t]*\]|(?P<key>{_KEY})[ \t]*=)")


def lines_of(text: str) -> dict[Place, int]:
    """Return the line, from 1, of every table and key in the valid TOML document *text*, by its place.

    Tables of a list are counted: the third `[[phase]]` is `("phase", 2)`. Inline tables and lists are one place.
    """
    lines: dict[Place, int] = {}
    tables: dict[Place, int] = {}
    table: Place = ()
    depth = 0
    # Texts over several lines, and comments, leave their line feeds.
    text = _SKIPPED.sub(lambda found: found["text"] or "\n" * found[0].count("\n"), text)
    for number, line in enumerate(text.split("\n"), 1):
        found = _STATEMENT.match(line) if depth == 0 else None
        signs = _SKIPPED.sub("", line)
        depth += sum(map(signs.count, "[{")) - sum(map(signs.count, "]}"))
        if found is None:
            continue
        steps = [part.strip("\"'") for part in re.findall(_PART, found["table"] or found["key"])]
        place = table if found["key"] else ()
        for n, step in enumerate(steps, 1):
            place = (*place, step)
            if found["list"] and n == len(steps):
                tables[place] = tables.get(place, -1) + 1
            if place in tables:
                place = (*place, tables[place])
            lines.setdefault(place, number)
        if found["table"]:
            table = place
    return lines
