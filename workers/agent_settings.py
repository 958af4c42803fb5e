"""Settings of an agent: their defaults, their fingerprint in memory keys, and changing them by name."""

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.faults import fault_of, nearest
from tasklore.contracts.quantities.amounts import canonical

#: `Field(json_schema_extra={"affects_results": False})` leaves a setting out of the fingerprint.
_AFFECTS_RESULTS = "affects_results"

#: Bytes; twice as many characters in every key. Settings differ by deliberate change, a handful in an agent's life.
_DIGEST = 4


def initial_settings(
    agent_id: str, given: BaseModel | type[BaseModel] | None
) -> BaseModel | None:
    """Return the settings an agent starts with: a copy of an instance, or a class with all of its defaults.

    Raises:
        ConfigurationError: *given* is neither, or the class has a field without a default.
    """
    if given is None:
        return None
    if isinstance(given, BaseModel):
        # A later change of the caller's object must not change results behind the fingerprint.
        return given.model_copy(deep=True)
    if not (isinstance(given, type) and issubclass(given, BaseModel)):
        raise ConfigurationError(
            f"{agent_id}: settings must be a pydantic model, or an instance of one; not {given!r}"
        )
    try:
        return given()
    except ValidationError as error:
        msg = f"{agent_id}: {given.__name__} must be complete without arguments; give every setting a default"
        raise ConfigurationError(f"{msg} ({_problems(error)})") from error


def changed_settings(
    agent_id: str, settings: BaseModel | None, values: Mapping[str, Any]
) -> BaseModel | None:
    """Return *settings* with *values*, by field name, in place of its own.

    Raises:
        ConfigurationError: a name is no setting, or a value does not fit; the message names the known ones.
    """
    known = list(type(settings).model_fields) if settings is not None else []
    for name in values:
        if name not in known:
            raise ConfigurationError(
                f"{agent_id} has no setting {name!r}{_cure(name, known)}"
            )
    if settings is None:
        return None
    kept = {name: getattr(settings, name) for name in known}
    try:
        return type(settings).model_validate({**kept, **values}, by_name=True)
    except ValidationError as error:
        raise ConfigurationError(f"{agent_id}: {_problems(error)}") from error


def fingerprint(settings: BaseModel | None) -> str:
    """Return 8 hexadecimal digits for settings that differ from their defaults, "" for those that do not.

    Every field counts, at any depth, unless it says `json_schema_extra={"affects_results": False}`. Equal values count
    as equal however they were spelled (`2`, `2.0`); a secret never counts.
    """
    if settings is None:
        return ""
    plain = _plain(settings)
    if plain == _plain_defaults(type(settings)):
        return ""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST).hexdigest()


def _plain_defaults(kind: type[BaseModel]) -> Any:
    """Return the defaults as `_plain` would, None when a field has none."""
    try:
        return _plain(kind())
    except ValidationError:
        return None


def _plain(value: Any) -> Any:
    """Return *value* as JSON that is equal for equal values."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields.items()
        return {
            name: _plain(getattr(value, name))
            for name, field in fields
            if _counts(field.json_schema_extra)
        }
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        # Their order differs between processes.
        return sorted(
            (_plain(item) for item in value),
            key=lambda item: json.dumps(item, sort_keys=True),
        )
    if isinstance(value, float | Decimal) and not isinstance(value, bool):
        number = Decimal(repr(value)) if isinstance(value, float) else value
        return {"number": canonical(number)} if number.is_finite() else str(number)
    return to_jsonable_python(value)


def _counts(extra: Any) -> bool:
    return not (isinstance(extra, Mapping) and extra.get(_AFFECTS_RESULTS) is False)


def _problems(error: ValidationError) -> str:
    problems = error.errors(
        include_url=False, include_context=False, include_input=False
    )
    return "; ".join(fault_of(problem, "settings") for problem in problems)


def _cure(name: str, known: list[str]) -> str:
    if not known:
        return "; it has no settings at all"
    return f"{nearest(name, known) or ';'} known are {', '.join(known)}"
