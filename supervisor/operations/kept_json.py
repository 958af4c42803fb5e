"""JSON that a worker or a program kept, as any reader of JSON takes it: it was not checked before."""

from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

#: Levels of objects and lists; readers of JSON give up at some hundreds.
_DEEPEST = 100


def read_kept(body: bytes) -> JsonValue:
    """Return the JSON in *body*; text where it is none, or is too deep for most readers."""
    try:
        found: JsonValue = from_json(body, allow_inf_nan=False)
    except ValueError:
        return body.decode(errors="replace")
    return found if _is_shallow(found, _DEEPEST) else body.decode(errors="replace")


def _is_shallow(value: Any, levels: int) -> bool:
    """Return whether *value* has at most so many *levels*."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return True
    return levels > 0 and all(_is_shallow(one, levels - 1) for one in value)
