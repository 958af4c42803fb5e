"""Whether a value that stands in a declaration can be what a task's JSON schema asks for.

It is as lenient as the tasks are, which read `"50k"` for a number and `"yes"` for a flag; what only a validator of the
task's own can tell is left to the task.
"""

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from pydantic import JsonValue

from contracts.errors import InvalidAmount, InvalidInput
from quantities.amounts import Amount
from supervisor.pipelines.declaration.places import Reference, called, read_text
from supervisor.pipelines.declaration.shapes import Shape

#: Gives the shape of what a reference will be, None when it cannot be known.
ShapeOf = Callable[[Reference], Shape | None]

#: What a flag may be sent as.
_FLAGS = frozenset({"true", "false", "t", "f", "yes", "no", "y", "n", "on", "off", "1", "0"})
_TEXT = Shape({"type": "string"})
#: Formats of texts that may come as `{"value", "unit"}` too.
_WITH_UNIT = ("percent", "quantity", "duration")
#: Keywords of a number's range, how a value breaks it, and what it then has to be.
_RANGES: tuple[tuple[str, Callable[[Any, float], bool], str], ...] = (
    ("minimum", operator.lt, "at least"),
    ("maximum", operator.gt, "at most"),
    ("exclusiveMinimum", operator.le, "more than"),
    ("exclusiveMaximum", operator.ge, "less than"),
)


def misfits(value: JsonValue, target: Shape, shape_of: ShapeOf, *, is_free: bool = False) -> Iterator[str]:
    """Yield how *value*, in which references may stand, cannot be *target*; nothing where that is in doubt.

    Every sentence is about the value as a whole or begins with the place inside it. *is_free* tells that pydantic
    reads the numbers there, to which true is one, and not the parameters class, to which "50k" is one. So it is in
    objects, and everywhere in a parameter where a text may stay one.
    """
    is_free = is_free or _mentions_texts(target.schema)
    if isinstance(value, str):
        yield from _text_misfits(value, target, shape_of, is_free=is_free)
        return
    variants = target.variants()
    if variants is None:
        return
    reasons = {n: reason for n, variant in enumerate(variants) if (reason := _why_not(value, variant, is_free))}
    fitting = [variant for n, variant in enumerate(variants) if n not in reasons]
    if not fitting:
        yield reasons[0] if len(variants) == 1 else f"must be {target.described()}, not {_said(value)}"
    elif len(fitting) == 1:
        yield from _misfits_inside(value, fitting[0], shape_of, is_free=is_free or isinstance(value, dict))


def cannot_become(source: Shape, target: Shape, *, is_free: bool) -> bool:
    """Return whether nothing that *source* may be is taken as *target*; *is_free* as in `misfits`."""
    variants = target.variants()
    if variants is None:
        return False
    kinds = source.kinds()
    if "boolean" in kinds and is_free:
        kinds |= {"number"}
    return not any(_takes(variant, kinds, source) for variant in variants)


def _mentions_texts(schema: Any) -> bool:
    """Return whether there may be a text anywhere in *schema*."""
    if isinstance(schema, dict):
        return "string" in schema.values() or any(_mentions_texts(part) for part in schema.values())
    return isinstance(schema, list) and ("string" in schema or any(map(_mentions_texts, schema)))


def _text_misfits(text: str, target: Shape, shape_of: ShapeOf, *, is_free: bool) -> Iterator[str]:
    try:
        pieces = read_text(text)
    except InvalidInput:
        # Told with the other references that cannot be read.
        return
    references = [piece for piece in pieces if isinstance(piece, Reference)]
    if not references:
        plain = "".join(map(str, pieces))
        variants = target.variants()
        reasons = [_why_not(plain, variant, is_free) for variant in variants] if variants is not None else [None]
        if all(reasons):
            yield str(reasons[0]) if len(reasons) == 1 else f"must be {target.described()}, not {_said(plain)}"
        return
    source = shape_of(references[0]) if len(pieces) == 1 else _TEXT
    if source is not None and cannot_become(source, target, is_free=is_free):
        yield f"must be {target.described()}, and {_said(text)} is {source.described()}"


def _misfits_inside(value: JsonValue, variant: Shape, shape_of: ShapeOf, *, is_free: bool) -> Iterator[str]:
    # Names of properties are not looked at: a model inside the parameters may take others than its schema tells.
    items: list[tuple[str, JsonValue]] = []
    if isinstance(value, list):
        items = [(str(n), item) for n, item in enumerate(value)]
    elif isinstance(value, dict):
        items = list(value.items())
    for step, item in items:
        inner = variant.inside(step)
        if inner is not None:
            for reason in misfits(item, inner, shape_of, is_free=is_free):
                yield reason if reason.startswith(".") else f".{step} {reason}"


