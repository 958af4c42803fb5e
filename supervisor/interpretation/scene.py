"""A sentence made ready: its words, and its amounts in the places and lists where they were said."""

import re
from dataclasses import dataclass

from contracts.numerals import Found, find_amounts
from supervisor.interpretation.words import Token, tokens_of

#: What stands between the members of a list.
_SEPARATOR = re.compile(r"\s*(?:[,;/&+]\s*(?:and\s+|then\s+)?|and\s+|then\s+|)", re.IGNORECASE)
#: "limit is 50k, sorry, 60k": the second amount takes the place of the first.
_CORRECTION = re.compile(
    r"[\s,.;:()\u2013\u2014-]*(?:oh|no|wait|ehm?|um|sorry|i mean|i meant|i should say|or rather|rather|make (?:that|it)"
    r"|correction|scratch that|actually|it's|that's|was wrong|should be)"
    r"(?:[\s,.;:\u2013\u2014-]+(?:no|wait|sorry|i mean|i meant|or rather|rather|make (?:that|it)|actually|it's|that's"
    r"|it is|that is|it should be|should be))*[\s,.;:\u2013\u2014-]*",
    re.IGNORECASE,
)
_BUT = re.compile(r"\s*,?\s*(?:but|rather|instead)\s+(?:rather\s+)?", re.IGNORECASE)
_NOT_BEFORE = re.compile(r"\b(?:not|isn't|wasn't|never|instead of|rather than)\s+$", re.IGNORECASE)
#: Characters that the longest of them and its spaces take.
_NOT_REACH = 24
_QUOTED = re.compile(r"\"([^\"\n]+)\"|\u201c([^\u201d\n]+)\u201d|(?<!\w)'([^'\n]+)'(?!\w)")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\d-])")
_BRACKETED = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class Quoted:
    """Text in quotation marks; *start* and *end* are inside the marks."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Item:
    """An amount, and the stretch of the sentence it stands for (wider than its text after a correction).

    *run* numbers the list it is a member of, *bracket* the square brackets around it, None without any.
    """

    found: Found
    start: int
    end: int
    run: int
    bracket: int | None


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that is read off a sentence before any task is looked at."""

    text: str
    tokens: tuple[Token, ...]
    items: tuple[Item, ...]
    quoted: tuple[Quoted, ...]
    dates: tuple[Quoted, ...]
    empty_brackets: tuple[int, ...]
    is_corrected: bool

    def index_at(self, position: int) -> int:
        """Return the index of the first token that ends after *position*."""
        low, high = 0, len(self.tokens)
        while low < high:
            middle = (low + high) // 2
            if self.tokens[middle].end <= position:
                low = middle + 1
            else:
                high = middle
        return low


def scene_of(text: str) -> Scene:
    """Return *text* with its words, amounts, quotations and dates found; at most some 100 microseconds a sentence."""
    quoted = tuple(
        Quoted(match.group(match.lastindex or 0), match.start(match.lastindex or 0), match.end(match.lastindex or 0))
        for match in _QUOTED.finditer(text)
        if any(letter.isalpha() for letter in match.group())
    )
    dates = tuple(Quoted(match.group(), match.start(), match.end()) for match in _DATE.finditer(text))
    hidden = _marked(text, [(one.start, one.end) for one in (*quoted, *dates)])
    amounts = [found for found in find_amounts(text) if hidden[found.start] < 0 or hidden[found.end - 1] < 0]
    brackets = [(match.start(), match.end()) for match in _BRACKETED.finditer(text)]
    places, is_corrected = _corrected(amounts, text)
    return Scene(
        text=text,
        tokens=tokens_of(text),
        items=tuple(_items(places, brackets, text)),
        quoted=quoted,
        dates=dates,
        empty_brackets=tuple(start for start, end in brackets if not text[start + 1 : end - 1].strip()),
        is_corrected=is_corrected,
    )


def _corrected(amounts: list[Found], text: str) -> tuple[list[tuple[Found, int, int]], bool]:
    """Return the amounts that stand, each with the stretch it speaks for, and whether any was taken back."""
    kept: list[tuple[Found, int, int]] = []
    is_corrected = False
    denied: int | None = None
    for place, found in enumerate(amounts):
        reach = max(found.start - _NOT_REACH, 0)
        gap = text[amounts[place - 1].end : found.start] if place else ""
        if match := _NOT_BEFORE.search(text, reach, found.start):
            denied, is_corrected = match.start(), True
            continue
        start = found.start
        if denied is not None and _BUT.fullmatch(gap):
            start = denied
        elif kept and kept[-1][0] is amounts[place - 1] and _CORRECTION.fullmatch(gap):
            start, is_corrected = kept.pop()[1], True
        denied = None
        kept.append((found, start, found.end))
    return kept, is_corrected


def _marked(text: str, stretches: list[tuple[int, int]]) -> list[int]:
    """Return for each character of *text* the number of the stretch it lies in, or -1."""
    marks = [-1] * len(text)
    for number, (start, end) in enumerate(stretches):
        marks[start:end] = [number] * (end - start)
    return marks


def _items(places: list[tuple[Found, int, int]], brackets: list[tuple[int, int]], text: str) -> list[Item]:
    items: list[Item] = []
    marks = _marked(text, brackets)
    for found, start, end in places:
        bracket = marks[found.start] if marks[found.start] >= 0 else None
        run = 0
        if items:
            last = items[-1]
            joined = bracket == last.bracket and _SEPARATOR.fullmatch(text, last.end, start)
            run = last.run if joined else last.run + 1
        items.append(Item(found, start, end, run, bracket))
    return items


def runs_of(items: tuple[Item, ...]) -> dict[int, list[Item]]:
    """Return the members of each list in *items*; a lone amount is a list of one."""
    runs: dict[int, list[Item]] = {}
    for item in items:
        runs.setdefault(item.run, []).append(item)
    return runs
