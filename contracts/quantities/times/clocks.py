"""Times of day in words and digits: "3pm", "half past ten", "15:30 UTC", "noon"; every reading, never a guess."""

from datetime import time, tzinfo
from typing import NamedTuple

from tasklore.contracts.quantities.sentence import Sentence
from tasklore.contracts.quantities.times.words import UNITS, small_at
from tasklore.contracts.quantities.times.zones import UnknownZone, zone_at
from tasklore.contracts.quantities.units import unit_named

_NOONS = frozenset({"noon", "midday"})
_PAST = {"past": 1, "after": 1, "to": -1, "before": -1, "till": -1}
#: The half of the day that "in the ..." says: True for the hours from noon.
_PARTS_OF_DAY = {"morning": False, "afternoon": True, "evening": True}
_DIGITS_OF_SECOND = 6
#: Hours that "at night" puts into one half of the day: True for that from noon.
_AT_NIGHT = {
    7: True,
    8: True,
    9: True,
    10: True,
    11: True,
    1: False,
    2: False,
    3: False,
}
_OCLOCK = frozenset({"o'clock", "oclock"})
#: Behind the 5 of "tomorrow at 5" only these marks may stand.
_MARKS = frozenset('.,!?;)"\n')


class Hour(NamedTuple):
    """A time of day, on the day after when *days* is 1 ("24:00")."""

    at: time
    days: int = 0


class Clock(NamedTuple):
    """What a time of day can mean, before token *end*; *zones* is empty when none was said."""

    hours: tuple[Hour, ...]
    end: int
    zones: tuple[tzinfo, ...] = ()


def clock_at(sentence: Sentence, place: int, *, has_day: bool) -> Clock | None:
    """Return the time of day at *place*, after an "at" or not; a bare number counts only after "at" beside a day.

    An hour from 1 to 12 that does not say which half of the day it means gives both; one in an unknown zone is None.
    """
    at = place + (sentence.word(place) == "at" or sentence.symbol(place) == "@")
    clock = (
        _read_noon(sentence, at)
        or _read_digits(sentence, at)
        or _read_words(sentence, at)
    )
    if clock is None and at > place:
        clock = _bare(sentence, at, has_day=has_day)
    if clock is None:
        return None
    try:
        zones, end = zone_at(sentence, clock.end)
    except UnknownZone:
        return None
    return Clock(clock.hours, end, zones)


def _read_noon(sentence: Sentence, place: int) -> Clock | None:
    place += sentence.whole(place) == 12
    word = sentence.word(place)
    if word in _NOONS:
        return Clock((Hour(time(12)),), place + 1)
    return (
        Clock((Hour(time(0)), Hour(time(0), 1)), place + 1)
        if word == "midnight"
        else None
    )


def _read_digits(sentence: Sentence, place: int) -> Clock | None:
    """Read "15:30", "3:30 pm", "3pm", "3.30 p.m." and "0900 hours"."""
    token = sentence.token(place)
    if token is None or token.kind not in {"clock", "number"}:
        return None
    half, end = _half_of_day(sentence, place + 1)
    if token.kind == "number" and half is None:
        return _in_full(sentence, place)
    hour_text, _, rest = token.text.replace(".", ":", token.kind == "number").partition(
        ":"
    )
    if token.kind == "number" and not (
        hour_text.isdigit() and len(hour_text) <= 2 and (not rest or _is_pair(rest))
    ):
        return None
    minute_text, _, second_text = (rest or "0").partition(":")
    whole, _, part = second_text.partition(".")
    if len(part) > _DIGITS_OF_SECOND:
        return None
    micros = int(part.ljust(_DIGITS_OF_SECOND, "0")) if part else 0
    hour = int(hour_text)
    minute = int(minute_text)
    second = int(whole or 0)
    if (hour, minute, second, micros) == (24, 0, 0, 0) and half is None:
        return Clock((Hour(time(0), 1),), end)
    if hour > 23 or minute > 59 or second > 59 or (half and hour == 0):
        return None
    if half is not None and hour <= 12:
        hour = hour % 12 + 12 * half
    return Clock((Hour(time(hour, minute, second, micros)),), end)


def _is_pair(text: str) -> bool:
    return len(text) == 2 and text.isdigit()


def _in_full(sentence: Sentence, place: int) -> Clock | None:
    """Read "0900 hours" and "at 1530 hours"."""
    number = sentence.whole(place)
    text = sentence.tokens[place].text
    if (
        number is None
        or len(text) != 4
        or sentence.word(place + 1) not in {"hours", "hrs"}
    ):
        return None
    is_clock = text[0] == "0" or sentence.word(place - 1) == "at"
    hour, minute = divmod(number, 100)
    return (
        Clock((Hour(time(hour, minute)),), place + 2)
        if is_clock and hour < 24 and minute < 60
        else None
    )


