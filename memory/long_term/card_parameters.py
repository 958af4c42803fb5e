"""The parameters of a task of which only the card is at hand, as a class that reads and keys like the agent's own."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Optional, get_args, get_origin

from pydantic import PydanticUserError, create_model

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.parameters.currencies import names_currency
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.parameters.tolerances import read_tolerance
from tasklore.contracts.quantities import amounts
from tasklore.contracts.quantities.amounts import Amount
from tasklore.contracts.quantities.amounts.money import FORMAT, Money, is_money
from tasklore.contracts.quantities.amounts.rates import ExchangeRate
from tasklore.memory.long_term.result_files import TaskForm

_KINDS: dict[str, Any] = {
    "integer": int,
    "number": Decimal,
    "boolean": bool,
    "string": str,
}
_FORMATS: dict[str, Any] = {
    "date-time": datetime,
    "date": date,
    "time": time,
    "duration": timedelta,
}
#: Formats of the exact types, by whose name they are loaded: most cards have none.
_EXACT = {"percent": "Percent", "quantity": "Quantity", "moment": "Moment"}


def form_of(schema: Mapping[str, Any]) -> TaskForm:
    """Return the fields of *schema* in declared order, and which of them are lists."""
    properties = _schema(schema.get("properties"))
    lists = frozenset(
        name
        for name, field in properties.items()
        if _type(_without_null(field)[0]) == "array"
    )
    return TaskForm(tuple(properties), lists)


def parameters_of(task_name: str, schema: Mapping[str, Any]) -> type[Parameters]:
    """Return a class that accepts and keys values as the class behind *schema* does.

    Raises:
        InvalidInput: a field has a type whose key the schema does not determine, or declares what it cannot have.
    """
    fields: dict[str, Any] = {}
    properties = _inline(
        _schema(schema.get("properties")), _schema(schema.get("$defs"))
    )
    takes_money = any(
        _says_currency(name, _schema(one)) for name, one in properties.items()
    )
    for name, raw in properties.items():
        field = _schema(raw)
        kind = _kind(field, name)
        aliases = field.get("aliases")
        fields[name] = (
            kind,
            Field(
                # A list's default is a JSON list, a tuple's too: both are keyed alike. What is made anew each time
                # stands on no card: an entry that leaves it out cannot be keyed.
                field.get("default", ...),
                unit=field.get("unit"),
                any_currency=not is_money(kind)
                and (takes_money or field.get("any_currency") is True),
                convert=_unknown_rate if field.get("converts") is True else None,
                aliases=tuple(one for one in aliases if isinstance(one, str))
                if isinstance(aliases, list)
                else (),
                tolerance=_tolerance(field, kind),
                validate_default=True,
            ),
        )
    try:
        made: type[Parameters] = create_model(
            f"{task_name}_parameters", __base__=Parameters, **fields
        )
    except (TypeError, NameError, PydanticUserError) as error:
        raise InvalidInput(
            f"the card of {task_name} contradicts itself; fix its agent: {error}"
        ) from error
    return made


async def _unknown_rate(given: str, wanted: str) -> ExchangeRate:
    """Stand for the function of a task whose code is not at hand: amounts are read and keyed here, never converted."""
    raise InvalidInput(f"what {given} are in {wanted} is known to a worker alone")


def _says_currency(name: str, field: Mapping[str, Any]) -> bool:
    plain, _ = _without_null(field)
    choices = plain.get("enum") or ()
    return _type(plain) == "string" and names_currency(name, choices)


def _inline(part: Any, definitions: Mapping[str, Any]) -> Any:
    """Return *part* with its references to plain values (an enumeration) replaced by their definitions."""
    if isinstance(part, list):
        return [_inline(item, definitions) for item in part]
    if not isinstance(part, Mapping):
        return part
    meant = _schema(definitions.get(str(part.get("$ref", "")).rpartition("/")[2]))
    if _type(meant) in _KINDS:
        return {**meant, **part}
    return {word: _inline(value, definitions) for word, value in part.items()}


def _kind(field: Mapping[str, Any], name: str) -> Any:
    plain, may_be_none = _without_null(field)
    keeps_text = field.get("keeps_text") is True
    if _type(plain) != "array":
        kind = _scalar(plain, name, keeps_text=keeps_text)
    elif plain.get("uniqueItems") is True:
        # A set: its key has no order.
        kind = frozenset[_scalar(plain.get("items"), name, keeps_text=keeps_text)]  # type: ignore[misc]  # made at run time
    else:
        kind = tuple[_scalar(plain.get("items"), name, keeps_text=keeps_text), ...]  # type: ignore[misc]  # made at run time
    return Optional[kind] if may_be_none else kind  # noqa: UP045  # made at run time


def _scalar(field: Any, name: str, *, keeps_text: bool) -> Any:
    plain, may_be_none = _without_null(field)
    options = _options(plain)
    kind = (
        _alone(options[0])
        if len(options) == 1
        else _number(options, keeps_text=keeps_text)
    )
    if kind is None:
        msg = (
            f"{name} has a type that the card does not tell; make whole keys of the "
            "agent's code with `python -m examples.migrate_results`"
        )
        raise InvalidInput(msg)
    return Optional[kind] if may_be_none else kind  # noqa: UP045  # made at run time


def _alone(option: Mapping[str, Any]) -> Any:
    """Return the type of a plain schema, None when the schema does not determine its key."""
    named = _type(option)
    form = str(option.get("format"))
    if named == "string" and form in _EXACT:
        return getattr(amounts, _EXACT[form])
    if form == "duration" and option.get("keeps_months") is True:
        return amounts.Duration
    return _FORMATS.get(form, _KINDS[named]) if named in _KINDS else None


def _number(options: list[Mapping[str, Any]], *, keeps_text: bool) -> Any:
    """Return the type of a number that may also be sent as text, None for other unions; *keeps_text* as it stands."""
    kinds = set(map(_type, options))
    if kinds == {"string", "object"} and any(
        option.get("format") == FORMAT for option in options
    ):
        return Money
    # A text of a format is no number in words: whether "20" is a percentage there, only the class knows.
    if not kinds >= {"number", "string"} or any(
        "format" in option for option in options
    ):
        return None
    if keeps_text:
        return Decimal | str if kinds == {"number", "string"} else None
    return Amount if "object" in kinds else Decimal


def _tolerance(field: Mapping[str, Any], kind: Any) -> str | None:
    """Return the tolerance of a lone value, None where another worker's card has one that is not known here."""
    raw = field.get("tolerance")
    # A list has no tolerance.
    members = (
        () if get_origin(kind) in (tuple, frozenset) else get_args(kind) or (kind,)
    )
    exact = f"{amounts.__name__}."
    near = [
        one
        for one in members
        if one in (Amount, Decimal, int) or one.__module__.startswith(exact)
    ]
    lone = near[0] if near else None
    if not isinstance(raw, str) or lone is None:
        return None
    try:
        read_tolerance(raw, lone, field.get("unit"))
    except TypeError:
        return None
    return raw


def _without_null(field: Any) -> tuple[Mapping[str, Any], bool]:
    """Return *field* without its None, and whether it had one."""
    options = _options(field)
    rest = [option for option in options if _type(option) != "null"]
    if len(rest) == len(options):
        return _schema(field), False
    return (rest[0] if len(rest) == 1 else {**_schema(field), "anyOf": rest}), True


def _options(field: Any) -> list[Mapping[str, Any]]:
    """Return the schemas of which a value of *field* fits one."""
    options = _schema(field).get("anyOf")
    return (
        list(map(_schema, options))
        if isinstance(options, list) and options
        else [_schema(field)]
    )


def _schema(part: Any) -> Mapping[str, Any]:
    """Return *part* of a card that any program may have written; an empty object when it is none."""
    return part if isinstance(part, Mapping) else {}


def _type(schema: Mapping[str, Any]) -> str:
    """Return the one type that *schema* names, "" for none and several."""
    named = schema.get("type")
    return named if isinstance(named, str) else ""
