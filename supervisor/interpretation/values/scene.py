"""A sentence made ready: its words, and its amounts in the places and lists where they were said."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Generic, TypeVar

from quantities.numerals import DecimalMark, Found, find_amounts
from quantities.times import FoundMoment, find_moments, stretches
from quantities.times.calendar import Lean
from quantities.times.impossible import Impossible, impossible_times
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
#: Between a part and its whole: "20 % of my 5000", "of my limit of 50k", "of the limit (50k)".
_OF = re.compile(
    r"\s+of\s+(?:(?:my|the|our|a|an|that|this|total|whole)\s+){0,2}"
    r"(?:[a-z]+(?:\s+[a-z]+)?(?:\s+(?:of|which is|that is|being)\s+(?:the\s+|a\s+)?|\s*[(:=]\s*))?",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|circa|ca\.?|nearly|almost|some|maybe|perhaps|probably"
    r"|possibly|(?:up to|at most|at least|(?:more|less|fewer) than|over|under|below|above|say)"
    r"(?: about)?)\s+|[~\u2248\u00b1<>])\s*$",
    re.IGNORECASE,
)
#: Characters that the longest of them takes.
_ABOUT_REACH = 24
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
#: What is only named as an example is no value: "the limit (e.g. 50k)".
_EXAMPLE = re.compile(
    r"\((?:e\.?\s?g\b\.?|for (?:example|instance)|such as|like)[^()\n]{1,120}\)"
    r"|\b(?:e\.\s?g\.|such as)[\s,:]*[^\s,;()]{1,40}",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|\u201c([^\u201d\n]+)\u201d|(?<!\w)'([^'\n]+)'(?!\w)")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\d-])")
_BRACKETED = re.compile(r"\[([^\[\]]*)\]")
#: Words in small letters, without which capitals show nothing.
_FEWEST_SMALL = 2
_Part = TypeVar("_Part")


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


class _Once(Generic[_Part]):
    """A part of a scene that is read when it is first asked for, and kept in the scene.

    `functools.cached_property` holds one lock for all scenes while it reads, and a long text is read in a thread.
    """

    def __init__(self, read: Callable[[Any], _Part]) -> None:
        self.read = read
        self.__doc__ = read.__doc__

    def __get__(self, scene: object, _: type) -> _Part:
        part = vars(scene)[self.read.__name__] = self.read(scene)
        return part


@dataclass(frozen=True)
class Scene:
    """Everything that is read off a sentence before any task is looked at; each part when it is first asked for.

    Of the clauses of a sentence most are only weighed by their words, and amounts cost ten times as much.
    """

    text: str
    decimal_mark: DecimalMark | None = None
    now: datetime | None = None

    @_Once
    def tokens(self) -> tuple[Token, ...]:
        """The words and marks."""
        return tokens_of(self.text)

    @_Once
    def shows_names(self) -> bool:
        """Whether enough words are in small letters for capitals to mean a name."""
        small = (token for token in self.tokens if self.text[token.start].islower())
        return len(list(islice(small, _FEWEST_SMALL))) == _FEWEST_SMALL

    @_Once
    def quoted(self) -> tuple[Quoted, ...]:
        """What stands between quotation marks and has a letter."""
        return tuple(
            Quoted(match.group(match.lastindex or 0), *match.span(match.lastindex or 0))
            for match in _QUOTED.finditer(self.text)
            if any(letter.isalpha() for letter in match.group())
        )

    @_Once
    def dates(self) -> tuple[Quoted, ...]:
        """Days and moments as ISO 8601 writes them."""
        return tuple(Quoted(match.group(), *match.span()) for match in _DATE.finditer(self.text))

    @_Once
    def times(self) -> tuple[tuple[int, int], ...]:
        """Where days, times and lengths of time stand."""
        return stretches(self.text)

    @_Once
    def impossible(self) -> tuple[Impossible, ...]:
        """Days that no calendar has and times that no clock shows, outside quotation marks."""
        found = impossible_times(self.text)
        return tuple(one for one in found if not any(q.start <= one.start < q.end for q in self.quoted))

    def moments(self, now: datetime, lean: Lean) -> tuple[FoundMoment, ...]:
        """Return the days and times, as reckoned from *now*; read once for all fields that take one."""
        known = self._moments
        if (now, lean) not in known:
            known[now, lean] = find_moments(self.text, now, lean=lean)
        return known[now, lean]

    @_Once
    def _moments(self) -> dict[tuple[datetime, Lean], tuple[FoundMoment, ...]]:
        return {}

    @_Once
    def items(self) -> tuple[Item, ...]:
        """The amounts in order, those that were taken back left out."""
        return tuple(_items(self._corrected[0], self._brackets, self.text))

    @_Once
    def is_corrected(self) -> bool:
        """Whether something was taken back."""
        return self._corrected[1] or bool(self._struck)

    @property
    def empty_brackets(self) -> tuple[int, ...]:
        """Where a pair of square brackets with nothing inside opens."""
        return tuple(start for start, end in self._brackets if not self.text[start + 1 : end - 1].strip())

    @_Once
    def _brackets(self) -> list[tuple[int, int]]:
        return [match.span() for match in _BRACKETED.finditer(self.text)] if "[" in self.text else []

    @_Once
    def _struck(self) -> list[tuple[int, int]]:
        return [match.span() for match in _STRUCK.finditer(self.text)] if "~~" in self.text else []

    @_Once
    def _corrected(self) -> tuple[list[Place], bool]:
        found = find_amounts(self.text, decimal_mark=self.decimal_mark)
        if found:
            shut = [(one.start, one.end) for one in (*self.quoted, *self.dates)]
            examples = [match.span() for match in _EXAMPLE.finditer(self.text)]
            hidden = _marked(self.text, [*shut, *self.times, *self._struck, *examples])
            found = tuple(one for one in found if hidden[one.start] < 0 and hidden[one.end - 1] < 0)
        return corrected(found, self.text)

    def with_items(self, items: tuple[Item, ...]) -> "Scene":
        """Return it with these amounts in the place of its own; whatever else was read of it is kept."""
        other = copy(self)
        vars(other)["items"] = items
        return other

    def part(self, start: int, end: int) -> "Scene":
        """Return the scene of these characters alone; the words and times of the whole are looked for once."""
        part = Scene(self.text[start:end], self.decimal_mark, self.now)
        first, last = self.index_at(start), self.index_at(end - 1) + 1
        inside = self.tokens[first:last]
        if inside and inside[0].start == start and inside[-1].end == end:
            vars(part)["tokens"] = tuple(
                token._replace(start=token.start - start, end=token.end - start) for token in inside
            )
        known = vars(self).get("times")
        if known is not None and not any(one < edge < other for one, other in known for edge in (start, end)):
            vars(part)["times"] = tuple(
                (one - start, other - start) for one, other in known if start <= one and other <= end
            )
        return part

    def only(self, places: Iterable[tuple[int, int]]) -> "Scene":
        """Return the scene of what lies in *places*, from the first to the last, each where it stands."""
        text = ""
        for start, end in places:
            text += " " * (start - len(text)) + self.text[start:end]
        return Scene(text, self.decimal_mark, self.now)

    def without(self, places: Iterable[tuple[int, int]]) -> "Scene":
        """Return the scene with blanks in *places*, so that all the rest stands where it did."""
        text = self.text
        for start, end in places:
            text = text[:start] + " " * (end - start) + text[end:]
        return Scene(text, self.decimal_mark, self.now)

    def index_at(self, position: int) -> int:
        """Return the index of the first token that ends after *position*."""
        return bisect_right(self._token_ends, position)

    @_Once
    def _token_ends(self) -> list[int]:
        return [token.end for token in self.tokens]


def scene_of(text: str, *, decimal_mark: DecimalMark | None = None, now: datetime | None = None) -> Scene:
    """Return *text*, to be read when it is looked at: some 200 microseconds a sentence, most of them for its amounts.

    *decimal_mark* is what the writer has before decimals, where that is known; without it "1.500" has two readings.
    *now* is when it was said: what "tomorrow" is a day after.
    """
    return Scene(text, decimal_mark, now)


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
