"""Places in an analysis document: by short keys or long names, from its root or from any part that is the only one."""

from collections.abc import Iterator, Sequence
from typing import Any, get_origin

from pydantic import JsonValue

from tasklore.contracts.analysis.document import AnalysisDocument
from tasklore.contracts.analysis.names import Names
from tasklore.contracts.analysis.stories import Entity
from tasklore.contracts.errors import InvalidInput, UnknownPath
from tasklore.memory.documents.paths import (
    Absent,
    Path,
    Step,
    find,
    lookup,
    nearest,
    parse,
)
from tasklore.supervisor.pipelines.analysis.shapes import step_into, strip

#: Names of a part that an error lists.
_MOST_LISTED = 8


def value_at(body: JsonValue, text: str, entities: Sequence[Entity] = ()) -> JsonValue:
    """Return the value at the path *text* of the document *body*.

    A path that begins at no key of the root may begin at a key of any part, as `facts["David Park"][0]` does, when
    only one place fits. A name may be any name of one of *entities*, or the first or last word of a name in the
    document.

    Raises:
        InvalidPath: it cannot be read, or names more than one place.
        UnknownPath: nothing stands there; the message names the nearest path that exists.
        InvalidInput: it fits in more than one place; the message names them.
    """
    path = _with_known_names(parse(text), body, entities)
    fitting = _places(body, path)
    if len(fitting) > 1:
        listed = ", ".join(repr(str(place)) for place in fitting)
        raise InvalidInput(
            f"{text!r} is found in more than one place: {listed}; name one of them whole"
        )
    if not fitting:
        raise UnknownPath(_explain_absence(body, path))
    return lookup(body, fitting[0])


def _with_known_names(path: Path, body: JsonValue, entities: Sequence[Entity]) -> Path:
    """Return *path* with each name as the document spells it."""
    tables = [
        value
        for _, value, kind in _objects(body, AnalysisDocument, Path())
        if get_origin(strip(kind)) is dict
    ]
    keys = {key for table in tables for key in table}
    of_entities = Names(entities)
    of_document = Names([Entity(name=key) for key in keys])
    keys_by_name = {of_entities.whole(key): key for key in keys}

    def spell(step: Step) -> Step:
        if not isinstance(step, str) or step in keys:
            return step
        return (
            keys_by_name.get(of_entities.whole(step) or step)
            or of_document.whole(step)
            or step
        )

    return Path(tuple(map(spell, path.steps)))


def _places(body: JsonValue, path: Path) -> list[Path]:
    """Return where *path* stands: from the root, else from each part that has it."""
    from_root = _with_short_keys(path, body, AnalysisDocument)
    if not isinstance(find(body, from_root), Absent):
        return [from_root]
    parts = _objects(body, AnalysisDocument, Path())
    found = (
        (at, value, _with_short_keys(path, value, kind))
        for at, value, kind in parts
        if at.steps
    )
    return [
        Path((*at.steps, *inner.steps))
        for at, value, inner in found
        if not isinstance(find(value, inner), Absent)
    ]


def _explain_absence(body: JsonValue, path: Path) -> str:
    """Return why nothing is at *path*, read from the one place where the longest part of it begins."""
    whole = _with_short_keys(path, body, AnalysisDocument)
    start = Path()
    for length in range(len(path.steps), 0, -1):
        places = _places(body, Path(path.steps[:length]))
        if len(places) > 1 and length < len(path.steps):
            # A name is not looked for in a list, nor an index among names.
            kind = dict if isinstance(path.steps[length], str) else list
            places = [
                place for place in places if isinstance(find(body, place), kind)
            ] or places
        if len(places) > 1:
            listed = ", ".join(repr(str(place)) for place in places)
            return f"there is no {str(path)!r}: it begins in more than one place: {listed}; name one of them whole"
        if places:
            start = places[0]
            whole = _with_short_keys(
                Path((*start.steps, *path.steps[length:])), body, AnalysisDocument
            )
            break
    held = find(body, start)
    if isinstance(held, dict):
        names = [repr(name) for name in held]
        more = (
            f" and {len(names) - _MOST_LISTED} more"
            if len(names) > _MOST_LISTED
            else ""
        )
        holds = (
            f"the names {', '.join(names[:_MOST_LISTED])}{more}" if names else "nothing"
        )
    elif isinstance(held, list):
        holds = f"a list of {len(held)}" + (
            f", [0] to [{len(held) - 1}]" if held else ""
        )
    else:
        holds = "a single value"
    return f"there is no {str(whole)!r}: {str(start)!r} has {holds}; the nearest is {str(nearest(body, whole))!r}"


def _with_short_keys(path: Path, body: JsonValue, kind: Any) -> Path:
    """Return *path* by short keys, where *body* has no key as the path spells it."""
    steps: list[Step] = []
    for step in path.steps:
        key, kind = step_into(kind, step)
        steps.append(step if isinstance(body, dict) and step in body else key)
        reached = find(body, Path((steps[-1],)))
        body = None if isinstance(reached, Absent) else reached
    return Path(tuple(steps))


def _objects(
    body: JsonValue, kind: Any, at: Path
) -> Iterator[tuple[Path, dict[str, JsonValue], Any]]:
    """Yield every object in *body* with its place and type, from the outside in."""
    inner: list[tuple[Step, JsonValue]] = (
        list(enumerate(body)) if isinstance(body, list) else []
    )
    if isinstance(body, dict):
        yield at, body, kind
        inner = list(body.items())
    for step, value in inner:
        yield from _objects(value, step_into(kind, step)[1], at / step)
