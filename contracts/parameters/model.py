"""Parameters of a task: one frozen, closed class is the contract, the schema a supervisor fills and the key."""

import re
import warnings
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, dataclass_transform

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic import Field as _PydanticField
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, PydanticUndefined

from tasklore.contracts.errors import InvalidAmount, InvalidParameters
from tasklore.contracts.faults import complaint_of, fault_of, nearest
from tasklore.contracts.message_parts import FailFastModel
from tasklore.contracts.parameters.annotations import (
    NUMBERS,
    held_types,
    is_typed,
    leaf_types,
    literals_of,
    lone_kind,
    may_be_bool,
    may_be_text,
    takes_only_lists,
)  # fmt: skip
from tasklore.contracts.parameters.conversions import (
    Conversion,
    check_bounds,
    check_conversion,
    conversion_of,
)
from tasklore.contracts.parameters.currencies import (
    currency_said,
    names_currency,
    problem_of_currencies,
)
from tasklore.contracts.parameters.neighbours import Neighbourhood, neighbourhood
from tasklore.contracts.parameters.questions import question_key, spell_field
from tasklore.contracts.parameters.tolerances import Tolerance, read_tolerance
from tasklore.contracts.quantities.amounts import Amount
from tasklore.contracts.quantities.amounts.frozen import TextValue
from tasklore.contracts.quantities.amounts.money import is_money, read_money
from tasklore.contracts.quantities.amounts.spellings import declared_unit

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass

    from tasklore.contracts.quantities.amounts import Duration, Percent, Quantity
    from tasklore.contracts.quantities.amounts.rates import RateSource
else:
    ModelMetaclass = type(BaseModel)

#: Annotations that let every value in.
_OPEN = frozenset({Any, object, dict, list})
#: What pydantic makes of text, but not of a default that is text.
_OF_TEXT = frozenset({date, datetime, time, timedelta})
#: Months in ISO 8601, which pydantic takes for 30 days. A year passes: pydantic itself writes 400 days as P1Y35D.
_WITH_MONTHS = re.compile(r"\s*[-+]?P[^T]*[1-9][\d.,]*M")
_LONGEST_ISO = 100
#: Arguments of `Field`, pydantic's among them, which takes any other name for a deprecated extra.
_ARGUMENTS = frozenset(signature(_PydanticField).parameters) - {"extra"} | {
    "aliases", "cues", "unit", "any_currency", "convert", "tolerance"
}  # fmt: skip
#: Unknown names of one call that are told one by one.
_MOST_UNKNOWN = 20


def Field(  # noqa: N802 - the name pydantic users expect
    default: Any = ...,
    *,
    aliases: tuple[str, ...] = (),
    cues: tuple[str, ...] = (),
    unit: str | None = None,
    any_currency: bool = False,
    convert: "RateSource | None" = None,
    tolerance: "str | int | Decimal | timedelta | Percent | Quantity | Duration | None" = None,
    examples: tuple[Any, ...] = (),
    description: str | None = None,
    **constraints: Any,
) -> Any:
    """Declare one parameter: the arguments of pydantic's `Field`, and hints for reading a sentence into it.

    Args:
        default: The value when nothing is said; left out means required, and a supervisor asks for it.
        aliases: Other names under which callers may send it.
        cues: Words that announce it in a sentence ("limit", "budget of"), beside its name and aliases; `{}` says on
            which side the value stands ("{} stars", "out of {}"), without it either.
        unit: The unit of an amount, such as "USD" or "km": a bare number means it, cents convert, another is refused.
        any_currency: Whether an amount without a unit may be said in any currency ("120 yen" is 120), the same for all
            amounts of the task; it is not kept. Without it a currency is refused, unless a field for it stands beside
            (`currency`, or a choice of codes).
        convert: Finds the rate from another currency to *unit*: `await convert("USD", "EUR")` returns an
            `ExchangeRate`. Each currency is a question of its own; the task gets what it is in *unit*, and what was
            given by `context.converted`. Without it another currency is refused.
        tolerance: How far the value of a remembered question may be away for its answer to serve this one ("near"), in
            the terms of the field: a number in its unit or a percentage of what is asked ("1%"); of a `Percent` percent
            points; of a `Quantity` a quantity ("500 m"); of a `Duration` or `Moment` a length of time ("1 hour"). Left
            out, not at all.
        examples: Values that help a person or a model to see what is meant.
        description: One sentence for a person or a model.
        constraints: Anything else of pydantic's `Field`: `ge`, `le`, `max_length`, `pattern`, ...

    Raises:
        TypeError: there is no such argument.
    """
    for name in constraints:
        if name not in _ARGUMENTS:
            raise TypeError(
                f"Field() has no argument {name!r}{nearest(name, _ARGUMENTS)}"
            )
    extra: dict[str, Any] = {}
    if aliases:
        extra["aliases"] = list(aliases)
    if cues:
        extra["cues"] = list(cues)
    if unit is not None:
        extra["unit"] = unit
    if any_currency:
        extra["any_currency"] = True
    if tolerance is not None:
        # Only the class knows in whose terms; what has no exact text is refused there.
        is_told = isinstance(
            tolerance, str | int | Decimal | TextValue
        ) and not isinstance(tolerance, bool)
        extra["tolerance"] = str(tolerance) if is_told else tolerance
    field = _PydanticField(
        default,
        description=description,
        examples=list(examples) or None,
        json_schema_extra=extra or None,
        **constraints,
    )
    if convert is not None:
        field.metadata.append(Conversion(convert))
    return field


