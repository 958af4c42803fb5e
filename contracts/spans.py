"""Spans of time as people write them in files: `90s`, `15m`, `2h`, `30d`, `2w`, or a number of seconds."""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhdw])\Z")


def read_span(text: str) -> timedelta | None:
    """Return the span that *text* means, None when it is no number followed by s, m, h, d or w."""
    found = _SPAN.match(text.strip().lower())
    if found is None:
        return None
    try:
        return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])
    except OverflowError:
        return None


def _read(value: Any) -> Any:
    span: timedelta | None
    if isinstance(value, str):
        span = read_span(value)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        span = value if isinstance(value, timedelta) else None
    else:
        span = _of_seconds(value)
    if span is None or span <= timedelta(0):
        kind = "span"
        text = "must be a span of time above zero, such as '90s', '15m' or '2h', or a number of seconds"
        raise PydanticCustomError(kind, text)
    return span


def _of_seconds(number: float) -> timedelta | None:
    try:
        return timedelta(seconds=number)
    except (OverflowError, ValueError):
        return None


#: A `timedelta` above zero; written as seconds.
Span = Annotated[
    timedelta,
    BeforeValidator(_read),
    PlainSerializer(lambda span: span.total_seconds(), return_type=float),
]
