"""Answers as JSON, where a client asks for them by `response_format`: the results of the tasks, if they fit."""

import json
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

from tasklore.contracts.messages import PersonReply
from tasklore.supervisor.http.chat.forms import ResponseFormat, refuse_field

_WHERE = "response_format.json_schema.schema"
#: Parts of a schema once its references are written out: the work for each part of a result is no larger.
_MOST_PARTS = 2_000
#: Keywords by which a reference could lead elsewhere than it says.
_ANCHORS = ("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef")
#: Characters of a fault that a client is shown.
_LONGEST_FAULT = 300


class AnswerFormat:
    """What a client asks its answers to fit: an object, or a schema of its own.

    Raises:
        Refused: 400, the schema is none. A large one takes milliseconds to read, so make this in a thread.
    """

    def __init__(self, asked: ResponseFormat) -> None:
        schema: dict[str, Any] = {"type": "object"}
        if asked.json_schema is not None:
            # Which draft it names is not asked: that could be looked up on the network.
            schema = {
                name: part
                for name, part in asked.json_schema.body.items()
                if name != "$schema"
            }
        elif asked.type == "json_schema":
            detail = (
                "type 'json_schema' needs json_schema with a name and a schema; "
                "give them, or ask for 'json_object'"
            )
            raise refuse_field(
                400, "invalid_value", "response_format.json_schema", detail
            )
        try:
            _demand_small(schema)
            # An engine without backtracking: nobody can send a pattern that takes for ever.
            self._validator = jsonschema_rs.Draft202012Validator(
                schema, offline=True, pattern_options=jsonschema_rs.RegexOptions()
            )
        except ValueError as error:
            fault = str(error).partition("\n")[0][:_LONGEST_FAULT]
            detail = f"this cannot be checked by draft 2020-12: {fault}"
            raise refuse_field(400, "invalid_value", _WHERE, detail) from error

    def write(self, reply: PersonReply) -> str | None:
        """Return the result of the one task, or the list of those of several; None when one of them has none.

        Raises:
            Refused: 400, it does not fit.
        """
        reports = [part.report for part in reply.parts] or [reply.report]
        done = [
            report.result
            for report in reports
            if report is not None and report.status == "completed"
        ]
        if len(done) < len(reports):
            return None
        result = done if reply.parts else done[0]
        if (fault := next(self._validator.iter_errors(result), None)) is not None:
            place = ".".join(map(str, fault.instance_path)) or "the result"
            detail = (
                f"the task is done, and its result does not fit: {place}: {fault.message[:_LONGEST_FAULT]}; ask for "
                "the schema of the result on the agent's card, or leave response_format out"
            )
            raise refuse_field(400, "result_does_not_fit", "response_format", detail)
        return json.dumps(result, ensure_ascii=False)


def _demand_small(schema: dict[str, Any]) -> None:
    """Raise ValueError when *schema* refers to itself, or is too large with its references written out."""
    pending: list[tuple[Any, frozenset[str]]] = [(schema, frozenset())]
    for _ in range(_MOST_PARTS):
        if not pending:
            return
        part, above = pending.pop()
        if isinstance(part, list):
            pending += [(inner, above) for inner in part]
        if not isinstance(part, dict):
            continue
        for name, inner in part.items():
            if name in _ANCHORS and isinstance(inner, str):
                raise ValueError(f"{name} is not followed; refer to #/$defs/NAME")
            if name == "$ref" and isinstance(inner, str):
                if inner in above:
                    raise ValueError(
                        f"{inner} refers to itself; write it out to the depth that you need"
                    )
                pending.append((_resolve(schema, inner), above | {inner}))
            elif not (name in ("$defs", "definitions") and part is schema):
                pending.append((inner, above))
    raise ValueError(f"it has more than {_MOST_PARTS:,} parts; ask for less")


def _resolve(schema: dict[str, Any], reference: str) -> Any:
    if reference != "#" and not reference.startswith("#/"):
        raise ValueError(f"{reference} is not followed; refer to #/$defs/NAME")
    found: Any = schema
    for step in unquote(reference).split("/")[1:]:
        try:
            found = found[step.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError):
            raise ValueError(f"{reference} leads nowhere") from None
    return found
