"""Reading a standard's sentence as rules that a program can check.

| a sentence such as | demands |
|---|---|
| "no module over 400 lines", "modules have at most 400 lines" | lines of a module |
| "no function over 50 lines", "functions: at most 50 lines" | lines of a function, its docstring left out |
| "no import cycles", "at most 2 import cycles" | cycles at import time |
| "every public function has a docstring", "90% of public names have docstrings" | documented public names |
| "no TODOs", "at most 5 TODOs", "no debug prints" | marks and leftovers of debugging |

What is none of these is a standard for people; it is told as unread, never guessed at.
"""

import re
from collections.abc import Iterator

from examples.repository_health.shapes import Rule, RuleKind

#: Percent; more is no share of anything, and the sentence means something else.
_ALL = 100

_OVER = r"(?:is |has |are |have |be |may be |with )?(?:over|above|longer than|more than|exceeding|>)"
_AT_MOST = r"(?:at most|no more than|not more than|up to|a maximum of|max\.?|<=)"
_NUMBER = r"(?P<limit>\d{1,6})"
_LEFTOVER = r"(?:todos?|fixmes?|leftovers?|debug(?:ging)?(?: prints?| statements?)?|breakpoints?)"


def _lines_of(thing: str) -> tuple[str, ...]:
    return (
        rf"\bno {thing} {_OVER} {_NUMBER} lines",
        rf"\b{thing}s?:? (?:\w+ ){{0,3}}?{_AT_MOST} {_NUMBER} lines",
        rf"{_AT_MOST} {_NUMBER} lines (?:a|an|per|in a|in each|in every) {thing}\b",
    )


#: What a sentence may say, each way of it a pattern; a group `limit` is the number, without one it is the default.
_PATTERNS: tuple[tuple[RuleKind, int, tuple[str, ...]], ...] = (
    ("module_lines", 0, _lines_of("(?:module|file)")),
    ("function_lines", 0, _lines_of("(?:function|method)")),
    (
        "import_cycles",
        0,
        (
            rf"\b(?:no|{_AT_MOST} {_NUMBER}) (?:import cycles?|cyclic imports?|circular imports?|cycles? of imports)",
        ),
    ),
    (
        "docstring_percent",
        _ALL,
        (
            rf"\b{_NUMBER} ?(?:%|percent)[^.;]*\bdocstrings?\b",
            rf"\bdocstrings?\b[^.;]*\b{_NUMBER} ?(?:%|percent)",
            r"\b(?:every|each|all)\b[^.;]*\b(?:public|functions?|classes|modules?)\b[^.;]*\bdocstrings?\b",
        ),
    ),
    (
        "leftovers",
        0,
        (rf"\b(?:no|{_AT_MOST} {_NUMBER}) (?:left-?over )?{_LEFTOVER}\b",),
    ),
)
_COMPILED = tuple(
    (kind, default, tuple(re.compile(way, re.IGNORECASE) for way in ways))
    for kind, default, ways in _PATTERNS
)


def rules_in(standard: str, text: str) -> list[Rule]:
    """Return the rules that the sentences in *text* spell, none when a program can check none of them.

    *standard* is the id of the record that says so.
    """
    return list(_rules_in(standard, " ".join(text.split())))


def _rules_in(standard: str, text: str) -> Iterator[Rule]:
    for kind, default, ways in _COMPILED:
        found = next(filter(None, (way.search(text) for way in ways)), None)
        if found is None:
            continue
        limit = int(found.groupdict().get("limit") or default)
        if kind != "docstring_percent" or limit <= _ALL:
            yield Rule(kind=kind, limit=limit, standard=standard, text=text)
