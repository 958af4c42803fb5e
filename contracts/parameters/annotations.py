"""Annotations of parameters: the types at their leaves, whether one of them is a number, a text, a list.

Nothing here reads a value; `tasklore.contracts.parameters.model` does, by what it learns here once a class.
"""

import types
from collections.abc import Collection, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel

from tasklore.contracts.quantities.amounts import Amount

#: The types of numbers that are read from their wordings.
NUMBERS = (Amount, Decimal, int, float)
_SEQUENCES = (list, tuple, set, frozenset, Sequence, Collection)
_UNIONS = (Union, types.UnionType)


def is_typed(kind: Any) -> bool:
    """True for Percent, Quantity, Duration and Moment, which read a field themselves, with the unit it declares."""
    return (
        isinstance(kind, type)
        and kind is not Amount
        and kind.__module__.startswith("tasklore.contracts.quantities.amounts.")
    )


def leaf_types(annotation: Any) -> set[Any]:
    """Return the types at the leaves of *annotation*, with Optional, lists and Annotated taken apart."""
    arguments = get_args(annotation)
    if not arguments or isinstance(annotation, TypeVar):
        return {annotation}
    if hasattr(annotation, "__metadata__"):
        return leaf_types(arguments[0])
    return set().union(
        *(leaf_types(argument) for argument in arguments if argument is not ...)
    )


def literals_of(annotation: Any) -> tuple[Any, ...]:
    """Return the values of *annotation* where it is a `Literal` or an enumeration, or one or None; none for others."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(one.value for one in annotation)
    if hasattr(annotation, "__metadata__") or get_origin(annotation) in _UNIONS:
        found = [literals_of(one) for one in get_args(annotation)]
        return next((one for one in found if one), ())
    return ()


def held_types(kinds: set[Any]) -> set[Any]:
    """Return *kinds* with the types of all fields of the models among them."""
    held = set(kinds)
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            inner = (
                set().union(
                    *(
                        leaf_types(field.annotation)
                        for field in kind.model_fields.values()
                    )
                )
                - held
            )
            held |= inner
            waiting += inner
    return held


def may_be_text(annotation: Any) -> bool:
    """True when a value of *annotation*, or an item of one, is a number or a text and keeps its type."""
    members = get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return may_be_text(members[0])
    is_union = get_origin(annotation) in _UNIONS
    kinds = {
        get_args(one)[0] if hasattr(one, "__metadata__") else one for one in members
    }
    if is_union and str in kinds and not kinds.isdisjoint(NUMBERS):
        return True
    return (is_union or get_origin(annotation) in _SEQUENCES) and any(
        map(may_be_text, members)
    )


def may_be_bool(kind: Any) -> bool:
    """True for bool, for a `Literal` of one, and for anything that is neither class nor constant."""
    return (
        kind is bool
        or isinstance(kind, bool)
        or not isinstance(kind, type | str | bytes | int | Enum | None)
    )


def lone_kind(annotation: Any) -> type | None:
    """Return the type that *annotation* is of, when it is of one number or typed value, or of one or None."""
    origin = get_origin(annotation)
    if origin in _UNIONS:
        kinds = {
            lone_kind(member)
            for member in get_args(annotation)
            if member is not type(None)
        }
        # Several kinds of numbers are measured alike.
        return (
            next(iter(kinds))
            if len(kinds) == 1 or (kinds and kinds <= set(NUMBERS))
            else None
        )
    if hasattr(annotation, "__metadata__"):
        return lone_kind(get_args(annotation)[0])
    return (
        cast("type", annotation)
        if annotation in NUMBERS or is_typed(annotation)
        else None
    )


def takes_only_lists(annotation: Any) -> bool:
    """Return whether *annotation* is a sequence, or a sequence or None: then its items need no parentheses."""
    origin = get_origin(annotation)
    if origin in _UNIONS:
        members = [
            member for member in get_args(annotation) if member is not type(None)
        ]
        return len(members) == 1 and takes_only_lists(members[0])
    return (origin or annotation) in _SEQUENCES
