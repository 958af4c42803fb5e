"""Places in an order: "first", "the 21st", "two hundredth", "last", "next to last", "the previous one"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from quantities.numerals.numbers import number_at
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


_MISSPELLED = {"nineth": "ninth", "twelth": "twelfth", "fourtieth": "fortieth", "eigth": "eighth", "fith": "fifth"}
#: Ways to count from the end and from where one stands.
_WAYS: dict[str, tuple[str, int, RelativeTo]] = {
    "third_last": (r"antepenultimate|third[ -](?:to|from)[ -](?:the[ -])?last", -2, "end"),
    "second_last": (
        r"penultimate|(?:next|second|2nd)[ -](?:to|from)[ -](?:the[ -])?last|(?:the )?one before (?:the )?last",
        -1, "end",
    ),
    "previous": (r"previous(?: one)?|preceding(?: one)?", -1, "current"),
    "next": (r"next(?: one)?|following one", 1, "current"),
    "current": (r"current(?: one)?", 0, "current"),
    "last": (r"last(?: one)?", 0, "end"),
}  # fmt: skip
_RELATIVE = re.compile(
    rf"(?<!\w)(?:{'|'.join(f'(?P<{name}>{pattern})' for name, (pattern, *_) in _WAYS.items())})(?!\w)", re.IGNORECASE
)
_DIGITS = re.compile(r"(?<![\w.,/:-])(\d{1,15})(?:st|nd|rd|th)(?!\w)", re.IGNORECASE)
_BEFORE_SECOND = frozenset({"a", "per", "one", "each", "every"})


def find_ordinals(text: str) -> tuple[Ordinal, ...]:
    """Return the ordinals in *text*, in order; "a hundredth" and "three fifths" are fractions and no places."""
    sentence = Sentence(text)
    found = sorted((*_written(sentence), *_spelled(sentence)), key=lambda one: (one.start, -one.end))
    apart: list[Ordinal] = []
    for one in found:
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
    return tuple(apart)


def _written(sentence: Sentence) -> Iterator[Ordinal]:
    for match in _RELATIVE.finditer(sentence.text):
        _, place, relative_to = _WAYS[match.lastgroup or ""]
        yield Ordinal(place, relative_to, *match.span(), sentence.written[match.start() : match.end()])
    for match in _DIGITS.finditer(sentence.text):
        yield Ordinal(int(match[1]), "start", *match.span(), sentence.written[match.start() : match.end()])


def _spelled(sentence: Sentence) -> Iterator[Ordinal]:
    numbers = Numbers(sentence)
    place = 0
    while place < len(sentence.tokens):
        found = ordinal_at(numbers, place)
        if found is None:
            # a number that no ordinal ends is read once: "two hundred and five"
            read = number_at(numbers, place) if sentence.word(place) in OPENING_WORDS else None
            place = max(read[1], place + 1) if read else place + 1
            continue
        value, end = found
        is_part = value >= ROUND and sentence.word(place - 1) in {*ARTICLES, "one"}
        is_time = value == 2 and sentence.word(place - 1) in _BEFORE_SECOND
        if not is_part and not is_time:
            yield Ordinal(value, "start", *sentence.cut(place, end))
        place = end


def ordinal_at(numbers: Numbers, place: int) -> tuple[int, int] | None:
    """Return the ordinal in words at *place* ("fifth", "twenty-first", "two hundredth") and the place after it."""
    sentence = numbers.sentence
    word = sentence.word(place)
    if (value := ORDINALS.get(_MISSPELLED.get(word, word))) is not None:
        return value, place + 1
    before = numbers.cardinal(place) if word in OPENING_WORDS else None
    if before is None or before.value != int(before.value):
        return None
    after = sentence.after_and(before.end) or sentence.after_hyphen(before.end)
    # "two thousand, fifth" is one place
    after += sentence.symbol(after) == "," and before.scale > 1
    name = sentence.word(after)
    last, value = ORDINALS.get(_MISSPELLED.get(name, name)), int(before.value)
    if last is None or value < 1:
        return None
    if last >= ROUND:
        if word in ARTICLES or value == 1:
            return (value * last, after + 1) if word in ARTICLES and before.scale == 1 and value > 1 else None
        counted = value % last
        return (value - counted + counted * last if counted else value * last), after + 1
    is_open = value % (10 if last < 10 else ROUND) == 0
    return (value + last, after + 1) if is_open and not (last == 2 and after == before.end) else None
