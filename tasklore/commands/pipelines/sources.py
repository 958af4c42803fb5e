"""A pipeline as it is typed: a file, an installed name, or a file in TASKLORE_PIPELINES_DIR; and its inputs."""

import difflib
import json
from collections.abc import Iterable
from importlib import metadata, resources
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from tasklore.commands.render.screen import print_json, print_table, printable
from tasklore.commands.render.words import one_line
from tasklore.contracts.errors import ConfigurationError, InvalidInput, TaskloreError
from tasklore.contracts.pipelines import Pipeline
from tasklore.runtime.settings import Settings
from tasklore.supervisor.pipelines.declaration.files import (
    PipelineSource,
    read_pipeline,
)
from tasklore.supervisor.pipelines.declaration.inputs import parse_inputs

#: The entry points of packages with pipelines: `name = "module:attribute"`, or `"package:file.toml"`.
GROUP = "tasklore.pipelines"
#: Bytes of a file that is given as an input: a run's inputs travel in one message.
MAX_FILE = 512 * 1024
#: Characters of a value that an error repeats.
_LONGEST_QUOTED = 40
#: Characters of a description in a list.
_LONGEST_DESCRIPTION = 90

_SUFFIXES = (".toml", ".py")


def read_source(text: str) -> PipelineSource:
    """Return the pipeline *text*: a file when it looks like one, else a known pipeline of that name.

    Raises:
        InvalidPipeline: it cannot be read; each problem has its line.
        InvalidInput: there is no such pipeline.
        ConfigurationError: the package that brings it is broken.
    """
    path = Path(text)
    if path.suffix in _SUFFIXES or len(path.parts) > 1 or path.is_file():
        return read_pipeline(path)
    known = _known_pipelines()
    if text not in known:
        nearest = difflib.get_close_matches(text, known, n=1)
        cure = (
            f"did you mean {nearest[0]!r}?"
            if nearest
            else "`tasklore pipelines installed` shows those that are known"
        )
        raise InvalidInput(
            f"{text!r} is neither a file (.toml or .py) nor the name of a known pipeline; {cure}"
        )
    place = known[text]
    return read_pipeline(place) if isinstance(place, Path) else _load(place)


def declare(source: PipelineSource) -> dict[str, Any]:
    """Return the declaration of *source* as it is sent."""
    declared: dict[str, Any] = source.pipeline.model_dump(
        mode="json", exclude_unset=True
    )
    return declared


def known_names() -> list[str]:
    """Return the names of installed pipelines, and of files in TASKLORE_PIPELINES_DIR."""
    return sorted(_known_pipelines())


def _known_pipelines() -> dict[str, Path | EntryPoint]:
    folder = Settings.load().pipelines_dir
    files = sorted(folder.glob("*.toml")) if folder is not None else []
    return {file.stem: file for file in files} | {
        one.name: one for one in metadata.entry_points(group=GROUP)
    }


def _load(point: EntryPoint) -> PipelineSource:
    """Return the pipeline that an installed package names.

    Raises:
        ConfigurationError: it names none; the message names the package's mistake.
        InvalidPipeline: it cannot be read.
    """
    where = f"the installed pipeline {point.name!r} ({point.value})"
    try:
        if point.attr.endswith(".toml"):
            with resources.as_file(resources.files(point.module) / point.attr) as file:
                return read_pipeline(file)
        found = point.load()
    except (ImportError, AttributeError, FileNotFoundError) as error:
        raise ConfigurationError(
            f"{where} cannot be loaded: {error}; install it again"
        ) from error
    if isinstance(found, Pipeline):
        return PipelineSource(found)
    if isinstance(found, str | Path):
        return read_pipeline(Path(found))
    raise ConfigurationError(
        f"{where} is a {type(found).__name__}, not a Pipeline or a path"
    )


def read_texts(given: Iterable[str], example: str = "folder") -> dict[str, str]:
    """Return *given*, each `NAME=VALUE`, as texts by name; *example* is the name of an input that there may be.

    `@FILE` as the value is the content of the file, `@@` the character itself.

    Raises:
        InvalidInput: one is no such thing or given twice, or its file cannot be read.
    """
    texts: dict[str, str] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals:
            raise InvalidInput(
                f"--input {one[:_LONGEST_QUOTED]!r} has no '='; write NAME=VALUE, such as {example}=..."
            )
        if name in texts:
            raise InvalidInput(f"--input {name} is given twice; leave one out")
        texts[name] = (
            _content(name, text[1:])
            if text.startswith("@") and not text.startswith("@@")
            else text.removeprefix("@")
        )
    return texts


def read_inputs(pipeline: Pipeline, given: Iterable[str]) -> dict[str, JsonValue]:
    """Return the values of *given*, as `read_texts` has them, by the types that *pipeline* declares.

    A text is taken as it is, anything else is JSON.

    Raises:
        InvalidInput: one cannot be read, is of another type, is given twice, or is no input of the pipeline.
    """
    values: dict[str, JsonValue] = {}
    example = next(iter(pipeline.inputs), "folder")
    for name, text in read_texts(given, example).items():
        try:
            values[name] = parse_inputs(pipeline, {name: text})[name]
            json.dumps(values[name], ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"--input {name} is not valid Unicode; send it as UTF-8"
            ) from error
        except InvalidInput as error:
            if name in pipeline.inputs and pipeline.inputs[name].secret:
                # The reason would repeat the secret.
                kind = pipeline.inputs[name].type
                raise InvalidInput(
                    f"--input {name}: the value is not a {kind}; write it as JSON"
                ) from None
            raise InvalidInput(f"--input {name}: {error}") from error
    return values


def _content(name: str, path: str) -> str:
    try:
        with Path(path).open("rb") as opened:
            content = opened.read(MAX_FILE + 1)
        text = content.decode("utf-8-sig") if len(content) <= MAX_FILE else None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"--input {name}: {path!r} is not UTF-8 text; convert it"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        cure = "name a file, or write @@ for a plain @"
        raise InvalidInput(
            f"--input {name}: {path!r} cannot be read ({reason}); {cure}"
        ) from error
    if text is None:
        cure = "give its path instead, as a text"
        raise InvalidInput(
            f"--input {name}: {path!r} is larger than {MAX_FILE // 1024} KiB; {cure}"
        )
    return text


def print_installed(*, as_json: bool) -> None:
    """Print a line for each pipeline that is known here by its name."""
    known = [_describe(name) for name in known_names()]
    if as_json:
        print_json({"pipelines": known})
        return
    rows = [
        [
            printable(one["name"]),
            str(one["phases"]),
            one_line(
                one["description"]
                if one["error"] is None
                else f"cannot be read: {one['error']}",
                _LONGEST_DESCRIPTION,
            ),
        ]
        for one in known
    ]
    columns = ("PIPELINE", "PHASES", "WHAT IT DOES")
    print_table(columns, rows, right=("PHASES",), whole=("PIPELINE",))


def _describe(name: str) -> dict[str, Any]:
    """Return the pipeline *name* for programs; one that cannot be read has an `error`."""
    try:
        pipeline = read_source(name).pipeline
    except TaskloreError as error:
        return {"name": name, "phases": 0, "description": "", "error": str(error)}
    return {
        "name": name,
        "phases": len(pipeline.phases),
        "description": pipeline.description,
        "error": None,
    }
