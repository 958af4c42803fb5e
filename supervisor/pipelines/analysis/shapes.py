"""The types of the analysis document, walked by key: for paths, and for the table of keys in the manual."""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from tasklore.contracts.analysis.pieces import Piece


def strip(annotation: Any) -> object:
    """Return *annotation* without metadata and None; numbers of either kind are a float."""
    if get_origin(annotation) is Annotated:
        return strip(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [one for one in get_args(annotation) if one is not types.NoneType]
        return strip(kinds[0]) if len(kinds) == 1 else float
    return annotation


def is_part(annotation: Any) -> bool:
    """Return whether *annotation* is a model of a part."""
    return isinstance(annotation, type) and issubclass(annotation, Piece)


def step_into(annotation: Any, step: Any) -> tuple[Any, Any]:
    """Return the key of *step*, short or long, in a value of *annotation*, and the type there; None is unknown."""
    kind: Any = strip(annotation)
    if is_part(kind):
        for name, field in kind.model_fields.items():
            if step in (name, kind.key_of(name)):
                return kind.key_of(name), field.annotation
        return step, None
    return step, inner_of(kind)


def inner_of(kind: Any) -> object:
    """Return the type in a list or under each name of a table, None for any other type."""
    inside = get_args(kind)
    return (
        inside[0]
        if get_origin(kind) is tuple
        else inside[1]
        if get_origin(kind) is dict
        else None
    )


def describe(annotation: Any) -> str:
    """Return a type in words, such as "list of `Conflict`"."""
    kind: Any = strip(annotation)
    if is_part(kind):
        return f"`{kind.__name__}`"
    if (inner := inner_of(kind)) is not None:
        return f"{'list of' if get_origin(kind) is tuple else 'by name:'} {describe(inner)}"
    return {bool: "flag", int: "whole", float: "number"}.get(kind, "text")


def models_of(
    annotation: Any, known: dict[type[Piece], None] | None = None
) -> Iterator[type[Piece]]:
    """Yield each model of a part in *annotation* once, from the outside in."""
    known = {} if known is None else known
    kind: Any = strip(annotation)
    if is_part(kind) and kind not in known:
        known[kind] = None
        yield kind
        for field in kind.model_fields.values():
            yield from models_of(field.annotation, known)
    elif (inner := inner_of(kind)) is not None:
        yield from models_of(inner, known)
