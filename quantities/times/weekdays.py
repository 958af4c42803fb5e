"""Days said by their weekday: "next friday", "friday week", "thursday of last week", "the second monday of may"."""

from datetime import date, timedelta

from quantities.times.calendar import Lean, Period, around, shifted, weekdays_meant
from quantities.times.languages import MONTHS, OF
from quantities.times.numbers import ordinal_at
from quantities.times.reckoning import Day, Reckoning, step_at, stretch_of
from quantities.times.tokens import Sentence
from quantities.times.words import ORDINAL_ENDINGS, ORDINALS, UNSURE_WEEKDAYS, WEEKDAYS

_WEEK = timedelta(days=7)
#: Weeks that a word after a day adds to it ("friday week").
_WEEKS = {"week": 1, "fortnight": 2}
#: A short name that is another word too counts after these, and at the start before a time of day.
_BEFORE_SHORT = frozenset({"on", "by", "until", "from", "till", "for"})
#: Of weekdays in a month there are five at most.
_MOST = 5
_REPEATED = frozenset({"every", "each"})
#: After "friday week" they show that a day is meant, and no week that friday names.
_GOES_ON = frozenset({"at", "on", "in", "for", "and", "or", "to", "with", "please", "then", "i", "we", "by", "until"})


def weekday_at(sentence: Sentence, place: int, reckoning: Reckoning, step: int | None = None) -> Day | None:
    """Return the days that the weekday at *place* can mean; *step* is that of "next" or "last" before it."""
    word = sentence.word(place)
    if step is None and (_is_other_word(sentence, place, word) or _is_counted(sentence, place)):
        return None
    weekday, today = WEEKDAYS[word], reckoning.today
    if week := _week_at(sentence, place + 1):
        first = around(today, "week", week[0]).start
        return Day((first + timedelta(days=weekday),), week[1], is_relative=True)
    turn = (sentence.word(place + 1), sentence.word(place + 2))
    if turn in {("after", "next"), ("before", "last")}:
        step = 1 if turn[1] == "next" else -1
        days = tuple(one + step * _WEEK for one in weekdays_meant(today, weekday, step, reckoning.lean))
        return Day(days, place + 3, is_relative=True)
    days = tuple(weekdays_meant(today, weekday, step, reckoning.lean))
    return weeks_on(sentence, Day(days, place + 1, is_relative=True))


def weeks_on(sentence: Sentence, day: Day) -> Day:
    """Return *day* with the weeks that the word after it adds: "friday week", "tomorrow fortnight"."""
    weeks = _WEEKS.get(sentence.word(day.end))
    follows = sentence.token(day.end + 1)
    if weeks is None or (follows is not None and follows.kind in {"word", "number"} and follows.text not in _GOES_ON):
        return day
    return Day(tuple(one + weeks * _WEEK for one in day.readings), day.end + 1, day.is_relative)


def coming_weekday(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Return the weekday at *place* after "coming": the next one, today not counted."""
    if sentence.word(place) not in WEEKDAYS:
        return None
    ahead = (WEEKDAYS[sentence.word(place)] - reckoning.today.weekday()) % 7 or 7
    return Day((reckoning.today + timedelta(days=ahead),), place + 1, is_relative=True)


def weekday_of_week(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Return the day of "next week on friday" and "last week friday", from the "next" on."""
    week = _week_at(sentence, place)
    if week is None:
        return None
    at = week[1] + (sentence.word(week[1]) == "on")
    weekday = WEEKDAYS.get(sentence.word(at))
    if weekday is None or _week_at(sentence, at + 1):
        return None
    return Day((around(reckoning.today, "week", week[0]).start + timedelta(days=weekday),), at + 1, is_relative=True)


def counted_weekday(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Return the day of "first monday of december" or "last friday of next month", from the ordinal on.

    Raises:
        OverflowError: days outside the years 1 to 9999.
    """
    number, at = (0, place + 1) if sentence.word(place) == "last" else ordinal_at(sentence, place) or (_MOST + 1, place)
    weekday = WEEKDAYS.get(sentence.word(at))
    is_repeated = not _REPEATED.isdisjoint({sentence.word(place - 1), sentence.word(place - 2)})
    if weekday is None or number > _MOST or is_repeated or sentence.word(at + 1) not in {"of", "in"}:
        return None
    stretch = stretch_of(sentence, at + 2, reckoning)
    if stretch is None or (stretch[0].end - stretch[0].start).days < 4 * 7 - 1:
        return None
    days, end, is_relative = stretch
    found = _in_period(days, weekday, number)
    # "of november" is that of another year, "of the month" that of another month, once it is behind
    months = 12 if sentence.word(end - 1) in MONTHS else 1 if sentence.word(end - 2) == "the" else 0
    if found and is_relative and months and _is_behind(found, reckoning.today, reckoning.lean):
        first = shifted(days.start, months if reckoning.lean == "future" else -months)
        found = _in_period(around(first, "month"), weekday, number)
    return Day((found,), end, is_relative) if found else None


def _in_period(days: Period, weekday: int, number: int) -> date | None:
    """Return the *number*-th such weekday of *days*, the last one for 0, None when there are not so many."""
    if not number:
        return days.end - timedelta(days=(days.end.weekday() - weekday) % 7)
    found = days.start + timedelta(days=(weekday - days.start.weekday()) % 7) + (number - 1) * _WEEK
    return found if found <= days.end else None


def _is_behind(day: date, today: date, lean: Lean) -> bool:
    return day < today if lean == "future" else day > today


def _week_at(sentence: Sentence, place: int) -> tuple[int, int] | None:
    """Return which week "next week", "of last week" at *place* says, and the place after it."""
    at = place + (sentence.word(place) in OF)
    step = step_at(sentence, at)
    return (step, at + 2) if step is not None and sentence.word(at + 1) == "week" else None


def _is_counted(sentence: Sentence, place: int) -> bool:
    """True for the "tuesday" of "the second tuesday", which no day is without its month."""
    before = sentence.word(place - 1)
    if sentence.is_glued(place - 1) and before in ORDINAL_ENDINGS:
        return sentence.word(place - 3) not in MONTHS
    return 0 < ORDINALS.get(before, 0) <= _MOST and sentence.word(place - 2) not in {*MONTHS, "may"}


def _is_other_word(sentence: Sentence, place: int, word: str) -> bool:
    """True for the "sun" and "sat" that are no days: neither "on" stands before them nor an hour right after."""
    if word not in UNSURE_WEEKDAYS or sentence.word(place - 1) in _BEFORE_SHORT:
        return False
    at = place + 1 + (sentence.word(place + 1) == "at")
    is_timed = sentence.kind(at) == "clock" or (
        sentence.whole(at) is not None and sentence.word(at + 1) in {"am", "pm"}
    )
    return not (is_timed and (place == 0 or sentence.symbol(place - 1) == ","))
