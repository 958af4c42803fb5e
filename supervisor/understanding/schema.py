"""The slots of a task, by the JSON schema of its card: kind, cues, unit, choices, and whether they are required.

A card may come from any program. A valid JSON Schema is accepted, also where rules make nothing of it; an invalid one,
and one that no person could be asked for, is refused with the place, so that the other cards are understood.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from tasklore.contracts.errors import InvalidAmount, InvalidInput
from tasklore.contracts.messages import TaskCard
from tasklore.contracts.parameters.currencies import names_currency
from tasklore.contracts.quantities.amounts import Amount
from tasklore.contracts.quantities.amounts.spellings import shown
from tasklore.supervisor.understanding.utterance import STOP, stems_of, word_set

Kind = Literal[
    "amount", "integer", "money", "percent", "quantity", "text", "choice", "boolean", "date", "moment", "when", "time",
    "duration", "other",
]  # fmt: skip
Side = Literal["left", "right", "either"]

#: Words that a field may be called by which are no thing: what one says before a value, or asks with.
INTERROGATIVES = word_set("when where who whom what which how why")
_PARTICLES = INTERROGATIVES | word_set(
    "every each to from at in on for with without by until till since after before about of via per as"
)
_PLURALS = word_set("people children men women")
#: A name that says how something is and not what: "monthly", "spent", "insured".
_QUALITY = re.compile(
    r"(?:[^\W\d_]{3,}(?:(?<!e)ed|ly)|spent|paid|sold|left|driven|lost|due)\Z",
    re.IGNORECASE,
)
_DETERMINED = re.compile(r"(?:the|a|an|my|your|our|his|her|their)\b", re.IGNORECASE)
#: Stands for the value in a cue.
_VALUE = "{}"

NUMERIC: frozenset[Kind] = frozenset(
    {"amount", "integer", "money", "percent", "quantity"}
)
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
_WITH_UNIT: dict[str, Kind] = {
    "money": "money",
    "percent": "percent",
    "quantity": "quantity",
}
_KINDS: dict[str, Kind] = {
    "number": "amount",
    "integer": "integer",
    "boolean": "boolean",
}
#: Characters of a place in a schema that an error names: a schema may nest hundreds of levels deep.
_LONGEST_PLACE = 200
#: The type of a keyword, by the fault that pydantic finds.
_MUST_BE = {"list_type": "a list", "string_type": "a text", "dict_type": "an object"}
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


class SlotSchema(BaseModel):
    """The keywords of one JSON schema that say something of a slot; null stands for a keyword that is not there."""

    model_config = ConfigDict(strict=True, frozen=True)

    ref: str | None = Field(None, alias="$ref")
    type: Any = None
    format: str | None = None
    pattern: str | None = None
    unit: str | None = None
    description: str = ""
    enum: list[Any] = []
    const: Any = None
    examples: list[Any] = []
    aliases: list[str] = []
    cues: list[str] = []
    minimum: Any = None
    exclusiveMinimum: Any = None  # noqa: N815 - the keyword of JSON Schema
    maximum: Any = None
    exclusiveMaximum: Any = None  # noqa: N815 - the keyword of JSON Schema
    keeps_months: Any = None
    any_currency: Any = None
    converts: Any = None
    items: "SlotSchema | None" = None
    anyOf: list["SlotSchema"] = []  # noqa: N815 - the keyword of JSON Schema
    oneOf: list["SlotSchema"] = []  # noqa: N815 - the keyword of JSON Schema
    allOf: list["SlotSchema"] = []  # noqa: N815 - the keyword of JSON Schema

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, found: object) -> object:
        # True and false are schemas too, about which there is nothing to read.
        if isinstance(found, bool):
            return {}
        return (
            {key: one for key, one in found.items() if one is not None}
            if isinstance(found, dict)
            else found
        )

    @field_validator("unit")
    @classmethod
    def _check_unit(cls, unit: str | None) -> str | None:
        try:
            Amount.read(0, unit=unit)
        except InvalidAmount as error:
            raise ValueError(str(error)) from error
        return unit


class _Parameters(SlotSchema):
    """The schema of all parameters of a task."""

    properties: dict[str, SlotSchema] = {}
    required: list[str] = []
    definitions: dict[str, SlotSchema] = Field({}, alias="$defs")
    named_whole: Any = None


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that announce a field, as stems; *penalty* is larger for weaker evidence.

    *side* is where the value stands: "out of {}" has it on the right, "{} stars" on the left.
    """

    stems: tuple[str, ...]
    penalty: float = 0.0
    side: Side = "either"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Slot:
    """One parameter: *kind* is that of its items when *is_list*; *choices* holds the values of an enumeration.

    A value below *least* or above *most* is refused.
    *pattern* is what JSON Schema says of a text; it is anybody's, and may take for ever.
    Money is in any currency, a number without one in *unit* where there is one.
    An amount without a unit *takes_money* in any currency; elsewhere a currency is asked about.
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
    takes_money: bool = False
    keeps_months: bool = False
    pattern: str | None = None

    @property
    def words(self) -> str:
        """The field's name in words: "budget limit"."""
        return self.name.replace("_", " ")

    @property
    def label(self) -> str:
        """What a question calls it: "the budget limit", "the number of days", "the monthly amount", "'every'"."""
        if self.is_particle:
            return f"'{self.words}'"
        if self.is_count:
            return f"the number of {self.words}"
        if _QUALITY.search(self.words):
            return f"the {self.words} amount" if self.is_numeric else self.words
        return self.words if _DETERMINED.match(self.words) else f"the {self.words}"

    @property
    def is_particle(self) -> bool:
        """True where its name is no thing but what stands before one: "every", "insured for", "how often"."""
        words = self.words.casefold().split() or [""]
        return words[-1] in _PARTICLES or words[0] in INTERROGATIVES

    @property
    def is_count(self) -> bool:
        """True where it says how many there are of what its name is the plural of."""
        last = self.words.casefold().rpartition(" ")[2]
        is_plural = last.endswith("s") and not last.endswith(("ss", "us", "is"))
        return (
            self.kind == "integer"
            and not self.is_list
            and (is_plural or last in _PLURALS)
        )

    @property
    def is_numeric(self) -> bool:
        """True when amounts of a sentence can fill it."""
        return self.kind in NUMERIC

    @property
    def is_currency(self) -> bool:
        """True when it says which currency the amounts beside it are in."""
        return self.kind in ("text", "choice") and names_currency(
            self.name, self.choices
        )

    @property
    def is_timed(self) -> bool:
        """True when a day or a time of day of a sentence can fill it; a length of time cannot."""
        return self.kind in TIMED


