"""The fields of a task as its card's JSON schema declares them: kind, cues, unit, choices, and which are needed."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from contracts.messages import TaskCard
from supervisor.interpretation.words import STOP, stems_of

Kind = Literal["amount", "integer", "text", "choice", "boolean", "date", "moment", "duration", "other"]

NUMERIC: frozenset[Kind] = frozenset({"amount", "integer"})
_FORMATS: dict[str, Kind] = {"date": "date", "date-time": "moment", "duration": "duration"}
#: Tokens of extra distance for a cue that is but one word of the field's name ("limit" of `budget_limit`).
_PART_OF_NAME = 0.6


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that announce a field, as stems; *penalty* is larger for weaker evidence."""

    stems: tuple[str, ...]
    penalty: float = 0.0


@dataclass(frozen=True, slots=True)
class FieldShape:
    """One parameter: *kind* is that of its items when *is_list*; *choices* holds the values of an enumeration."""

    name: str
    kind: Kind
    is_list: bool
    is_required: bool
    is_nullable: bool
    unit: str | None
    choices: tuple[Any, ...]
    phrases: tuple[Phrase, ...]
    description: str
    examples: tuple[Any, ...]

    @property
    def label(self) -> str:
        """The field's name in words."""
        return self.name.replace("_", " ")

    @property
    def is_numeric(self) -> bool:
        """True when amounts of a sentence can fill it."""
        return self.kind in NUMERIC


@dataclass(frozen=True, slots=True)
class TaskShape:
    """The fields of one task in declared order."""

    fields: tuple[FieldShape, ...]

    def field(self, name: str) -> FieldShape | None:
        """Return the field called *name*, or None."""
        return next((field for field in self.fields if field.name == name), None)

    @property
    def required(self) -> tuple[FieldShape, ...]:
        """The fields that a person is asked for."""
        return tuple(field for field in self.fields if field.is_required)


def shape_of(task: TaskCard) -> TaskShape:
    """Return the shape of *task*; a schema that says less than pydantic's yields fields of kind "other"."""
    return _shape(json.dumps(task.parameters))


@lru_cache(maxsize=1024)
def _shape(schema_json: str) -> TaskShape:
    schema: dict[str, Any] = json.loads(schema_json)
    properties: dict[str, Any] = schema.get("properties") or {}
    definitions: dict[str, Any] = schema.get("$defs") or {}
    required = set(schema.get("required") or ())
    parts = Counter(part for name in properties for part in set(stems_of(name)))
    return TaskShape(
        tuple(
            _field(name, _as_object(field), definitions, parts, is_required=name in required)
            for name, field in properties.items()
        )
    )


def _field(
    name: str, schema: dict[str, Any], definitions: Mapping[str, Any], parts: Counter[str], *, is_required: bool
) -> FieldShape:
    variants, is_nullable = _variants(schema, definitions)
    arrays = [variant for variant in variants if variant.get("type") == "array"]
    is_list = bool(arrays) and len(arrays) == len(variants)
    if is_list:
        variants, _ = _variants(_as_object(arrays[0].get("items")), definitions)
    aliases, cues = _texts(schema.get("aliases")), _texts(schema.get("cues"))
    return FieldShape(
        name=name,
        kind=_kind(variants),
        is_list=is_list,
        is_required=is_required,
        is_nullable=is_nullable,
        unit=schema["unit"] if isinstance(schema.get("unit"), str) else None,
        choices=_choices(variants),
        phrases=tuple(_phrases(name, aliases, cues, parts)),
        description=str(schema.get("description") or ""),
        examples=tuple(schema.get("examples") or ()),
    )


def _phrases(name: str, aliases: tuple[str, ...], cues: tuple[str, ...], parts: Counter[str]) -> Iterable[Phrase]:
    given = dict.fromkeys(stems for phrase in (name, *aliases, *cues) if (stems := stems_of(phrase)))
    for stems in given:
        yield Phrase(stems)
    words = stems_of(name)
    for word in words if len(words) > 1 else ():
        if parts[word] == 1 and word not in STOP and (word,) not in given:
            yield Phrase((word,), _PART_OF_NAME)


def _variants(schema: dict[str, Any], definitions: Mapping[str, Any]) -> tuple[list[dict[str, Any]], bool]:
    """Return what *schema* may be, references followed and null left out, and whether null was there."""
    pending, variants, is_nullable = [schema], [], False
    # A schema that refers to itself would never end; nothing worth reading nests this deep.
    for _ in range(64):
        if not pending:
            break
        one = pending.pop(0)
        reference = one.get("$ref")
        if isinstance(reference, str):
            pending.append(
                {"x-name": reference.rsplit("/", 1)[-1], **_as_object(definitions.get(reference.rsplit("/", 1)[-1]))}
            )
        elif any(isinstance(one.get(union), list) for union in ("anyOf", "oneOf")):
            pending.extend(_as_object(part) for union in ("anyOf", "oneOf") for part in one.get(union) or ())
        elif isinstance(one.get("allOf"), list) and len(one["allOf"]) == 1:
            pending.append(_as_object(one["allOf"][0]))
        elif one.get("type") == "null":
            is_nullable = True
        else:
            variants.append(one)
    return variants, is_nullable


def _kind(variants: list[dict[str, Any]]) -> Kind:
    types = {variant.get("type") for variant in variants if isinstance(variant.get("type"), str)}
    if _choices(variants):
        return "choice"
    if "number" in types:
        return "amount"
    for json_type, kind in (("integer", "integer"), ("boolean", "boolean")):
        if json_type in types:
            return "integer" if kind == "integer" else "boolean"
    if types == {"string"}:
        return next((_FORMATS[fmt] for v in variants if (fmt := str(v.get("format"))) in _FORMATS), "text")
    return "other"


def _choices(variants: list[dict[str, Any]]) -> tuple[Any, ...]:
    values: list[Any] = []
    for variant in variants:
        values.extend(variant["enum"] if isinstance(variant.get("enum"), list) else ())
        if "const" in variant:
            values.append(variant["const"])
    return tuple(values)


def _as_object(schema: Any) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