def _read_words(sentence: Sentence, place: int) -> Clock | None:
    """Read "half past three", "a quarter to 5", "ten past six", "seven thirty pm", "8 o'clock"."""
    minutes, end = _minutes(sentence, place)
    if minutes is not None:
        hour, end = _hour(sentence, end)
        if hour is None:
            return None
        total = (hour * 60 + minutes) % (24 * 60)
        return _either(
            total // 60,
            minute=total % 60,
            said=hour,
            sentence=sentence,
            end=end + (sentence.word(end) in _OCLOCK),
        )
    hour, end = _hour(sentence, place, most=23)
    if hour is None:
        return None
    if sentence.word(end) in _OCLOCK:
        return _either(hour, minute=0, said=hour, sentence=sentence, end=end + 1)
    spoken = small_at(sentence, end) if sentence.kind(place) == "word" else None
    minute, after = spoken if spoken and 10 <= spoken[0] <= 59 else (0, end)
    half, stop = _half_of_day(sentence, after, hour)
    if half is None or hour > 12 or (hour == 0 and half):
        return None
    return Clock((Hour(time(hour % 12 + 12 * half, minute)),), stop)


def _bare(sentence: Sentence, place: int, *, has_day: bool) -> Clock | None:
    """Read the 5 of "tomorrow at 5" and of "at 5 in the morning"."""
    hour, end = _hour(sentence, place, most=23)
    if hour is None:
        return None
    half, _ = _half_of_day(sentence, end, hour)
    after = sentence.token(end)
    goes_on = after is not None and (
        (
            after.kind == "word"
            and (
                after.is_glued
                or after.text in UNITS
                or unit_named(after.text) is not None
            )
        )
        or (after.kind == "symbol" and after.text not in _MARKS)
        or after.kind in {"number", "fraction"}
    )
    return (
        None
        if half is None and (not has_day or goes_on)
        else _either(hour, minute=0, said=hour, sentence=sentence, end=end)
    )


def _either(
    hour: int, minute: int, said: int, sentence: Sentence, end: int
) -> Clock | None:
    """Return both halves of the day that an hour can mean, or the one that is said after it."""
    half, stop = _half_of_day(sentence, end, said)
    if said > 12 or said == 0:
        return Clock((Hour(time(hour, minute)),), end)
    if half is None:
        return Clock(
            (Hour(time(hour % 12, minute)), Hour(time(hour % 12 + 12, minute))), end
        )
    return Clock((Hour(time(hour % 12 + 12 * half, minute)),), stop)


def _hour(sentence: Sentence, place: int, most: int = 12) -> tuple[int | None, int]:
    number = sentence.whole(place)
    if number is not None:
        found = (number, place + 1) if len(sentence.tokens[place].text) <= 2 else None
    else:
        found = small_at(sentence, place)
    return found if found and 0 <= found[0] <= most else (None, place)


def _minutes(sentence: Sentence, place: int) -> tuple[int | None, int]:
    """Return the minutes that "half past" and "ten to" add to the hour, and the place of the hour."""
    start = place + (sentence.word(place) == "a")
    word = sentence.word(start)
    if word in {"half", "quarter"}:
        minutes = 30 if word == "half" else 15
        end = start + 1
    elif (whole := sentence.whole(start)) is not None:
        minutes = whole
        end = start + 1
    elif count := small_at(sentence, start):
        minutes, end = count
    else:
        return None, place
    end += sentence.word(end) in {"minute", "minutes", "mins", "min"}
    sign = _PAST.get(sentence.word(end))
    if sign is None or not 0 < minutes < 60 or (word == "half" and sign < 0):
        return None, place
    # "5 to 7" is a range, "at five to seven" a time
    is_spoken = (
        sentence.kind(start) == "word"
        and minutes % 5 == 0
        and sentence.word(start - 1) == "at"
    )
    return (
        (sign * minutes, end + 1)
        if sign > 0 or word == "quarter" or is_spoken
        else (None, place)
    )


def _half_of_day(
    sentence: Sentence, place: int, hour: int | None = None
) -> tuple[bool | None, int]:
    """Return whether "pm" or "in the evening" follows (True), "am" or "in the morning" (False), and the place after.

    What "at night" says depends on the *hour*.
    """
    word = sentence.word(place)
    if word in {"am", "pm"}:
        return word == "pm", place + 1
    if (
        word in {"a", "p"}
        and sentence.symbol(place + 1) == "."
        and sentence.word(place + 2) == "m"
    ):
        return word == "p", place + 3 + (
            sentence.symbol(place + 3) == "." and sentence.is_glued(place + 3)
        )
    if (
        word == "in"
        and sentence.word(place + 1) == "the"
        and sentence.word(place + 2) in _PARTS_OF_DAY
    ):
        return _PARTS_OF_DAY[sentence.word(place + 2)], place + 3
    if word == "at" and sentence.word(place + 1) == "night" and hour in _AT_NIGHT:
        return _AT_NIGHT[hour], place + 2
    return None, place