@dataclass(frozen=True, slots=True)
class TaskSchema:
    """The slots of one task in declared order; words that are none of its wordings whole do not ask for it.

    That is so where it *is_named_whole*, as its card says by `named_whole` beside its properties.
    """

    slots: tuple[Slot, ...]
    is_named_whole: bool = False

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
    return _shape(_dump_schema(task))


@lru_cache(maxsize=1024)
def _shape(text: str) -> TaskSchema:
    try:
        schema = _Parameters.model_validate(json.loads(text))
    except ValidationError as error:
        raise InvalidInput(_explain(error)) from error
    if len(schema.properties) > MOST_FIELDS:
        raise InvalidInput(
            f"parameters.properties has {len(schema.properties)} fields; keep to {MOST_FIELDS}"
        )
    parts = Counter(part for name in schema.properties for part in set(stems_of(name)))
    slots = [
        _slot(name, field, schema, parts) for name, field in schema.properties.items()
    ]
    if any(slot.is_currency for slot in slots):
        slots = [
            replace(one, takes_money=one.unit is None and one.kind != "money")
            for one in slots
        ]
    return TaskSchema(tuple(slots), is_named_whole=schema.named_whole is True)


def _explain(error: ValidationError) -> str:
    """Return the first fault of a schema with its place, as in `parameters.properties.x.enum must be a list, not 5`."""
    fault = error.errors(include_url=False)[0]
    steps = (
        f"[{step}]" if isinstance(step, int) else f".{step[:64]}"
        for step in fault["loc"]
    )
    place = f"parameters{''.join(steps)}"[:_LONGEST_PLACE]
    if fault["type"] == "value_error":
        return f"{place}: {fault['ctx']['error']}"
    return f"{place} must be {_MUST_BE.get(fault['type'], 'a schema')}, not {shown(fault['input'])}"


