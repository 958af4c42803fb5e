"""Money: an amount that names its currency and keeps it.

JSON schema: `{"anyOf": [{"type": "string", "format": "money"}, {"value", "unit"}]}`; on the wire a value with its unit.
"""

import re
from contextlib import suppress
from decimal import Decimal
from typing import Annotated, Final, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from tasklore.contracts.quantities.amounts.amount import Amount
from tasklore.contracts.quantities.amounts.frozen import refusal
from tasklore.contracts.quantities.amounts.spellings import (
    canonical,
    kept,
    shown,
    unmistakable,
    worth,
)
from tasklore.contracts.quantities.errors import (
    AmbiguousAmount,
    InvalidAmount,
    UnitMismatch,
)
from tasklore.contracts.quantities.units import CURRENCIES, Unit, unit_named

__all__ = [
    "FORMAT",
    "Money",
    "currencies_meant",
    "is_money",
    "read_money",
    "spell_money",
]

#: The `format` of the text in its JSON schema.
FORMAT: Final = "money"
#: Names that several currencies share and that mean one of them unless another is said: "$5" are US dollars.
_SETTLED: Final = frozenset(
    (unit.code, unit.also)
    for name in ("dollar", "pound", "pence", "$", "£", "won", "ruble")
    if (unit := unit_named(name)) is not None
)
_WRITTEN = re.compile(r"(-?\d{1,60}(?:\.\d{1,60})?) ([A-Z]{3,4})")


class _KeptCurrency:
    """Has pydantic take an Amount for money: with a currency alone, which is kept."""

    __slots__ = ()

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(_validate, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe both shapes of the wire; a result has the object alone."""
        number: JsonSchemaValue = {"type": "number"}
        text: JsonSchemaValue = {"type": "string"}
        is_result = handler.mode == "serialization"
        described: JsonSchemaValue = {
            "type": "object",
            "properties": {
                "value": number if is_result else {"anyOf": [number, text]},
                "unit": text,
            },
            "required": ["value", "unit"],
            "additionalProperties": False,
        }
        if is_result:
            return described | {"description": "Money: a number and its currency."}
        return {
            "anyOf": [{**text, "format": FORMAT}, described],
            "description": "Money with its currency: '120 EUR', '$5', or a value with its unit ('USD').",
        }


_KEPT: Final = _KeptCurrency()
#: An Amount in whatever currency it was given, never without one. Amounts of two currencies do not add up and cannot
#: be compared, and each is another question.
Money = Annotated[Amount, _KEPT]


def read_money(raw: object, unit: str | None = None) -> Amount:
    """Return *raw* (wording, `{"value", "unit"}`, Amount, or the text of `spell_money`) with the currency it names.

    With *unit*, the code of a currency, a number without one is in that, and so is a name that may mean it.

    Raises:
        InvalidAmount: no finite number, or more digits than are kept exactly.
        AmbiguousAmount: two readings, or a name that several currencies share ("80 kr").
        UnitMismatch: no currency is named, or another unit.
    """
    if isinstance(raw, str) and (written := _WRITTEN.fullmatch(raw)):
        number = kept(Decimal(written[1]), raw)
        # Any other spelling of a number is left to the reader of words, which asks about "1.234 EUR".
        if written[2] in CURRENCIES and unmistakable(number) == written[1]:
            return Amount(number, written[2])
    if unit is not None:
        with suppress(UnitMismatch):
            return Amount.read(raw, unit=unit)
    if isinstance(raw, Amount):
        return _in_its_currency(raw.value, Unit(raw.unit) if raw.unit else None, raw)
    number, meant = worth(raw)
    return _in_its_currency(number, meant, raw)


def currencies_meant(unit: Unit | None) -> tuple[str, ...]:
    """Return the codes of the currencies that *unit* can mean: one where it is known, none for a measure."""
    if unit is None:
        return ()
    codes = tuple(code for code in (unit.code, *unit.also) if code in CURRENCIES)
    return codes[:1] if (unit.code, unit.also) in _SETTLED else codes


def _in_its_currency(number: Decimal, unit: Unit | None, raw: object) -> Amount:
    codes = currencies_meant(unit)
    if not codes:
        said = f"is in {unit.code}" if unit else "names no currency"
        raise UnitMismatch(
            f"{shown(raw)} {said} where money is expected; send it with its currency, as '{unmistakable(number)} EUR'"
        )
    if len(codes) > 1:
        told = [f"{canonical(number)} {code}" for code in codes]
        raise AmbiguousAmount(
            raw if isinstance(raw, str) else shown(raw),
            told,
            f"say which currency, as {told[0]!r}",
        )
    return Amount(number, codes[0])


def spell_money(amount: Amount) -> str:
    """Return *amount* as the text that `read_money` reads as exactly that: "120 JPY"."""
    return f"{unmistakable(amount.value)} {amount.unit}"


def is_money(annotation: object) -> bool:
    """Return whether *annotation* is `Money`, or may be it, as an item too."""
    marks = getattr(annotation, "__metadata__", ())
    return any(one is _KEPT for one in marks) or any(
        map(is_money, get_args(annotation))
    )


def _validate(raw: object) -> Amount:
    try:
        return read_money(raw)
    except InvalidAmount as error:
        raise refusal(error) from error
