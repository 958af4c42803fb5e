"""The English words of days, clocks and lengths of time with their values, and what can open or tell a time."""

from fractions import Fraction
from typing import Final, NamedTuple

from tasklore.contracts.quantities.numerals.words import OPENING_WORDS, TEENS, TENS
from tasklore.contracts.quantities.numerals.words import ORDINALS as PLACES
from tasklore.contracts.quantities.numerals.words import UNITS as SMALL
from tasklore.contracts.quantities.sentence import Sentence

#: "first" is 1, up to "thirty-first", whose halves are read apart.
ORDINALS: Final = {word: place for word, place in PLACES.items() if place <= 31}
#: Endings of an ordinal in digits.
ORDINAL_ENDINGS: Final = frozenset({"st", "nd", "rd", "th"})


class LengthUnit(NamedTuple):
    """One unit of time: calendar *months*, or *seconds* of the clock; one of the two is 0. *rank* orders by size."""

    months: int
    seconds: Fraction
    rank: int


def _clock(seconds: int | Fraction, rank: int) -> LengthUnit:
    return LengthUnit(0, Fraction(seconds), rank)


NANOSECOND = _clock(Fraction(1, 10**9), 0)
MICROSECOND = _clock(Fraction(1, 10**6), 1)
MILLISECOND = _clock(Fraction(1, 1000), 2)
SECOND = _clock(1, 3)
MINUTE = _clock(60, 4)
HOUR = _clock(3600, 5)
DAY = _clock(86_400, 6)
WEEK = _clock(604_800, 7)
FORTNIGHT = _clock(1_209_600, 8)
MONTH = LengthUnit(1, Fraction(0), 9)
YEAR = LengthUnit(12, Fraction(0), 10)
DECADE, CENTURY, MILLENNIUM = (LengthUnit(12 * years, Fraction(0), 10 + power) for power, years in enumerate(
    (10, 100, 1000), start=1))  # fmt: skip

_NAMES: Final = (
    (NANOSECOND, "nanosecond nanoseconds"), (MICROSECOND, "microsecond microseconds"),
    (MILLISECOND, "millisecond milliseconds millisec millisecs msec msecs"), (SECOND, "second seconds sec secs"),
    (MINUTE, "minute minutes min mins"), (HOUR, "hour hours hr hrs"), (DAY, "day days"), (WEEK, "week weeks wk wks"),
    (FORTNIGHT, "fortnight fortnights"), (MONTH, "month months mth mths mos"), (YEAR, "year years yr yrs"),
    (DECADE, "decade decades"), (CENTURY, "century centuries"), (MILLENNIUM, "millennium millennia"),
)  # fmt: skip
#: Names that stand for a unit after any count.
UNITS: Final = {name: unit for unit, names in _NAMES for name in names.split()}
#: Short names that mean a unit only right after digits; "m" only beside another of them ("1h30m").
SHORT_UNITS: Final = {
    "ns": NANOSECOND, "us": MICROSECOND, "µs": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "h": HOUR, "d": DAY,
    "w": WEEK, "mo": MONTH, "y": YEAR, "m": MINUTE,
}  # fmt: skip

_MONTH_NAMES = "january february march april may june july august september october november december"
MONTHS: Final = {name: number for number, name in enumerate(_MONTH_NAMES.split(), start=1)} | {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10, "nov": 11,
    "dec": 12,
}  # fmt: skip
#: Months whose name is another word too: they count only beside a day, a year or "in".
UNSURE_MONTHS: Final = frozenset(
    {"may", "march", "mar", "jan", "august", "dec", "sep", "jun", "oct"}
)

_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
WEEKDAYS: Final = {name: number for number, name in enumerate(_WEEKDAY_NAMES.split())} | {
    "mon": 0, "tue": 1, "tues": 1, "wed": 2, "weds": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4, "sat": 5, "sun": 6,
}  # fmt: skip
#: Weekdays whose short name is another word too: they count only beside a date or "next", "last", "this", "on".
UNSURE_WEEKDAYS: Final = frozenset({"mon", "tue", "wed", "thu", "fri", "sat", "sun"})

