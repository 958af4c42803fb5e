"""Which of the numbers in a sentence are percentages, where the word or the sign is not right behind them."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from quantities.numerals.found import Found

#: Characters that "percentage of " takes before a number.
_PERCENT_OF = 16
_OF_PERCENT = (
    "percent of",
    "percents of",
    "per cent of",
    "per cents of",
    "percentage of",
    "percentages of",
    "pct of",
    "% of",
)
#: "30 (percent)", as tables head their columns, "(30)%", "30.%", the abbreviation, and a word on a new line.
_BEHIND = re.compile(
    r"[.)]%| ?(?:\((?:%|percent|per cent|pct)\)|(?:p\.c\.?|per centum)(?!\w))"
    r"|(?:\) |[\t\r\n]{1,2})(?:%|(?:percent|per cent|pct)(?!\w))",
    re.IGNORECASE,
)
#: What stands between the ends of a span, hyphens and a "plus" left out: "twenty-to-thirty", "-10 to plus 10".
_TO = frozenset(
    {"", "\u2013", "\u2014", "~", "..", "...", "to", "up to", "down to", "or", "through", "thru", "till", "until"}
)


#: What stands between the last two of a list, and before its first when that is a date ("in 5, 10 and 15 percent").
_LAST_JOINTS = frozenset({"and", "or", "&", ", and", ", or"})
_AFTER_DATE = re.compile(r"\b(?:in|on|since|during|until|till) $", re.IGNORECASE)
_YEARS = range(1900, 2101)
#: Numbers of a list that are looked at on either side of one, and characters between two of them.
_LONGEST_LIST, _WIDEST_JOINT = 12, 10


def percents_of(amounts: tuple[Found, ...], text: str) -> Iterator[Found]:
    """Yield the percentages among the *amounts* of *text*, all of "5, 10 and 15 %" and the 210 of "per cent of 210"."""
    percents: list[Found] = []
    for place in range(len(amounts) - 1, -1, -1):
        amount = amounts[place]
        before = text[max(amounts[place - 1].end if place else 0, amount.start - _PERCENT_OF) : amount.start]
        following = percents[-1] if percents else None
        found = _percent(amount, before, text)
        if found is None and amount.unit is None and following and following.start == _start(amounts, place):
            is_joined = _is_span(before, text[amount.end : following.start]) or _is_listed(amounts, place, text)
            found = replace(amount, unit="%", said_unit=following.said_unit) if is_joined else None
        if found is not None:
            percents.append(found)
    return reversed(percents)


def _start(amounts: tuple[Found, ...], place: int) -> int:
    return amounts[place + 1].start if place + 1 < len(amounts) else -1


def _is_listed(amounts: tuple[Found, ...], place: int, text: str) -> bool:
    """True for each of the bare numbers in "5, 10 and 15 %", three at least that rise; "40 and 60 %" can be 40 men."""
    first = last = place
    while first > max(0, place - _LONGEST_LIST) and _gap(amounts, first - 1, text) == ",":
        if amounts[first - 1].unit is not None:
            break
        first -= 1
    while last < place + _LONGEST_LIST and _gap(amounts, last, text) == ",":
        last += 1
    if last == first or _gap(amounts, last, text) not in _LAST_JOINTS:
        return False
    values = [amount.value for amount in amounts[first : last + 2]]
    start = amounts[first].start
    if values[0] in _YEARS or _AFTER_DATE.search(text, max(0, start - _PERCENT_OF), start):
        return False
    return all(one is not None and two is not None and one < two for one, two in pairwise(values))


def _gap(amounts: tuple[Found, ...], place: int, text: str) -> str:
    """Return what stands between the amount at *place* and the next one, "" behind the last."""
    start, end = amounts[place].end, _start(amounts, place)
    return text[start:end].strip().lower() if start < end < start + _WIDEST_JOINT else ""


def _percent(amount: Found, before: str, text: str) -> Found | None:
    """Return *amount* as a percentage when the word or the sign beside it says so."""
    if amount.unit is not None:
        return amount if amount.unit == "%" else None
    if before.rstrip().lower().endswith(_OF_PERCENT):
        return replace(amount, unit="%")
    if behind := _BEHIND.match(text, amount.end):
        end = behind.end()
        return replace(amount, unit="%", end=end, text=text[amount.start : end], said_unit=behind.group().strip())
    return None


def _is_span(before: str, gap: str) -> bool:
    """True between the ends of "10-15 %" and "between 10 and 15 %"."""
    joint = gap.strip(" -").removesuffix("plus").rstrip()
    # "1 in 4 or 25 %"
    is_joined = joint in _TO and gap.strip() != "" and not (joint == "or" and _AFTER_DATE.search(before))
    return is_joined or (joint == "and" and before.lower().endswith("between "))
