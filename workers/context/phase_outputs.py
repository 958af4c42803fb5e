"""What a phase of a pipeline leaves in its session: the result of its task, whole or by its properties."""

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic_core import from_json

from tasklore.contracts import subjects
from tasklore.contracts.errors import GiveUp, ResultTooLarge
from tasklore.memory.sessions.entries import NewEntry

if TYPE_CHECKING:
    from pydantic import JsonValue

    from tasklore.contracts.messages import TaskAssignment

#: The name in `writes` that stands for the whole result.
WHOLE = "results"

#: Names that an error lists; more help nobody.
_MOST_NAMES = 20
_KINDS = {list: "list", str: "text", bool: "flag", int: "number", float: "number"}


def entries_of(
    assignment: "TaskAssignment", result_json: bytes, computed_ms: int
) -> list[NewEntry]:
    """Return the session entries that *assignment* writes of *result_json*.

    Each entry takes *computed_ms*, the milliseconds in which the result was computed: none of them comes without it.

    Raises:
        GiveUp: the result has no property of a name that is to be written; the message names those it has.
        ResultTooLarge: no report could tell of it, so that the phase is going to fail.
    """
    if len(result_json) > subjects.MAX_BODY:
        msg = (
            f"the result has {len(result_json)} bytes, a report at most {subjects.MAX_BODY}; return less, and put what "
            "is large into the session by context.session.set"
        )
        raise ResultTooLarge(msg)
    names = tuple(dict.fromkeys(assignment.writes or ()))
    keys = [f"{assignment.phase}:{name}" for name in names]
    result = from_json(result_json)
    values = [
        result if name == WHOLE else _property(assignment, result, name)
        for name in names
    ]
    ttl = (
        None
        if assignment.keep_ms is None
        else timedelta(milliseconds=assignment.keep_ms)
    )
    return [
        NewEntry(
            key=key,
            value=value,
            agent=assignment.agent_id,
            computation_ms=computed_ms,
            ttl=ttl,
        )
        for key, value in zip(keys, values, strict=True)
    ]


def _property(
    assignment: "TaskAssignment", result: "JsonValue", name: str
) -> "JsonValue":
    if isinstance(result, dict) and name in result:
        return result[name]
    msg = (
        f"phase {assignment.phase!r} writes {name!r}, but the result of {assignment.task.name!r} "
        f"{_what_there_is(result)}; return it, or correct `writes` ({WHOLE!r} is the whole result)"
    )
    raise GiveUp(msg)


def _what_there_is(result: "JsonValue") -> str:
    if not isinstance(result, dict):
        kind = "null" if result is None else f"a {_KINDS.get(type(result), 'value')}"
        return f"is {kind}, which has no properties"
    names = sorted(result)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (
        f"has {', '.join(names[:_MOST_NAMES])}{more}"
        if names
        else "is an object without properties"
    )