class _Reading:
    """How raw values of one field are made ready: its type and unit, and whether numbers in words are understood."""

    __slots__ = (
        "any_currency", "bare_list", "conversion", "is_checked", "is_money", "is_read", "is_span", "name",
        "takes_bools", "takes_int", "typed", "unit", "whole",
    )  # fmt: skip

    def __init__(self, name: str, field: FieldInfo, *, any_currency: bool) -> None:
        kinds = leaf_types(field.annotation)
        typed = set(filter(is_typed, kinds))
        numbers = bool(kinds.intersection(NUMBERS))
        self.name = name
        self.unit = _declared(field, "unit")
        self.is_money = is_money(field.rebuild_annotation())
        if self.is_money:
            _check_money(name, field, kinds)
        self.conversion = conversion_of(field)
        if self.conversion is not None:
            check_conversion(name, field, self.conversion, self.unit)
        self.any_currency = not self.is_money and (
            any_currency or _declared(field, "any_currency") is True
        )
        self.typed: Any = next(iter(typed)) if len(typed) == 1 and not numbers else None
        self.is_read = str not in kinds and (
            self.typed is not None or (numbers and not typed)
        )
        self.whole = Amount not in kinds
        # The field's own validation takes a whole number as it is, unless a unit or a type has to be put to it.
        self.takes_int = self.unit is None and self.typed is None and not self.is_money
        if self.typed is not None and self.unit is not None:
            _check_unit(name, self.typed, self.unit)
        # What is not read here (a mapping, a model, a timedelta, anything) would take True for 1, and NaN.
        held = held_types(kinds)
        is_open = bool(held & _OPEN)
        self.is_checked = not self.is_read and (
            is_open or not held.isdisjoint((*NUMBERS, timedelta))
        )
        self.takes_bools = is_open or any(map(may_be_bool, held))
        # Inside a model, a text is not known to be that of a timedelta.
        self.is_span = timedelta in kinds and str not in kinds
        self.bare_list = takes_only_lists(field.annotation)

    def read(self, raw: Any) -> Any:
        """Return *raw* with every number and typed value in it normalised; lists item by item."""
        kind = type(raw)
        if (kind is int and self.takes_int) or raw is None:
            return raw
        if kind is list or kind is tuple:
            return [
                item if type(item) is int and self.takes_int else self.read(item)
                for item in raw
            ]
        if kind is set or kind is frozenset:
            return {self.read(item) for item in raw}
        if self.typed is not None:
            return (
                self.typed.read(raw)
                if self.unit is None
                else self.typed.read(raw, unit=self.unit)
            )
        if self.is_money or self.conversion is not None:
            return read_money(raw, unit=self.unit)
        amount = Amount.read(raw, unit=self.unit, any_currency=self.any_currency)
        if not self.whole:
            return amount
        return (
            int(amount.value)
            if amount.value == amount.value.to_integral_value()
            else amount.value
        )

    def fault(self, raw: Any) -> str | None:
        """Return the place in *raw* of a boolean among numbers, an infinite number, or months for a `timedelta`.

        Pydantic takes them for 1 or 0, for a number, and for 30 days each.
        """
        waiting = [(self.name, raw)]
        while waiting:
            place, item = waiting.pop()
            if isinstance(item, bool):
                if not self.takes_bools:
                    return f"{place}: {item!r} is not a number; send a number such as 1"
            elif isinstance(item, float | Decimal):
                if not Decimal(item).is_finite():
                    return f"{place}: {item!r} is not a finite number; send a number"
            elif isinstance(item, str):
                if self.is_span and _WITH_MONTHS.match(item[:_LONGEST_ISO]):
                    return f"{place}: {item!r} has months, which have no fixed length; send days, such as 'P90D'"
            elif isinstance(item, Mapping):
                waiting += ((f"{place}.{key}", inner) for key, inner in item.items())
            elif isinstance(item, list | tuple | set | frozenset):
                waiting += (
                    (f"{place}.{number}", inner) for number, inner in enumerate(item)
                )
        return None