def _takes(variant: Shape, kinds: frozenset[str], source: Shape) -> bool:
    """Return whether a value of one of *kinds* may be taken where *variant* is asked for."""
    own = variant.own_kinds()
    if not own.isdisjoint(kinds):
        return True
    if "number" in own and "string" in kinds:
        return True
    is_measured = "number" in own or variant.schema.get("format") in _WITH_UNIT
    if is_measured and "object" in kinds and source.inside("value") is not None:
        # What is measured may come with its unit.
        return True
    if "boolean" in own:
        return not kinds.isdisjoint(("number", "string"))
    # A date may come as a number.
    return "string" in own and "format" in variant.schema and "number" in kinds


def _why_not(value: JsonValue, variant: Shape, is_free: bool) -> str | None:
    """Return why *value* itself, not what is inside it, is not what the plain schema *variant* asks for.

    *is_free* tells that pydantic reads a number there, and not the parameters class.
    """
    choices = _choices(variant.schema)
    if choices is not None:
        fits = any(_alike(value, choice) for choice in choices)
        return None if fits else f"must be one of {', '.join(map(_said, choices))}, not {_said(value)}"
    if is_free and _is_number_to_pydantic(value) and "number" in variant.own_kinds():
        return None
    reasons = [_why_not_kind(value, kind, variant.schema) for kind in sorted(variant.own_kinds())]
    if None in reasons:
        return None
    return reasons[0] if len(reasons) == 1 else f"must be {variant.described()}, not {_said(value)}"


def _why_not_kind(value: JsonValue, kind: str, schema: Mapping[str, Any]) -> str | None:
    if kind == "number":
        return _why_no_number(value, schema)
    if kind == "string" and isinstance(value, str):
        return _why_other_length(value, schema)
    fits = {
        "null": value is None,
        "boolean": isinstance(value, bool) or value in (0, 1) or (isinstance(value, str) and value.lower() in _FLAGS),
        "string": "format" in schema
        and ((isinstance(value, int | float) and not isinstance(value, bool)) or _is_measure(value, schema)),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    words = {"null": "null", "boolean": "true or false", "string": "a text", "array": "a list", "object": "an object"}
    return None if fits[kind] else f"must be {words[kind]}, not {_said(value)}"


def _is_measure(value: JsonValue, schema: Mapping[str, Any]) -> bool:
    """Return whether *value* is a number with its unit where the text of *schema* may come so."""
    return schema["format"] in _WITH_UNIT and isinstance(value, dict) and "value" in value


def _why_no_number(value: JsonValue, schema: Mapping[str, Any]) -> str | None:
    what = "a whole number" if schema.get("type") == "integer" else "a number"
    if value is None or isinstance(value, bool | list):
        return f"must be {what}, not {called(value)}"
    try:
        number = value if isinstance(value, int | float) else _amount(value, schema.get("unit"))
    except InvalidAmount as error:
        return f"must be {what}: {error}"
    if what == "a whole number" and number != int(number):
        return f"must be a whole number, not {_said(value)}"
    for keyword, breaks, word in _RANGES:
        limit = schema.get(keyword)
        if isinstance(limit, int | float) and not isinstance(limit, bool) and breaks(number, limit):
            return f"must be {word} {limit}, not {_said(value)}"
    return None


def _is_number_to_pydantic(value: JsonValue) -> bool:
    """Return whether *value* is a number only to pydantic: true and false, and texts such as "nan" and "1e400"."""
    if not isinstance(value, str):
        return isinstance(value, bool)
    try:
        float(value)
    except ValueError:
        return False
    return True


def _amount(value: JsonValue, unit: Any) -> Decimal:
    return Amount.read(value, unit=unit if isinstance(unit, str) else None).value


def _why_other_length(value: str, schema: Mapping[str, Any]) -> str | None:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) and len(value) < least:
        return f"must have at least {least} characters, not {len(value)}"
    # The task may strip it first.
    if isinstance(most, int) and len(value.strip()) > most:
        return f"must have at most {most} characters, not {len(value)}"
    return None


def _choices(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    choices = schema.get("enum")
    return choices if isinstance(choices, list) else None


def _alike(value: JsonValue, choice: Any) -> bool:
    return value == choice or str(value) == str(choice)


def _said(value: JsonValue) -> str:
    """Return *value* as a message quotes it: a text as one, anything else as JSON, never longer than 80 characters."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
