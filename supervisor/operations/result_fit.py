"""Whether a result that a person wrote is one that its task could have returned, by the schema on the task's card."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import AgentCard

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int,),
}


def demand_fitting(result: Any, card: AgentCard, task_name: str) -> None:
    """Refuse *result* unless *task_name* of the agent of *card* may return it.

    Raises:
        InvalidInput: the agent has no such task, or a field does not fit; the message names it and what it takes.
    """
    tasks = {task.name: task for task in card.tasks}
    if task_name not in tasks:
        raise InvalidInput(
            f"{card.agent_id} has no task {task_name!r}; it has {', '.join(sorted(tasks)) or 'none'}"
        )
    schema: Any = tasks[task_name].result
    found = (
        []
        if schema is None
        else list(_misfits(result, schema, schema.get("$defs", {}), ""))
    )
    if found:
        cure = f"`tasklore agents list --json` shows the result of {task_name} that its card declares"
        raise InvalidInput(
            f"no result of {card.agent_id}.{task_name}: {'; '.join(found[:5])}; correct it ({cure})"
        )


def _misfits(
    value: Any, schema: Any, definitions: Mapping[str, Any], where: str
) -> Iterator[str]:
    """Yield how *value* at *where* is not what *schema* describes; words that pydantic does not write are not read."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        yield from _misfits(
            value,
            definitions.get(schema["$ref"].rpartition("/")[2]),
            definitions,
            where,
        )
    for options in (schema[word] for word in ("anyOf", "oneOf") if word in schema):
        several = [
            list(_misfits(value, option, definitions, where)) for option in options
        ]
        if all(several):
            yield from min(several, key=len)
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if choices is not None and value not in choices:
        yield f"{where or 'it'} must be one of {choices}, not {value!r}"
    kind = schema.get("type")
    is_bool = isinstance(value, bool) and kind != "boolean"
    if kind in _TYPES and (is_bool or not isinstance(value, _TYPES[kind])):
        yield f"{where or 'it'} must be of type {kind}, not {type(value).__name__}"
    else:
        yield from _misfits_inside(value, schema, definitions, where)


def _misfits_inside(
    value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any], where: str
) -> Iterator[str]:
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        for name, inner in value.items():
            rest = schema.get("additionalProperties", not fields)
            if name not in fields and not rest and rest != {}:
                yield f"{_at(where, name)} is not among {', '.join(fields)}"
            yield from _misfits(
                inner, fields.get(name, rest), definitions, _at(where, name)
            )
        yield from (
            f"{_at(where, name)} is missing"
            for name in schema.get("required", ())
            if name not in value
        )
    elif isinstance(value, list):
        first = schema.get("prefixItems", [])
        for number, inner in enumerate(value):
            part = first[number] if number < len(first) else schema.get("items")
            yield from _misfits(inner, part, definitions, f"{where}[{number}]")


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else str(name)
