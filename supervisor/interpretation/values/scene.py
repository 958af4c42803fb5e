"""A sentence made ready: its words, and its amounts in the places and lists where they were said."""

import re
from dataclasses import dataclass
from datetime import datetime

from contracts.numerals import DecimalMark, Found, find_amounts
from contracts.times import stretches
from supervisor.interpretation.values.corrections import Place, corrected
from supervisor.interpretation.words import Token, tokens_of

#: What stands between the members of a list, which may name the month or the day of each.
_LABEL = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|q[1-4])"
)
_SEPARATOR = re.compile(
    rf"(?:\s*(?:\({_LABEL}\)|(?:in|for)\s+{_LABEL}))?\s*(?:[,;/&+]\s*(?:and\s+|then\s+)?|and\s+|then\s+|)"
    rf"(?:{_LABEL}:?\s+)?",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"[a-z]|/|[^\x00-\x7f]", re.IGNORECASE)
_OF_WHAT = re.compile(r"\s+(?:of\b(?!\s+an?\b)|(?:my|the|our|that|this|its?|what)\b)", re.IGNORECASE)
_OF = re.compile(r"\s+of\s+(?:(?:my|the|our|a|an|that|this|total|whole)\s+){0,2}", re.IGNORECASE)
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|circa|ca\.?|nearly|almost|some|maybe|perhaps|probably"
    r"|possibly|(?:up to|at most|at least|(?:more|less|fewer) than|over|under|below|above|say)"
    r"(?: about)?)\s+|[~\u2248\u00b1<>])\s*$",
    re.IGNORECASE,
)
#: Characters that the longest of them takes.
_ABOUT_REACH = 24
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
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

    *run* numbers the list it is a member of, *bracket* the square brackets around it, None without any. *base* is the
    amount that it is a part of ("20 % of 5000"), *instead_of* the one that it corrects. It is not exact when it was
    said to be about so much.
    """

    found: Found
    start: int
    end: int
    run: int
    bracket: int | None
    base: Found | None = None
    instead_of: Found | None = None
    is_exact: bool = True


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
    decimal_mark: DecimalMark | None = None
    now: datetime | None = None

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


def scene_of(text: str, *, decimal_mark: DecimalMark | None = None, now: datetime | None = None) -> Scene:
    """Return *text* with its words, amounts, quotations and dates found; some 200 microseconds a sentence.

    *decimal_mark* is what the writer has before decimals, where that is known; without it "1.500" has two readings.
    *now* is when it was said: what "tomorrow" is a day after.
    """
    quoted = tuple(
        Quoted(match.group(match.lastindex or 0), match.start(match.lastindex or 0), match.end(match.lastindex or 0))
        for match in _QUOTED.finditer(text)
        if any(letter.isalpha() for letter in match.group())
    )
    dates = tuple(Quoted(match.group(), match.start(), match.end()) for match in _DATE.finditer(text))
    struck = [match.span() for match in _STRUCK.finditer(text)]
    hidden = _marked(text, [*((one.start, one.end) for one in (*quoted, *dates)), *stretches(text), *struck])
    amounts = [
        found
        for found in find_amounts(text, decimal_mark=decimal_mark)
        if hidden[found.start] < 0 and hidden[found.end - 1] < 0
    ]
    brackets = [(match.start(), match.end()) for match in _BRACKETED.finditer(text)]
    places, is_corrected = corrected(amounts, text)
    return Scene(
        text=text,
        tokens=tokens_of(text),
        items=tuple(_items(places, brackets, text)),
        quoted=quoted,
        dates=dates,
        empty_brackets=tuple(start for start, end in brackets if not text[start + 1 : end - 1].strip()),
        is_corrected=is_corrected or bool(struck),
        decimal_mark=decimal_mark,
        now=now,
    )


def _marked(text: str, stretches: list[tuple[int, int]]) -> list[int]:
    """Return for each character of *text* the number of the stretch it lies in, or -1."""
    marks = [-1] * len(text)
    for number, (start, end) in enumerate(stretches):
        marks[start:end] = [number] * (end - start)
    return marks


def _items(places: list[Place], brackets: list[tuple[int, int]], text: str) -> list[Item]:
    items: list[Item] = []
    marks = _marked(text, brackets)
    for number, (found, start, end, instead_of) in enumerate(places):
        base = None
        if is_part := _is_part(found, text):
            following = places[number + 1].found if number + 1 < len(places) else None
            base = following if following and _OF.fullmatch(text, found.end, following.start) else None
        if is_part and base is None and found.unit != "%":
            continue
        bracket = marks[found.start] if marks[found.start] >= 0 else None
        run = 0
        if items:
            last = items[-1]
            joined = bracket == last.bracket and _SEPARATOR.fullmatch(text, last.end, start)
            run = last.run if joined else last.run + 1
        is_exact = _ABOUT.search(text, max(start - _ABOUT_REACH, 0), start) is None
        items.append(Item(found, start, end, run, bracket, base, instead_of, is_exact))
    return items


def _is_part(found: Found, text: str) -> bool:
    """True for the half of "half of my limit" and for a percentage of something: no amount of its own."""
    if found.value is None or (found.value == found.value.to_integral_value() and found.unit != "%"):
        return False
    is_worded = found.unit == "%" or (found.unit is None and _FRACTION.search(found.text) is not None)
    return is_worded and _OF_WHAT.match(text, found.end) is not None


def runs_of(items: tuple[Item, ...]) -> dict[int, list[Item]]:
    """Return the members of each list in *items*; a lone amount is a list of one."""
    runs: dict[int, list[Item]] = {}
    for item in items:
        runs.setdefault(item.run, []).append(item)
    return runs
