"""Forms made of the schema of a task's parameters: the fields that a person fills in, and the values that they mean."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

#: A "wording" is a text or something else, as "$50" and {"value": 50, "unit": "USD"} are.
FieldKind = Literal["text", "long", "whole", "number", "choice", "wording", "json"]

#: What stands before the name of a parameter in the name of its field.
PREFIX = "parameter."
#: Characters up to which a text is one line.
_ONE_LINE = 200
#: The types of JSON by those that they are read as; a flag is no number.
_SHAPES: dict[type, str] = {
    dict: "object",
    float: "number",
    int: "number",
    list: "array",
    str: "string",
}
#: Steps from a schema to what it refers to.
_MOST_STEPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterField:
    """The field of one parameter: `value` as it was typed, `choices` are JSON and words, `fault` is wrong with it.

    `shapes` are the types of JSON that a wording may have.
    """

    name: str
    kind: FieldKind
    is_needed: bool
    description: str = ""
    value: str = ""
    example: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    least: str = ""
    most: str = ""
    fault: str = ""
    shapes: frozenset[str] = frozenset()


def make_fields(
    schema: Mapping[str, Any], typed: Mapping[str, str] | None = None
) -> tuple[ParameterField, ...]:
    """Return the fields of a JSON *schema* of parameters, those that are needed first, each with its *typed* text.

    What no simple field can hold is JSON.
    """
    properties = schema.get("properties")
    needed = schema.get("required")
    found = [
        _make_field(
            name,
            each,
            schema,
            is_needed=isinstance(needed, list) and name in needed,
            value=(typed or {}).get(name, ""),
        )
        for name, each in (properties.items() if isinstance(properties, dict) else ())
    ]
    return tuple(sorted(found, key=lambda one: not one.is_needed))


def read_typed(fields: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the typed texts by the names of parameters, line ends of a browser made plain ones."""
    return {
        name.removeprefix(PREFIX): values[0].replace("\r\n", "\n")
        for name, values in fields.items()
        if name.startswith(PREFIX) and values
    }


def read_parameters(
    fields: Sequence[ParameterField],
) -> tuple[dict[str, Any], tuple[ParameterField, ...]]:
    """Return the parameters that are typed in *fields*, and these with their faults; an empty one is left out."""
    values: dict[str, Any] = {}
    checked = []
    for one in fields:
        fault = ""
        if not one.value.strip():
            fault = "is needed" if one.is_needed else ""
        else:
            try:
                values[one.name] = _read_value(one)
            except ValueError as error:
                fault = str(error)
        checked.append(replace(one, fault=fault))
    return values, tuple(checked)


def _make_field(
    name: str, given: object, root: Mapping[str, Any], *, is_needed: bool, value: str
) -> ParameterField:
    schema = _resolve(given, root)
    outer = given if isinstance(given, dict) else {}
    described = outer.get("description", schema.get("description"))
    default = outer.get("default", schema.get("default"))
    choices = tuple(_choices_of(schema))
    shapes = _shapes_of(schema)
    return ParameterField(
        name=name,
        kind="choice"
        if choices
        else "wording"
        if "string" in shapes
        else _kind_of(schema),
        is_needed=is_needed,
        description=described if isinstance(described, str) else "",
        value=value,
        example=_spell_example(default, schema.get("examples")),
        choices=choices,
        least=_bound_of(schema, "minimum"),
        most=_bound_of(schema, "maximum"),
        shapes=shapes,
    )


def _resolve(given: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a schema comes to: behind its references, and of a value or null that of the value."""
    schema = given if isinstance(given, dict) else {}
    for _ in range(_MOST_STEPS):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            following: object = root
            for step in reference.removeprefix("#/").split("/"):
                following = following.get(step) if isinstance(following, dict) else None
        else:
            either = schema.get("anyOf", schema.get("oneOf", schema.get("allOf")))
            left = [
                one
                for one in (either if isinstance(either, list) else ())
                if one != {"type": "null"}
            ]
            if len(left) != 1:
                break
            following = left[0]
        if not isinstance(following, dict):
            break
        schema = following
    return schema


def _shapes_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the types of JSON that *schema*, one of a choice of schemas, allows; none of any other schema."""
    either = schema.get("anyOf", schema.get("oneOf"))
    several = either if isinstance(either, list) else ()
    return frozenset(
        {"integer": "number"}.get(said, said)
        for one in several
        if isinstance(one, dict) and isinstance(said := one.get("type"), str)
    )


def _kind_of(schema: Mapping[str, Any]) -> FieldKind:
    said = schema.get("type")
    types = [said] if isinstance(said, str) else said
    known = [one for one in types if one != "null"] if isinstance(types, list) else []
    if known == ["string"]:
        longest = schema.get("maxLength")
        is_short = isinstance(longest, int) and longest <= _ONE_LINE
        return "text" if is_short or "format" in schema else "long"
    if known == ["integer"]:
        return "whole"
    return "number" if known == ["number"] else "json"


def _choices_of(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the values that a schema allows, as JSON and in words; none where they are too many to be named."""
    listed = schema.get("enum")
    if schema.get("type") == "boolean":
        listed = [True, False]
    elif "const" in schema:
        listed = [schema["const"]]
    for one in listed if isinstance(listed, list) else ():
        words = {True: "yes", False: "no"}.get(one) if isinstance(one, bool) else None
        yield (
            json.dumps(one),
            words or (one if isinstance(one, str) else json.dumps(one)),
        )


def _spell_example(default: object, examples: object) -> str:
    if default is None and isinstance(examples, list) and examples:
        default = examples[0]
    if default is None:
        return ""
    return default if isinstance(default, str) else json.dumps(default)


def _bound_of(schema: Mapping[str, Any], name: str) -> str:
    found = schema.get(name)
    return str(found) if isinstance(found, int | float) else ""


def _read_value(field: ParameterField) -> Any:
    """Return the value that is typed in *field*.

    Raises:
        ValueError: it is none of its kind.
    """
    typed = field.value
    if field.kind in ("text", "long"):
        return typed
    if field.kind == "wording":
        return _read_wording(typed.strip(), field.shapes)
    if field.kind == "choice":
        if typed not in (value for value, _ in field.choices):
            raise ValueError("must be one of those in the list")
        return json.loads(typed)
    if field.kind in ("whole", "number"):
        return _read_number(typed, is_whole=field.kind == "whole")
    try:
        return json.loads(typed, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError('must be JSON, such as ["a", "b"] or {"name": 1}') from error


def _read_wording(typed: str, shapes: frozenset[str]) -> Any:
    """Return *typed* as the JSON that it is, where it may be such; else as a text.

    A number that JSON would spell otherwise stays a text, which keeps its digits.
    """
    try:
        value = json.loads(typed, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return typed
    shape = _SHAPES.get(type(value))
    is_as_typed = shape != "number" or json.dumps(value) == typed
    return value if shape in shapes and is_as_typed else typed


def _read_number(typed: str, *, is_whole: bool) -> int | float:
    try:
        value = json.loads(typed.strip(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (is_whole and not isinstance(value, int)):
        raise ValueError("must be a whole number" if is_whole else "must be a number")
    return value  # type: ignore[no-any-return]  # a number, as was looked at


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")
