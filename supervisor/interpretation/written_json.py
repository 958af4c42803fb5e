"""Sentences that are JSON: what is started out of one has exactly the values that it says, or nothing is started.

People paste what a program would send. Its words are read as any others, and then held against what it says: a text
that was cut at a quotation mark, an agent that was only mentioned, or a field that was left out would be another task.
"""

import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from supervisor.understanding.outcome import Ambiguous, Interpretation, Missing, Several, Understood, Unfitting
from supervisor.interpretation.wishes.routing import Router

HOW_TO_SEND = (
    "That is JSON and no sentence, and I cannot be sure to start just what it says: nothing was started. Say it in"
    " words; a program sends a task with its parameters to /v1/tasks of the HTTP API."
)
_FENCE = re.compile(r"\A\s{0,99}```[a-z]{0,9}\s|```\s{0,99}\Z", re.IGNORECASE)
_WHO = ("agent", "agent_id")
_WHAT = ("task", "task_name", "name", "tool", "function")
_WITH = ("parameters", "arguments", "params", "args", "input")
_KEYS = "|".join((*_WHO, "task", "task_name", "tool", "function", "parameters", "arguments", "params"))
#: A key that tells who shall do it or what with, in an object; quoted or not, closed or cut off.
_REQUEST = re.compile(rf"""[{{,]\s{{0,99}}(["']?)(?:{_KEYS})\1\s{{0,9}}:""", re.IGNORECASE)


def is_json(text: str) -> bool:
    """Return whether *text* is an object or a list of JSON, or has a program's request in it, in good form or not."""
    if "{" not in text:
        return False
    bare = _FENCE.sub("", text).strip()
    return bool(_REQUEST.search(text)) or (bare[0] in "{[" and bare[-1] in "}]" and _read(bare) is not None)


def held_to_json(text: str, found: Interpretation, router: Router) -> Interpretation:
    """Return *found*, which *text* was read as; or what to do instead where that is JSON and says anything else."""
    if isinstance(found, Unfitting) or not is_json(text):
        return found
    said = _read(_FENCE.sub("", text).strip())
    if isinstance(said, list) and len(said) == 1:
        said = said[0]
    if not isinstance(said, dict) or isinstance(found, Several) or not _is_same(said, found, router):
        return Unfitting(HOW_TO_SEND)
    return found


def _read(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal, parse_int=Decimal, object_pairs_hook=_object)
    except (ValueError, RecursionError, InvalidOperation):
        return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return *pairs* as an object; raises ValueError for a key that says two things."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _is_same(said: Mapping[str, Any], found: Understood | Missing | Ambiguous, router: Router) -> bool:
    call = found.task if isinstance(found, Understood) else found.call
    if call is None or found.agent_id is None or (task := router.find(found.agent_id, call.name)) is None:
        return False
    values: Any = said
    if any(name in said for name in (*_WHO, *_WITH)):
        if said.get("agent", said.get("agent_id", found.agent_id)) != found.agent_id:
            return False
        if next((said[name] for name in _WHAT if name in said), call.name) != call.name:
            return False
        values = next((said[name] for name in _WITH if name in said), {})
    if not isinstance(values, dict):
        return False
    names = _names(task.offer.task.parameters)
    meant = {names.get(name, ""): value for name, value in values.items()}
    asked = () if isinstance(found, Understood) else found.missing
    taken = {span.field for span in found.spans if span.source is not None}
    is_all_read = len(meant) == len(values) and all(name in call.parameters or name in asked for name in meant)
    return is_all_read and all(
        (name in meant and _equals(meant[name], value)) or (name in taken and name not in meant)
        for name, value in call.parameters.items()
    )


def _names(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the field that each name and alias in *schema* is of."""
    fields = schema.get("properties")
    names: dict[str, str] = {}
    for name, field in fields.items() if isinstance(fields, dict) else ():
        aliases = field.get("aliases") if isinstance(field, dict) else None
        names |= {str(one): name for one in (name, *(aliases if isinstance(aliases, list) else ()))}
    return names


def _equals(said: Any, read: Any) -> bool:
    """Return whether a value that was *read* is the one *said*; 42 and "42" are, and so are 42 and 42.0."""
    if isinstance(read, list):
        return isinstance(said, list) and len(said) == len(read) and all(map(_equals, said, read))
    if isinstance(read, dict):
        return (
            isinstance(said, dict) and said.keys() == read.keys() and all(_equals(said[key], read[key]) for key in read)
        )
    if isinstance(read, bool) or isinstance(said, bool) or read is None or said is None:
        return said is read
    if isinstance(said, list | dict):
        return False
    try:
        return Decimal(str(said)) == Decimal(str(read))
    except InvalidOperation:
        return str(said) == str(read)
