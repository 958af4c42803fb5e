"""The inputs of a run: their types, defaults, and how a command line writes them."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.pipelines import Input, InputType, Pipeline
from tasklore.supervisor.pipelines.declaration.problems import (
    MOST_PROBLEMS,
    Flaw,
    suggest,
)
from tasklore.supervisor.pipelines.declaration.references import is_json, kind_of

#: The kinds of values as `kind_of` names them.
_KINDS = {
    "text": "a text",
    "number": "a number",
    "flag": "true or false",
    "list": "a list",
    "object": "an object",
}
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def problems_in_inputs(
    pipeline: Pipeline, inputs: Mapping[str, JsonValue]
) -> list[Flaw]:
    """Return the problems of *inputs*: missing, not declared, or of another type than declared."""
    return list(islice(_problems(pipeline, inputs), MOST_PROBLEMS))


def fill_defaults(
    pipeline: Pipeline, inputs: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return *inputs* with the declared default of every one that is not given."""
    defaults = {
        name: declared.default
        for name, declared in pipeline.inputs.items()
        if not declared.required
    }
    return {**defaults, **inputs}


def parse_inputs(pipeline: Pipeline, given: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return *given*, texts as a command line has them, as values of the declared types.

    A list and an object are written as JSON, a flag as true or false. Of an input whose type is open, JSON is read as
    such, and anything else is a text.

    Raises:
        InvalidInput: one is not declared, or its text cannot be of its type.
    """
    typed: dict[str, JsonValue] = {}
    for name, text in given.items():
        if name not in pipeline.inputs:
            raise InvalidInput(_describe_unknown(pipeline, name))
        typed[name] = _parse(name, pipeline.inputs[name].type, text)
    return typed


def read_typed(
    pipeline: Pipeline, inputs: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return *inputs* with each text as a value of its declared type, where that is neither open nor a text itself.

    Raises:
        InvalidInput: a text cannot be of its type; a secret one is not repeated.
    """
    typed = dict(inputs)
    for name, value in inputs.items():
        declared = pipeline.inputs.get(name)
        if declared is None or declared.type in ("any", "text"):
            continue
        if isinstance(value, str):
            typed[name] = _parse_quietly(name, declared, value)
    return typed


def _parse_quietly(name: str, declared: Input, text: str) -> JsonValue:
    try:
        return _parse(name, declared.type, text)
    except InvalidInput:
        if not declared.secret:
            raise
        # The reason would repeat the secret.
        raise InvalidInput(
            f"input {name!r}: the value is not a {declared.type}; write it as JSON"
        ) from None


def misfit(declared: Input, value: JsonValue) -> str | None:
    """Return why *value* is not of the *declared* type, None when it is."""
    if declared.type == "any" or (
        value is None and not declared.required and declared.default is None
    ):
        return None
    fits = kind_of(value) == _KINDS[declared.type]
    return None if fits else f"must be {_KINDS[declared.type]}, not {kind_of(value)}"


def _problems(pipeline: Pipeline, inputs: Mapping[str, JsonValue]) -> Iterator[Flaw]:
    for name in inputs:
        if name not in pipeline.inputs:
            yield Flaw(("inputs", name), _describe_unknown(pipeline, name))
    for name, declared in pipeline.inputs.items():
        if name not in inputs and declared.required:
            meaning = f" ({declared.description})" if declared.description else ""
            yield Flaw(
                ("inputs", name),
                f"input {name!r} is missing{meaning}; give it, such as --input {name}=...",
            )
        elif name in inputs and (why := misfit(declared, inputs[name])):
            yield Flaw(("inputs", name), f"input {name!r} {why}")


def _describe_unknown(pipeline: Pipeline, name: str) -> str:
    return f"there is no input {name!r}{suggest(name, pipeline.inputs, 'declared are')}"


def _parse(name: str, kind: InputType, text: str) -> JsonValue:
    if kind == "text":
        return text
    if kind == "flag":
        if text.lower() not in _FLAGS:
            raise InvalidInput(f"input {name!r} must be true or false, not {text!r}")
        return _FLAGS[text.lower()]
    try:
        value: JsonValue = json.loads(text)
        if not is_json(value):
            raise ValueError("JSON has no such number")  # noqa: TRY301 - as JSON itself would
    except (ValueError, RecursionError) as error:
        if kind == "any":
            return text
        raise InvalidInput(
            f"input {name!r} must be {_KINDS[kind]} written as JSON, not {text[:80]!r}: {error}"
        ) from error
    if why := misfit(Input(type=kind, required=True), value):
        raise InvalidInput(f"input {name!r} {why}")
    return value
