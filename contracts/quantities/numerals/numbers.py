"""The number at a place of a sentence, of whatever parts: "2½ million", "half a lakh", "three fifths", "1.500"."""

from decimal import Decimal
from fractions import Fraction

from tasklore.contracts.quantities.numerals import words
from tasklore.contracts.quantities.numerals.digit_runs import pieces_of
from tasklore.contracts.quantities.numerals.whole import (
    Numbers,
    WholeReading,
    fraction_of,
)
from tasklore.contracts.quantities.units import measure_after, unit_named

#: "two million and a half" is 2,500,000, "two hundred and a half" is 200.5.
_SCALED_HALF = 10**5
#: Denominators of what is written "3-1/2"; "" is that of "3-½".
_HYPHENATED_PARTS = frozenset({"", "2", "3", "4", "8", "16", "32", "64"})
#: What is halved and no unit.
_HALVED = frozenset({"price", "percent", "percentage"})
_EXTENTS = frozenset({"length", "area", "volume"})
_PERCENT = frozenset({"percent", "pct", "per"})
#: The readings of one number, none for what is read over, and the place after it.
Readings = tuple[tuple[Decimal | Fraction | int, ...], int]


def number_at(numbers: Numbers, place: int) -> Readings | None:
    """Return the readings of the number at *place* (two when ambiguous) and the place after it.

    No readings mean that something is there which looks like a number and is none: "twenty-first".
    """
    sentence = numbers.sentence
    kind = sentence.kind(place)
    if kind not in {"number", "word", "fraction"}:
        return None
    if kind == "number":
        pieces = pieces_of(
            sentence.tokens[place].text, numbers.mark, place == numbers.measured
        )
        if len(pieces) == 1 and len(pieces[0].readings) > 1:
            return _ambiguous(numbers, pieces[0].readings, place)
        reading = _read_mixed(numbers, place) or numbers.cardinal(place)
    else:
        reading = _fraction_first(numbers, place) or numbers.cardinal(place)
    if reading is None:
        return None
    if kind == "word" and (end := _ordinal_end(numbers, place, reading)):
        return (), end
    reading = _with_fraction(numbers, reading)
    return (reading.value,), reading.end


def _ambiguous(numbers: Numbers, readings: tuple[Decimal, ...], place: int) -> Readings:
    scale = numbers.scale(place + 1)
    # "1.500 million": nobody groups digits in front of a scale
    return (
        ((readings[0] * int(scale.value),), scale.end)
        if scale
        else (readings, place + 1)
    )


def _ordinal_end(numbers: Numbers, start: int, reading: WholeReading) -> int:
    """Return the place after the ordinal that *reading* opens ("twenty-first", "one hundred fifth"), 0 for none."""
    sentence = numbers.sentence
    last = sentence.word(reading.end - 1)
    after = sentence.after_hyphen(reading.end)
    following = sentence.word(after)
    if words.ORDINALS.get(following, 0) >= words.ROUND:
        return (
            after + 1
            if sentence.word(start) not in words.ARTICLES and reading.value > 1
            else 0
        )
    is_round = last in words.HUNDREDS or last in words.SCALES
    if (
        is_round
        and (after_and := sentence.after_and(reading.end))
        and sentence.word(after_and) in words.ORDINALS
    ):
        return after_and + 1
    is_open = last in words.TENS or is_round
    # "twenty second" is a time
    is_ordinal = (
        is_open
        and following in words.ORDINALS
        and (after > reading.end or following != "second")
    )
    return after + 1 if is_ordinal else 0


def _with_fraction(numbers: Numbers, reading: WholeReading) -> WholeReading:
    """Add the "and a half" of "three million and a half"; divide by the "fifths" of "twenty-three fifths"."""
    sentence = numbers.sentence
    (value, end, scale) = reading
    after_and = sentence.after_and(end)
    if (
        after_and
        and (part := numbers.part_of_one(after_and))
        and sentence.word(part.end) != "of"
    ):
        is_scaled = scale >= _SCALED_HALF or scale == words.DOZENS["dozen"]
        return WholeReading(value + part.value * (scale if is_scaled else 1), part.end)
    parts_place = sentence.after_hyphen(end)
    name = sentence.word(parts_place)
    # "3 quarters" are nine months as well
    if (parts := words.PARTS.get(name)) and (
        sentence.kind(end - 1) == "word" or parts > 4
    ):
        return _scale(numbers, WholeReading(Fraction(value) / parts, parts_place + 1))
    if value == 1 and scale != 1 and sentence.word(parts_place) in words.ORDINALS:
        return WholeReading(Fraction(value) / words.ORDINALS[name], parts_place + 1)
    return (
        _scale(numbers, reading)
        if 0 < value < 1 and sentence.word(end) == "of"
        else reading
    )


