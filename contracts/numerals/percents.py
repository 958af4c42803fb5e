"""Which of the numbers in a sentence are percentages, where the word or the sign is not right behind them."""

import re
from collections.abc import Iterator
from dataclasses import replace

from contracts.numerals.found import Found

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
    r"[.)]%| ?(?:\((?:%|percent|per cent|pct)\)|(?:p\.c\.|per centum)(?!\w))|\r?\n(?:percent|per cent)(?!\w)",
    re.IGNORECASE,
)
#: What stands between the ends of a span, hyphens and a "plus" left out: "twenty-to-thirty", "-10 to plus 10".
_TO = frozenset({"", "\u2013", "\u2014", "~", "to", "up to", "or"})


def percents_of(amounts: tuple[Found, ...], text: str) -> Iterator[Found]:
    """Yield the percentages among the *amounts* of *text*, both ends of a span and the 210 of "per cent of 210"."""
    previous_end = 0
    for amount, following in zip(amounts, (*amounts[1:], None), strict=False):
        before = text[max(previous_end, amount.start - _PERCENT_OF) : amount.start]
        previous_end = amount.end
        if amount.unit == "%":
            yield amount
        elif amount.unit is not None:
            continue
        elif before.rstrip().lower().endswith(_OF_PERCENT):
            yield replace(amount, unit="%")
        elif behind := _BEHIND.match(text, amount.end):
            end = behind.end()
            yield replace(amount, unit="%", end=end, text=text[amount.start : end], said_unit=behind.group().strip())
        elif following is not None and following.unit == "%" and _is_span(before, text[amount.end : following.start]):
            yield replace(amount, unit="%", said_unit=following.said_unit)


def _is_span(before: str, gap: str) -> bool:
    """True between the ends of "10-15 %" and "between 10 and 15 %"."""
    joint = gap.strip(" -").removesuffix("plus").rstrip()
    is_joined = joint in _TO and gap.strip() != ""
    return is_joined or (joint == "and" and before.lower().endswith("between "))