# Said again, as mypy looks at the metaclass alone, not at its bases. Without `Field` above: a default by position,
# `Field(3)`, would be none.
@dataclass_transform(kw_only_default=True, field_specifiers=(_PydanticField,))
class _OpenToNames(ModelMetaclass):
    """Lets fields be called as methods of the base that nobody calls on a value are: `key`, `copy`, `json`."""

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        **options: Any,
    ) -> type:
        """Make the class without the warning that such a field hides a method."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", 'Field name ".*" in ".*" shadows')
            return super().__new__(cls, name, bases, namespace, **options)


#: The exact types of plain numbers, which cost half of `isinstance`.
_NUMBERS = frozenset((int, float))


def _is_of_numbers(value: Any) -> bool:
    """Return whether *value* is a plain number, or a list of nothing else."""
    kind = type(value)
    return kind in _NUMBERS or (kind is list and _NUMBERS.issuperset(map(type, value)))


class Parameters(FailFastModel, metaclass=_OpenToNames):
    """Base of a task's parameters: frozen, closed to keys it does not know, and one key however they were spelled.

    Numbers may arrive as `50000`, `50000.0`, `"50,000"`, `"50k"` or `"fifty thousand"`; a boolean is no number, NaN and
    infinity are refused, and nothing is rounded.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        str_max_length=100_000,
        # What may be no field is said below, with the cure.
        protected_namespaces=(),
    )

    _readings: ClassVar[dict[str, _Reading]] = {}
    _currencies: ClassVar[tuple[str, ...]] = ()
    _spelled: ClassVar[tuple[tuple[str, bool], ...]] = ()
    _aliases: ClassVar[dict[str, str]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}
    _tolerances: ClassVar[dict[str, Tolerance]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Prepare how each field is read and keyed; refuse defaults that cannot be, and aliases that clash.

        Raises:
            TypeError: two fields share a name or alias, one is called as what pydantic itself uses, a default cannot be
                read, or a tolerance is of no lone value or not in its terms.
        """
        super().__pydantic_init_subclass__(**kwargs)
        cls._currencies = tuple(
            name
            for name, field in cls.model_fields.items()
            if names_currency(name, choices := literals_of(field.annotation))
            and (choices or str in leaf_types(field.annotation))
        )
        is_told = bool(cls._currencies)
        _free_names(cls)
        cls._readings = {
            name: _Reading(name, field, any_currency=is_told)
            for name, field in cls.model_fields.items()
        }
        cls._spelled = tuple(
            (name, reading.bare_list) for name, reading in cls._readings.items()
        )
        cls._defaults = {
            name: _read_default(cls, reading)
            for name, reading in cls._readings.items()
            if not cls.model_fields[name].is_required()
            and (reading.is_read or _is_raw(cls.model_fields[name]))
        }
        cls._tolerances = _tolerances(cls)
        cls._aliases = {}
        for name, field in cls.model_fields.items():
            for alias in _declared(field, "aliases") or ():
                if alias in cls._aliases or alias in cls.model_fields:
                    msg = f"{cls.__name__}: {alias!r} names two fields; an alias must be used once"
                    raise TypeError(msg)
                cls._aliases[alias] = name

    # A type checker is to find a misspelt field itself.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Refuse a name that is no field, from here: what our code raises is a slip of the task that asked.

            Raises:
                AttributeError: with the fields that there are.
            """
            if name.startswith("_"):
                return super().__getattr__(name)
            known = tuple(type(self).model_fields)
            cure = nearest(name, known) or f"; it has {', '.join(known) or 'none'}"
            raise AttributeError(
                f"{type(self).__name__} has no field {name!r}{cure}",
                name=name,
                obj=self,
            )

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
        """Return the JSON schema a supervisor fills: validation form, with aliases, cues and units of each field.

        `"keeps_text": true` marks a number that may be any text instead (`float | str`): by the rest it would be
        a Decimal, whose texts are numbers in words.
        """
        schema = cls.model_json_schema(by_alias=False, mode="validation")
        for name, field in cls.model_fields.items():
            if may_be_text(field.annotation):
                schema["properties"][name]["keeps_text"] = True
        return schema

    def key(self, task_name: str) -> str:
        """Return the question that *task_name* with these values asks; see `parameters.questions` for its form."""
        values = self.__dict__
        return question_key(
            task_name,
            [
                spell_field(name, values[name], bare_list=bare_list)
                for name, bare_list in self._spelled
            ],
        )

    def neighbourhood(self, task_name: str) -> Neighbourhood | None:
        """Return which questions about *task_name* are near to this one; None when no field declares a tolerance."""
        if not self._tolerances:
            return None
        values = {name: self.__dict__[name] for name in self._readings}
        bare_lists = {
            name: reading.bare_list for name, reading in self._readings.items()
        }
        return neighbourhood(task_name, values, bare_lists, self._tolerances)

    @classmethod
    def conversions(cls) -> dict[str, tuple[str, Conversion]]:
        """Return the currency and the conversion of each field whose amounts are converted into it."""
        return {
            name: (declared_unit(reading.unit).code, reading.conversion)
            for name, reading in cls._readings.items()
            if reading.unit is not None and reading.conversion is not None
        }

    @classmethod
    def _faults_of_currencies(cls, raw: Mapping[str, Any]) -> list[str]:
        """Return the faults of the currencies in *raw*; numbers, and lists of them, name none and are not looked at."""
        if all(_is_of_numbers(value) for value in raw.values()):
            return []
        named = {cls._aliases.get(given, given): value for given, value in raw.items()}
        amounts = cls._amounts_in_any(named)
        currencies = {
            name: named.get(name, None if field.is_required() else field.get_default())
            for name, field in cls.model_fields.items()
            if name in cls._currencies
        }
        fault = problem_of_currencies(amounts, currencies)
        return [] if fault is None else [fault]

    @classmethod
    def _amounts_in_any(cls, named: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return the values of *named* that are amounts in any currency, with their fields."""
        readings = cls._readings
        return [
            (name, value)
            for name, value in named.items()
            if (one := readings.get(name)) is not None
            and one.is_read
            and one.any_currency
            and not (one.typed or one.unit)
        ]

    @classmethod
    def _currency_said(cls, raw: Mapping[str, Any]) -> dict[str, str]:
        """Return the currency that the amounts in *raw* are in, for the one field for it, which *raw* leaves out."""
        if len(cls._currencies) != 1:
            return {}
        (name,) = cls._currencies
        named = {cls._aliases.get(given, given): value for given, value in raw.items()}
        if name in named:
            return {}
        choices = literals_of(cls.model_fields[name].annotation)
        amounts = [value for _, value in cls._amounts_in_any(named)]
        code = currency_said(amounts, choices)
        return {} if code is None else {name: code}

    @model_validator(mode="before")
    @classmethod
    def _make_ready(cls, raw: Any) -> Any:
        if type(raw) is not dict and not isinstance(raw, Mapping):
            return raw
        _demand_few(cls, raw)
        ready: dict[str, Any] = {}
        problems: list[str] = []
        aliases = cls._aliases
        readings = cls._readings
        for given, value in raw.items():
            name: Any = aliases.get(given, given)
            reading = readings.get(name)
            if name in ready:
                problems.append(
                    f"{name} is given twice, by two of its names; give it once"
                )
            elif reading is None or not (reading.is_read or reading.is_checked):
                ready[name] = value
            else:
                try:
                    ready[name] = reading.read(value) if reading.is_read else value
                except InvalidAmount as error:
                    problems.append(f"{name}: {error}")
                if reading.is_checked and (fault := reading.fault(value)):
                    problems.append(fault)
        # Said with the amount, the currency is told: a default is none that somebody said.
        ready |= (told := cls._currency_said(raw))
        if problems := problems or cls._faults_of_currencies({**raw, **told}):
            kind = "unreadable"
            text = "{problems}"
            raise PydanticCustomError(kind, text, {"problems": "; ".join(problems)})
        # A default left out is the same question as the default sent: it is read in the same way.
        for name, value in cls._defaults.items():
            if name not in ready:
                ready[name] = value
        return ready


def _free_names(cls: type[Parameters]) -> None:
    """Take methods of the base for no defaults of the fields that are called like them.

    Raises:
        TypeError: a field is called as what pydantic itself uses.
    """
    hidden = {}
    for name, field in cls.__pydantic_fields__.items():
        if not hasattr(Parameters, name):
            continue
        if name.startswith("model_"):
            msg = (
                f"{cls.__name__}: no field may be called {name!r}, which pydantic uses "
                f"itself; give it another name, and {name!r} as an alias: "
                f"Field(aliases=[{name!r}])"
            )
            raise TypeError(msg)
        if getattr(field.default, "__func__", field.default) is getattr(
            getattr(Parameters, name), "__func__", getattr(Parameters, name)
        ):
            hidden[name] = field
    for name, field in hidden.items():
        above = (vars(base).get("__pydantic_fields__", {}) for base in cls.__mro__[1:])
        field.default = next(
            (fields[name].default for fields in above if name in fields),
            PydanticUndefined,
        )
    if hidden:
        cls.model_rebuild(force=True)


def _demand_few(cls: type[Parameters], raw: Mapping[Any, Any]) -> None:
    if len(raw) <= _MOST_UNKNOWN:
        return
    known = [*cls.model_fields, *cls._aliases]
    if (
        cls.model_config.get("extra") == "forbid"
        and len(raw) > len(known) + _MOST_UNKNOWN
    ):
        told = {
            "problems": f"there are {len(raw):,} parameters; known are {', '.join(known)}"
        }
        raise PydanticCustomError("unreadable", "{problems}", told)


def _check_money(name: str, field: FieldInfo, kinds: set[Any]) -> None:
    """Refuse money that is something else too, or whose currency is declared.

    Raises:
        TypeError: with what to declare.
    """
    others = kinds.intersection(NUMBERS) - {Amount}
    if others:
        told = ", ".join(sorted(kind.__name__ for kind in others))
        msg = (
            f"{name} is Money or another number ({told}), which a value does not tell "
            "apart; declare Money alone"
        )
        raise TypeError(msg)
    if _declared(field, "unit") is not None or _declared(field, "any_currency"):
        msg = (
            f"{name} is Money, which keeps the currency it is given; declare Amount "
            "with Field(unit='EUR') for one currency alone"
        )
        raise TypeError(msg)
    check_bounds(name, field)


def _check_unit(name: str, typed: Any, unit: str) -> None:
    try:
        typed.read(0, unit=unit)
    except InvalidAmount as error:
        msg = f"{name} is a {typed.__name__} and cannot be counted in {unit!r}: {error}"
        raise TypeError(msg) from error


def _read_default(cls: type[Parameters], reading: _Reading) -> Any:
    default = cls.model_fields[reading.name].get_default(
        call_default_factory=True, validated_data={}
    )
    if isinstance(default, str) and (fault := reading.fault(default)):
        raise TypeError(f"{cls.__name__}: the default of {fault}")
    try:
        return reading.read(default) if reading.is_read else default
    except InvalidAmount as error:
        msg = f"{cls.__name__}: the default of {reading.name} cannot be used: {error}"
        raise TypeError(msg) from error


def _is_raw(field: FieldInfo) -> bool:
    """True for a default that is spelled as a caller spells it: it is validated like one that was sent."""
    kinds = leaf_types(field.annotation)
    if isinstance(field.default, str):
        return bool(kinds & _OF_TEXT) and str not in kinds
    is_model = any(
        isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds
    )
    return is_model and isinstance(field.default, Mapping)


def _tolerances(cls: type[Parameters]) -> dict[str, Tolerance]:
    """Return the tolerances that the fields of *cls* declare, and have its card tell them in their one spelling."""
    found = {}
    for name, field in cls.model_fields.items():
        raw = _declared(field, "tolerance")
        extra = field.json_schema_extra
        if raw is None or not isinstance(extra, dict):
            continue
        kind = lone_kind(field.annotation)
        if kind is None:
            msg = (
                f"{cls.__name__}: {name} declares a tolerance, which only a lone number, Percent, Quantity, "
                "Duration or Moment may have, or one of them or None"
            )
            raise TypeError(msg)
        try:
            found[name] = read_tolerance(raw, kind, _declared(field, "unit"))
        except TypeError as error:
            raise TypeError(f"{cls.__name__}: {name}: {error}") from error
        extra["tolerance"] = str(found[name])
    return found


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
            sentences.append(fault_of(problem) if where else complaint_of(problem))
    return sentences


def _declared(field: FieldInfo, name: str) -> Any:
    extra = field.json_schema_extra
    return cast("dict[str, Any]", extra).get(name) if isinstance(extra, dict) else None
