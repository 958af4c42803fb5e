"""The time of a story, as its prose tells it: a weekday and a clock, and how many minutes lie between two of them.

Only what is written is read. An hour without "am", "in the evening" or the like is taken as it stands, so that
"seven o'clock" is 7:00. Reading takes time linear in the length of the text.
"""

import re
from dataclasses import dataclass

#: Minutes of a day, and of a week.
DAY, WEEK = 24 * 60, 7 * 24 * 60


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: Short names stand right before the clock and begin with a capital: "sat" and "sun" are words.
_SHORT = {"Mon": 0, "Tue": 1, "Tues": 1, "Wed": 2, "Thu": 3, "Thur": 3, "Thurs": 3, "Fri": 4, "Sat": 5, "Sun": 6}
_HOURS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip
_TEENS = {"fifteen": 15, "thirty": 30, "forty": 40, "fifty": 50, "twenty": 20, "ten": 10}
_STEPS = {"five": 5, "ten": 10, "fifteen": 15, "quarter": 15, "twenty": 20, "half": 30}
_NAMED = {"noon": 12 * 60, "midday": 12 * 60, "midnight": 0}
#: Words with which a clock may begin; else figures do.
_OPENERS = _set("a") | _NAMED.keys() | _STEPS.keys() | _HOURS.keys()
_PARTS = {
    "morning": "am", "dawn": "am", "afternoon": "pm", "evening": "pm", "dusk": "pm",
    "night": "night", "tonight": "night",
}  # fmt: skip
#: What may stand between a clock and the weekday or part of the day that belongs to it.
_LINKS = _set(
    "on at by of the in a an to around about nearly almost just little bit after before exactly shortly this that same "
    "next ,"
)
#: What makes "ten to nine" a time and not a count; the beginning of the text does, too.
_INTRODUCE = _set("at by was is it's until till since around about nearly almost after before past now already , .")
#: "An hour before noon" is another time than noon.
_LENGTHS = _set("hour hours minute minutes")
_AWAY = _set("before after past to until till from")
#: Words that are looked at on each side of a clock.
_REACH = 6

