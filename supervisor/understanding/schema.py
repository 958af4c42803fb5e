"""The slots of a task as its card's JSON schema declares them: kind, cues, unit, choices, and which are needed.

A card may come from any program. What JSON Schema allows is let through, also where rules make nothing of it; what it
forbids, and what no person could be asked for, is refused with its place, so that the other cards are understood.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from contracts.errors import InvalidAmount, InvalidInput
from contracts.messages import TaskCard
from quantities.amounts import Amount
from quantities.amounts.spellings import shown
from supervisor.understanding.utterance import STOP, stems_of

Kind = Literal[
    "amount",
    "integer",
    "percent",
    "quantity",
    "text",
    "choice",
    "boolean",
    "date",
    "moment",
    "when",
    "time",
    "duration",
    "other",
]

Side = Literal["left", "right", "either"]

#: Stands for the value in a cue.
_VALUE = "{}"

NUMERIC: frozenset[Kind] = frozenset({"amount", "integer", "percent", "quantity"})
#: Kinds that tell a day, maybe with its time, or a time of day.
TIMED: frozenset[Kind] = frozenset({"date", "moment", "when", "time"})
#: A "moment" of the calendar is told in ISO 8601 with its time; "when" may be a day, a local time or an instant.
#: A "time" is one of the day alone.
_FORMATS: dict[str, Kind] = {
    "date": "date",
    "date-time": "moment",
    "moment": "when",
    "duration": "duration",
    "time": "time",
}
#: Formats of numbers that carry their unit, which may also be a text.
_WITH_UNIT: dict[str, Kind] = {"percent": "percent", "quantity": "quantity"}
#: Steps through references and alternatives of one field: a schema that refers to itself would never end, and nothing
#: worth reading nests this deep.
_MOST_STEPS = 64
#: Tokens of extra distance for a cue that is but one word of the field's name ("limit" of `budget_limit`).
_PART_OF_NAME = 0.6
#: Characters of one task's schema: ten times that of a large class; all of it is indexed, and shown to a model.
MOST_CHARACTERS = 64 * 1024
#: Fields of one task: each amount of a sentence is weighed against each of them.
MOST_FIELDS = 200
#: Names, aliases and cues of one field, for the same reason.
MOST_PHRASES = 100


@dataclass(frozen=True, slots=True)
class Schema:
    """One JSON schema at its *place* in a task's parameters; null stands for a keyword that is not there.

    Raises:
        InvalidInput: by every method, when the keyword holds what JSON Schema does not allow there.
    """

    keywords: Mapping[str, Any]
    place: str

    def has(self, keyword: str) -> bool:
        """Return whether *keyword* says something."""
        return self.keywords.get(keyword) is not None

    def text(self, keyword: str) -> str | None:
        """Return the text under *keyword*, None without any."""
        found = self.keywords.get(keyword)
        if found is not None and not isinstance(found, str):
            raise self._problem(keyword, "a text", found)
        return found

    def values(self, keyword: str) -> tuple[Any, ...]:
        """Return the list under *keyword*, empty without any."""
        found = self.keywords.get(keyword)
        if found is None:
            return ()
        if not isinstance(found, list):
            raise self._problem(keyword, "a list", found)
        return tuple(found)

    def texts(self, keyword: str) -> tuple[str, ...]:
        """Return the list of texts under *keyword*, empty without any."""
        found = self.values(keyword)
        for one in found:
            if not isinstance(one, str):
                raise self._problem(keyword, "a list of texts", one)
        return found

    def inner(self, keyword: str) -> "Schema":
        """Return the schema under *keyword*, one that allows everything without any."""
        found = self.keywords.get(keyword)
        return _schema_at({} if found is None else found, f"{self.place}.{keyword}")

    def alternatives(self, keyword: str) -> list["Schema"]:
        """Return the list of schemas under *keyword*, empty without any."""
        return [_schema_at(one, f"{self.place}.{keyword}[{n}]") for n, one in enumerate(self.values(keyword))]

    def named(self, keyword: str) -> dict[str, "Schema"]:
        """Return the schemas under *keyword* by name, empty without any."""
        found = self.keywords.get(keyword)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self._problem(keyword, "an object", found)
        return {name: _schema_at(one, f"{self.place}.{keyword}.{name[:64]}") for name, one in found.items()}

    def unit(self) -> str | None:
        """Return the unit that amounts have here, None without any."""
        found = self.text("unit")
        if found is not None:
            try:
                Amount.read(0, unit=found)
            except InvalidAmount as error:
                raise InvalidInput(f"{self.place}.unit: {error}") from error
        return found

    def _problem(self, keyword: str, wanted: str, found: object) -> InvalidInput:
        return InvalidInput(f"{self.place}.{keyword} must be {wanted}, not {shown(found)}")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that announce a field, as stems; *penalty* is larger for weaker evidence.

    *side* is where the value stands: "out of {}" has it on the right, "{} stars" on the left.
    """

    stems: tuple[str, ...]
    penalty: float = 0.0
    side: Side = "either"


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One parameter: *kind* is that of its items when *is_list*; *choices* holds the values of an enumeration.

    A value below *least* or above *most* is refused.
    *pattern* and *text_format* are what JSON Schema says of a text; a pattern is anybody's, and may take for ever.
    A length of time that does not say *keeps_months* has to be one of days or shorter units.
    """

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
    least: Decimal | None = None
    most: Decimal | None = None
    keeps_months: bool = False
    pattern: str | None = None
    text_format: str | None = None

    @property
    def label(self) -> str:
        """The field's name in words."""
        return self.name.replace("_", " ")

    @property
    def is_numeric(self) -> bool:
        """True when amounts of a sentence can fill it."""
        return self.kind in NUMERIC

    @property
    def is_timed(self) -> bool:
        """True when a day or a time of day of a sentence can fill it; a length of time cannot."""
        return self.kind in TIMED


