"""Lengths of time in sentences: "an hour and a half", "2h30", "three to five days", "PT1H30M"."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from tasklore.contracts.quantities.numerals.numbers import number_at
from tasklore.contracts.quantities.numerals.whole import Numbers
from tasklore.contracts.quantities.sentence import Sentence
from tasklore.contracts.quantities.times import words
from tasklore.contracts.quantities.times.words import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    SHORT_UNITS,
    UNITS,
    YEAR,
    LengthUnit,
)
from tasklore.contracts.quantities.units import unit_named

_ISO = re.compile(r"(\d+(?:[.,]\d+)?)([YMWDHS])")
_DATE_UNITS = {"Y": YEAR, "M": words.MONTH, "W": words.WEEK, "D": DAY}
_CLOCK_UNITS = {"H": HOUR, "M": MINUTE, "S": SECOND}
#: Before "a day" they count how often, not how long.
_RATES = frozenset(
    {"times", "time", "once", "twice", "thrice", "per", "many", "much", "bit"}
)
#: After "a second" they make it an ordinal.
_AFTER_ORDINAL = frozenset({
    "time", "one", "chance", "opinion", "option", "look", "thought", "attempt", "try", "person", "home", "car", "job",
    "hand", "floor", "class", "round", "language", "half", "date",
})  # fmt: skip
#: They count one of the unit after them ("all day", "another hour"), or say that a counted one is whole.
_WHOLE = frozenset({"all", "full", "whole", "entire"})
_FILLING = _WHOLE | {"more", "further"}
#: Words of counts that are no numbers.
_NO_NUMBERS = frozenset({"a", "an", "half", "couple", "another"})
#: Characters of an ISO duration, and digits of a count, that are read.
_LONGEST_ISO = 120
_LONGEST_COUNT = 40
#: One point before three digits: decimals, or a group of thousands.
AMBIGUOUS = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_NONE = Fraction(0)


class Length(NamedTuple):
    """A length of time: calendar *months*, which have no fixed length, and *seconds*; both exact."""

    months: Fraction
    seconds: Fraction

    def __neg__(self) -> "Length":
        return Length(-self.months, -self.seconds)


class FoundDuration(NamedTuple):
    """One length of a sentence, `sentence[start:end]` being *text*; *is_whole* when it counts days or longer."""

    length: Length
    start: int
    end: int
    text: str
    is_whole: bool


class Stretch(NamedTuple):
    """A length that ends before token *end*; *unit* is the smallest one it names."""

    length: Length
    end: int
    unit: LengthUnit


class Count(NamedTuple):
    """A number of units that ends before token *end*; *in_digits* when it was written so."""

    value: Fraction
    end: int
    in_digits: bool = False


def find_durations(text: str) -> tuple[FoundDuration, ...]:
    """Return every length of time in *text*, in order and without overlaps; ages and rates are none.

    Linear in the length of *text*. "a few days" has no length and is left out.
    """
    sentence = Sentence(text)
    return tuple(
        FoundDuration(
            stretch.length,
            *sentence.cut(first, stretch.end),
            is_whole=stretch.unit.rank >= DAY.rank,
        )
        for first, stretch in _durations_in(sentence)
    )


def parse_duration(text: str) -> Length | None:
    """Return the length that *text* consists of, None when it is anything else; "5m" and "1:30:00" count here."""
    sentence = Sentence(text)
    end = len(sentence.tokens)
    if end == 1 and sentence.kind(0) == "clock":
        return _of_clock(sentence.tokens[0].text)
    first = int(sentence.word(0) in {"for", "the"})
    stretch = length_at(sentence, first, alone=True)
    while stretch and stretch.end < end and sentence.symbol(end - 1) in {".", "!", "?"}:
        end -= 1
    return stretch.length if stretch and stretch.end == end else None


def _of_clock(text: str) -> Length | None:
    hours, minutes, *seconds = text.split(":")
    if not seconds or int(minutes) > 59 or Fraction(seconds[0]) >= 60:
        return None
    return Length(_NONE, int(hours) * 3600 + int(minutes) * 60 + Fraction(seconds[0]))


def _durations_in(sentence: Sentence) -> Iterator[tuple[int, Stretch]]:
    place = 0
    while place < len(sentence.tokens):
        stretches = (
            lengths_at(sentence, place) if words.may_open(sentence, place) else ()
        )
        if stretches and not is_length(sentence, place, stretches[0][1]):
            place = max(stretches[0][1].end, place + 1)
            continue
        yield from stretches
        place = stretches[-1][1].end if stretches else place + 1


def lengths_at(sentence: Sentence, place: int) -> tuple[tuple[int, Stretch], ...]:
    """Return the length that starts at *place* with its place; both of "2 to 3 hours" and "an hour or two"."""
    stretch = length_at(sentence, place)
    if stretch is not None:
        is_or_two = (
            sentence.word(stretch.end) == "or"
            and sentence.word(stretch.end + 1) == "two"
        )
        if (
            not is_or_two
            or sentence.word(place) not in {"a", "an"}
            or sentence.word(stretch.end + 2) in UNITS
        ):
            return ((place, stretch),)
        two = _stretch(Count(Fraction(2), 0), stretch.unit, stretch.end + 2)
        return (place, stretch), (stretch.end + 1, two)
    count = None if sentence.word(place) in _NO_NUMBERS else count_at(sentence, place)
    joint = (
        after_joint(sentence, place, count.end)
        if count and not _is_part_of_name(sentence, place)
        else None
    )
    if count is None or joint is None or sentence.word(joint) in _NO_NUMBERS:
        return ()
    other = count_at(sentence, joint)
    second = length_at(sentence, joint)
    if other is None or second is None or other.value <= count.value:
        return ()
    is_lone = second.length == _stretch(other, second.unit, 0).length and is_length(
        sentence, joint, second
    )
    return (
        ((place, _stretch(count, second.unit, count.end)), (joint, second))
        if is_lone
        else ()
    )


def after_joint(sentence: Sentence, place: int, end: int) -> int | None:
    """Return the place after the "to", "or" or dash at *end*; an "and" joins only after "between"."""
    word = sentence.word(end)
    if word in {"to", "or"} or (
        word == "and" and sentence.word(place - 1) == "between"
    ):
        return end + 1
    is_dash = sentence.symbol(end) == "-" and sentence.kind(end + 1) == "number"
    return (
        end + 1
        if is_dash and sentence.is_glued(end) == sentence.is_glued(end + 1)
        else None
    )


def is_length(sentence: Sentence, place: int, stretch: Stretch) -> bool:
    """False for an age ("5 years old"), a rate ("$50 an hour") and an ordinal ("a second time")."""
    if sentence.word(sentence.after_hyphen(stretch.end)) == "old":
        return False
    if sentence.word(place) not in {"a", "an"} or stretch.end != place + 2:
        return True
    before = sentence.word(place - 1)
    is_rate = before in _RATES or sentence.kind(place - 1) == "number"
    is_rate = is_rate or (before != "" and unit_named(before) is not None)
    return not is_rate and not (
        sentence.word(place + 1) == "second"
        and sentence.word(stretch.end) in _AFTER_ORDINAL
    )


def length_at(sentence: Sentence, place: int, *, alone: bool = False) -> Stretch | None:
    """Return the length that starts at *place*, or None; *alone* means that nothing else is in the text."""
    kind = sentence.kind(place)
    if kind == "length":
        return _iso_length(sentence, place)
    if kind == "clock":
        return _by_clock(sentence, place)
    first = _part_at(sentence, place, alone=alone)
    while first is not None:
        following = _next_part(sentence, first, alone=alone)
        if following is None:
            return first
        length = Length(
            first.length.months + following.length.months,
            first.length.seconds + following.length.seconds,
        )
        first = Stretch(length, following.end, following.unit)
    return None


def _by_clock(sentence: Sentence, place: int) -> Stretch | None:
    """Read "1:30 hours" and "2:30 minutes"."""
    unit = UNITS.get(sentence.word(place + 1))
    parts = sentence.tokens[place].text.split(":")
    if (
        unit not in {HOUR, MINUTE}
        or unit is None
        or len(parts) != 2
        or int(parts[1]) > 59
    ):
        return None
    return _stretch(
        Count(int(parts[0]) + Fraction(int(parts[1]), 60), place), unit, place + 2
    )


def _iso_length(sentence: Sentence, place: int) -> Stretch | None:
    written = sentence.tokens[place].text
    if len(written) > _LONGEST_ISO:
        return None
    date, _, clock = written.partition("T")
    months = seconds = _NONE
    smallest = YEAR
    for part, units in ((date, _DATE_UNITS), (clock, _CLOCK_UNITS)):
        for number, letter in _ISO.findall(part):
            smallest = units[letter]
            count = Fraction(number.replace(",", "."))
            months = months + count * smallest.months
            seconds = seconds + count * smallest.seconds
    return Stretch(Length(months, seconds), place + 1, smallest)


def _part_at(
    sentence: Sentence, place: int, *, alone: bool = False, inside: bool = False
) -> Stretch | None:
    """Read one count with its unit, and the "and a half" after it; *inside* a longer length "m" is minutes."""
    if alone and sentence.word(place) in {"fortnight", "decade"}:
        return _stretch(
            Count(Fraction(1), place), UNITS[sentence.word(place)], place + 1
        )
    count = count_at(sentence, place)
    if (
        count is None
        or _is_part_of_name(sentence, place)
        or _is_clock_in_full(sentence, place)
    ):
        return None
    after = sentence.after_hyphen(count.end)
    after += sentence.word(after) in _FILLING and sentence.word(after + 1) in UNITS
    unit = UNITS.get(sentence.word(after))
    if unit is None and count.in_digits:
        unit = _short_unit(sentence, after, alone=alone, inside=inside)
    if unit is None:
        return None
    and_at = sentence.after_and(after + 1)
    part = Numbers(sentence).part_of_one(and_at) if and_at else None
    if part is None and and_at and sentence.word(and_at) == "quarter":
        return _stretch(
            Count(count.value + Fraction(1, 4), and_at + 1), unit, and_at + 1
        )
    if part is not None and sentence.word(part.end) not in {*UNITS, "a", "an", "of"}:
        return _stretch(Count(count.value + part.value, part.end), unit, part.end)
    return _stretch(count, unit, after + 1)


def count_at(sentence: Sentence, place: int) -> Count | None:
    """Return the count of units that starts at *place*, halves and articles included, or None."""
    kind = sentence.kind(place)
    word = sentence.word(place)
    if (
        kind not in {"number", "fraction", "word"}
        or len(sentence.tokens[place].text) > _LONGEST_COUNT
    ):
        return None
    after = sentence.after_hyphen(place + 1)
    if word in _WHOLE:
        is_one = sentence.word(after) in UNITS and not sentence.word(after).endswith(
            "s"
        )
        return Count(Fraction(1), after) if is_one else None
    if word == "another":
        return (
            count_at(sentence, after) if sentence.word(after) != "another" else None
        ) or Count(Fraction(1), after)
    if word == "couple":
        return Count(Fraction(2), place + 1 + (sentence.word(place + 1) == "of"))
    if word in {"a", "an"} and (
        sentence.word(after) in UNITS or sentence.word(after) in _FILLING
    ):
        return Count(Fraction(1), after)
    if word == "quarter":
        of = after + (sentence.word(after) == "of")
        is_part = sentence.word(of) in {"a", "an"} or sentence.word(after) == "hour"
        return (
            Count(Fraction(1, 4), of + (sentence.word(of) in {"a", "an"}))
            if is_part
            else None
        )
    numbers = Numbers(sentence)
    numbers.measured = place
    if kind == "number" and sentence.word(place + 1) in SHORT_UNITS:
        value = numbers.digits(place)
        return (
            None if value is None else Count(Fraction(value), place + 1, in_digits=True)
        )
    found = number_at(numbers, place)
    if found is None or len(found[0]) != 1 or found[0][0] < 0:
        return None
    value = Fraction(found[0][0])
    end = found[1]
    # "half an hour", "three quarters of an hour"
    of = sentence.after_hyphen(end)
    of += sentence.word(of) == "of"
    end = (
        sentence.after_hyphen(of + 1)
        if value < 1 and sentence.word(of) in {"a", "an", "one", "the"}
        else end
    )
    return Count(value, end, in_digits=kind != "word" and end == place + 1)


def _is_part_of_name(sentence: Sentence, place: int) -> bool:
    """True for the digits of "covid19h" and "#5"."""
    before = sentence.token(place - 1)
    if before is None or not sentence.is_glued(place):
        return False
    return before.text in {"#", "@", "_", ".", "/"} or (
        before.kind == "word" and before.text not in SHORT_UNITS
    )


def _is_clock_in_full(sentence: Sentence, place: int) -> bool:
    """True for "0900 hours" and "at 1530 hours"."""
    token = sentence.tokens[place]
    is_four = token.kind == "number" and len(token.text) == 4 and token.text.isdigit()
    is_hours = sentence.word(place + 1) in {"hours", "hrs"}
    return (
        is_four
        and is_hours
        and (token.text[0] == "0" or sentence.word(place - 1) == "at")
    )


def _short_unit(
    sentence: Sentence, place: int, *, alone: bool, inside: bool
) -> LengthUnit | None:
    word = sentence.word(place)
    unit = SHORT_UNITS.get(word)
    if unit is None or sentence.symbol(place - 1) == "-":
        return None
    if (
        word == "s"
        and sentence.word(place - 2) == "the"
        and sentence.tokens[place - 1].text.endswith("0")
    ):
        # a decade: "the 60s"
        return None
    if word == "m":
        has_seconds = sentence.kind(place + 1) == "number" and sentence.word(
            place + 2
        ) in {"s", "sec", "secs"}
        return (
            unit
            if alone or inside or (has_seconds and sentence.is_glued(place))
            else None
        )
    return (
        unit if sentence.is_glued(place) or alone or word in {"h", "s", "ms"} else None
    )


def _stretch(count: Count, unit: LengthUnit, end: int) -> Stretch:
    return Stretch(
        Length(count.value * unit.months, count.value * unit.seconds), end, unit
    )


def _next_part(sentence: Sentence, last: Stretch, *, alone: bool) -> Stretch | None:
    """Read what "2 hours" goes on with: "and 30 minutes", "30 min", ", 5 seconds", or the 30 of "1h30"."""
    place = last.end
    place += sentence.symbol(place) in {",", "-"} and sentence.kind(place + 1) in {
        "number",
        "word",
    }
    place += sentence.word(place) == "and"
    is_further = sentence.word(place) not in {"another", *_WHOLE}
    part = (
        _part_at(sentence, place, inside=True)
        if is_further and sentence.kind(place)
        else None
    )
    if (
        part is not None
        and part.unit.rank < last.unit.rank
        and (alone or _is_less(part, last.unit))
    ):
        return part
    minutes = sentence.whole(last.end)
    if (
        last.unit != HOUR
        or minutes is None
        or minutes > 59
        or len(sentence.tokens[last.end].text) != 2
    ):
        return None
    after = sentence.token(last.end + 1)
    is_last = after is None or (after.kind == "symbol" and after.text in ".,;!?)")
    is_glued = sentence.is_glued(last.end) and not (
        after and after.kind == "word" and after.is_glued
    )
    is_bare = is_glued or (is_last and sentence.word(last.end - 1) in {"hour", "hours"})
    return (
        Stretch(Length(_NONE, Fraction(60 * minutes)), last.end + 1, MINUTE)
        if is_bare
        else None
    )


def _is_less(part: Stretch, unit: LengthUnit) -> bool:
    """True for less than one *unit* ("2 hours 30 minutes", not "90 minutes"); a month has 31 days at most."""
    whole = unit.seconds or unit.months * 31 * DAY.seconds
    return (
        part.length.months < unit.months
        if part.length.months
        else part.length.seconds < whole
    )
