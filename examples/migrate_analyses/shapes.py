"""What the analysis document has room for, read off its models."""

import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from tasklore.contracts.analysis.pieces import Piece


@dataclass(frozen=True, slots=True)
class Shape:
    """What may stand at a place: `model` of an object, `inner` of what a list holds, or what stands under any name."""

    kind: Literal["object", "list", "named", "text", "whole", "number", "flag"]
    model: type[Piece] | None = None
    inner: "Shape | None" = None


@dataclass(frozen=True, slots=True)
class Key:
    """One field of a part: its short key, its long name, what it holds, and whether it is needed."""

    short: str
    long: str
    shape: Shape
    is_needed: bool


def keys_of(model: type[Piece]) -> tuple[Key, ...]:
    """Return the fields of *model*, in the order they are declared in."""
    fields = model.model_fields.items()
    return tuple(
        Key(model.key_of(name), name, _shape(one.annotation), one.is_required())
        for name, one in fields
    )


def _shape(annotation: Any) -> Shape:
    origin = get_origin(annotation)
    inside = get_args(annotation)
    if origin is Annotated:
        return _shape(inside[0])
    if origin in (Union, types.UnionType):
        shapes = [_shape(one) for one in inside if one is not types.NoneType]
        return Shape("number") if len(shapes) > 1 else shapes[0]
    if origin is tuple:
        return Shape("list", inner=_shape(inside[0]))
    if origin is dict:
        return Shape("named", inner=_shape(inside[1]))
    if isinstance(annotation, type) and issubclass(annotation, Piece):
        return Shape("object", model=annotation)
    if annotation is bool:
        return Shape("flag")
    return Shape("whole") if annotation is int else Shape("text")