@dataclass(frozen=True, slots=True)
class TaskSchema:
    """The slots of one task in declared order."""

    slots: tuple[Slot, ...]

    def slot(self, name: str) -> Slot | None:
        """Return the slot called *name*, or None."""
        return next((slot for slot in self.slots if slot.name == name), None)

    @property
    def required(self) -> tuple[Slot, ...]:
        """The slots that a person is asked for."""
        return tuple(slot for slot in self.slots if slot.is_required)


def task_schema(task: TaskCard) -> TaskSchema:
    """Return the shape of *task*; a schema that says less than pydantic's yields fields of kind "other".

    Raises:
        InvalidInput: it is no schema, or too large for a sentence to be read into; the message names the place.
    """
    return _shape(_spelled(task))


@lru_cache(maxsize=1024)
def _shape(text: str) -> TaskSchema:
    schema = _schema_at(json.loads(text), "parameters")
    properties, definitions = schema.named("properties"), schema.named("$defs")
    if len(properties) > MOST_FIELDS:
        raise InvalidInput(f"parameters.properties has {len(properties)} fields; keep to {MOST_FIELDS}")
    required = set(schema.texts("required"))
    parts = Counter(part for name in properties for part in set(stems_of(name)))
    return TaskSchema(
        tuple(
            _slot(name, field, definitions, parts, is_required=name in required) for name, field in properties.items()
        )
    )


def _slot(
    name: str, schema: Schema, definitions: Mapping[str, Schema], parts: Counter[str], *, is_required: bool
) -> Slot:
    variants, is_nullable = _variants(schema, definitions)
    arrays = [variant for variant in variants if variant.keywords.get("type") == "array"]
    is_list = bool(arrays) and len(arrays) == len(variants)
    if is_list:
        variants, _ = _variants(arrays[0].inner("items"), definitions)
    given = (name, *schema.texts("aliases"), *schema.texts("cues"))
    if len(given) > MOST_PHRASES:
        raise InvalidInput(f"{schema.place} has {len(given)} names, aliases and cues; keep to {MOST_PHRASES}")
    kind = _kind(variants)
    return Slot(
        name=name,
        kind=kind,
        is_list=is_list,
        is_required=is_required,
        is_nullable=is_nullable,
        unit=schema.unit(),
        choices=_choices(variants),
        phrases=tuple(_phrases(name, given, parts)),
        description=schema.text("description") or "",
        examples=schema.values("examples"),
        least=_bound(variants, "minimum", "exclusiveMinimum"),
        most=_bound(variants, "maximum", "exclusiveMaximum"),
        keeps_months=any(variant.keywords.get("keeps_months") is True for variant in variants),
        pattern=_said_of_text(variants, "pattern"),
        text_format=_said_of_text(variants, "format"),
    )


