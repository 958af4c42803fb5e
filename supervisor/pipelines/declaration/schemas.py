"""JSON schemas of tasks: what a declared value, or the value of a reference, can be; a doubt is no problem.

Schemas come from any program: one that is not valid, or says more than is followed here, stands for any value. One
thing is read more strictly than JSON Schema has it: an object that lists its properties has no others unless it says
so, because that is what the results of tasks are. Values are read as leniently as tasks read them, which take `"50k"`
for a number and `"yes"` for a flag.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jsonschema_rs
from pydantic import JsonValue

from tasklore.contracts.errors import InvalidAmount, InvalidInput
from tasklore.contracts.quantities.amounts.money import FORMAT as MONEY
from tasklore.contracts.quantities.amounts.money import read_money
from tasklore.supervisor.pipelines.declaration.references import (
    Reference,
    kind_of,
    read_text,
)

#: The types of JSON, and their names as `kind_of` has them; whole numbers are numbers.
_NAMES = {
    "null": "null",
    "boolean": "true or false",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "an object",
}
_KINDS = frozenset(_NAMES)
_TYPES = {name: kind for kind, name in _NAMES.items()}

#: Steps through references and alternatives of one schema, which may refer to itself.
_MOST_STEPS = 64
#: Keywords that stand for other schemas, and keywords that bind a value beyond what is followed here.
_COMBINING = ("$ref", "anyOf", "oneOf", "allOf")
_OPAQUE = ("not", "if", "$dynamicRef", "dependentSchemas")
#: Keywords about a single value, which the library checks.
_RULES = (
    "type",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
)
_INDEX = re.compile(r"[0-9]{1,9}")
#: Formats of texts that may come as `{"value", "unit"}` too.
_WITH_UNIT = (MONEY, "percent", "quantity", "duration")


@dataclass(frozen=True, slots=True)
class PhaseSchema:
    """One schema with the *definitions* that it may refer to; alternatives of `anyOf` may be such schemas."""

    body: Any
    definitions: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, document: JsonValue) -> "PhaseSchema":
        """Return the schema that a whole *document* is, that of any value when it is None or not valid."""
        if not isinstance(document, dict):
            return cls(document is not False)
        # Which draft it names is not asked: that could be looked up on the network.
        document = {name: part for name, part in document.items() if name != "$schema"}
        try:
            is_valid = jsonschema_rs.meta.is_valid(document)
        except ValueError:
            # Nested too deeply.
            is_valid = False
        definitions: Any = document.get("$defs") or document.get("definitions") or {}
        return cls(document, definitions) if is_valid else ANY

    @classmethod
    def either(cls, schemas: Iterable["PhaseSchema"]) -> "PhaseSchema":
        """Return the schema of a value that fits one of *schemas*."""
        several = tuple(schemas)
        return several[0] if len(several) == 1 else cls({"anyOf": several})

    def variants(self) -> tuple["PhaseSchema", ...] | None:
        """Return the alternatives, one plain schema each, references followed; None when it may be any value."""
        pending = [self]
        variants = list[PhaseSchema]()
        for _ in range(_MOST_STEPS):
            if not pending:
                return tuple(variants)
            schema = pending.pop()
            alternatives = _alternatives(schema)
            if alternatives is None:
                return None
            pending += alternatives
            if not alternatives and schema.body is not False:
                variants.append(schema)
        return None

    def inside(self, step: str) -> "PhaseSchema | None":
        """Return the schema at the property or index *step*, None when there is surely nothing."""
        variants = self.variants()
        if variants is None:
            return ANY
        found = [inner for variant in variants for inner in _parts(variant, step)]
        return PhaseSchema.either(found) if found else None

    def kinds(self) -> frozenset[str]:
        """Return the types of JSON that it allows."""
        variants = self.variants()
        return (
            _KINDS
            if variants is None
            else frozenset[str]().union(*(one.own_kinds() for one in variants))
        )

    def own_kinds(self) -> frozenset[str]:
        """Return the types that a plain schema names by itself."""
        named = self.body.get("type", ())
        kinds = frozenset(
            "number" if one == "integer" else one
            for one in ([named] if isinstance(named, str) else named)
        )
        return kinds or _KINDS

    def names(self) -> tuple[str, ...]:
        """Return the properties that it lists."""
        return tuple(
            dict.fromkeys(
                name
                for one in self.variants() or ()
                for name in one.body.get("properties", ())
            )
        )

    def describe(self) -> str:
        """Return its types in words: "a list or null"."""
        kinds = self.kinds()
        if any(one.body.get("format") == MONEY for one in self.variants() or ()):
            return "money with its currency, such as '120 EUR'"
        return (
            "anything"
            if kinds == _KINDS
            else " or ".join(_NAMES[kind] for kind in sorted(kinds)) or "nothing"
        )


def _alternatives(schema: PhaseSchema) -> list[PhaseSchema] | None:
    """Return the schemas that *schema* stands for, none when it is plain; None when it may be any value."""
    body = schema.body
    if body is False:
        return []
    if body is True or any(keyword in body for keyword in _OPAQUE):
        return None
    combining = [keyword for keyword in _COMBINING if keyword in body]
    if not combining:
        return []
    several = body[combining[0]]
    # What several schemas demand at once is not worked out.
    if (
        len(combining) > 1
        or "properties" in body
        or (combining == ["allOf"] and len(several) > 1)
    ):
        return None
    if combining == ["$ref"]:
        kind, _, name = several.rpartition("/")
        if kind not in ("#/$defs", "#/definitions") or name not in schema.definitions:
            return None
        several = [schema.definitions[name]]
    return [
        one if isinstance(one, PhaseSchema) else PhaseSchema(one, schema.definitions)
        for one in several
    ]


def _parts(schema: PhaseSchema, step: str) -> Iterator[PhaseSchema]:
    """Yield the schemas that a plain schema has for the property or index *step*."""
    kinds = schema.own_kinds()
    body = schema.body
    if "object" in kinds:
        listed = body.get("properties", {})
        if step in listed:
            yield PhaseSchema(listed[step], schema.definitions)
        elif body.get("patternProperties"):
            yield ANY
        elif (others := body.get("additionalProperties", not listed)) is not False:
            yield PhaseSchema(others, schema.definitions)
    if "array" in kinds and _INDEX.fullmatch(step):
        first = body.get("prefixItems", ())
        item = first[int(step)] if int(step) < len(first) else body.get("items", True)
        if item is not False:
            yield PhaseSchema(item, schema.definitions)


ANY = PhaseSchema(True)
_TEXT = PhaseSchema({"type": "string"})


def mismatches(
    value: JsonValue,
    target: PhaseSchema,
    schema_of: Callable[[Reference], PhaseSchema | None],
) -> Iterator[str]:
    """Yield why *value*, in which references may stand, cannot be what *target* asks for, such as ".0 must be a text".

    *schema_of* gives the schema of a reference, None when it is not known.
    """
    variants = target.variants()
    if variants is None:
        return
    if isinstance(value, str):
        try:
            pieces = read_text(value)
        except InvalidInput:
            # Reported with the other references that cannot be read.
            return
        references = [piece for piece in pieces if isinstance(piece, Reference)]
        if references:
            source = schema_of(references[0]) if len(pieces) == 1 else _TEXT
            if source and not any(
                _accepts(variant, source.kinds(), source) for variant in variants
            ):
                yield f"must be {target.describe()}, and {_quote(value)} is {source.describe()}"
            return
        value = "".join(map(str, pieces))
    reasons = [_reason(value, variant) for variant in variants]
    fitting = [
        variant
        for variant, reason in zip(variants, reasons, strict=True)
        if reason is None
    ]
    if not fitting:
        yield (
            str(reasons[0])
            if len(reasons) == 1
            else f"must be {target.describe()}, not {_quote(value)}"
        )
    elif len(fitting) == 1 and isinstance(value, list | dict):
        # Names of properties are not looked at: a model inside the parameters may take others than its schema says.
        for step, item in (
            value.items() if isinstance(value, dict) else enumerate(value)
        ):
            inner = fitting[0].inside(str(step))
            for reason in mismatches(item, inner, schema_of) if inner else ():
                yield f".{step}{reason if reason.startswith('.') else f' {reason}'}"


def _accepts(variant: PhaseSchema, kinds: Iterable[str], source: PhaseSchema) -> bool:
    """Return whether a task takes some value of *kinds*, further described by *source*, for the plain *variant*."""
    own = variant.own_kinds()
    kinds = set(kinds)
    if not own.isdisjoint(kinds):
        return True
    is_measured = "number" in own or variant.body.get("format") in _WITH_UNIT
    return (
        # "50k", and true, which is 1 inside a model.
        ("number" in own and not kinds.isdisjoint(("string", "boolean")))
        # An amount with its unit.
        or (is_measured and "object" in kinds and source.inside("value") is not None)
        or ("boolean" in own and not kinds.isdisjoint(("number", "string")))
        # A date as seconds; a number alone names no currency.
        or (
            "string" in own
            and variant.body.get("format", MONEY) != MONEY
            and "number" in kinds
        )
    )


def _reason(value: JsonValue, variant: PhaseSchema) -> str | None:
    """Return why *value* itself, not its parts, is not what the plain schema *variant* asks for."""
    body = variant.body
    kind = _TYPES[kind_of(value)]
    choices = [body["const"]] if "const" in body else body.get("enum")
    if choices is not None:
        fits = any(value == choice or str(value) == str(choice) for choice in choices)
        return (
            None
            if fits
            else f"must be one of {', '.join(map(_quote, choices))}, not {_quote(value)}"
        )
    source = (
        PhaseSchema({"type": kind, "properties": dict.fromkeys(value, True)})
        if isinstance(value, dict)
        else ANY
    )
    if not _accepts(variant, [kind], source):
        return f"must be {variant.describe()}, not {_quote(value)}"
    if kind not in variant.own_kinds():
        return None
    if body.get("format") == MONEY and isinstance(value, str):
        return _fault_of_money(value)
    rules = tuple(
        (name, body[name])
        for name in _RULES
        if isinstance(body.get(name), int | float | str)
    )
    # Some tasks strip a text first.
    readings = (value, value.strip()) if isinstance(value, str) else (value,)
    try:
        errors = [next(_validator(rules).iter_errors(one), None) for one in readings]
    except ValueError:
        # A text that is no Unicode.
        return None
    return f"is not right: {errors[0].message}" if errors[0] and all(errors) else None


def _fault_of_money(text: str) -> str | None:
    """Return why *text* is no money."""
    try:
        read_money(text)
    except InvalidAmount as error:
        return f"is not right: {error}"
    return None


@lru_cache(500)
def _validator(
    rules: tuple[tuple[str, Any], ...],
) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(dict(rules))


def _quote(value: JsonValue) -> str:
    """Return *value* as a message quotes it: a text as one, anything else as JSON, never longer than 80 characters."""
    text = (
        repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )
    return text if len(text) <= 80 else f"{text[:77]}..."
