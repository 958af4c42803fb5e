"""The key of a question: one readable spelling for one set of parameters, and never the same for two.

Every value counts, in declared field order:

| value | spelled |
|---|---|
| number | canonical decimal: `50000`, `0.5`, `-3`; a unit follows it: `50000USD` |
| None | `~none` |
| empty list of field `history` | `no_history`; inside a list `()` |
| list, tuple | items joined by `,`; a nested one in parentheses; `[None]` is `~none,` |
| set, mapping | as a list, sorted; a mapping as `name=value` items in braces that are percent-escaped |
| bool | `true`, `false` |
| text | percent-escaped UTF-8; its first character too when the text could be taken for one of the above |
| time, date, duration | ISO 8601 in UTC, percent-escaped; seconds followed by `s` |

Past 120 characters the key is a readable prefix, `~` and 26 characters of base32 BLAKE2b-128 of the whole.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from contracts.amounts import Amount, canonical

#: Characters; longer keys are cut and hashed so that logs stay readable and Redis keys small.
MAX_KEY = 120

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
    return f"{whole[:_READABLE]}~{base64.b32encode(digest).decode().rstrip('=').lower()}"


def spell_field(name: str, value: Any, *, bare_list: bool = True) -> str:
    """Return the spelling of *value* as the whole field *name*.

    *bare_list* is False for a field that takes a list or something else: then a list keeps its parentheses, so that
    `[5]` and `5` stay two questions.

    Raises:
        TypeError: a value of this type has no agreed spelling.
    """
    if isinstance(value, list | tuple):
        if not value:
            return f"no_{name}"
        if bare_list:
            spelled = ",".join([_spell(item) for item in value])
            # A list of nothing but None must not read as None.
            return spelled + "," if spelled == "~none" else spelled
    return _spell(value)


def _spell(value: Any) -> str:
    speller = _SPELLERS.get(type(value))
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


def _spell_unit(unit: str) -> str:
    # A unit that began like the exponent or the digits of a number would read on into it.
    return quote(unit, safe="") if unit[0].isalpha() else "%" + quote(unit, safe="")


def _spell_text(text: str) -> str:
    if not text:
        return "%"
    escaped = quote(text, safe="").replace("~", "%7E")
    return f"%{ord(text[0]):02X}{escaped[1:]}" if _MISTAKABLE.match(text) else escaped


def _spell_sequence(items: list[Any] | tuple[Any, ...]) -> str:
    return f"({','.join([_spell(item) for item in items])})"


def _spell_set(items: set[Any] | frozenset[Any]) -> str:
    return f"({','.join(sorted(_spell(item) for item in items))})"


def _spell_mapping(items: Mapping[Any, Any]) -> str:
    pairs = sorted(f"{_spell(name)}={_spell(value)}" for name, value in items.items())
    return f"%({','.join(pairs)})"


def _spell_model(model: BaseModel) -> str:
    values = ",".join([_spell(getattr(model, name)) for name in type(model).model_fields])
    return f"{quote(type(model).__name__)}({values})"


def _spell_moment(moment: datetime) -> str:
    return quote((moment.astimezone(UTC) if moment.tzinfo else moment).isoformat(), safe="")


_SPELLERS: dict[type, Callable[[Any], str]] = {
    Amount: _spell_amount,
    str: _spell_text,
    bool: lambda flag: "true" if flag else "false",
    int: str,
    Decimal: canonical,
    float: lambda number: canonical(Decimal(repr(number))),
    type(None): lambda _: "~none",
    list: _spell_sequence,
    tuple: _spell_sequence,
    datetime: _spell_moment,
    date: lambda day: quote(day.isoformat(), safe=""),
    time: lambda hour: quote(hour.isoformat(), safe=""),
    timedelta: lambda span: canonical(Decimal(span // timedelta(microseconds=1)) / 1_000_000) + "s",
    set: _spell_set,
    frozenset: _spell_set,
    Enum: lambda member: _spell(member.value),
    BaseModel: _spell_model,
    Mapping: _spell_mapping,
}
