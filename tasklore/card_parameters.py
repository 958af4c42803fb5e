"""The parameters of a task of which only the card is at hand, as a class that reads and keys like the agent's own."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Optional, get_args, get_origin

from pydantic import create_model

from contracts.amounts import Amount
from contracts.errors import InvalidInput
from contracts.parameters import Field, Parameters
from contracts.tolerances import read_tolerance
from memory.seed_file import TaskForm

_KINDS: dict[str, Any] = {"integer": int, "number": Decimal, "boolean": bool, "string": str}
_FORMATS: dict[str, Any] = {"date-time": datetime, "date": date, "time": time, "duration": timedelta}


def form_of(schema: Mapping[str, Any]) -> TaskForm:
    """Return the fields of *schema* in declared order, and which of them are lists."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    lists = frozenset(name for name, field in properties.items() if _without_null(field)[0].get("type") == "array")
    return TaskForm(tuple(properties), lists)


def parameters_of(task_name: str, schema: Mapping[str, Any]) -> type[Parameters]:
    """Return a class that accepts and keys values as the class behind *schema* does.

    Raises:
        InvalidInput: a field has a type whose key cannot be told from the schema.
    """
    required = set(schema.get("required", ()))
    fields: dict[str, Any] = {}
    for name, field in _inlined(schema.get("properties", {}), schema.get("$defs", {})).items():
        default = ... if name in required else field.get("default")
        kind = _kind(field, name)
        # A list's default is a JSON list, a tuple's too: both are keyed alike.
        fields[name] = (
            kind,
            Field(
                default,
                unit=field.get("unit"),
                aliases=tuple(field.get("aliases", ())),
                tolerance=_tolerance(field, kind),
                validate_default=True,
            ),
        )
    made: type[Parameters] = create_model(f"{task_name}_parameters", __base__=Parameters, **fields)
    return made


def _inlined(part: Any, definitions: Mapping[str, Any]) -> Any:
    """Return *part* with its references to plain values (an enumeration) replaced by what they name."""
    if isinstance(part, list):
        return [_inlined(item, definitions) for item in part]
    if not isinstance(part, Mapping):
        return part
    meant = definitions.get(str(part.get("$ref", "")).rpartition("/")[2], {})
    if meant.get("type") in _KINDS:
        return {**meant, **part}
    return {word: _inlined(value, definitions) for word, value in part.items()}


def _kind(field: Mapping[str, Any], name: str) -> Any:
    plain, may_be_none = _without_null(field)
    kind = tuple[_scalar(plain.get("items", {}), name), ...] if plain.get("type") == "array" else _scalar(plain, name)  # type: ignore[misc]  # made at run time
    return Optional[kind] if may_be_none else kind  # noqa: UP045  # made at run time


def _scalar(field: Mapping[str, Any], name: str) -> Any:
    plain, may_be_none = _without_null(field)
    options = plain.get("anyOf", [plain])
    kinds = {option.get("type") for option in options}
    if "number" in kinds and "string" in kinds:
        kind: Any = Amount if "object" in kinds else Decimal
    elif len(options) == 1 and options[0].get("type") in _KINDS:
        kind = _FORMATS.get(options[0].get("format", ""), _KINDS[options[0]["type"]])
    else:
        msg = (
            f"{name} has a type that a file cannot carry; import it with `tasklore worker --config`, which has the code"
        )
        raise InvalidInput(msg)
    return Optional[kind] if may_be_none else kind  # noqa: UP045  # made at run time


def _tolerance(field: Mapping[str, Any], kind: Any) -> str | None:
    """Return the tolerance of a number, None where another worker's card has one that is not known here."""
    raw = field.get("tolerance")
    if not isinstance(raw, str) or not {kind, *_members(kind)} & {Amount, Decimal, int}:
        return None
    try:
        read_tolerance(raw)
    except TypeError:
        return None
    return raw


def _members(kind: Any) -> tuple[Any, ...]:
    return () if get_origin(kind) is tuple else get_args(kind)


def _without_null(field: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return *field* without its None, and whether it had one."""
    options = field.get("anyOf")
    if not options:
        return field, False
    rest = [option for option in options if option.get("type") != "null"]
    if len(rest) == len(options):
        return field, False
    return (rest[0] if len(rest) == 1 else {**field, "anyOf": rest}), True
