"""Pipelines in files: TOML (docs/reference/pipelines.md), or Python that declares a `contracts.pipelines.Pipeline`."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contracts.errors import InvalidPipeline
from contracts.pipelines import MOST_LEVELS, Pipeline
from supervisor.pipelines.declaration.declarations import read_declaration
from supervisor.pipelines.declaration.problems import Flaw, Place, nearest, place_in_words
from supervisor.pipelines.declaration.python_files import lines_in, pipeline_in
from supervisor.pipelines.declaration.toml_lines import lines_of

#: Bytes of a file; five hundred phases need a tenth.
_LARGEST = 4 * 1024 * 1024
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$| \(at end of document\)$")
#: The phase that a sentence is about, and the field that it begins with.
_ABOUT = re.compile(r"phase (?P<phase>[A-Za-z0-9_-]+): (?P<field>[A-Za-z_]+(?:\.[A-Za-z0-9_-]+)?)?")


@dataclass(frozen=True)
class Source:
    """A pipeline and where it was written; *label* is its file as it was given, "" for a message without one.

    *lines* are the known lines by place; a place inside a known one counts as that.
    """

    pipeline: Pipeline
    label: str = ""
    lines: Mapping[Place, int] = field(default_factory=dict)

    def line_of(self, place: Place) -> int | None:
        """Return the line of *place*, or of the nearest thing around it, None when no line is known."""
        return _line(place, self.lines)


def read_pipeline(path: Path | str, level: int = 1) -> Source:
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
        raise InvalidPipeline([f"there is no file {label!r}{nearest(file.name, beside)}; give the path of one"])
    if file.suffix == ".py":
        pipeline = pipeline_in(file, label)
        return Source(pipeline, label, lines_in(pipeline, file))
    if file.suffix != ".toml":
        raise InvalidPipeline([f"{label}: a pipeline is written in a file that ends in .toml or .py"])
    return _read_toml(file, label, level)


def describe_problems(problems: Iterable[Flaw], source: Source) -> list[str]:
    """Return *problems* as sentences: `health.toml:23: phase analysis: reads 'x', but ...`, sorted by line."""
    return _describe(problems, source.label, source.lines, {"phases": source.pipeline.phases})


def with_lines(sentences: Iterable[str], source: Source) -> list[str]:
    """Return *sentences* of a supervisor about the pipeline, the file and the line of their phase before them."""
    index = {phase.name: n for n, phase in enumerate(source.pipeline.phases)}
    placed = []
    for sentence in sentences:
        found = _ABOUT.match(sentence)
        steps = (found["field"] or "").split(".") if found else []
        place: Place = ("phases", index[found["phase"]], *steps) if found and found["phase"] in index else ()
        placed.append(_prefix(source.label, source.line_of(place)) + sentence)
    return placed


def _read_toml(file: Path, label: str, level: int) -> Source:
    if file.stat().st_size > _LARGEST:
        raise InvalidPipeline([f"{label}: the file has more than {_LARGEST:,} bytes; a pipeline is smaller"])
    try:
        text = file.read_bytes().decode()
        raw = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InvalidPipeline([f"{label}: it is no text in UTF-8; save it as such"]) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = _AT_LINE.search(str(error))
        line = int(found[1]) if found and found[1] else None
        why = str(error)[: found.start()] if found else str(error)
        end = "" if line else " at the end of the file"
        raise InvalidPipeline([f"{_prefix(label, line)}this is no TOML: {why}{end}"]) from error
    lines = {("phases", *place[1:]) if place[0] == "phase" else place: line for place, line in lines_of(text).items()}
    blocks = raw.pop("phase", None)
    if "phases" in raw or not isinstance(blocks, list):
        line = _line(("phases", 0), lines)
        why = "write each phase as a block" if line else "it has no phases; write each as a block"
        raise InvalidPipeline([f"{_prefix(label, line)}{why} [[phase]] with a name, an agent and a task"])
    for block in blocks:
        inner = block.get("pipeline") if isinstance(block, dict) else None
        if isinstance(inner, str):
            if level >= MOST_LEVELS:
                raise InvalidPipeline([f"{label}: more than {MOST_LEVELS} files name each other as `pipeline`"])
            block["pipeline"] = read_pipeline(file.parent / inner, level + 1).pipeline
    mapping = {**raw, "phases": blocks}
    pipeline, problems = read_declaration(mapping)
    if pipeline is None:
        raise InvalidPipeline(_describe(problems, label, lines, mapping))
    return Source(pipeline, label, lines)


def _describe(
    problems: Iterable[Flaw], label: str, lines: Mapping[Place, int], declaration: Mapping[str, Any]
) -> list[str]:
    placed = sorted(((_line(one.place, lines), one) for one in problems), key=lambda pair: pair[0] or 0)
    return [f"{_prefix(label, line)}{place_in_words(one.place, declaration)}{one.text}" for line, one in placed]


def _line(place: Place, lines: Mapping[Place, int]) -> int | None:
    return next((lines[place[:n]] for n in range(len(place), 0, -1) if place[:n] in lines), lines.get(()))


def _prefix(label: str, line: int | None) -> str:
    return f"{label}:{line}: " if label and line else f"{label}: " if label else ""
