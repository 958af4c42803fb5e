"""Lengths of time in English sentences: what each is worth in months and seconds, and where it stands."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from quantities.times.clocks import in_full
from quantities.times.languages import may_open
from quantities.times.numbers import Count, count_at, part_after_and
from quantities.times.tokens import Sentence, sentence_of
from quantities.times.words import DAY, HOUR, MINUTE, MONTH, SECOND, SHORT_UNITS, UNITS, WEEK, YEAR, LengthUnit
from quantities.units import unit_named

_ISO = re.compile(r"(\d+(?:[.,]\d+)?)([YMWDHS])")
_DATE_UNITS = {"Y": YEAR, "M": MONTH, "W": WEEK, "D": DAY}
_CLOCK_UNITS = {"H": HOUR, "M": MINUTE, "S": SECOND}
#: Before "a day" they count how often, not how long.
_RATES = frozenset({"times", "time", "once", "twice", "thrice", "per", "many", "much", "bit", "times/"})
#: After "a second" they make it an ordinal.
_AFTER_ORDINAL = frozenset({
    "time", "one", "chance", "opinion", "option", "look", "thought", "attempt", "try", "person", "home", "car", "job",
    "hand", "floor", "class", "round", "language", "half", "helping", "date", "or", "and",
}) - {"or", "and"}  # fmt: skip
#: Names of seconds that show the "m" before them to be minutes.
_SECONDS = frozenset({"s", "sec", "secs", "second", "seconds"})
#: They open a length of their own ("2 hours, another minute").
_NOT_FURTHER = frozenset({"another", "full", "whole", "entire", "all"})
#: What can stand between two lengths, and tokens within which it does: "one hundred and twenty-five to" is none.
_JOINTS = frozenset({"to", "or", "and", "-"})
_LONGEST_COUNT = 6
#: Words of counts that are no numbers.
_NO_NUMBERS = frozenset({"a", "an", "half", "couple", "quarter", "another"})
#: After them two digits at the end are minutes ("2 hours 15").
_HOURS = frozenset({"hour", "hours"})
#: Digits of the parts of an ISO duration that are read.
_LONGEST_ISO = 120


class Length(NamedTuple):
    """A length of time: calendar *months*, which have no fixed length, and *seconds*; both exact."""

    months: Fraction
    seconds: Fraction


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


def find_durations(text: str) -> tuple[FoundDuration, ...]:
    """Return every length of time in *text*, in order and without overlaps; ages and rates are none.

    Linear in the length of *text*. "a few days" has no length and is left out.
    """
    sentence = sentence_of(text)
    return tuple(
        FoundDuration(stretch.length, *sentence.cut(first, stretch.end), is_whole=stretch.unit.rank >= DAY.rank)
        for first, stretch in durations_in(sentence)
    )


def parse_duration(text: str) -> Length | None:
    """Return the length that *text* consists of, None when it is anything else; "5m" and "1:30:00" count here."""
    sentence = sentence_of(text)
    end = len(sentence.tokens)
    if end == 1 and sentence.kind(0) == "clock":
        return _of_clock(sentence.tokens[0].text)
    first = next((place for place in range(min(end, 2)) if sentence.word(place) not in {"for", "the"}), 0)
    stretch = length_at(sentence, first, alone=True)
    while stretch and stretch.end < end and sentence.symbol(end - 1) in {".", "!", "?"}:
        end -= 1
    return stretch.length if stretch and stretch.end == end else None


def _of_clock(text: str) -> Length | None:
    hours, minutes, *seconds = text.split(":")
    if not seconds or int(minutes) > 59 or Fraction(seconds[0]) >= 60:
        return None
    return Length(Fraction(0), int(hours) * 3600 + int(minutes) * 60 + Fraction(seconds[0]))


def durations_in(sentence: Sentence) -> Iterator[tuple[int, Stretch]]:
    """Yield the first token of every length in *sentence*, and the length."""
    place = 0
    while place < len(sentence.tokens):
        if not may_open(sentence, place):
            place += 1
            continue
        stretch = length_at(sentence, place)
        if two := two_lengths_at(sentence, place):
            yield place, two.first
            yield two.after_joint, two.second
            place = two.second.end
            continue
        if stretch is None or not is_length(sentence, place, stretch):
            place = place + 1 if stretch is None else max(stretch.end, place + 1)
            continue
        yield place, stretch
        place = stretch.end


class TwoLengths(NamedTuple):
    """Two lengths of which the unit is said once; *second* starts at token *after_joint*."""

    first: Stretch
    after_joint: int
    second: Stretch


def two_lengths_at(sentence: Sentence, place: int) -> TwoLengths | None:
    """Return the lengths of "2 to 3 hours", "2 or 3 hours" and "an hour or two" that *place* opens."""
    if not any(token.text in _JOINTS for token in sentence.tokens[place + 1 : place + _LONGEST_COUNT]):
        return None
    if sentence.word(place) in _NO_NUMBERS:
        return _or_two(sentence, place)
    count = None if _is_part_of_name(sentence, place) else count_at(sentence, place)
    joint = _after_joint(sentence, place, count.end) if count else None
    if count is None or joint is None:
        return None
    other, second = _plain_count(sentence, joint), length_at(sentence, joint)
    if other is None or second is None or other.value <= count.value or not is_length(sentence, joint, second):
        return None
    is_lone = second.length == _stretch(other, second.unit, 0).length
    return TwoLengths(_stretch(count, second.unit, count.end), joint, second) if is_lone else None


def _or_two(sentence: Sentence, place: int) -> TwoLengths | None:
    """Read "an hour or two"."""
    end = place + 2
    is_joined = (sentence.word(end), sentence.word(end + 1)) == ("or", "two") and sentence.word(end + 2) not in UNITS
    unit = UNITS.get(sentence.word(place + 1))
    if unit is None or not is_joined or sentence.word(place) not in {"a", "an"}:
        return None
    one, two = (_stretch(Count(Fraction(number), 0), unit, end + 2 * number - 2) for number in (1, 2))
    return TwoLengths(one, end + 1, two)


def _plain_count(sentence: Sentence, place: int) -> Count | None:
    """Return the count at *place* that is a number and no article."""
    return None if sentence.word(place) in _NO_NUMBERS else count_at(sentence, place)


def _after_joint(sentence: Sentence, place: int, end: int) -> int | None:
    """Return the place after the "to", "or" or dash at *end*; an "and" joins only after "between"."""
    word = sentence.word(end)
    if word in {"to", "or"} or (word == "and" and sentence.word(place - 1) == "between"):
        return end + 1
    is_dash = sentence.symbol(end) == "-" and sentence.kind(place) == "number" and sentence.kind(end + 1) == "number"
    return end + 1 if is_dash and sentence.is_glued(end) == sentence.is_glued(end + 1) else None


def is_length(sentence: Sentence, place: int, stretch: Stretch) -> bool:
    """False for an age ("5 years old"), a rate ("$50 an hour") and an ordinal ("a second time")."""
    if sentence.word(sentence.after_hyphen(stretch.end)) == "old":
        return False
    if sentence.word(place) not in {"a", "an"} or stretch.end != place + 2:
        return True
    before = sentence.word(place - 1)
    is_rate = before in _RATES or (before != "" and unit_named(before) is not None)
    return not (is_rate or sentence.kind(place - 1) == "number") and not (
        sentence.word(place + 1) == "second" and sentence.word(stretch.end) in _AFTER_ORDINAL
    )


def length_at(sentence: Sentence, place: int, *, alone: bool = False) -> Stretch | None:
    """Return the length that starts at *place*, or None; *alone* means that nothing else is in the text."""
    if sentence.kind(place) == "length":
        return _iso_length(sentence, place)
    if sentence.kind(place) == "clock":
        return _by_clock(sentence, place)
    if sentence.word(place) in UNITS and (lasting := _lasting(sentence, place)):
        return lasting
    first = _part_at(sentence, place, alone=alone)
    while first is not None:
        following = _next_part(sentence, first, alone=alone)
        if following is None:
            return first
        length = Length(first.length.months + following.length.months, first.length.seconds + following.length.seconds)
        first = Stretch(length, following.end, following.unit)
    return None


def _by_clock(sentence: Sentence, place: int) -> Stretch | None:
    """Read "1:30 hours" and "2:30 minutes"."""
    unit = UNITS.get(sentence.word(place + 1))
    parts = sentence.tokens[place].text.split(":")
    if unit not in {HOUR, MINUTE} or len(parts) != 2 or int(parts[1]) > 59:
        return None
    value = int(parts[0]) + Fraction(int(parts[1]), 60)
    return _stretch(Count(value, place), unit, place + 2) if unit else None


def _lasting(sentence: Sentence, place: int) -> Stretch | None:
    """Read the "year-long" that no number stands before."""
    unit = UNITS.get(sentence.word(place))
    joined = sentence.after_hyphen(place + 1)
    is_lasting = unit is not None and joined > place + 1 and sentence.word(joined) == "long"
    before = sentence.token(place - 1)
    if unit is None or not is_lasting or (before is not None and before.kind == "symbol" and before.text == "-"):
        return None
    return _stretch(Count(Fraction(1), place), unit, joined + 1)


def _iso_length(sentence: Sentence, place: int) -> Stretch | None:
    written = sentence.tokens[place].text
    if len(written) > _LONGEST_ISO:
        return None
    date, _, clock = written.partition("T")
    months = seconds = Fraction(0)
    smallest = YEAR
    for part, units in ((date, _DATE_UNITS), (clock, _CLOCK_UNITS)):
        for number, letter in _ISO.findall(part):
            unit = units[letter]
            count = Fraction(number.replace(",", "."))
            months, seconds = months + count * unit.months, seconds + count * unit.seconds
            smallest = unit
    return Stretch(Length(months, seconds), place + 1, smallest)


def _part_at(sentence: Sentence, place: int, *, alone: bool = False, inside: bool = False) -> Stretch | None:
    """Read one count with its unit, and the "and a half" after it; *inside* a longer length "m" is minutes."""
    if sentence.word(place) in {"fortnight", "decade"} and alone:
        return _stretch(Count(Fraction(1), place), UNITS[sentence.word(place)], place + 1)
    count = _single_at(sentence, place) or count_at(sentence, place)
    if count is None or _is_part_of_name(sentence, place) or in_full(sentence, place):
        return None
    after = sentence.after_hyphen(count.end)
    if (
        sentence.word(after) in {"full", "whole", "more", "further", "entire", "long"}
        # "a long day" is as long as any
        and (sentence.word(after) != "long" or count.value != 1)
        and sentence.word(after + 1) in UNITS
    ):
        after += 1
    unit = UNITS.get(sentence.word(after)) or (
        _short_unit(sentence, after, alone=alone, inside=inside) if count.in_digits else None
    )
    if unit is None:
        return None
    part = part_after_and(sentence, after + 1)
    if part is not None and UNITS.get(sentence.word(part.end)) is None:
        return _stretch(Count(count.value + part.value, part.end), unit, part.end)
    return _stretch(count, unit, after + 1)


def _single_at(sentence: Sentence, place: int) -> Count | None:
    """Read the "all" of "all day" and the "full" of "full-month"."""
    if sentence.word(place) not in {"all", "full", "whole", "entire"}:
        return None
    after = sentence.after_hyphen(place + 1)
    return Count(Fraction(1), after) if sentence.word(after) in UNITS and sentence.word(after)[-1] != "s" else None


def _is_part_of_name(sentence: Sentence, place: int) -> bool:
    """True for the digits of "covid19h" and "#5"."""
    before = sentence.token(place - 1)
    if before is None or not sentence.is_glued(place):
        return False
    return before.text in {"#", "@", "_", ".", "/"} or (before.kind == "word" and before.text not in SHORT_UNITS)


def _short_unit(sentence: Sentence, place: int, *, alone: bool, inside: bool) -> LengthUnit | None:
    word = sentence.word(place)
    unit = SHORT_UNITS.get(word)
    if unit is None or sentence.symbol(place - 1) == "-":
        return None
    if word == "s" and sentence.word(place - 2) == "the" and sentence.tokens[place - 1].text.endswith("0"):
        # a decade: "the 60s"
        return None
    if word == "m":
        goes_on = sentence.kind(place + 1) == "number" and sentence.is_glued(place)
        has_seconds = goes_on and (sentence.is_glued(place + 1) or sentence.word(place + 2) in _SECONDS)
        return unit if alone or inside or has_seconds else None
    return unit if sentence.is_glued(place) or alone or word in {"h", "s", "ms"} else None


def _stretch(count: Count, unit: LengthUnit, end: int) -> Stretch:
    return Stretch(Length(count.value * unit.months, count.value * unit.seconds), end, unit)


def _is_rest(part: Stretch, unit: LengthUnit, *, alone: bool) -> bool:
    """True for what a length in *unit* may go on with: less than one of it ("2 hours 30 minutes", not "90 minutes")."""
    if part.unit.rank >= unit.rank or alone:
        return part.unit.rank < unit.rank
    # a month has 31 days at most
    whole = unit.seconds or unit.months * 31 * DAY.seconds
    return part.length.months < unit.months if part.length.months else part.length.seconds < whole


def _next_part(sentence: Sentence, last: Stretch, *, alone: bool) -> Stretch | None:
    """Read what "2 hours" goes on with: "and 30 minutes", "30 min", ", 5 seconds", or the 30 of "1h30"."""
    place = last.end
    place += sentence.symbol(place) in {",", "-"} and sentence.kind(place + 1) in {"number", "word"}
    place += sentence.word(place) == "and"
    part = _part_at(sentence, place, inside=True)
    if part is not None and _is_rest(part, last.unit, alone=alone) and sentence.word(place) not in _NOT_FURTHER:
        return part
    minutes = sentence.whole(last.end)
    if last.unit == HOUR and sentence.word(last.end - 1) in _HOURS and _is_minutes_alone(sentence, last.end):
        return Stretch(Length(Fraction(0), Fraction(60 * (minutes or 0))), last.end + 1, MINUTE)
    ends = sentence.kind(last.end + 1) != "word" or not sentence.is_glued(last.end + 1)
    is_bare = minutes is not None and sentence.is_glued(last.end) and len(sentence.tokens[last.end].text) == 2
    if last.unit == HOUR and is_bare and ends and minutes is not None and minutes < 60:
        return Stretch(Length(Fraction(0), Fraction(60 * minutes)), last.end + 1, MINUTE)
    return None


def _is_minutes_alone(sentence: Sentence, place: int) -> bool:
    """True for the 15 that ends "2 hours 15"."""
    minutes, after = sentence.whole(place), sentence.token(place + 1)
    is_two = minutes is not None and minutes < 60 and len(sentence.tokens[place].text) == 2
    return is_two and (after is None or (after.kind == "symbol" and after.text in ".,;!?)"))
