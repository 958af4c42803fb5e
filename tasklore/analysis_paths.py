"""Places in an analysis document: by short keys or long names, from its root or from any part that is the only one."""

from collections.abc import Iterator

from pydantic import JsonValue

from contracts.analysis import AnalysisDocument
from contracts.errors import InvalidInput, UnknownPath
from memory.documents.paths import Absent, Path, Step, find, lookup, parse
from tasklore.analysis_shapes import Shape, key_named

_ROOT = Shape("object", model=AnalysisDocument)


def value_at(body: JsonValue, text: str) -> JsonValue:
    """Return what stands at the path *text* of the document *body*.

    A path that begins at no key of the root may begin at a key of any part, as `facts["David Park"][0]` does, when
    only one place fits.

    Raises:
        InvalidPath: it cannot be read, or names more than one place.
        UnknownPath: nothing stands there; the message names the nearest path that exists.
        InvalidInput: it fits in more than one place; the message names them.
    """
    path = parse(text)
    from_root = _shortened(path, body, _ROOT)
    if not isinstance(find(body, from_root), Absent):
        return lookup(body, from_root)
    fitting = [
        Path((*at.steps, *inner.steps))
        for at, value, shape in _objects(body, _ROOT, Path())
        if not isinstance(find(value, inner := _shortened(path, value, shape)), Absent)
    ]
    if len(fitting) > 1:
        listed = ", ".join(repr(str(place)) for place in fitting)
        raise InvalidInput(f"{text!r} is found in more than one place: {listed}; name one of them whole")
    if not fitting:
        raise UnknownPath(_unknown(body, from_root))
    return lookup(body, fitting[0])


def _unknown(body: JsonValue, path: Path) -> str:
    try:
        lookup(body, path)
    except UnknownPath as error:
        return str(error)
    return f"there is no {str(path)!r}"


def _shortened(path: Path, body: JsonValue, shape: Shape | None) -> Path:
    """Return *path* by short keys, where *body* has them and a name of the path has not."""
    steps: list[Step] = []
    for step in path.steps:
        key = key_named(shape.model, step) if shape is not None and shape.model and isinstance(step, str) else None
        is_there = isinstance(body, dict) and step in body
        known = key.short if key is not None and not is_there else step
        steps.append(known)
        shape = key.shape if key is not None else shape.inner if shape is not None else None
        reached = find(body, Path((known,)))
        body = None if isinstance(reached, Absent) else reached
    return Path(tuple(steps))


def _objects(body: JsonValue, shape: Shape | None, at: Path) -> Iterator[tuple[Path, JsonValue, Shape | None]]:
    """Yield every object below *body* with its place and shape, from the outside in."""
    inner: list[tuple[Step, JsonValue]] = []
    if isinstance(body, dict):
        if at.steps:
            yield at, body, shape
        inner = list(body.items())
    elif isinstance(body, list):
        inner = list(enumerate(body))
    for step, value in inner:
        key = key_named(shape.model, step) if shape is not None and shape.model and isinstance(step, str) else None
        below = key.shape if key is not None else shape.inner if shape is not None else None
        yield from _objects(value, below, at / step)