#: Days from the day of speaking.
RELATIVE_DAYS: Final = {
    "today": 0,
    "tonight": 0,
    "tomorrow": 1,
    "tmrw": 1,
    "yesterday": -1,
}
#: Which one of a row of weeks, months or weekdays.
STEPS: Final = {
    "this": 0, "current": 0, "next": 1, "coming": 1, "upcoming": 1, "following": 1, "last": -1, "previous": -1,
    "past": -1, "prior": -1,
}  # fmt: skip

#: Offsets from UTC in minutes of abbreviations of zones; those with two meanings give two.
ZONES: Final = {
    "utc": (0,), "gmt": (0,), "z": (0,), "wet": (0,), "west": (60,), "cet": (60,), "cest": (120,), "eet": (120,),
    "eest": (180,), "msk": (180,), "est": (-300,), "edt": (-240,), "cdt": (-300,), "mdt": (-360,), "pst": (-480,),
    "pdt": (-420,), "jst": (540,), "kst": (540,), "aest": (600,), "aedt": (660,), "nzst": (720,), "nzdt": (780,),
    "cst": (-360, 480), "ist": (330, 60), "bst": (60, 360), "mst": (-420, 480), "ast": (-240, 180), "sgt": (480,),
    "hkt": (480,), "awst": (480,), "acst": (570,), "acdt": (630,), "akst": (-540,), "akdt": (-480,), "hst": (-600,),
    "sast": (120,), "pkt": (300,),
}  # fmt: skip

_OTHERS: Final = (
    "couple another all full whole entire in at noon midday midnight now between from since q h the day end start"
    " beginning first last week month quarter year"
)
#: Words that can open a length, a day, a time or a period; no other word is looked at twice.
_OPENERS: Final = (
    frozenset(_OTHERS.split()) | OPENING_WORDS | frozenset(ORDINALS) | frozenset(WEEKDAYS) | frozenset(STEPS)
    | frozenset(MONTHS) | frozenset(RELATIVE_DAYS)
)  # fmt: skip
#: Of these openers the next word has to be one too: "in 3 days" and "at noon", not "in Lima" and "at Nobu".
_LEADS: Final = frozenset({"in", "at"})


def may_open(sentence: Sentence, place: int) -> bool:
    """False when nothing of time can start with the token at *place*; most tokens of most texts cost this look."""
    kind, text, *_ = sentence.tokens[place]
    if kind == "number":
        return sentence.kind(place + 1) in {"word", "fraction"} or sentence.symbol(
            place + 1
        ) in {"-", "."}
    if kind != "word":
        return kind != "symbol" or text == "@"
    if text in _LEADS:
        after = sentence.word(place + 1)
        return after in _OPENERS if after else sentence.kind(place + 1) != ""
    return text in _OPENERS


def small_at(sentence: Sentence, place: int) -> tuple[int, int] | None:
    """Return the number below a hundred in words at *place* ("five", "forty-five") and the place after it."""
    word = sentence.word(place)
    if (tens := TENS.get(word)) is not None:
        after = sentence.after_hyphen(place + 1)
        unit = SMALL.get(sentence.word(after), 0)
        return (tens + unit, after + 1) if unit else (tens, place + 1)
    value = TEENS.get(word, SMALL.get(word))
    return None if value is None else (value, place + 1)


def ordinal_at(sentence: Sentence, place: int) -> tuple[int, int] | None:
    """Return the ordinal at *place* ("5th", "fifth", "twenty-first") and the place after it, or None."""
    number = sentence.whole(place)
    if number is not None:
        is_ordinal = (
            sentence.is_glued(place + 1) and sentence.word(place + 1) in ORDINAL_ENDINGS
        )
        return (number, place + 2) if is_ordinal else None
    word = sentence.word(place)
    if word in TENS:
        after = sentence.after_hyphen(place + 1)
        rest = ORDINALS.get(sentence.word(after), 0)
        return (TENS[word] + rest, after + 1) if 0 < rest < 10 else None
    return (ORDINALS[word], place + 1) if word in ORDINALS else None
