"""Pipelines in files: TOML (docs/reference/pipelines.md), or Python that declares a `contracts.pipelines.Pipeline`."""

import importlib
import re
import tomllib
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tasklore.contracts.errors import InvalidPipeline, TaskloreError
from tasklore.contracts.faults import nearest
from tasklore.contracts.pipelines import MOST_LEVELS, Pipeline
from tasklore.runtime.source_files import (
    execute,
    make_importable,
    name_of_its_own,
    place_in_package,
)
from tasklore.supervisor.pipelines.declaration.declarations import (
    problems_in,
    read_declaration,
)
from tasklore.supervisor.pipelines.declaration.problems import (
    Flaw,
    Place,
    place_in_words,
)

#: Bytes of a file; five hundred phases need a tenth.
_LARGEST = 4 * 1024 * 1024
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$| \(at end of document\)$")
#: The phase that a sentence is about, and the field that it begins with.
_ABOUT = re.compile(
    r"phase (?P<phase>[A-Za-z0-9_-]+): (?P<field>[A-Za-z_]+(?:\.[A-Za-z0-9_-]+)?)?"
)
#: Texts and comments, and the beginning of a table or a key; `tomllib` does not say on which line these stand.
_SKIPPED = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|(?P<text>"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\')|#[^\n]*',
    re.DOTALL,
)
_PART = r'(?:"(?:\\.|[^"\\])*"|\'[^\']*\'|[A-Za-z0-9_-]+)'
_KEY = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_STATEMENT = re.compile(
    rf"[ \t]*(?:\[(?P<list>\[?)[ \t]*(?P<table>{_KEY})[ \t]*\]|(?P<key>{_KEY})[ \t]*=)"
)


@dataclass(frozen=True)
class PipelineSource:
    """A pipeline and where it was written; *label* is its file as it was given, "" for a message without one.

    *lines* are the known lines by place; a place inside a known one counts as that.
    """

    pipeline: Pipeline
    label: str = ""
    lines: Mapping[Place, int] = field(default_factory=dict)

    def line_of(self, place: Place) -> int | None:
        """Return the line of *place*, or of the nearest thing around it, None when no line is known."""
        return _line(place, self.lines)


def read_pipeline(path: Path | str, level: int = 1) -> PipelineSource:
    """Return the pipeline in the file *path*, which ends in `.toml` or `.py`, without checking whether it can run.

    *level* is 1 for a pipeline that no other one names.

    Raises:
        InvalidPipeline: it cannot be read, or declares no pipeline; the sentences name file and line.
    """
    label = str(path)
    file = Path(path).expanduser().resolve()
    if not file.is_file():
        around = list(file.parent.iterdir()) if file.parent.is_dir() else []
        beside = [one.name for one in around if one.suffix in (".toml", ".py")]
        raise InvalidPipeline(
            [
                f"there is no file {label!r}{nearest(file.name, beside)}; give the path of one"
            ]
        )
    if file.suffix == ".py":
        pipeline = _pipeline_in(file, label)
        return PipelineSource(pipeline, label, _lines_in(pipeline, file))
    if file.suffix != ".toml":
        raise InvalidPipeline(
            [f"{label}: a pipeline is written in a file that ends in .toml or .py"]
        )
    return _read_toml(file, label, level)


def describe_problems(problems: Iterable[Flaw], source: PipelineSource) -> list[str]:
    """Return *problems* as sentences: `health.toml:23: phase analysis: reads 'x', but ...`, sorted by line."""
    return _describe(
        problems, source.label, source.lines, {"phases": source.pipeline.phases}
    )


def with_lines(sentences: Iterable[str], source: PipelineSource) -> list[str]:
    """Return *sentences* of a supervisor about the pipeline, the file and the line of their phase before them."""
    index = {phase.name: n for n, phase in enumerate(source.pipeline.phases)}
    placed = []
    for sentence in sentences:
        found = _ABOUT.match(sentence)
        steps = (found["field"] or "").split(".") if found else []
        place: Place = (
            ("phases", index[found["phase"]], *steps)
            if found and found["phase"] in index
            else ()
        )
        placed.append(_prefix(source.label, source.line_of(place)) + sentence)
    return placed


def lines_of(text: str) -> dict[Place, int]:
    """Return the line, from 1, of every table and key in the valid TOML document *text*, by its place.

    Tables of a list are counted: the third `[[phase]]` is `("phase", 2)`. Inline tables and lists are one place.
    """
    lines: dict[Place, int] = {}
    tables: dict[Place, int] = {}
    table: Place = ()
    depth = 0
    # Texts over several lines, and comments, leave their line feeds.
    text = _SKIPPED.sub(
        lambda found: found["text"] or "\n" * found[0].count("\n"), text
    )
    for number, line in enumerate(text.split("\n"), 1):
        found = _STATEMENT.match(line) if depth == 0 else None
        signs = _SKIPPED.sub("", line)
        depth += sum(map(signs.count, "[{")) - sum(map(signs.count, "]}"))
        if found is None:
            continue
        steps = [
            part.strip("\"'")
            for part in re.findall(_PART, found["table"] or found["key"])
        ]
        place = table if found["key"] else ()
        for n, step in enumerate(steps, 1):
            place = (*place, step)
            if found["list"] and n == len(steps):
                tables[place] = tables.get(place, -1) + 1
            if place in tables:
                place = (*place, tables[place])
            lines.setdefault(place, number)
        if found["table"]:
            table = place
    return lines