def _fraction_first(numbers: Numbers, place: int) -> WholeReading | None:
    """Read a number that opens with a fraction, and the scale that it is a part of: "half a lakh"."""
    sentence = numbers.sentence
    fraction = numbers.part_of_one(place)
    if fraction is None and sentence.word(place) == "quarter":
        # a lone "quarter" is three months
        quarter = _scale(numbers, WholeReading(Fraction(1, 4), place + 1))
        return (
            quarter if quarter.end > place + 1 or _is_measured(numbers, place) else None
        )
    if fraction is None:
        return None
    scaled = _scale(numbers, fraction)
    return (
        scaled
        if scaled.end > fraction.end or _stands_alone(numbers, place, fraction.end)
        else None
    )


def _scale(numbers: Numbers, fraction: WholeReading) -> WholeReading:
    sentence = numbers.sentence
    # "half-a-million"
    place = sentence.after_hyphen(fraction.end)
    place += sentence.word(place) == "of"
    if sentence.word(place) in words.ARTICLES:
        place = sentence.after_hyphen(place + 1)
    hundred = sentence.word(place) in words.HUNDREDS
    scale = numbers.scale(place + hundred)
    if scale is None:
        return WholeReading(fraction.value * 100, place + 1) if hundred else fraction
    return WholeReading(
        fraction.value * scale.value * (100 if hundred else 1), scale.end
    )


def _stands_alone(numbers: Numbers, place: int, end: int) -> bool:
    """False for "half past ten", "the second half", "a third option" and the rate in "20k a quarter"."""
    sentence = numbers.sentence
    word = sentence.word(place)
    before = sentence.word(place - 1)
    after = sentence.word(end)
    if "half" in (word, sentence.word(place + 1)):
        return (
            before not in words.BEFORE_HALF
            and after not in words.AFTER_HALF
            and _is_half_of_unit(numbers, end)
        )
    if word in words.ARTICLES:
        is_rate = sentence.kind(place - 1) == "number" or before in words.SHORT_SCALES
        is_measured = sentence.word(end - 1) == "quarter" and _is_measured(
            numbers, end - 1
        )
        return (after in {"", "of"} or is_measured) and not is_rate
    return True


def _is_half_of_unit(numbers: Numbers, place: int) -> bool:
    """False before the hyphen of "half-hearted" and "half-brother"; a half-mile and a half-price are halves."""
    sentence = numbers.sentence
    after = sentence.after_hyphen(place)
    if after > place and sentence.word(after) in words.ARTICLES:
        after = sentence.after_hyphen(after + 1)
    word = sentence.word(after)
    return after == place or word in _HALVED or unit_named(word) is not None


def _is_measured(numbers: Numbers, place: int) -> bool:
    """True for the quarter of "quarter of a mile", "a quarter inch" and "a quarter percent"; not for a lone one."""
    sentence = numbers.sentence
    following = sentence.after_hyphen(place + 1)
    if sentence.word(following) == "of":
        following += 1 + (sentence.word(following + 1) in {"a", "an", "one"})
        if following == place + 2:
            return False
    elif sentence.word(place - 1) in words.ARTICLES and numbers.is_money(following):
        return True
    if sentence.word(following) in _PERCENT:
        return True
    measure = measure_after(sentence.text, sentence.tokens[following - 1].end)
    return measure is not None and measure[0].dimension in _EXTENTS


def _read_mixed(numbers: Numbers, place: int) -> WholeReading | None:
    """Read "2 1/4", "2-1/4" and "2½", with a scale when there is one."""
    sentence = numbers.sentence
    part_place = sentence.after_hyphen(place + 1)
    whole = sentence.tokens[place]
    if (
        sentence.kind(part_place) != "fraction"
        or not whole.text.isdigit()
        or len(whole.text) > 15
    ):
        return None
    part = sentence.tokens[part_place]
    value = fraction_of(part.text)
    # carpenters and cooks write "3-1/2"; "5-1/20" can be a difference
    is_joined = (
        part_place == place + 1 or part.text.partition("/")[2] in _HYPHENATED_PARTS
    )
    if value is None or value >= 1 or not is_joined or part.start > whole.end + 2:
        return None
    mixed = WholeReading(int(whole.text) + value, part_place + 1)
    scale = numbers.scale(mixed.end)
    return WholeReading(mixed.value * scale.value, scale.end) if scale else mixed
