"""Spans of time as people write and read them: `90s`, `15m`, `1h`, `30d`, `2w`."""

import re
from datetime import timedelta

from tasklore.contracts.errors import InvalidInput

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhdw])\Z")

#: Milliseconds of a unit, the largest first, for reading aloud.
_READ_AS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def parse_span(text: str, option: str) -> timedelta:
    """Return the span that *text* means; *option* is named in the error.

    Raises:
        InvalidInput: it is no number followed by s, m, h, d or w.
    """
    found = _SPAN.match(text.strip().lower())
    if found is None:
        msg = (
            f"{option} {text!r} is not a valid time span; write a number and a unit, "
            "such as 90s, 15m, 1h, 30d or 2w"
        )
        raise InvalidInput(msg)
    try:
        return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])
    except OverflowError as error:
        raise InvalidInput(
            f"{option} {text!r} is too long; write a shorter time span, such as 30d"
        ) from error


def read_aloud(milliseconds: float | None) -> str:
    """Return *milliseconds* in the largest unit that fits, such as "3 h"; None is "never ends"."""
    if milliseconds is None:
        return "for ever"
    for size, unit in _READ_AS:
        if milliseconds >= size:
            return f"{milliseconds / size:.0f} {unit}"
    return f"{milliseconds:.0f} ms"