def _said_of_text(variants: list[Schema], keyword: str) -> str | None:
    """Return what the only way to be something says under *keyword*; of several none binds them all."""
    return variants[0].text(keyword) if len(variants) == 1 else None


def _bound(variants: list[Schema], *keywords: str) -> Decimal | None:
    """Return the bound under the first of *keywords* that is a number; one past which nothing is allowed either way."""
    for variant in variants:
        for keyword in keywords:
            found = variant.keywords.get(keyword)
            if isinstance(found, int | float) and not isinstance(found, bool):
                return Decimal(str(found))
    return None


def _phrases(name: str, texts: Sequence[str], parts: Counter[str]) -> Iterable[Phrase]:
    given = {(stems, _side(text)): None for text in texts if (stems := stems_of(text))}
    for stems, side in given:
        yield Phrase(stems, side=side)
    words = stems_of(name)
    for word in words if len(words) > 1 else ():
        if parts[word] == 1 and word not in STOP and not any(stems == (word,) for stems, _ in given):
            yield Phrase((word,), _PART_OF_NAME)


def _side(cue: str) -> Side:
    cue = cue.strip()
    if cue.startswith(_VALUE):
        return "left"
    return "right" if cue.endswith(_VALUE) else "either"


def _variants(schema: Schema, definitions: Mapping[str, Schema]) -> tuple[list[Schema], bool]:
    """Return what *schema* may be, references followed and null left out, and whether null was there."""
    pending, variants, is_nullable = [schema], [], False
    for _ in range(_MOST_STEPS):
        if not pending:
            break
        one = pending.pop(0)
        if reference := one.text("$ref"):
            pending.append(definitions.get(reference.rsplit("/", 1)[-1], Schema({}, one.place)))
        elif unions := [*one.alternatives("anyOf"), *one.alternatives("oneOf")]:
            pending.extend(unions)
        elif len(parts := one.alternatives("allOf")) == 1:
            pending.append(parts[0])
        elif one.keywords.get("type") == "null":
            is_nullable = True
        else:
            variants.append(one)
    return variants, is_nullable


def _kind(variants: list[Schema]) -> Kind:
    # The type may also be a list of types, of which rules make nothing.
    types = {kind for variant in variants if isinstance(kind := variant.keywords.get("type"), str)}
    if _choices(variants):
        return "choice"
    formats = [form for variant in variants if (form := variant.text("format"))]
    if with_unit := next((_WITH_UNIT[form] for form in formats if form in _WITH_UNIT), None):
        return with_unit
    if "number" in types:
        return "amount"
    for json_type, kind in (("integer", "integer"), ("boolean", "boolean")):
        if json_type in types:
            return "integer" if kind == "integer" else "boolean"
    if types == {"string"}:
        return next((_FORMATS[form] for form in formats if form in _FORMATS), "text")
    return "other"


def _choices(variants: list[Schema]) -> tuple[Any, ...]:
    values: list[Any] = []
    for variant in variants:
        values.extend(variant.values("enum"))
        if variant.has("const"):
            values.append(variant.keywords["const"])
    return tuple(values)


def _spelled(task: TaskCard) -> str:
    """Return the schema of *task*'s parameters as JSON, the same for the same schema.

    Raises:
        InvalidInput: it is too large or too deep, or holds a number too long to be written.
    """
    try:
        text = json.dumps(task.parameters)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"parameters cannot be written as JSON: {error}") from error
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(f"parameters have {len(text):,} characters; keep to {MOST_CHARACTERS:,}")
    return text


def _schema_at(found: Any, place: str) -> Schema:
    """Return *found* as a schema; true and false are schemas too, about which there is nothing to read."""
    if isinstance(found, bool):
        return Schema({}, place)
    if not isinstance(found, dict):
        raise InvalidInput(f"{place} must be a schema, not {shown(found)}")
    return Schema(found, place)
