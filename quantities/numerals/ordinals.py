"""Places in an order: "first", "the 21st", "two hundredth", "last", "next to last", "the previous one"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from quantities.numerals.whole import Numbers
from quantities.numerals.words import ARTICLES, OPENING_WORDS, ORDINALS, ROUND
from quantities.sentence import Sentence

RelativeTo = Literal["start", "current", "end"]


@dataclass(frozen=True, slots=True)
class Ordinal:
    """A place in an order: from the *start* counted from 1, from the *current* one and the *end* as an offset.

    "third" is 3 from the start, "next" +1 from the current one, "last" 0 and "next to last" -1 from the end.
    """

    place: int
    relative_to: RelativeTo
    start: int
    end: int
    text: str


#: Ways to count from the end and from where one stands, and digits with their ending.
_WRITTEN = re.compile(
    r"""
    (?<! \w ) (?: (?P<penultimate> penultimate | (?:next|second|2nd)[ -](?:to|from)[ -](?:the[ -])?last
        | one[ ]before[ ](?:the[ ])?last )
    | (?P<previous> previous ) | (?P<next> next ) | (?P<current> current ) | (?P<last> last ) ) (?: [ ]one )? (?! \w )
    | (?<! [\w.,/:-] ) (?P<digits> \d{1,15} ) (?: st | nd | rd | th ) (?! \w )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_RELATIVE: dict[str, tuple[int, RelativeTo]] = {
    "penultimate": (-1, "end"), "last": (0, "end"), "previous": (-1, "current"), "next": (1, "current"),
    "current": (0, "current"),
}  # fmt: skip
_BEFORE_SECOND = frozenset({"a", "per", "one", "each", "every"})


def find_ordinals(text: str) -> tuple[Ordinal, ...]:
    """Return the ordinals in *text*, in order; "a hundredth" and "three fifths" are fractions and no places."""
    sentence = Sentence(text)
    apart: list[Ordinal] = []
    for one in sorted((*_written(sentence), *_spelled(sentence)), key=lambda one: (one.start, -one.end)):
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
    return tuple(apart)


def _written(sentence: Sentence) -> Iterator[Ordinal]:
    for match in _WRITTEN.finditer(sentence.text):
        start, end = match.span()
        way: tuple[int, RelativeTo] = _RELATIVE.get(match.lastgroup or "") or (int(match["digits"]), "start")
        yield Ordinal(*way, start, end, sentence.written[start:end])


def _spelled(sentence: Sentence) -> Iterator[Ordinal]:
    numbers = Numbers(sentence)
    place = 0
    while place < len(sentence.tokens):
        value, end = _ordinal_at(numbers, place)
        is_part = value >= ROUND and sentence.word(place - 1) in {*ARTICLES, "one"}
        is_time = value == 2 and sentence.word(place - 1) in _BEFORE_SECOND
        if value and not is_part and not is_time:
            yield Ordinal(value, "start", *sentence.cut(place, end))
        place = end


def _ordinal_at(numbers: Numbers, place: int) -> tuple[int, int]:
    """Return the ordinal in words at *place* ("fifth", "twenty-first", "two hundredth"), 0 for none, and its end."""
    sentence = numbers.sentence
    word = sentence.word(place)
    if (value := ORDINALS.get(word)) is not None:
        return value, place + 1
    before = numbers.cardinal(place) if word in OPENING_WORDS else None
    if before is None:
        return 0, place + 1
    after = sentence.after_and(before.end) or sentence.after_hyphen(before.end)
    # "two thousand, fifth" is one place
    after += sentence.symbol(after) == "," and before.scale > 1
    last, value = ORDINALS.get(sentence.word(after)), int(before.value)
    if last is None or value < 1 or value != before.value:
        return 0, before.end
    if last >= ROUND:
        # "a hundredth" and "one thousandth" are parts
        counted = value % last
        place_in_order = value - counted + counted * last if counted else value * last
        return (0 if value == 1 else place_in_order), after + 1
    is_open = value % (10 if last < 10 else ROUND) == 0
    return (value + last, after + 1) if is_open else (0, before.end)