def _read_toml(file: Path, label: str, level: int) -> PipelineSource:
    if file.stat().st_size > _LARGEST:
        raise InvalidPipeline(
            [
                f"{label}: the file has more than {_LARGEST:,} bytes; a pipeline is smaller"
            ]
        )
    try:
        text = file.read_bytes().decode()
        raw = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InvalidPipeline(
            [f"{label}: it is not UTF-8 text; save it as UTF-8"]
        ) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = _AT_LINE.search(str(error))
        line = int(found[1]) if found and found[1] else None
        why = str(error)[: found.start()] if found else str(error)
        end = "" if line else " at the end of the file"
        raise InvalidPipeline(
            [f"{_prefix(label, line)}this is not valid TOML: {why}{end}"]
        ) from error
    lines = {
        ("phases", *place[1:]) if place[0] == "phase" else place: line
        for place, line in lines_of(text).items()
    }
    blocks = raw.pop("phase", None)
    if "phases" in raw or not isinstance(blocks, list):
        line = _line(("phases", 0), lines)
        why = (
            "write each phase as a block"
            if line
            else "it has no phases; write each as a block"
        )
        raise InvalidPipeline(
            [f"{_prefix(label, line)}{why} [[phase]] with a name, an agent and a task"]
        )
    for block in blocks:
        inner = block.get("pipeline") if isinstance(block, dict) else None
        if isinstance(inner, str):
            if level >= MOST_LEVELS:
                raise InvalidPipeline(
                    [
                        f"{label}: more than {MOST_LEVELS} files name each other as `pipeline`"
                    ]
                )
            block["pipeline"] = read_pipeline(file.parent / inner, level + 1).pipeline
    mapping = {**raw, "phases": blocks}
    pipeline, problems = read_declaration(mapping)
    if pipeline is None:
        raise InvalidPipeline(_describe(problems, label, lines, mapping))
    return PipelineSource(pipeline, label, lines)


def _pipeline_in(path: Path, label: str) -> Pipeline:
    """Return the pipeline that the file *path*, called *label* in messages, declares.

    It is the one called `pipeline`, else the only one at the top level. The file runs; its folder, or the one above its
    package, can be imported from, behind everything that is installed.

    Raises:
        InvalidPipeline: the file raises, or has no pipeline or several; the message names its line and the cure.
    """
    folder, name = place_in_package(path)
    make_importable(folder)
    try:
        module = (
            importlib.import_module(name)
            if "." in name
            else execute(name_of_its_own(path), path)
        )
    except (Exception, SystemExit) as error:
        raise InvalidPipeline(_describe_error(error, path, label)) from error
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Pipeline)
    }
    several = {id(one): one for one in found.values()}
    if "pipeline" in found or len(several) == 1:
        return found.get("pipeline") or next(iter(found.values()))
    if several:
        raise InvalidPipeline(
            [
                f"{label}: it declares {', '.join(found)}; call the one that is meant `pipeline`"
            ]
        )
    raise InvalidPipeline(
        [
            f"{label}: it declares no pipeline; write `pipeline = Pipeline(...)` at its top level"
        ]
    )


def _lines_in(pipeline: Pipeline, file: Path) -> dict[Place, int]:
    """Return the lines at which the pipeline and its parts were made in *file*; those made elsewhere have none."""
    parts: list[tuple[Place, str]] = [((), pipeline.where)]
    parts += [
        (("inputs", name), declared.where) for name, declared in pipeline.inputs.items()
    ]
    parts += [(("phases", n), phase.where) for n, phase in enumerate(pipeline.phases)]
    split = [(place, where.rpartition(":")) for place, where in parts]
    return {place: int(line) for place, (name, _, line) in split if name == str(file)}


def _describe_error(error: BaseException, path: Path, label: str) -> list[str]:
    """Return the sentences of *error*, with the last line of *path* that led to it."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return [f"{label}:{error.lineno}: this is not valid Python: {error.msg}"]
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    place = f"{label}:{own[-1].lineno}" if own else label
    if isinstance(error, ValidationError) and error.title in (
        "Pipeline",
        "Phase",
        "Input",
    ):
        return [
            f"{place}: {place_in_words(one.place, {})}{one.text}"
            for one in problems_in(error)
        ]
    message = (
        str(error)
        if isinstance(error, TaskloreError)
        else f"it raised {type(error).__name__}: {error}"
    )
    return [f"{place}: {message}"]


def _describe(
    problems: Iterable[Flaw],
    label: str,
    lines: Mapping[Place, int],
    declaration: Mapping[str, Any],
) -> list[str]:
    placed = sorted(
        ((_line(one.place, lines), one) for one in problems),
        key=lambda pair: pair[0] or 0,
    )
    return [
        f"{_prefix(label, line)}{place_in_words(one.place, declaration)}{one.text}"
        for line, one in placed
    ]


def _line(place: Place, lines: Mapping[Place, int]) -> int | None:
    return next(
        (lines[place[:n]] for n in range(len(place), 0, -1) if place[:n] in lines),
        lines.get(()),
    )


def _prefix(label: str, line: int | None) -> str:
    return f"{label}:{line}: " if label and line else f"{label}: " if label else ""