_TOKENS = re.compile(
    r"(?P<clock>(?<![0-9:.])[0-9]{1,2}(?::[0-9]{2}|\.[0-9]{2}(?=\s?[aApP]\.?[mM]))(?![0-9]))"
    r"|(?P<half>[aApP](?:\.[mM]\b\.?|[mM]\b))"
    r"|(?P<word>[A-Za-z]+(?:['\u2019][A-Za-z]+){0,2})|(?P<number>[0-9]+)|(?P<sign>[,.!?;:\n\"\u201c\u201d])"
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as a text tells it: `weekday` from 0 for Monday, `minute` of the day, None for what is not told.

    `words` are those of the text, as they stand there.
    """

    weekday: int | None
    minute: int | None
    words: str


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    word: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Clock:
    """A clock in tokens[begin:end]; `is_open` when "am" or "pm" is still to be learned from what stands around."""

    begin: int
    end: int
    minute: int
    is_open: bool


def clock_in(text: str) -> Moment | None:
    """Return the last time of day that *text* tells, with its weekday; without one the last weekday, None without both.

    "Tuesday 3:00 PM", "Friday, a quarter past nine", "noon", "midnight on Sunday", "7 am", "15:30", "half past six in
    the evening".
    """
    moments = moments_in(text)
    timed = [moment for moment in moments if moment.minute is not None]
    found = timed or moments
    return found[-1] if found else None


def elapsed_minutes(before: str | None, now: str | None) -> int | None:
    """Return the minutes of story time from *before* to *now*, None when one of them tells no time of day.

    Time only goes on: it wraps at the week when both tell their weekday, and at the day when one does not.
    """
    first, last = clock_in(before or ""), clock_in(now or "")
    if first is None or last is None or first.minute is None or last.minute is None:
        return None
    if first.weekday is None or last.weekday is None:
        return (last.minute - first.minute) % DAY
    return ((last.weekday - first.weekday) * DAY + last.minute - first.minute) % WEEK


def moments_in(text: str) -> list[Moment]:
    """Return every time that *text* tells, in its order: clocks, and weekdays that stand alone."""
    tokens = [
        _Token(found.lastgroup or "", found[0], found[0].lower().replace("\u2019", "'"), *found.span())
        for found in _TOKENS.finditer(text)
    ]
    moments: list[Moment] = []
    at = used = 0
    while at < len(tokens):
        clock = _clock_at(tokens, at)
        if clock is None:
            if tokens[at].word in _WEEKDAYS and not _clock_follows(tokens, at):
                last = tokens[at + (_word(tokens, at + 1) in _PARTS)]
                words = text[tokens[at].start : last.end]
                moments.append(Moment(_WEEKDAYS.index(tokens[at].word), None, words))
                used = at + 1
            at += 1
            continue
        moment, used = _completed(text, tokens, clock, used)
        moments.append(moment)
        at = used
    return moments


def _clock_at(tokens: list[_Token], at: int) -> _Clock | None:
    """Return the clock that begins at *at*, None when none does."""
    if tokens[at].word not in _OPENERS and tokens[at].kind not in {"number", "clock"}:
        return None
    if _word(tokens, at - 1) in _AWAY and _word(tokens, at - 2) in _LENGTHS:
        return None
    for read in (_named, _in_figures, _past_or_to, _hour):
        clock = read(tokens, at)
        if clock is not None:
            return clock
    return None


def _word(tokens: list[_Token], at: int) -> str:
    return tokens[at].word if 0 <= at < len(tokens) else ""


def _named(tokens: list[_Token], at: int) -> _Clock | None:
    minute = _NAMED.get(tokens[at].word)
    return None if minute is None else _Clock(at, at + 1, minute, is_open=False)


def _in_figures(tokens: list[_Token], at: int) -> _Clock | None:
    """Read "3:00 PM", "15:30", "3.30 pm"; "0700 hours" too."""
    token = tokens[at]
    if token.kind == "number" and len(token.text) == 4 and _word(tokens, at + 1) in {"hours", "hrs"}:
        return _of(tokens, at, at + 2, int(token.text[:2]), int(token.text[2:]), is_open=False)
    if token.kind != "clock":
        return None
    hour, minute = (int(part) for part in re.split("[:.]", token.text))
    return _of(tokens, at, at + 1, hour, minute, is_open=True)


def _past_or_to(tokens: list[_Token], at: int) -> _Clock | None:
    """Read "a quarter past nine", "half past 6", "twenty-five to ten", "12 minutes to four"."""
    begin = at
    if tokens[at].word == "a" and _word(tokens, at + 1) == "quarter":
        at += 1
    step, at = _minutes(tokens, at)
    if step is None:
        return None
    has_unit = _word(tokens, at) in {"minute", "minutes"} or step in {15, 30}
    at += _word(tokens, at) in {"minute", "minutes"}
    side = _word(tokens, at)
    named = _NAMED.get(_word(tokens, at + 1))
    hour = _hour_in(tokens, at + 1) if named is None else named // 60 or 24
    if side not in {"past", "after", "to", "before", "of"} or hour is None:
        return None
    is_past = side in {"past", "after"}
    if side != "past" and not has_unit and (side != "to" or not _is_introduced(tokens, begin)):
        return None
    if side in {"of", "before", "after"} and step not in {5, 10, 15, 20, 25}:
        return None
    end = at + 2 + (_word(tokens, at + 2) == "o'clock")
    hour = hour % 24 if is_past else hour - 1
    return _of(tokens, begin, end, hour, step if is_past else 60 - step, is_open=named is None)


def _is_introduced(tokens: list[_Token], at: int) -> bool:
    return at == 0 or tokens[at - 1].word in _INTRODUCE


def _minutes(tokens: list[_Token], at: int) -> tuple[int | None, int]:
    token = tokens[at]
    if token.kind == "number" and len(token.text) <= 2 and 0 < int(token.text) < 60:
        return int(token.text), at + 1
    step = _STEPS.get(token.word) or _HOURS.get(token.word)
    if token.word == "twenty" and _word(tokens, at + 1) in _HOURS and _word(tokens, at + 2) != "o'clock":
        ones = _HOURS[_word(tokens, at + 1)]
        return (20 + ones, at + 2) if ones < 10 else (None, at)
    return (step, at + 1) if step is not None else (None, at)


def _hour(tokens: list[_Token], at: int) -> _Clock | None:
    """Read "7 am", "seven o'clock", "six thirty", "nine in the morning", "Friday at seven"."""
    hour = _hour_in(tokens, at)
    if hour is None or _word(tokens, at - 1) in _TEENS:
        return None
    after = _word(tokens, at + 1)
    if after == "o'clock":
        return _of(tokens, at, at + 2, hour, 0, is_open=True)
    if at + 1 < len(tokens) and tokens[at + 1].kind == "half":
        return _of(tokens, at, at + 1, hour, 0, is_open=True)
    if tokens[at].kind == "word" and after in {"fifteen", "thirty"}:
        return _of(tokens, at, at + 2, hour, _TEENS[after], is_open=True)
    if _part_after(tokens, at + 1) or _weekday_before(tokens, at):
        return _of(tokens, at, at + 1, hour, 0, is_open=True)
    return None


def _hour_in(tokens: list[_Token], at: int) -> int | None:
    if not 0 <= at < len(tokens):
        return None
    token = tokens[at]
    if token.kind == "number" and len(token.text) <= 2 and int(token.text) <= 24:
        return int(token.text)
    return _HOURS.get(token.word)


def _part_after(tokens: list[_Token], at: int) -> bool:
    """Tell whether "in the morning", "at night" or "that evening" stands at *at*."""
    one, two, three = (_word(tokens, at + step) for step in range(3))
    return (one in {"at", "this", "that"} and two in _PARTS) or (one == "in" and two == "the" and three in _PARTS)


def _weekday_before(tokens: list[_Token], at: int) -> bool:
    """Tell whether "Friday at" or "Friday evening at" stands before *at*."""
    if _word(tokens, at - 1) != "at":
        return False
    return _word(tokens, at - 2) in _WEEKDAYS or (
        _word(tokens, at - 2) in _PARTS and _word(tokens, at - 3) in _WEEKDAYS
    )


def _of(tokens: list[_Token], begin: int, end: int, hour: int, minute: int, *, is_open: bool) -> _Clock | None:
    """Return that clock with the "am" or "pm" behind it, None when no clock shows it."""
    if not 0 <= hour <= 24 or not 0 <= minute < 60 or (hour == 24 and minute):
        return None
    if is_open and end < len(tokens) and tokens[end].kind == "half":
        hour, end, is_open = _shifted(hour, tokens[end].word[0] + "m"), end + 1, False
    return _Clock(begin, end, (hour * 60 + minute) % DAY, is_open)


def _shifted(hour: int, part: str) -> int:
    """Return *hour* of a clock with twelve hours, as a clock with 24 shows it in that *part* of the day."""
    if hour > 12:
        return hour
    if part == "night":
        part = "pm" if 5 < hour < 12 else "am"
    return hour % 12 + (12 if part == "pm" else 0)


def _clock_follows(tokens: list[_Token], at: int) -> bool:
    """Tell whether the weekday at *at* belongs to a clock that comes after it."""
    for place in range(at + 1, min(at + 1 + _REACH, len(tokens))):
        if _clock_at(tokens, place) is not None:
            return True
        if tokens[place].word not in _LINKS and tokens[place].word not in _PARTS:
            return False
    return False


def _completed(text: str, tokens: list[_Token], clock: _Clock, used: int) -> tuple[Moment, int]:
    """Return *clock* with weekday and part of the day as they stand around it, and the first token behind all that.

    Tokens before *used* belong to an earlier time.
    """
    left, weekday, part = _walked(tokens, range(clock.begin - 1, max(used, clock.begin - _REACH) - 1, -1), None, None)
    if clock.begin > used and weekday is None and tokens[clock.begin - 1].text in _SHORT:
        left, weekday = clock.begin - 1, _SHORT[tokens[clock.begin - 1].text]
    right, weekday, part = _walked(
        tokens,
        range(clock.end, min(len(tokens), clock.end + _REACH)),
        weekday,
        part,
    )
    begin = clock.begin if left is None else left
    end = clock.end if right is None else right + 1
    minute = clock.minute
    if clock.is_open and part is not None:
        minute = (_shifted(minute // 60, part) * 60 + minute % 60) % DAY
    return Moment(weekday, minute, text[tokens[begin].start : tokens[end - 1].end]), end


def _walked(
    tokens: list[_Token], places: range, weekday: int | None, part: str | None
) -> tuple[int | None, int | None, str | None]:
    """Return the farthest of *places* that tells something of a clock beside them, the weekday and part known then."""
    farthest = None
    for place in places:
        word = tokens[place].word
        if word in _WEEKDAYS and weekday is None:
            weekday, farthest = _WEEKDAYS.index(word), place
        elif word in _PARTS and part is None:
            part, farthest = _PARTS[word], place
        elif word not in _LINKS:
            break
    return farthest, weekday, part
