"""Degrees said with one letter: "68 F", "set it to 20 C"; elsewhere such a letter is a seat, a grade or cents."""

import re

from tasklore.contracts.quantities.units.codes import Unit

_CELSIUS = Unit("°C")
_FAHRENHEIT = Unit("°F", also=("farad",))
_LETTER = re.compile(r" ?([CF])(?![\w'\u2019])", re.IGNORECASE)
#: The whole of an answer: "68 F", "-5 C"; a glued "20C" alone are cents.
_ALONE = re.compile(r"\s*(?:[-+]|minus )?\d[\d.,]{0,8}(?: [CF]|F)\s*[.!]?\s*")
#: What a thermometer stands at: "set it to 68F"; a seat or a page has fewer digits or another word before it.
_STANDS_AT = re.compile(
    r"\b(?:to|at|is|was|below|above|under|over|around|about|near|reach(?:es|ed)?|hits?) -?\d{1,3}(?:\.\d)? ?$",
    re.IGNORECASE,
)
#: Characters that hold a number and the word before it.
_BEFORE = 24


def degrees_after(text: str, end: int) -> tuple[Unit, int] | None:
    """Return the degrees that one letter says after the number that ends at *end* of *text*, and where it ends.

    An F can also be that of farads, for a field that declares a capacitance.
    """
    letter = _LETTER.match(text, end)
    # "20c" are cents in any weather
    if letter is None or letter.group() == "c":
        return None
    is_alone = len(text) <= _BEFORE and _ALONE.fullmatch(text)
    if not is_alone and not _STANDS_AT.search(text, max(0, end - _BEFORE), end):
        return None
    return (_FAHRENHEIT if letter[1] in "Ff" else _CELSIUS), letter.end()
