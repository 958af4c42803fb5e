"""The English words of days, clocks and lengths of time with their values, and nothing else."""

from fractions import Fraction
from typing import Final, NamedTuple

from quantities.numerals import words as numerals

#: Small whole numbers in words.
CARDINALS: Final = {**numerals.UNITS, **numerals.TEENS, **numerals.TENS}
TENS: Final = frozenset(numerals.TENS)
#: Scale words of counts of time ("a million years").
SCALES: Final = {"thousand": 1000, "million": 10**6, "billion": 10**9}

_BELOW_TWENTY = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth twentieth"
)
#: "first" is 1, up to "thirty-first", whose halves are read apart.
ORDINALS: Final = {word: number for number, word in enumerate(_BELOW_TWENTY.split(), start=1)} | {"thirtieth": 30}
#: Endings of an ordinal in digits.
ORDINAL_ENDINGS: Final = frozenset({"st", "nd", "rd", "th", "er"})

#: Names of parts of a unit ("a third of an hour").
PARTS: Final = {
    "half": Fraction(1, 2), "quarter": Fraction(1, 4), "third": Fraction(1, 3), "fifth": Fraction(1, 5),
    "sixth": Fraction(1, 6), "eighth": Fraction(1, 8), "tenth": Fraction(1, 10),
}  # fmt: skip
VULGAR: Final = {
    "½": Fraction(1, 2), "¼": Fraction(1, 4), "¾": Fraction(3, 4), "⅓": Fraction(1, 3), "⅔": Fraction(2, 3),
    "⅕": Fraction(1, 5), "⅛": Fraction(1, 8),
}  # fmt: skip


class LengthUnit(NamedTuple):
    """One unit of time: calendar *months*, or *seconds* of the clock; one of the two is 0. *rank* orders by size."""

    months: int
    seconds: Fraction
    rank: int


def _clock(seconds: int | Fraction, rank: int) -> LengthUnit:
    return LengthUnit(0, Fraction(seconds), rank)


NANOSECOND, MICROSECOND = _clock(Fraction(1, 10**9), 0), _clock(Fraction(1, 10**6), 1)
MILLISECOND, SECOND, MINUTE, HOUR = _clock(Fraction(1, 1000), 2), _clock(1, 3), _clock(60, 4), _clock(3600, 5)
DAY, WEEK, FORTNIGHT = _clock(86_400, 6), _clock(604_800, 7), _clock(1_209_600, 8)
MONTH, YEAR = LengthUnit(1, Fraction(0), 9), LengthUnit(12, Fraction(0), 10)
DECADE, CENTURY, MILLENNIUM = (LengthUnit(12 * years, Fraction(0), 10 + power) for power, years in enumerate(
    (10, 100, 1000), start=1))  # fmt: skip

_NAMES: Final = (
    (NANOSECOND, "nanosecond nanoseconds nanosec nanosecs"), (MICROSECOND, "microsecond microseconds"),
    (MILLISECOND, "millisecond milliseconds millisec millisecs msec msecs"), (SECOND, "second seconds sec secs"),
    (MINUTE, "minute minutes min mins"), (HOUR, "hour hours hr hrs"), (DAY, "day days"), (WEEK, "week weeks wk wks"),
    (FORTNIGHT, "fortnight fortnights"), (MONTH, "month months mth mths mos"), (YEAR, "year years yr yrs"),
    (DECADE, "decade decades"), (CENTURY, "century centuries"), (MILLENNIUM, "millennium millennia millenniums"),
)  # fmt: skip
#: Names that stand for a unit after any count.
UNITS: Final = {name: unit for unit, names in _NAMES for name in names.split()}
#: Short names that mean a unit only right after digits; "m" only beside another of them ("1h30m").
SHORT_UNITS: Final = {
    "ns": NANOSECOND, "us": MICROSECOND, "µs": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "h": HOUR, "d": DAY,
    "w": WEEK, "mo": MONTH, "mos": MONTH, "mon": MONTH, "y": YEAR, "m": MINUTE,
}  # fmt: skip

_MONTH_NAMES = "january february march april may june july august september october november december"
MONTHS: Final = {name: number for number, name in enumerate(_MONTH_NAMES.split(), start=1)} | {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10, "nov": 11,
    "dec": 12,
}  # fmt: skip
#: Months whose name is another word too: they count only beside a day, a year or "in".
UNSURE_MONTHS: Final = frozenset({"may", "march", "mar", "jan", "august", "dec", "sep", "jun", "oct"})

_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
WEEKDAYS: Final = {name: number for number, name in enumerate(_WEEKDAY_NAMES.split())} | {
    "mon": 0, "tue": 1, "tues": 1, "wed": 2, "weds": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4, "sat": 5, "sun": 6,
}  # fmt: skip
#: Weekdays whose short name is another word too: they count only beside a date or "next", "last", "this", "on".
UNSURE_WEEKDAYS: Final = frozenset({"mon", "tue", "wed", "thu", "fri", "sat", "sun"})

#: Days that are called by a name, as month and day, by its first word and its last; "new" has "year's" between them.
FEASTS: Final = {
    "christmas": {"day": (12, 25), "eve": (12, 24)}, "new": {"day": (1, 1), "eve": (12, 31)},
    "boxing": {"day": (12, 26)}, "valentine": {"day": (2, 14)}, "valentines": {"day": (2, 14)},
}  # fmt: skip

#: Days from the day of speaking.
RELATIVE_DAYS: Final = {"today": 0, "tonight": 0, "tomorrow": 1, "tmrw": 1, "tomorow": 1, "yesterday": -1}
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
