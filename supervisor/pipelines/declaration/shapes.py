"""What a value may be by its JSON schema, coarsely but never too narrowly: a doubt is no refusal.

Schemas come from any program. What is not understood here, or is no schema, stands for any value. One thing is read
more strictly than JSON Schema has it: an object that lists its properties has no others unless it says so, because
that is what the results of tasks are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import JsonValue

from contracts.pipelines import InputType

#: The types of JSON and what a person calls them; whole numbers are numbers.
WORDS = {
    "null": "null",
    "boolean": "true or false",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "an object",
}
KINDS = frozenset(WORDS)

#: Steps through references and alternatives of one schema, which may refer to itself.
_MOST_STEPS = 64
#: Keywords that bind a value beyond what is followed here.
_OPAQUE = ("not", "if", "$dynamicRef", "$recursiveRef", "dependentSchemas")
#: Keywords that stand for other schemas; with properties beside them, both would have to be put together.
_COMBINING = ("$ref", "anyOf", "oneOf", "allOf")
_INDEX = re.compile(r"[0-9]{1,9}")
_INPUTS: dict[InputType, str] = {
    "text": "string",
    "number": "number",
    "flag": "boolean",
    "list": "array",
    "object": "object",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """One schema with the *definitions* that it may refer to."""

    schema: Any
    definitions: Mapping[str, Any] = field(default_factory=dict)

    ANYTHING: ClassVar["Shape"]

    @classmethod
    def of(cls, schema: JsonValue) -> "Shape":
        """Return the shape of a whole schema; None is one that says nothing."""
        definitions = schema.get("$defs") or schema.get("definitions") if isinstance(schema, dict) else None
        return cls(True if schema is None else schema, definitions if isinstance(definitions, dict) else {})

    @classmethod
    def of_input(cls, kind: InputType) -> "Shape":
        """Return the shape of an input."""
        return cls({"type": _INPUTS[kind]}) if kind in _INPUTS else cls.ANYTHING

    @classmethod
    def either(cls, shapes: Iterable["Shape"]) -> "Shape":
        """Return the shape of a value that is of one of *shapes*."""
        several = tuple(shapes)
        return several[0] if len(several) == 1 else cls({"anyOf": list(several)})

    def variants(self) -> tuple["Shape", ...] | None:
        """Return what it may be, one plain schema each, references followed; None when that is anything."""
        pending: list[Shape] = [self]
        variants: list[Shape] = []
        for _ in range(_MOST_STEPS):
            if not pending:
                return tuple(variants)
            shape = pending.pop()
            if shape.schema is False:
                continue
            parts = _parts(shape)
            if parts is None:
                return None
            pending.extend(parts)
            if not parts:
                variants.append(shape)
        return None

    def kinds(self) -> frozenset[str]:
        """Return which types of JSON it may be."""
        variants = self.variants()
        return KINDS if variants is None else frozenset().union(*(variant.own_kinds() for variant in variants))

    def own_kinds(self) -> frozenset[str]:
        """Return the types that a plain schema names by itself."""
        named = self.schema.get("type")
        words = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        kinds = frozenset("number" if word == "integer" else word for word in words if isinstance(word, str))
        return kinds if kinds and kinds <= KINDS else KINDS

    def inside(self, step: str) -> "Shape | None":
        """Return what stands at the property or index *step*, None when there is surely nothing."""
        variants = self.variants()
        if variants is None:
            return Shape.ANYTHING
        found = [inner for variant in variants for inner in _at(variant, step)]
        return Shape.either(found) if found else None

    def names(self) -> tuple[str, ...]:
        """Return the properties that it lists."""
        return tuple(dict.fromkeys(name for one in self.variants() or () for name in _mapping(one, "properties")))

    def described(self) -> str:
        """Return what it may be in words: "a list or null"."""
        kinds = self.kinds()
        return "anything" if kinds == KINDS else " or ".join(WORDS[kind] for kind in sorted(kinds)) or "nothing"


def _parts(shape: Shape) -> list[Shape] | None:
    """Return the schemas that *shape* stands for, none when it is plain; None when it may be anything."""
    schema = shape.schema
    if not isinstance(schema, dict) or any(keyword in schema for keyword in _OPAQUE):
        return None
    if any(keyword in schema for keyword in _COMBINING) and "properties" in schema:
        return None
    if "$ref" in schema:
        kind, _, name = str(schema["$ref"]).rpartition("/")
        known = kind in ("#/$defs", "#/definitions") and name in shape.definitions
        return [_part(shape, shape.definitions[name])] if known else None
    for keyword in _COMBINING[1:]:
        several = schema.get(keyword)
        if several is not None:
            # What all of several demand is not worked out; one of them alone is as good as itself.
            is_clear = isinstance(several, list) and several and (keyword != "allOf" or len(several) == 1)
            return [_part(shape, one) for one in several] if is_clear else None
    return []


def _part(shape: Shape, schema: Any) -> Shape:
    return schema if isinstance(schema, Shape) else Shape(schema, shape.definitions)


def _at(shape: Shape, step: str) -> Iterator[Shape]:
    """Yield what may stand at *step* of the plain *shape*."""
    kinds = shape.own_kinds()
    if "object" in kinds:
        yield from _property(shape, step)
    if "array" in kinds and _INDEX.fullmatch(step):
        first = shape.schema.get("prefixItems")
        if isinstance(first, list) and int(step) < len(first):
            yield _part(shape, first[int(step)])
        elif shape.schema.get("items") is not False:
            yield _part(shape, shape.schema.get("items", True))


def _property(shape: Shape, name: str) -> Iterator[Shape]:
    listed = _mapping(shape, "properties")
    others = shape.schema.get("additionalProperties", not listed)
    if name in listed:
        yield _part(shape, listed[name])
    elif shape.schema.get("patternProperties"):
        yield Shape.ANYTHING
    elif others is not False:
        yield _part(shape, others)


def _mapping(shape: Shape, keyword: str) -> Mapping[str, Any]:
    found = shape.schema.get(keyword)
    return found if isinstance(found, dict) else {}


Shape.ANYTHING = Shape(True)
#: The standards in force, as `${standards}` gives them.
STANDARDS = Shape(
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "text": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        },
    }
)
