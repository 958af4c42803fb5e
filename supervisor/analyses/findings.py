"""What an agent reports, read as the section it is to be; what cannot be one is told in a sentence."""

import json

from pydantic import JsonValue, ValidationError

from contracts.analysis.pieces import Section
from contracts.analysis.roster import model_of
from contracts.errors import TaskloreError
from contracts.faults import fault_of
from contracts.messages import CompletionReport
from memory.stories.view import CHANGING

#: Bytes of one section: ten of them still fit into a message.
MOST_BYTES = 64 * 1024
#: Objects and lists within each other: what is deeper is not read back everywhere.
MOST_DEPTH = 64
#: Items of each list that changes the story: they are settled while others wait.
MOST_ITEMS = 64
#: Characters of what is said of a failure.
MOST_SAID = 300
#: Keys that say what became of a section: no agent writes them itself.
_OURS = ("dur", "status", "error")


class Nonsense(TaskloreError):
    """The agent's result is no section of the document; mend the agent, or return the section's model from it."""


def read_section(section: str, result: object) -> Section:
    """Return *result* as the section of that key.

    Raises:
        Nonsense: it is none.
    """
    body = _object(section, result)
    try:
        return (model_of(section) or Section).model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise Nonsense(f"this is no section {section!r}: {fault_of(first, 'it')}") from error


def why_not(report: CompletionReport) -> str:
    """Return what *report*, of a task that did not complete, says of it."""
    error = report.error
    return said(error.type, error.message) if error is not None else said(report.status, "no reason was given")


def said(kind: str, message: str) -> str:
    """Return `kind: message`, cut where it is long."""
    text = f"{kind}: {message}"
    return text if len(text) <= MOST_SAID else f"{text[: MOST_SAID - 3]}..."


def _object(section: str, result: object) -> dict[str, JsonValue]:
    if not isinstance(result, dict):
        raise Nonsense(f"section {section!r} has to be a JSON object, this is {type(result).__name__}")
    body = {key: value for key, value in result.items() if key not in _OURS}
    if _is_deep(body):
        raise Nonsense(f"section {section!r} is nested deeper than {MOST_DEPTH}; make it flatter")
    if section in CHANGING:
        for name, items in body.items():
            if isinstance(items, list) and len(items) > MOST_ITEMS:
                raise Nonsense(f"section {section!r} has {len(items):,} items in {name!r}, at most {MOST_ITEMS}")
    try:
        size = len(json.dumps(body, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, RecursionError) as error:
        raise Nonsense(f"section {section!r} cannot be written as JSON: {error}") from error
    if size > MOST_BYTES:
        raise Nonsense(f"section {section!r} has {size:,} bytes, the most is {MOST_BYTES:,}; leave out what is long")
    return body


def _is_deep(body: JsonValue) -> bool:
    level: list[JsonValue] = [body]
    for _ in range(MOST_DEPTH):
        level = [
            one
            for part in level
            if isinstance(part, dict | list)
            for one in (part.values() if isinstance(part, dict) else part)
        ]
    return any(isinstance(one, dict | list) for one in level)
