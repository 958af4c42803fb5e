"""Pipelines in files: TOML, or Python that declares a `contracts.pipelines.Pipeline`.

```toml
name = "health"
description = "What a folder of Python is like."
root = "${input.folder}"
result = "report:results"

[inputs.folder]
type = "text"

[inputs.deep]
type = "flag"
default = false

[[phase]]
name = "context_query"
agent = "ContextAgent"
task = "look_around"
parameters = { folder = "${input.folder}" }
reads_files = ["**/*.py"]

[[phase]]
name = "analysis"
agent = "ImportsAgent"
task = "map_imports"
writes = ["results", "dependencyMap"]
timeout = "5m"

[phase.parameters]
files = "${context_query:results.files}"

[[phase]]
name = "security"
agent = "SecurityAgent"
task = "look"
when = "${input.deep} and len(${analysis:dependencyMap}) > 0"
parameters = { imports = "${analysis:dependencyMap}" }

[[phase]]
name = "report"
agent = "ReportAgent"
task = "write"
parameters = { findings = "${security:results?}", title = "Health of ${input.folder}" }
```

What belongs to the whole pipeline stands at the top, before any `[table]`. `[phase.parameters]` belongs to the
`[[phase]]` above it. The fields are those of `Pipeline`, `Input` and `Phase`; spans are written such as "90s" or "5m".
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contracts.errors import InvalidPipeline
from contracts.pipelines import MOST_LEVELS, Pipeline
from supervisor.pipelines.declaration.declarations import pipeline_from, place_in_words, read_declaration
from supervisor.pipelines.declaration.problems import Place, Problem, nearest
from supervisor.pipelines.declaration.python_files import pipeline_in
from supervisor.pipelines.declaration.toml_lines import lines_of

__all__ = ["Source", "described", "pipeline_from", "read_pipeline", "with_lines"]

#: Bytes of a file; five hundred phases need a tenth.
_LARGEST = 4 * 1024 * 1024
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$| \(at end of document\)$")
_OF_PHASE = re.compile(r"phase ([A-Za-z0-9_-]+): ")


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
    """Return the pipeline in the file *path*, which ends in `.toml` or `.py`; whether it can run is not looked at.

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
        return Source(pipeline, label, _python_lines(pipeline, file))
    if file.suffix != ".toml":
        raise InvalidPipeline([f"{label}: a pipeline is written in a file that ends in .toml or .py"])
    return _read_toml(file, label, level)


def described(problems: Iterable[Problem], source: Source) -> list[str]:
    """Return *problems* as sentences: `health.toml:23: phase analysis: reads 'x', but ...`, sorted by line."""
    return _sentences(problems, source.label, source.lines, {"phases": source.pipeline.phases})


def with_lines(sentences: Iterable[str], source: Source) -> list[str]:
    """Return *sentences* that a supervisor wrote of the pipeline, the file and the line of their phase before them."""
    index = {phase.name: n for n, phase in enumerate(source.pipeline.phases)}
    placed = []
    for sentence in sentences:
        found = _OF_PHASE.match(sentence)
        place: Place = ("phases", index[found[1]]) if found and found[1] in index else ()
        if found and place:
            # What a sentence begins with is the field it is about.
            words = re.match(r"[A-Za-z_]+(?:\.[A-Za-z0-9_-]+)?", sentence[found.end() :])
            place = (*place, *words[0].split(".")) if words else place
        placed.append(_prefix(source.label, _line(place, source.lines)) + sentence)
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
        raise InvalidPipeline([_told(str(error), label)]) from error
    raw = _with_inner(raw, file, label, level)
    lines = {_renamed(place): line for place, line in lines_of(text).items()}
    mapping = _mapping(raw, label, lines)
    pipeline, problems = read_declaration(mapping)
    if pipeline is None:
        raise InvalidPipeline(_sentences(problems, label, lines, mapping))
    return Source(pipeline, label, lines)


def _with_inner(raw: dict[str, Any], file: Path, label: str, level: int) -> dict[str, Any]:
    """Return *raw* with the pipeline of each phase that names a file beside *file*.

    Raises:
        InvalidPipeline: that cannot be read, or too many name each other.
    """
    blocks = raw.get("phase")
    for block in blocks if isinstance(blocks, list) else ():
        named = block.get("pipeline") if isinstance(block, dict) else None
        if isinstance(named, str):
            if level >= MOST_LEVELS:
                raise InvalidPipeline([f"{label}: more than {MOST_LEVELS} files name each other as `pipeline`"])
            block["pipeline"] = read_pipeline(file.parent / named, level + 1).pipeline
    return raw


def _mapping(raw: dict[str, Any], label: str, lines: Mapping[Place, int]) -> dict[str, Any]:
    """Return *raw* with its `phase` blocks as `phases`."""
    blocks = raw.get("phase")
    if "phases" in raw or not isinstance(blocks, list):
        line = _line(("phases", 0), lines)
        why = "write each phase as a block" if line else "it has no phases; write each as a block"
        raise InvalidPipeline([f"{_prefix(label, line)}{why} [[phase]] with a name, an agent and a task"])
    return {name: value for name, value in raw.items() if name != "phase"} | {"phases": blocks}


def _told(message: str, label: str) -> str:
    """Return what tomllib says, its line in front."""
    found = _AT_LINE.search(message)
    line = int(found[1]) if found and found[1] else None
    said = message[: found.start()] if found else message
    return f"{_prefix(label, line)}this is no TOML: {said}{'' if line else ' at the end of the file'}"


def _renamed(place: Place) -> Place:
    return ("phases", *place[1:]) if place[:1] == ("phase",) else place


def _sentences(
    problems: Iterable[Problem], label: str, lines: Mapping[Place, int], declaration: Mapping[str, Any]
) -> list[str]:
    placed = [(_line(problem.place, lines), problem) for problem in problems]
    placed.sort(key=lambda one: one[0] or 0)
    return [
        f"{_prefix(label, line)}{place_in_words(problem.place, declaration)}{problem.text}" for line, problem in placed
    ]


def _line(place: Place, lines: Mapping[Place, int]) -> int | None:
    return next((lines[place[:n]] for n in range(len(place), 0, -1) if place[:n] in lines), lines.get(()))


def _prefix(label: str, line: int | None) -> str:
    return f"{label}:{line}: " if label and line else f"{label}: " if label else ""


def _python_lines(pipeline: Pipeline, file: Path) -> dict[Place, int]:
    """Return the lines at which the pipeline and its parts were made in *file*; those made elsewhere have none."""
    parts: list[tuple[Place, str]] = [((), pipeline.where)]
    parts += [(("inputs", name), declared.where) for name, declared in pipeline.inputs.items()]
    parts += [(("phases", n), phase.where) for n, phase in enumerate(pipeline.phases)]
    lines: dict[Place, int] = {}
    for place, where in parts:
        name, _, line = where.rpartition(":")
        if name == str(file):
            lines[place] = int(line)
    return lines
