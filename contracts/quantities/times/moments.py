"""Days and times of day in English sentences, on the calendar: with what they can mean and where they stand."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple

from tasklore.contracts.quantities.sentence import Sentence
from tasklore.contracts.quantities.times.calendar import Lean, shifted
from tasklore.contracts.quantities.times.clocks import Clock, clock_at
from tasklore.contracts.quantities.times.days import Day, Reckoning, day_at
from tasklore.contracts.quantities.times.durations import Length, Stretch, lengths_at
from tasklore.contracts.quantities.times.spans import two_days_at
from tasklore.contracts.quantities.times.words import (
    DAY,
    FORTNIGHT,
    WEEK,
    WEEKDAYS,
    may_open,
)
from tasklore.contracts.quantities.times.zones import (
    UnknownZone,
    in_fixed_zone,
    zone_at,
)

_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s?([Zz]|[+-]\d{2}(?::?\d{2})?)?"
)
#: A now for those who only ask where moments stand.
ANY_DAY = datetime(2020, 6, 15, 12, tzinfo=UTC)
#: Words that may stand before a moment that is all of a text.
_BEFORE_ALONE = frozenset({"", "on", "at", "by", "the", "for", "on the"})
#: The part of a day between its name and an hour ("friday morning at 9").
_DAY_PARTS = frozenset({"morning", "afternoon", "evening", "night"})
#: From this hour on "tonight" is before midnight.
_EVENING = 5
#: Before "a week on friday" they say how long, or how often.
_HOW_LONG = frozenset(
    {
        "for",
        "per",
        "once",
        "twice",
        "times",
        "every",
        "of",
        "book",
        "take",
        "need",
        "spend",
        "the",
    }
)
_BESIDE_NOW = frozenset({"later", "hence", "ago", "earlier"})


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
    text: str,
    now: datetime | None = None,
    *,
    lean: Lean = "future",
    day_first: bool | None = None,
) -> tuple[FoundMoment, ...]:
    """Return every day and time in *text*, in order and without overlaps; linear in its length.

    Args:
        text: any sentence.
        now: what "tomorrow" and "5 May" are reckoned from; without it such words are left out.
        lean: a day without a year, a weekday or an hour is the next one to come, or with "past" the latest one gone.
        day_first: what the writer puts first in "01/03/2026" when that is known.
    """
    found = _scan(Sentence(text), Reckoning(now or ANY_DAY, lean, day_first))
    return tuple(one for one in found if now is not None or not one.is_relative)


def parse_moment(
    text: str,
    now: datetime | None = None,
    *,
    lean: Lean = "future",
    day_first: bool | None = None,
) -> FoundMoment | None:
    """Return the one moment that *text* consists of, None when it holds anything else.

    Without *now* a moment that is reckoned from now is returned all the same, and its readings mean nothing.
    """
    found = list(_scan(Sentence(text), Reckoning(now or ANY_DAY, lean, day_first)))
    if len(found) != 1:
        return None
    before = text[: found[0].start].strip().lower()
    after = text[found[0].end :].strip(" .!?\t\n")
    return found[0] if before in _BEFORE_ALONE and not after else None


def _scan(sentence: Sentence, reckoning: Reckoning) -> Iterator[FoundMoment]:
    place = 0
    while place < len(sentence.tokens):
        if not may_open(sentence, place):
            place += 1
        elif two := two_days_at(sentence, place, reckoning):
            yield _find(
                sentence, place, Moments((two.first,), two.joint, two.is_relative)
            )
            yield _find(
                sentence,
                two.after_joint,
                Moments((two.last,), two.end, two.is_relative),
            )
            place = two.end
        elif moments := moment_at(sentence, place, reckoning):
            yield _find(sentence, place + (sentence.word(place) == "at"), moments)
            place = moments.end
        else:
            place += 1


def _find(sentence: Sentence, first: int, moments: Moments) -> FoundMoment:
    start, end, text = sentence.cut(first, moments.end)
    return FoundMoment(
        moments.readings,
        start=start,
        end=end,
        text=text,
        is_relative=moments.is_relative,
        is_offset=moments.is_offset,
        has_day=moments.has_day,
    )


def moment_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Moments | None:
    """Return the moment that starts at *place*, None when there is none that the calendar holds."""
    try:
        return _moment_at(sentence, place, reckoning)
    except (OverflowError, UnknownZone):
        return None


def _moment_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Moments | None:
    kind = sentence.kind(place)
    if kind in {"symbol", "length", "other", ""} and sentence.symbol(place) != "@":
        return None
    if kind == "iso" and len(sentence.tokens[place].text) > len("2026-01-01"):
        moment = _read_iso(sentence.tokens[place].text)
        return _in_zone(sentence, moment, place + 1) if moment else None
    if sentence.word(place) == "now":
        return Moments(
            (reckoning.now.replace(microsecond=0),), place + 1, is_relative=True
        )
    if day := day_at(sentence, place, reckoning):
        return _on_day(sentence, day)
    if clock := clock_at(sentence, place, has_day=False):
        return _at_clock(sentence, clock, reckoning)
    # "at 5 tomorrow"
    if sentence.word(place) == "at" and (
        clock := clock_at(sentence, place, has_day=True)
    ):
        moments = _at_clock(sentence, clock, reckoning)
        return moments if moments.end > clock.end else None
    return _by_length(sentence, place, reckoning)


def _read_iso(text: str) -> datetime | None:
    """Return the date and time that *text* writes as ISO 8601 does; None past microseconds or off the calendar."""
    match = _ISO.fullmatch(text)
    if match is None or len(match[4] or "") > len("123456"):
        return None
    zone = (match[5] or "").upper()
    written = (
        f"{match[1]}T{match[2]}:{match[3] or '00'}.{(match[4] or '0').ljust(6, '0')}"
    )
    try:
        return datetime.fromisoformat(written + ("+00:00" if zone == "Z" else zone))
    except ValueError:
        return None


def _in_zone(sentence: Sentence, moment: datetime, end: int) -> Moments:
    """Read the "UTC" of "2026-03-01 10:00 UTC"."""
    if moment.tzinfo is not None:
        return Moments((moment,), end, is_relative=False)
    zones, end = zone_at(sentence, end)
    told = [
        one
        for zone in zones or (None,)
        for one in in_fixed_zone(moment.replace(tzinfo=zone))
    ]
    return Moments(tuple(told), end, is_relative=False)


def _on_day(sentence: Sentence, day: Day) -> Moments:
    """Read the time that follows a day: "tomorrow at 3 pm", "5 May 2026, 15:30", "friday morning at 9"."""
    part, place = _part_after(sentence, day)
    clock = clock_at(sentence, place + (sentence.symbol(place) == ","), has_day=True)
    if clock is None:
        return Moments(day.readings, day.end, day.is_relative)
    return Moments(
        _combine(day.readings, _within(clock, part)), clock.end, day.is_relative
    )


def _part_after(sentence: Sentence, day: Day) -> tuple[str, int]:
    """Return the "morning" of "friday morning" and the place after it; "tonight" has its own."""
    part = sentence.word(day.end) if sentence.word(day.end) in _DAY_PARTS else ""
    return "night" if sentence.word(day.end - 1) == "tonight" else part, day.end + (
        part != ""
    )


def _within(clock: Clock, part: str) -> Clock:
    """Return *clock* in that *part* of the day, "" for any: an hour that may be of either half is of one there."""
    if not part or not clock.hours:
        return clock
    if len(clock.hours) == 1:
        hour = clock.hours[0]
        # "7:15" is no morning hour in the evening; "1:15 tonight" is after midnight
        is_late = part in {"afternoon", "evening"} or (
            part == "night" and hour.at.hour >= _EVENING
        )
        is_moved = is_late and 0 < hour.at.hour < 12
        return (
            clock._replace(
                hours=(hour._replace(at=hour.at.replace(hour=hour.at.hour + 12)),)
            )
            if is_moved
            else clock
        )
    hours = tuple(
        hour for hour in clock.hours if (hour.at.hour >= 12) == (part != "morning")
    )
    return clock._replace(hours=hours or clock.hours)


def _at_clock(sentence: Sentence, clock: Clock, reckoning: Reckoning) -> Moments:
    """Read the day that follows a time ("3 pm on friday"); without one it is the nearest such time."""
    place = clock.end + (sentence.symbol(clock.end) == ",")
    place += sentence.word(place) in {"on", "of"}
    day = day_at(sentence, place, reckoning)
    today = reckoning.today
    if (
        day is None
        and sentence.word(place) == "this"
        and sentence.word(place + 1) in _DAY_PARTS
    ):
        # "quarter to six this evening"
        day = Day((today,), place + 1, is_relative=True)
    if day is not None:
        part, end = _part_after(sentence, day)
        if not clock.zones:
            # "at 9am tomorrow New York time"
            zones, end = zone_at(sentence, end)
            clock = clock._replace(zones=zones)
        return Moments(
            _combine(day.readings, _within(clock, part)), end, day.is_relative
        )
    near = tuple(today + timedelta(days=days) for days in (-1, 0, 1))
    found = (
        _nearest(_combine(near, clock._replace(hours=(hour,))), reckoning)
        for hour in clock.hours
    )
    return Moments(
        tuple(dict.fromkeys(found)), clock.end, is_relative=True, has_day=False
    )


def _nearest(moments: tuple[datetime, ...], reckoning: Reckoning) -> datetime:
    """Return the first of *moments* to come, or with a lean to the past the last one gone."""
    now = reckoning.now

    def ahead(moment: datetime) -> timedelta:
        if moment.tzinfo is None:
            return moment - now.replace(tzinfo=None)
        return moment - (now if now.tzinfo else now.replace(tzinfo=UTC))

    if reckoning.lean == "future":
        return min((one for one in moments if ahead(one) >= timedelta(0)), key=ahead)
    return max((one for one in moments if ahead(one) <= timedelta(0)), key=ahead)


def _combine(days: tuple[date, ...], clock: Clock) -> tuple[datetime, ...]:
    zones: tuple[tzinfo | None, ...] = clock.zones or (None,)
    told = (
        datetime.combine(day + timedelta(days=hour.days), hour.at, zone)
        for day in days
        for hour in clock.hours
        for zone in zones
    )
    return tuple(dict.fromkeys(one for moment in told for one in in_fixed_zone(moment)))


def _by_length(sentence: Sentence, place: int, reckoning: Reckoning) -> Moments | None:
    """Read "in 3 days", "two weeks ago", "a week from tomorrow", "3 days before 5 May", "in 2 to 3 days"."""
    is_in = sentence.word(place) == "in"
    stretches = lengths_at(sentence, place + is_in)
    if not stretches:
        return None
    last = stretches[-1][1]
    found = [
        _count_from(sentence, last._replace(length=one.length), reckoning, is_in=is_in)
        for _, one in stretches
    ]
    readings = tuple(reading for one in found if one for reading in one.readings)
    first = found[0]
    if first is None or None in found:
        return _weeks_before_day(sentence, place, last, reckoning)
    return first._replace(readings=readings)


def _weeks_before_day(
    sentence: Sentence, place: int, stretch: Stretch, reckoning: Reckoning
) -> Moments | None:
    """Read "a week today" and "two weeks on friday": that many weeks after the day; "for a week on friday" is none."""
    after = stretch.end + (sentence.word(stretch.end) == "on")
    is_day = sentence.word(after) in (
        {"today", "tomorrow"} if after == stretch.end else WEEKDAYS
    )
    if (
        stretch.unit not in {WEEK, FORTNIGHT}
        or not is_day
        or sentence.word(place - 1) in _HOW_LONG
    ):
        return None
    day = day_at(sentence, after, reckoning)
    days = [_move(one, stretch.length) for one in day.readings] if day else []
    return (
        _on_counted_day(
            sentence, tuple(one for one in days if one), day.end, is_relative=True
        )
        if day
        else None
    )


def _count_from(
    sentence: Sentence, stretch: Stretch, reckoning: Reckoning, *, is_in: bool
) -> Moments | None:
    """Return the moment that *stretch* counts from now or from a day: "ago", "from now" or "before 5 May" is behind."""
    is_whole = stretch.unit.rank >= DAY.rank
    word = sentence.word(stretch.end)
    after = stretch.end + 1
    length = (
        -stretch.length
        if word in {"ago", "earlier", "before"} and not is_in
        else stretch.length
    )
    now_at = stretch.end if is_in else after if word in _BESIDE_NOW else None
    if word == "from" and sentence.word(after) == "now" and not is_in:
        now_at = after + 1
    if now_at is not None:
        return _from_now(sentence, now_at, length, reckoning, is_whole=is_whole)
    if word not in {"from", "after", "before"}:
        return None
    day = day_at(sentence, after, reckoning)
    if is_whole:
        ends = [_move(one, length) for one in day.readings] if day else []
        days = tuple(one for one in ends if one is not None)
        return (
            _on_counted_day(sentence, days, day.end, is_relative=day.is_relative)
            if day and len(days) == len(ends)
            else None
        )
    base = _on_day(sentence, day) if day else None
    if base is None and (clock := clock_at(sentence, after, has_day=False)):
        base = _at_clock(sentence, clock, reckoning)
    if base is None or length.months:
        return None
    span = timedelta(seconds=float(length.seconds))
    readings = tuple(one + span for one in base.readings if isinstance(one, datetime))
    return (
        base._replace(readings=readings, is_offset=True)
        if len(readings) == len(base.readings)
        else None
    )


def _from_now(
    sentence: Sentence,
    end: int,
    length: Length,
    reckoning: Reckoning,
    *,
    is_whole: bool,
) -> Moments | None:
    """Return now and *length*: a day when days or longer are counted, with a time behind it, else to the second."""
    now = reckoning.now
    if is_whole and length.seconds % 86_400 == 0:
        day = _move(now.date(), length)
        return _on_counted_day(sentence, (day,), end, is_relative=True) if day else None
    if length.months.denominator != 1:
        return None
    moment = datetime.combine(shifted(now.date(), int(length.months)), now.timetz())
    moment = (moment + timedelta(seconds=float(length.seconds))).replace(microsecond=0)
    return Moments((moment,), end, is_relative=True, is_offset=True)


def _on_counted_day(
    sentence: Sentence, days: tuple[date, ...], end: int, *, is_relative: bool
) -> Moments:
    """Read the time of day after a day that was counted to: "in 3 days at 5 pm"."""
    return _on_day(sentence, Day(days, end, is_relative))._replace(is_offset=True)


def _move(day: date, length: Length) -> date | None:
    """Return *day* and *length*, None when that is no whole day."""
    if length.months.denominator != 1 or length.seconds % 86_400:
        return None
    return shifted(day, int(length.months)) + timedelta(
        days=int(length.seconds // 86_400)
    )
