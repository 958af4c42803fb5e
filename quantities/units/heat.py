"""Degrees said with one letter: "68 F", "20C outside"; elsewhere such a letter is a seat, a grade or cents."""

import re
from collections.abc import Callable

from quantities.units.codes import Unit

_CELSIUS, _FAHRENHEIT = Unit("°C"), Unit("°F", also=("farad",))

#: Degrees are those of a temperature in a sentence about one.
_SPEAKS_OF_HEAT = re.compile(
    r"\b(?:temperatures?|weather|heat(?:ed|ing|er)?|thermostat|oven|preheat(?:ed)?|bake[ds]?|roast(?:ed)?|fever|hot|"
    r"hotter|cold|colder|cool|cooler|warm|warmer|shade|chilly|freez(?:es?|ing|er)|fridge|boil(?:s|ing)?|melts?|outside|"
    r"celsius|fahrenheit|forecast|air conditioning|degrees below zero|it(?:'s| is| was) minus)\b",
    re.IGNORECASE,
)
_LETTER = re.compile(r" ?([CF])(?![\w'\u2019])", re.IGNORECASE)
#: The whole of an answer: "68 F", "-5 C"; a glued "20C" alone are cents.
_ALONE = re.compile(r"\s*(?:[-+]|minus )?\d[\d.,]{0,8}(?: [CF]|F)\s*[.!]?\s*")
#: What a thermometer stands at: "set it to 68F"; a seat or a page has fewer digits or another word before it.
_STANDS_AT = re.compile(
    r"\b(?:to|at|is|was|below|above|under|over|around|about|near|reach(?:es|ed)?|hits?) -?\d{2,3}(?:\.\d)? ?$",
    re.IGNORECASE,
)
#: Characters that hold a number and the word before it.
_BEFORE = 24


def speaks_of_heat(text: str) -> bool:
    """True when *text* speaks of temperatures, so that its "24 degrees" are those of a thermometer."""
    return _SPEAKS_OF_HEAT.search(text) is not None


def degrees_after(text: str, end: int, is_heat: Callable[[], bool]) -> tuple[Unit, int] | None:
    """Return the degrees that one letter says after the number that ends at *end* of *text*, and where it ends.

    *is_heat* is asked whether the text speaks of heat, only where nothing nearer says so. An F can also be that of
    farads, for a field that declares a capacitance.
    """
    letter = _LETTER.match(text, end)
    # "20c" are cents in any weather
    if letter is None or letter.group() == "c":
        return None
    sign = letter.group(1)
    is_sure = (len(text) <= _BEFORE and _ALONE.fullmatch(text)) or (
        sign == "F" and _STANDS_AT.search(text, max(0, end - _BEFORE), end)
    )
    if not is_sure and not is_heat():
        return None
    return (_FAHRENHEIT if sign in "Ff" else _CELSIUS), letter.end()
