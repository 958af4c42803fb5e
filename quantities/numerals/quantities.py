"""Quantities in English sentences: the amounts that are measured in something other than money or percent."""

import re
from collections.abc import Iterator
from dataclasses import replace

from quantities.numerals.finding import DecimalMark, Found, amounts_as_said
from quantities.numerals.found import plain
from quantities.units import CURRENCIES, measure_named
from quantities.units.heat import speaks_of_heat

#: Years and months that a living thing can count; a larger number beside "age" is something else.
_OLDEST = 130
_AGE_BEFORE = re.compile(r"\bage[ds]?(?: of| is|:| =)? $", re.IGNORECASE)
_NEAR = 12
#: With no money in the sentence and nothing counted after it, "48m" is a length.
_METRES = re.compile(r"[-+]?[\d.,]{1,12}m")
_COUNTED = re.compile(
    r" (?:[^\W\d_]{3,24}s|people|men|women|children|or|more|active|new|daily|monthly|of)(?!\w)", re.IGNORECASE
)
_SPEAKS_OF_MONEY = re.compile(
    r"[$€£¥₹]|\b(?:sterling|pence|price[sd]?|costs?|pay|pays|paid|spend|spends|spent|worth|salary|fees?|budgets?|bill|"
    r"money|dollars?|euros?|usd|eur|gbp|revenue|profits?|sales|debt|fund(?:ed|ing|s)?|invest(?:ed|ment)?|limit)\b",
    re.IGNORECASE,
)


def find_quantities(
    text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None
) -> tuple[Found, ...]:
    """Return every quantity in *text*, in order: its value as said, its unit as a code of `quantities.units`.

    "5 ft 2 in" is one quantity in feet, "two pounds" a weight, "age 87" 87 years. The degrees of a sentence about
    temperature are "°C" and can also be "°F". `measure_named(found.unit).dimension` tells times from lengths.
    """
    is_money = _SPEAKS_OF_MONEY.search(text) is not None
    is_heat = speaks_of_heat(text)
    amounts = amounts_as_said(text, decimal_mark=decimal_mark, locale=locale)
    return tuple(_measured(amounts, text, is_heat=is_heat, is_money=is_money))


def _measured(amounts: tuple[Found, ...], text: str, *, is_heat: bool, is_money: bool) -> Iterator[Found]:
    for found in amounts:
        if found.unit is None:
            if is_heat and found.text.endswith(" below zero"):
                yield replace(found, unit="°C", also=("°F",))
            else:
                yield from _unmarked(found, text, is_money=is_money)
        elif found.unit in CURRENCIES:
            weight = next((code for code in found.also if code not in CURRENCIES and measure_named(code)), None)
            if weight and not is_money and found.text.lower().endswith(("pound", "pounds")):
                yield replace(found, unit=weight, also=(found.unit,))
        elif found.unit != "%":
            heat = is_heat and found.unit == "degree"
            yield replace(found, unit="°C", also=("°F",)) if heat else found


def _unmarked(found: Found, text: str, *, is_money: bool) -> Iterator[Found]:
    """Read an age and a length in what `find_amounts` takes for a number and for millions."""
    if found.value is None:
        return
    before = _AGE_BEFORE.search(text[max(0, found.start - _NEAR) : found.start])
    if before and 0 <= found.value <= _OLDEST:
        start = found.start - len(before.group())
        yield replace(found, unit="year", start=start, text=text[start : found.end])
    elif (
        not is_money
        and _METRES.fullmatch(found.text)
        and not text.endswith("-", 0, found.start)
        and not _COUNTED.match(text, found.end)
    ):
        value = plain(found.value.scaleb(-6))
        yield replace(found, value=value, readings=(value,), unit="m", said=value)