def _slot(
    name: str, schema: SlotSchema, parameters: _Parameters, parts: Counter[str]
) -> Slot:
    variants, is_nullable = _variants(schema, parameters.definitions)
    arrays = [variant for variant in variants if variant.type == "array"]
    is_list = bool(arrays) and len(arrays) == len(variants)
    if is_list:
        variants, _ = _variants(arrays[0].items or SlotSchema(), parameters.definitions)
    given = (name, *schema.aliases, *schema.cues)
    if len(given) > MOST_PHRASES:
        place = f"parameters.properties.{name[:64]}"
        raise InvalidInput(
            f"{place} has {len(given)} names, aliases and cues; keep to {MOST_PHRASES}"
        )
    # Of several ways to be something, what one says of a text binds not all of them.
    only = variants[0] if len(variants) == 1 else SlotSchema()
    return Slot(
        name=name,
        kind="money" if schema.converts is True and schema.unit else _kind(variants),
        is_list=is_list,
        is_required=name in parameters.required,
        is_nullable=is_nullable,
        unit=schema.unit,
        choices=_choices(variants),
        phrases=tuple(_phrases(name, given, parts)),
        description=schema.description,
        examples=tuple(schema.examples),
        least=_bound(
            bound for one in variants for bound in (one.minimum, one.exclusiveMinimum)
        ),
        most=_bound(
            bound for one in variants for bound in (one.maximum, one.exclusiveMaximum)
        ),
        takes_money=schema.unit is None and schema.any_currency is True,
        keeps_months=any(variant.keeps_months is True for variant in variants),
        pattern=only.pattern,
    )


def _bound(found: Iterable[object]) -> Decimal | None:
    """Return the first bound of *found* that is a number; one past which nothing is allowed either way."""
    numbers = (
        one
        for one in found
        if isinstance(one, int | float) and not isinstance(one, bool)
    )
    return next((Decimal(str(one)) for one in numbers), None)


def _phrases(name: str, texts: Sequence[str], parts: Counter[str]) -> Iterable[Phrase]:
    given: dict[tuple[tuple[str, ...], Side], None] = {}
    for text in texts:
        cue = text.strip()
        side: Side = (
            "left"
            if cue.startswith(_VALUE)
            else "right"
            if cue.endswith(_VALUE)
            else "either"
        )
        if stems := stems_of(text):
            given[stems, side] = None
    for stems, side in given:
        yield Phrase(stems, side=side)
    words = stems_of(name)
    for word in words if len(words) > 1 else ():
        if (
            parts[word] == 1
            and word not in STOP
            and not any(stems == (word,) for stems, _ in given)
        ):
            yield Phrase((word,), _PART_OF_NAME)


def _variants(
    schema: SlotSchema, definitions: Mapping[str, SlotSchema]
) -> tuple[list[SlotSchema], bool]:
    """Return the variants of *schema*, references followed and null left out, and whether null was there."""
    pending = [schema]
    variants = []
    is_nullable = False
    for _ in range(_MOST_STEPS):
        if not pending:
            break
        one = pending.pop(0)
        if one.ref:
            pending.append(definitions.get(one.ref.rsplit("/", 1)[-1], SlotSchema()))
        elif one.anyOf or one.oneOf:
            pending.extend([*one.anyOf, *one.oneOf])
        elif len(one.allOf) == 1:
            pending.append(one.allOf[0])
        elif one.type == "null":
            is_nullable = True
        else:
            variants.append(one)
    return variants, is_nullable


def _kind(variants: list[SlotSchema]) -> Kind:
    # The type may also be a list of types, of which rules make nothing.
    types = {variant.type for variant in variants if isinstance(variant.type, str)}
    formats = [variant.format for variant in variants if variant.format]
    if _choices(variants):
        return "choice"
    if with_unit := next(
        (_WITH_UNIT[form] for form in formats if form in _WITH_UNIT), None
    ):
        return with_unit
    for json_type, kind in _KINDS.items():
        if json_type in types:
            return kind
    if types == {"string"}:
        return next((_FORMATS[form] for form in formats if form in _FORMATS), "text")
    return "other"


def _choices(variants: list[SlotSchema]) -> tuple[Any, ...]:
    return tuple(
        value
        for one in variants
        for value in (*one.enum, *([] if one.const is None else [one.const]))
    )


def _dump_schema(task: TaskCard) -> str:
    """Return the schema of *task*'s parameters as JSON, the same for the same schema.

    Raises:
        InvalidInput: it is too large or too deep, or holds a number too long to be written.
    """
    try:
        text = json.dumps(task.parameters)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"parameters cannot be written as JSON: {error}") from error
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(
            f"parameters have {len(text):,} characters; keep to {MOST_CHARACTERS:,}"
        )
    return text
