"""Days and times of day in English sentences, on the calendar: with what they can mean and where they stand."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import NamedTuple

from contracts.times.calendar import Lean, shifted
from contracts.times.clocks import Clock, clock_at, zone_at
from contracts.times.days import DAY_PARTS, Day, Reckoning, day_at
from contracts.times.durations import Length, length_at
from contracts.times.joint import TwoDays, two_days_at
from contracts.times.languages import may_open
from contracts.times.tokens import Sentence, sentence_of
from contracts.times.words import DAY

_ISO = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s?([Zz]|[+-]\d{2}(?::?\d{2})?)?")
#: A now for those who only ask where moments stand.
ANY_DAY = datetime(2020, 6, 15, 12, tzinfo=UTC)
#: Words that may stand before a moment that is all of a text.
_BEFORE_ALONE = frozenset({"", "on", "at", "by", "the", "for", "on the"})
_FROM_NOW = frozenset({"later", "hence"})


class FoundMoment(NamedTuple):
    """A moment of a sentence, `sentence[start:end]` being *text*.

    Several *readings* mean that it is ambiguous. *is_relative* when it is reckoned from now; *is_offset* when it is
    said as a count of time ("in 3 days", "two weeks ago"); *has_day* is False for a time of day alone ("3 pm").
    """

    readings: tuple[date | datetime, ...]
    start: int
    end: int
    text: str
    is_relative: bool
    is_offset: bool
    has_day: bool

    @property
    def value(self) -> date | datetime | None:
        """The one moment meant, None when there are two readings."""
        return self.readings[0] if len(self.readings) == 1 else None


class Moments(NamedTuple):
    """What some words can mean, before token *end*."""

    readings: tuple[date | datetime, ...]
    end: int
    is_relative: bool
    is_offset: bool = False
    has_day: bool = True


def find_moments(
    text: str, now: datetime | None = None, *, lean: Lean = "future", day_first: bool | None = None
) -> tuple[FoundMoment, ...]:
    """Return every day and time in *text*, in order and without overlaps; linear in its length.

    Args:
        text: any sentence.
        now: what "tomorrow" and "5 May" are reckoned from; without it such words are left out.
        lean: a day without a year, a weekday or an hour is the next one to come, or with "past" the latest one gone.
        day_first: what the writer puts first in "01/03/2026" when that is known.
    """
    found = scan_moments(sentence_of(text), Reckoning(now or ANY_DAY, lean, day_first))
    return tuple(one for one in found if now is not None or not one.is_relative)


def parse_moment(
    text: str, now: datetime | None = None, *, lean: Lean = "future", day_first: bool | None = None
) -> FoundMoment | None:
    """Return the one moment that *text* consists of, None when it holds anything else.

    Without *now* a moment that is reckoned from now is returned all the same, and its readings mean nothing.
    """
    sentence = sentence_of(text)
    found = list(scan_moments(sentence, Reckoning(now or ANY_DAY, lean, day_first)))
    if len(found) != 1:
        return None
    before, after = text[: found[0].start].strip().lower(), text[found[0].end :].strip(" .!?\t\n")
    return found[0] if before in _BEFORE_ALONE and not after else None


def scan_moments(sentence: Sentence, reckoning: Reckoning) -> Iterator[FoundMoment]:
    """Yield every moment of *sentence*, those reckoned from now too."""
    place = 0
    while place < len(sentence.tokens):
        if not may_open(sentence, place):
            place += 1
        elif two := _two_days(sentence, place, reckoning):
            first, last = (
                Moments((day,), end, two.is_relative) for day, end in ((two.first, two.joint), (two.last, two.end))
            )
            yield _found(sentence, place, first)
            yield _found(sentence, two.after_joint, last)
            place = two.end
        elif moments := moment_at(sentence, place, reckoning):
            yield _found(sentence, place + (sentence.word(place) == "at"), moments)
            place = moments.end
        else:
            place += 1


def _found(sentence: Sentence, first: int, moments: Moments) -> FoundMoment:
    start, end, text = sentence.cut(first, moments.end)
    return FoundMoment(moments.readings, start, end, text, moments.is_relative, moments.is_offset, moments.has_day)


def _two_days(sentence: Sentence, place: int, reckoning: Reckoning) -> TwoDays | None:
    try:
        return two_days_at(sentence, place, reckoning)
    except OverflowError:
        return None


def moment_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Moments | None:
    """Return the moment that starts at *place*, None when there is none that the calendar holds."""
    try:
        return _moment_at(sentence, place, reckoning)
    except OverflowError:
        return None


def _moment_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Moments | None:
    kind = sentence.kind(place)
    if kind in {"symbol", "length", "other", ""} and sentence.symbol(place) != "@":
        return None
    if kind == "iso" and len(sentence.tokens[place].text) > len("2026-01-01"):
        moment = read_iso(sentence.tokens[place].text)
        return _in_zone(sentence, moment, place + 1) if moment else None
    if sentence.word(place) == "now":
        return Moments((_second(reckoning.now),), place + 1, is_relative=True)
    if day := day_at(sentence, place, reckoning):
        return _on_day(sentence, day)
    if clock := clock_at(sentence, place, has_day=False):
        return _at_clock(sentence, clock, reckoning)
    # "at 5 tomorrow"
    if sentence.word(place) == "at" and (clock := clock_at(sentence, place, has_day=True)):
        moments = _at_clock(sentence, clock, reckoning)
        return moments if moments.end > clock.end else None
    return _by_length(sentence, place, reckoning)


def _in_zone(sentence: Sentence, moment: datetime, end: int) -> Moments:
    """Read the "UTC" of "2026-03-01 10:00 UTC"."""
    if moment.tzinfo is not None:
        return Moments((moment,), end, is_relative=False)
    zones, end = zone_at(sentence, end)
    return Moments(tuple(moment.replace(tzinfo=zone) for zone in zones or (None,)), end, is_relative=False)


def read_iso(text: str) -> datetime | None:
    """Return the date and time that *text* writes as ISO 8601 does; None past microseconds or off the calendar."""
    match = _ISO.fullmatch(text)
    if match is None or len(match[4] or "") > len("123456"):
        return None
    zone = (match[5] or "").upper()
    written = f"{match[1]}T{match[2]}:{match[3] or '00'}.{(match[4] or '0').ljust(6, '0')}"
    try:
        return datetime.fromisoformat(written + ("+00:00" if zone == "Z" else zone))
    except ValueError:
        return None


def _on_day(sentence: Sentence, day: Day) -> Moments:
    """Read the time that follows a day: "tomorrow at 3 pm", "5 May 2026, 15:30", "friday morning at 9"."""
    place = day.end
    part = sentence.word(place) if sentence.word(place) in DAY_PARTS else ""
    place += part != ""
    part = "night" if sentence.word(day.end - 1) == "tonight" else part
    place += sentence.symbol(place) == ","
    clock = clock_at(sentence, place, has_day=True)
    if clock is None:
        return Moments(day.readings, day.end, day.is_relative)
    hours = clock.hours
    if part and len(hours) == 2:
        hours = tuple(hour for hour in hours if (hour.at.hour >= 12) == (part != "morning")) or hours
    return Moments(_combined(day.readings, clock._replace(hours=hours)), clock.end, day.is_relative)


def _at_clock(sentence: Sentence, clock: Clock, reckoning: Reckoning) -> Moments:
    """Read the day that follows a time ("3 pm on friday"); without one it is the nearest such time."""
    place = clock.end + (sentence.symbol(clock.end) == ",")
    place += sentence.word(place) in {"on", "of"}
    day = day_at(sentence, place, reckoning)
    if day is not None:
        return Moments(_combined(day.readings, clock), day.end, day.is_relative)
    today = reckoning.today
    around = tuple(today + timedelta(days=days) for days in (-1, 0, 1))
    readings = []
    for hour in clock.hours:
        one = clock._replace(hours=(hour,))
        readings.append(_nearest(_combined(around, one), reckoning))
    return Moments(tuple(dict.fromkeys(readings)), clock.end, is_relative=True, has_day=False)


def _nearest(moments: tuple[date | datetime, ...], reckoning: Reckoning) -> date | datetime:
    """Return the first of *moments* to come, or the last one gone."""
    now = reckoning.now

    def ahead(moment: date | datetime) -> timedelta:
        told = moment if isinstance(moment, datetime) else datetime.combine(moment, time())
        if told.tzinfo is None:
            return told - now.replace(tzinfo=None)
        return told - (now if now.tzinfo else now.replace(tzinfo=UTC))

    if reckoning.lean == "future":
        return min((one for one in moments if ahead(one) >= timedelta(0)), key=ahead)
    return max((one for one in moments if ahead(one) <= timedelta(0)), key=ahead)


def _combined(days: tuple[date, ...], clock: Clock) -> tuple[date | datetime, ...]:
    zones: tuple[timezone | None, ...] = clock.zones or (None,)
    return tuple(
        dict.fromkeys(
            datetime.combine(day + timedelta(days=hour.days), hour.at, zone)
            for day in days
            for hour in clock.hours
            for zone in zones
        )
    )


def _by_length(sentence: Sentence, place: int, reckoning: Reckoning) -> Moments | None:
    """Read "in 3 days", "two weeks ago", "a week from tomorrow", "3 days before 5 May", "an hour later"."""
    is_in = sentence.word(place) == "in"
    stretch = length_at(sentence, place + is_in)
    if stretch is None:
        return None
    is_whole = stretch.unit.rank >= DAY.rank
    if is_in:
        return _offset(reckoning.now, stretch.length, stretch.end, is_whole=is_whole)
    word, after = sentence.word(stretch.end), stretch.end + 1
    if word in {"ago", "earlier"}:
        return _offset(reckoning.now, _negative(stretch.length), after, is_whole=is_whole)
    if word in _FROM_NOW:
        return _offset(reckoning.now, stretch.length, after, is_whole=is_whole)
    if word not in {"from", "after", "before"}:
        return None
    length = _negative(stretch.length) if word == "before" else stretch.length
    if word == "from" and sentence.word(after) == "now":
        return _offset(reckoning.now, length, after + 1, is_whole=is_whole)
    day = day_at(sentence, after, reckoning)
    if day is None or not is_whole:
        return None
    ends = [_moved(one, length) for one in day.readings]
    readings = tuple(one for one in ends if one is not None)
    return Moments(readings, day.end, day.is_relative, is_offset=True) if len(readings) == len(ends) else None


def _negative(length: Length) -> Length:
    return Length(-length.months, -length.seconds)


def _offset(now: datetime, length: Length, end: int, *, is_whole: bool) -> Moments | None:
    """Return now and *length*: a day when days or longer are counted, else to the second."""
    if is_whole and length.seconds % 86_400 == 0:
        day = _moved(now.date(), length)
        return Moments((day,), end, is_relative=True, is_offset=True) if day else None
    if length.months.denominator != 1:
        return None
    day = shifted(now.date(), int(length.months))
    moment = _second(datetime.combine(day, now.timetz()) + timedelta(seconds=float(length.seconds)))
    return Moments((moment,), end, is_relative=True, is_offset=True)


def _moved(day: date, length: Length) -> date | None:
    """Return *day* and *length*, None when that is no whole day."""
    if length.months.denominator != 1 or length.seconds % 86_400:
        return None
    return shifted(day, int(length.months)) + timedelta(days=int(length.seconds // 86_400))


def _second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)
