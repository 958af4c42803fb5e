"""Answers as JSON, where a client asks for them by `response_format`: the results of the tasks, if they fit."""

import json
from typing import Any
from urllib.parse import unquote

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import PersonReply
from tasklore.supervisor.http.chat.forms import ResponseFormat, refuse_field
from tasklore.supervisor.json_schemas import JsonSchemas, Misfit

_WHERE = "response_format.json_schema.schema"
#: Parts of a schema once its references are written out: the work for each part of a result is no larger.
_MOST_PARTS = 2_000
#: Keywords by which a reference could lead elsewhere than it says.
_ANCHORS = ("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef")


class AnswerFormat:
    """What a client asks its answers to fit: any object, or *schema*, which *schemas* check in the turn of *whose*."""

    def __init__(
        self, schema: dict[str, Any] | None, schemas: JsonSchemas, whose: str
    ) -> None:
        self._schema = schema
        self._schemas = schemas
        self._whose = whose

    @classmethod
    async def read(
        cls, asked: ResponseFormat, schemas: JsonSchemas, whose: str
    ) -> "AnswerFormat":
        """Return the format of *asked*.

        Raises:
            Refused: 400, its schema is none, or takes too much to check.
        """
        if asked.json_schema is None and asked.type == "json_schema":
            detail = (
                "type 'json_schema' needs json_schema with a name and a schema; "
                "give them, or ask for 'json_object'"
            )
            raise refuse_field(
                400, "invalid_value", "response_format.json_schema", detail
            )
        if asked.json_schema is None:
            return cls(None, schemas, whose)
        schema = asked.json_schema.body
        try:
            _demand_small(schema)
            await schemas.demand(schema, whose=whose)
        except InvalidInput as error:
            raise refuse_field(400, "invalid_value", _WHERE, str(error)) from error
        return cls(schema, schemas, whose)

    async def write(self, reply: PersonReply) -> str | None:
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
        if (misfit := await self._find_misfit(result)) is not None:
            place = misfit.place or "the result"
            detail = (
                f"the task is done, and its result does not fit: {place}: {misfit.fault}; ask for "
                "the schema of the result on the agent's card, or leave response_format out"
            )
            raise refuse_field(400, "result_does_not_fit", "response_format", detail)
        return json.dumps(result, ensure_ascii=False)

    async def _find_misfit(self, result: JsonValue) -> Misfit | None:
        if self._schema is None:
            is_object = isinstance(result, dict)
            return None if is_object else Misfit("", "it is not an object")
        try:
            return await self._schemas.find_misfit(
                self._schema, result, whose=self._whose
            )
        except InvalidInput as error:
            detail = f"the task is done, and its result was not checked: {error}"
            raise refuse_field(400, "invalid_value", _WHERE, detail) from error


def _demand_small(schema: dict[str, Any]) -> None:
    """Raise InvalidInput when *schema* refers to itself, or is too large with its references written out."""
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
                raise InvalidInput(f"{name} is not followed; refer to #/$defs/NAME")
            if name == "$ref" and isinstance(inner, str):
                if inner in above:
                    raise InvalidInput(
                        f"{inner} refers to itself; write it out to the depth that you need"
                    )
                pending.append((_resolve(schema, inner), above | {inner}))
            elif not (name in ("$defs", "definitions") and part is schema):
                pending.append((inner, above))
    raise InvalidInput(f"it has more than {_MOST_PARTS:,} parts; ask for less")


def _resolve(schema: dict[str, Any], reference: str) -> Any:
    if reference != "#" and not reference.startswith("#/"):
        raise InvalidInput(f"{reference} is not followed; refer to #/$defs/NAME")
    found: Any = schema
    for step in unquote(reference).split("/")[1:]:
        try:
            found = found[step.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError):
            raise InvalidInput(f"{reference} leads nowhere") from None
    return found
