"""The key of a question: one readable spelling for one set of parameters, and never the same for two.

Every value counts, in declared field order:

| value | spelled |
|---|---|
| number | canonical decimal: `50000`, `0.5`, `-3`; a unit follows it: `50000USD`; NaN and infinities have no key |
| percentage, quantity | `20%%25`; in the base unit of the dimension: 5 km is `5000m` |
| None | `~none` |
| empty list of field `history` | `no_history`; inside a list `()` |
| list, tuple | items joined by `,`; a nested one in parentheses; `[None]` is `~none,` |
| set, mapping | as a list, sorted; a mapping as `name=value` items in braces that are percent-escaped |
| bool | `true`, `false` |
| text | percent-escaped UTF-8; its first character too when the text could be taken for one of the above |
| time, date, moment | ISO 8601 in UTC, percent-escaped; a day has no time |
| duration | seconds followed by `s`; calendar months before them, followed by `mo`: `18mo`, `1mo3600s` |

Past 120 characters the key is a readable prefix, `~` and 26 characters of base32 BLAKE2b-128 of the whole.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic import BaseModel

from tasklore.contracts.quantities.amounts import Amount, canonical
from tasklore.contracts.quantities.amounts.spellings import WIDE
from tasklore.contracts.quantities.units import base_code

if TYPE_CHECKING:
    from tasklore.contracts.quantities.amounts import Duration, Quantity

#: Characters; longer keys are cut and hashed so that logs stay readable and Redis keys small.
MAX_KEY = 120

#: Where the types live that are loaded late.
_AMOUNTS = "tasklore.contracts.quantities.amounts."
#: Bits of a whole number from which on its key is in sixteens.
_LONGEST_WHOLE = 14_000
_MICROSECONDS = Decimal(1_000_000)
_DIGEST = 26
_READABLE = MAX_KEY - _DIGEST - 1
#: Text that starts like a number, a word of ours or an emptiness mark.
_MISTAKABLE = re.compile(r"[0-9-]|no_|(true|false)$")


def question_key(task_name: str, values: list[str]) -> str:
    """Return the key of asking *task_name* with *values*, each spelled by `spell_field`."""
    whole = ":".join((task_name, *values))
    if len(whole) <= MAX_KEY:
        return whole
    digest = hashlib.blake2b(whole.encode(), digest_size=16).digest()
    return (
        f"{whole[:_READABLE]}~{base64.b32encode(digest).decode().rstrip('=').lower()}"
    )


def spell_field(name: str, value: Any, *, bare_list: bool = True) -> str:
    """Return the spelling of *value* as the whole field *name*.

    *bare_list* is False for a field that takes a list or something else: then a list keeps its parentheses, so that
    `[5]` and `5` stay two questions.

    Raises:
        TypeError: a value has no agreed spelling: one of another type, no finite number, or nested too deeply.
    """
    if type(value) is Amount:
        return _spell_amount(value)
    try:
        if isinstance(value, list | tuple):
            if not value:
                return f"no_{name}"
            if bare_list:
                # most lists hold amounts: one call less for each of them
                spelled = ",".join(
                    [
                        _spell_amount(item) if type(item) is Amount else _spell(item)
                        for item in value
                    ]
                )
                # A list of nothing but None must not read as None.
                return spelled + "," if spelled == "~none" else spelled
        return _spell(value)
    except RecursionError as error:
        msg = f"{name} is nested too deeply to have a key; send a flatter value"
        raise TypeError(msg) from error


def _spell(value: Any) -> str:
    kind = type(value)
    speller = _SPELLERS.get(kind)
    if speller is None and kind.__module__.startswith(_AMOUNTS):
        speller = _late_spellers().get(kind)
    if speller is not None:
        return speller(value)
    for kind, fitting in _SPELLERS.items():
        if isinstance(value, kind):
            return fitting(value)
    msg = f"a {type(value).__name__} has no agreed spelling in a key; use numbers, text, times, lists or models of them"
    raise TypeError(msg)


def _spell_amount(amount: Amount) -> str:
    # An amount is normalised: its own spelling is the canonical one, unless that has an exponent.
    number = str(amount.value)
    if "E" in number:
        number = canonical(amount.value)
    return number if amount.unit is None else f"{number}{_spell_unit(amount.unit)}"


@lru_cache(256)
def _spell_unit(unit: str) -> str:
    # A unit that began like the exponent or the digits of a number would read on into it.
    return quote(unit, safe="") if unit[0].isalpha() else "%" + quote(unit, safe="")


def _spell_quantity(quantity: "Quantity") -> str:
    worth, dimension = quantity.base
    return f"{canonical(worth)}{_spell_unit(base_code(dimension))}"


def _spell_number(number: Decimal | float) -> str:
    exact = number if isinstance(number, Decimal) else Decimal(repr(number))
    if not exact.is_finite():
        msg = f"{number!r} is not a finite number and has no spelling in a key; send a number"
        raise TypeError(msg)
    return canonical(exact)


def _spell_whole(number: int) -> str:
    # past this Python refuses to spell it in tens
    return str(number) if number.bit_length() < _LONGEST_WHOLE else f"{number:#x}"


def _spell_text(text: str) -> str:
    if not text:
        return "%"
    # letters and digits alone are spelled as they are
    is_plain = text.isascii() and text.isalnum()
    escaped = (
        text
        if is_plain
        else quote(text, safe="", errors="surrogatepass").replace("~", "%7E")
    )
    return f"%{ord(text[0]):02X}{escaped[1:]}" if _MISTAKABLE.match(text) else escaped


def _spell_sequence(items: list[Any] | tuple[Any, ...]) -> str:
    return f"({','.join([_spell(item) for item in items])})"


def _spell_set(items: set[Any] | frozenset[Any]) -> str:
    return f"({','.join(sorted(_spell(item) for item in items))})"


def _spell_mapping(items: Mapping[Any, Any]) -> str:
    pairs = sorted(f"{_spell(name)}={_spell(value)}" for name, value in items.items())
    return f"%({','.join(pairs)})"


def _spell_model(model: BaseModel) -> str:
    values = ",".join(
        [_spell(getattr(model, name)) for name in type(model).model_fields]
    )
    return f"{quote(type(model).__name__)}({values})"


def _spell_moment(moment: datetime) -> str:
    try:
        return quote(
            (moment.astimezone(UTC) if moment.tzinfo else moment).isoformat(), safe=""
        )
    except OverflowError as error:
        msg = f"{moment.isoformat()} is past the calendar in UTC and has no key; send years 1 to 9999"
        raise TypeError(msg) from error


def _spell_time(hour: time) -> str:
    if (offset := hour.utcoffset()) is not None:
        # any day that has one before and one after it
        hour = (
            (datetime.combine(date(2000, 1, 2), hour.replace(tzinfo=None)) - offset)
            .time()
            .replace(tzinfo=UTC)
        )
    return quote(hour.isoformat(), safe="")


def _spell_duration(duration: "Duration") -> str:
    months = f"{canonical(duration.months)}mo" if duration.months else ""
    return (
        f"{months}{canonical(duration.seconds)}s"
        if duration.seconds or not months
        else months
    )


def _spell_span(span: timedelta) -> str:
    return (
        canonical(
            WIDE.divide(Decimal(span // timedelta(microseconds=1)), _MICROSECONDS)
        )
        + "s"
    )


@cache
def _late_spellers() -> dict[type, Callable[[Any], str]]:
    """Return the spellers of the types that most agents never load."""
    # imported only once one of them is asked
    from tasklore.contracts.quantities.amounts import (
        Duration,
        Moment,
        Percent,
        Quantity,
    )

    return {
        Duration: _spell_duration,
        Moment: lambda moment: quote(str(moment), safe=""),
        Percent: lambda percent: f"{canonical(percent.value)}{_spell_unit('%')}",
        Quantity: _spell_quantity,
    }


_SPELLERS: dict[type, Callable[[Any], str]] = {
    Amount: _spell_amount,
    str: _spell_text,
    bool: lambda flag: "true" if flag else "false",
    int: _spell_whole,
    Decimal: _spell_number,
    float: _spell_number,
    type(None): lambda _: "~none",
    list: _spell_sequence,
    tuple: _spell_sequence,
    datetime: _spell_moment,
    date: lambda day: quote(day.isoformat(), safe=""),
    time: _spell_time,
    timedelta: _spell_span,
    set: _spell_set,
    frozenset: _spell_set,
    Enum: lambda member: _spell(member.value),
    BaseModel: _spell_model,
    Mapping: _spell_mapping,
}
