"""Inputs of a run as they are typed: `folder=src`, `depth=3`, `rules=@rules.json`."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import JsonValue

from contracts.errors import InvalidInput
from contracts.pipelines import Pipeline
from supervisor.pipelines.declaration.inputs import typed_inputs

#: Bytes of a file that is given as an input: a run's inputs travel in one message.
MAX_FILE = 512 * 1024
#: Characters of a value that an error repeats.
_SHOWN = 40


def read_inputs(pipeline: Pipeline, given: Iterable[str]) -> dict[str, JsonValue]:
    """Return the values of *given*, each `NAME=VALUE`, by the types that *pipeline* declares.

    A text is taken as it is, anything else is JSON. `@FILE` as the value is what the file holds, `@@` the character
    itself.

    Raises:
        InvalidInput: one cannot be read, is of another type, is given twice, or is no input of the pipeline.
    """
    values: dict[str, JsonValue] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals:
            example = next(iter(pipeline.inputs), "folder")
            raise InvalidInput(f"--input {one[:_SHOWN]!r} has no '='; write NAME=VALUE, such as {example}=...")
        if name in values:
            raise InvalidInput(f"--input {name} is given twice; leave one out")
        values[name] = _value(pipeline, name, _text(name, text))
    return values


def _value(pipeline: Pipeline, name: str, text: str) -> JsonValue:
    try:
        value = typed_inputs(pipeline, {name: text})[name]
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"--input {name} is no valid Unicode; send it as UTF-8") from error
    except InvalidInput as error:
        if name in pipeline.inputs and pipeline.inputs[name].secret:
            # The reason would repeat what was typed.
            kind = pipeline.inputs[name].type
            raise InvalidInput(f"--input {name}: the value is no {kind}; write it as JSON") from None
        raise InvalidInput(f"--input {name}: {error}") from error
    return value


def _text(name: str, text: str) -> str:
    """Return *text*, or what the file holds that it names."""
    if not text.startswith("@") or text.startswith("@@"):
        return text.removeprefix("@")
    file = Path(text[1:])
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            raise InvalidInput(
                f"--input {name}: {str(file)!r} is larger than {MAX_FILE // 1024} KiB; give its path instead, as a text"
            )
        return content.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise InvalidInput(f"--input {name}: {str(file)!r} is no text in UTF-8; convert it") from error
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"--input {name}: {str(file)!r} cannot be read ({reason}); name a file, or write @@ for a plain @"
        ) from error


def masked(pipeline: Pipeline, inputs: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return *inputs* as they may be shown: secret ones are `***`."""
    return {
        name: "***" if name in pipeline.inputs and pipeline.inputs[name].secret else value
        for name, value in inputs.items()
    }
