"""What the analysis document has room for, read off its models: for paths, for the table of keys, for Markdown."""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from contracts.analysis.pieces import Piece


@dataclass(frozen=True, slots=True)
class Shape:
    """What may stand at a place: `model` of an object, `inner` of what a list holds, or what stands under any name."""

    kind: Literal["object", "list", "named", "text", "whole", "number", "flag"]
    model: type[Piece] | None = None
    inner: "Shape | None" = None

    @property
    def shown(self) -> str:
        """Return the shape in words."""
        if self.model is not None:
            return f"`{self.model.__name__}`"
        if self.inner is not None:
            return f"list of {self.inner.shown}" if self.kind == "list" else f"by name: {self.inner.shown}"
        return self.kind


@dataclass(frozen=True, slots=True)
class Key:
    """One field of a part: its short key, its long name, and what it holds."""

    short: str
    long: str
    shape: Shape


@cache
def keys_of(model: type[Piece]) -> tuple[Key, ...]:
    """Return the fields of *model*, in the order they are declared in."""
    return tuple(Key(model.key_of(name), name, _shape(field.annotation)) for name, field in model.model_fields.items())


def key_named(model: type[Piece], name: str) -> Key | None:
    """Return the field that *name* means, short or long; None when it means none."""
    return next((key for key in keys_of(model) if name in (key.short, key.long)), None)


def models_of(model: type[Piece]) -> tuple[type[Piece], ...]:
    """Return *model* and every part of it, each once, in the order in which they are met."""
    found: dict[type[Piece], None] = {}
    _collect(model, found)
    return tuple(found)


def _collect(model: type[Piece], found: dict[type[Piece], None]) -> None:
    found.setdefault(model)
    for key in keys_of(model):
        for inner in _models_in(key.shape):
            if inner not in found:
                _collect(inner, found)


def _models_in(shape: Shape) -> Iterator[type[Piece]]:
    if shape.model is not None:
        yield shape.model
    if shape.inner is not None:
        yield from _models_in(shape.inner)


def _shape(annotation: Any) -> Shape:
    origin, inside = get_origin(annotation), get_args(annotation)
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
