"""Places in an analysis document: by short keys or long names, from its root or from any part that is the only one."""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from contracts.analysis.document import AnalysisDocument
from contracts.analysis.stories import Entity
from contracts.errors import InvalidInput, UnknownPath
from memory.documents.paths import Absent, Path, Step, find, lookup, nearest, parse
from tasklore.analysis.shapes import Shape, key_named
from tasklore.story.names import Names

#: Names of a part that an error lists.
_NAMED = 8

_ROOT = Shape("object", model=AnalysisDocument)


def value_at(body: JsonValue, text: str, entities: Sequence[Entity] = ()) -> JsonValue:
    """Return what stands at the path *text* of the document *body*.

    A path that begins at no key of the root may begin at a key of any part, as `facts["David Park"][0]` does, when
    only one place fits. A name may be any that *entities* are called by, or the first or last one of a name that the
    document has.

    Raises:
        InvalidPath: it cannot be read, or names more than one place.
        UnknownPath: nothing stands there; the message names the nearest path that exists.
        InvalidInput: it fits in more than one place; the message names them.
    """
    path = _named(parse(text), body, entities)
    fitting = _places(body, path)
    if len(fitting) > 1:
        listed = ", ".join(repr(str(place)) for place in fitting)
        raise InvalidInput(f"{text!r} is found in more than one place: {listed}; name one of them whole")
    if not fitting:
        raise UnknownPath(_unknown(body, path))
    return lookup(body, fitting[0])


def _named(path: Path, body: JsonValue, entities: Sequence[Entity]) -> Path:
    """Return *path* with names as the document has them, where it has none as *path* says."""
    keys = {step for at, value, shape in _objects(body, _ROOT, Path()) if _is_named(shape) for step in _keys_of(value)}
    declared, told = Names(entities), Names([Entity(name=key) for key in keys])
    keys_by_name = {declared.whole(key): key for key in keys}

    def name_of(step: Step) -> Step:
        if not isinstance(step, str) or step in keys:
            return step
        return keys_by_name.get(declared.whole(step) or step) or told.whole(step) or step

    return Path(tuple(map(name_of, path.steps)))


def _is_named(shape: Shape | None) -> bool:
    return shape is not None and shape.kind == "named"


def _keys_of(value: JsonValue) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def _unknown(body: JsonValue, path: Path) -> str:
    """Return why there is nothing at *path*, read from the one place where the longest part of it begins."""
    for length in range(len(path.steps), 0, -1):
        places = _places(body, Path(path.steps[:length]))
        if len(places) > 1 and length < len(path.steps):
            # A name is not looked for in a list, nor an index among names.
            kind = dict if isinstance(path.steps[length], str) else list
            places = [place for place in places if isinstance(find(body, place), kind)] or places
        if len(places) > 1:
            listed = ", ".join(repr(str(place)) for place in places)
            return f"there is no {str(path)!r}: it begins in more than one place: {listed}; name one of them whole"
        if places:
            whole = Path((*places[0].steps, *path.steps[length:]))
            return _why(body, _shortened(whole, body, _ROOT), places[0])
    return _why(body, _shortened(path, body, _ROOT), Path())


def _places(body: JsonValue, path: Path) -> list[Path]:
    """Return where *path* stands: from the root, else from each part that has it."""
    from_root = _shortened(path, body, _ROOT)
    if not isinstance(find(body, from_root), Absent):
        return [from_root]
    found = ((at, value, _shortened(path, value, shape)) for at, value, shape in _objects(body, _ROOT, Path()))
    return [Path((*at.steps, *inner.steps)) for at, value, inner in found if not isinstance(find(value, inner), Absent)]


def _why(body: JsonValue, path: Path, way: Path) -> str:
    """Return what *way*, which exists, holds instead of what *path* asks of it, and the nearest path that exists."""
    held = find(body, way)
    if isinstance(held, dict):
        names = [repr(name) for name in held]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        holds = f"the names {', '.join(names[:_NAMED])}{more}" if names else "nothing"
    elif isinstance(held, list):
        holds = f"a list of {len(held)}" + (f", [0] to [{len(held) - 1}]" if held else "")
    else:
        holds = "a single value"
    return f"there is no {str(path)!r}: {str(way)!r} has {holds}; the nearest is {str(nearest(body, path))!r}"


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
