"""Parameters of a task: one frozen, closed class is the contract, the schema a supervisor fills and the key."""

import types
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar, Self, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic import Field as _PydanticField
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from contracts.amounts import Amount
from contracts.errors import InvalidAmount, InvalidParameters
from contracts.questions import question_key, spell_field

_SEQUENCES = (list, tuple, set, frozenset, Sequence, Collection)


def Field(  # noqa: N802 - the name pydantic users expect
    default: Any = ...,
    *,
    aliases: tuple[str, ...] = (),
    cues: tuple[str, ...] = (),
    unit: str | None = None,
    examples: tuple[Any, ...] = (),
    description: str | None = None,
    **constraints: Any,
) -> Any:
    """Declare one parameter: what pydantic's `Field` takes, and what lets a sentence be read into it.

    Args:
        default: The value when nothing is said; left out means required, and a supervisor asks for it.
        aliases: Other names under which callers may send it.
        cues: Words that announce it in a sentence ("limit", "budget of"), beside its name and aliases.
        unit: The unit of an amount, such as "USD" or "km": a bare number means it, cents convert, another is refused.
        examples: Values that help a person or a model to see what is meant.
        description: One sentence for a person or a model.
        constraints: Anything else of pydantic's `Field`: `ge`, `le`, `max_length`, `pattern`, ...
    """
    extra: dict[str, Any] = {}
    if aliases:
        extra["aliases"] = list(aliases)
    if cues:
        extra["cues"] = list(cues)
    if unit is not None:
        extra["unit"] = unit
    return _PydanticField(
        default,
        description=description,
        examples=list(examples) or None,
        json_schema_extra=extra or None,
        **constraints,
    )


class _Reading:
    """How raw values of one field are made ready: its unit, and whether numbers in words are understood."""

    __slots__ = ("bare_list", "name", "numeric", "takes_int", "unit", "whole")

    def __init__(self, name: str, field: FieldInfo) -> None:
        kinds = _leaf_types(field.annotation)
        self.name = name
        self.unit = _declared(field, "unit")
        self.numeric = bool(kinds & {Amount, Decimal, int, float}) and str not in kinds
        self.whole = Amount not in kinds
        # The field's own validation takes a whole number as it is, unless a unit has to be put to it.
        self.takes_int = self.unit is None
        self.bare_list = _takes_only_lists(field.annotation)

    def read(self, raw: Any) -> Any:
        """Return *raw* with every number in it normalised; lists item by item."""
        kind = type(raw)
        if (kind is int and self.takes_int) or raw is None:
            return raw
        if kind is list or kind is tuple:
            return [item if type(item) is int and self.takes_int else self.read(item) for item in raw]
        amount = Amount.read(raw, unit=self.unit)
        if not self.whole:
            return amount
        return int(amount.value) if amount.value == amount.value.to_integral_value() else amount.value


class Parameters(BaseModel):
    """Base of a task's parameters: frozen, closed to keys it does not know, and one key however they were spelled.

    Numbers may arrive as `50000`, `50000.0`, `"50,000"`, `"50k"` or `"fifty thousand"`; a boolean is no number, NaN and
    infinity are refused, and nothing is rounded.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, str_max_length=100_000)

    _readings: ClassVar[dict[str, _Reading]] = {}
    _aliases: ClassVar[dict[str, str]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Prepare how each field is read and keyed; refuse defaults that cannot be, and aliases that clash.

        Raises:
            TypeError: two fields share a name or alias, or a default cannot be read.
        """
        super().__pydantic_init_subclass__(**kwargs)
        cls._readings = {name: _Reading(name, field) for name, field in cls.model_fields.items()}
        cls._defaults = {
            name: _read_default(cls, reading)
            for name, reading in cls._readings.items()
            if reading.numeric and not cls.model_fields[name].is_required()
        }
        cls._aliases = {}
        for name, field in cls.model_fields.items():
            for alias in _declared(field, "aliases") or ():
                if alias in cls._aliases or alias in cls.model_fields:
                    msg = f"{cls.__name__}: {alias!r} names two fields; an alias must be used once"
                    raise TypeError(msg)
                cls._aliases[alias] = name

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Self:
        """Return the parameters that *raw* spells.

        Raises:
            InvalidParameters: with one sentence for each field that is missing, unknown or unusable.
        """
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise InvalidParameters(_problems(cls, error)) from error

    @classmethod
    def schema_for_cards(cls) -> dict[str, Any]:
        """Return the JSON schema a supervisor fills: validation form, with aliases, cues and units of each field."""
        return cls.model_json_schema(by_alias=False, mode="validation")

    def key(self, task_name: str) -> str:
        """Return the question that *task_name* with these values asks; see `contracts.questions` for its form."""
        values = self.__dict__
        return question_key(
            task_name,
            [spell_field(name, values[name], bare_list=reading.bare_list) for name, reading in self._readings.items()],
        )

    @model_validator(mode="before")
    @classmethod
    def _make_ready(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        ready: dict[str, Any] = {}
        problems: list[str] = []
        for given, value in raw.items():
            name: Any = cls._aliases.get(given, given)
            reading = cls._readings.get(name)
            if name in ready:
                problems.append(f"{name} is given twice, by two of its names; give it once")
            elif reading is None or not reading.numeric:
                ready[name] = value
            else:
                try:
                    ready[name] = reading.read(value)
                except InvalidAmount as error:
                    problems.append(f"{name}: {error}")
        if problems:
            kind, text = "unreadable", "{problems}"
            raise PydanticCustomError(kind, text, {"problems": "; ".join(problems)})
        # A default left out is the same question as the default sent: it is read in the same way.
        for name, value in cls._defaults.items():
            if name not in ready:
                ready[name] = value
        return ready


def _read_default(cls: type[Parameters], reading: _Reading) -> Any:
    default = cls.model_fields[reading.name].get_default(call_default_factory=True, validated_data={})
    try:
        return reading.read(default)
    except InvalidAmount as error:
        msg = f"{cls.__name__}: the default of {reading.name} cannot be used: {error}"
        raise TypeError(msg) from error


def _problems(cls: type[Parameters], error: ValidationError) -> list[str]:
    """Return one sentence a field, naming the field and the cure, with nothing of pydantic's own jargon."""
    sentences = []
    for problem in error.errors(include_url=False, include_context=False):
        where = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "missing":
            sentences.append(f"{where} is missing; give it")
        elif problem["type"] == "extra_forbidden":
            known = ", ".join([*cls.model_fields, *cls._aliases])
            sentences.append(f"{where} is not a parameter; known are {known}")
        else:
            sentences.append(f"{where}: {problem['msg']}" if where else problem["msg"])
    return sentences


def _declared(field: FieldInfo, name: str) -> Any:
    extra = field.json_schema_extra
    return cast("dict[str, Any]", extra).get(name) if isinstance(extra, dict) else None


def _leaf_types(annotation: Any) -> set[Any]:
    """Return the types at the leaves of *annotation*, with Optional, lists and Annotated taken apart."""
    arguments = get_args(annotation)
    if not arguments or isinstance(annotation, TypeVar):
        return {annotation}
    if hasattr(annotation, "__metadata__"):
        return _leaf_types(arguments[0])
    return set().union(*(_leaf_types(argument) for argument in arguments if argument is not ...))


def _takes_only_lists(annotation: Any) -> bool:
    """Return whether *annotation* is a sequence, or a sequence or None: then its items need no parentheses."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        return len(members) == 1 and _takes_only_lists(members[0])
    return (origin or annotation) in _SEQUENCES
