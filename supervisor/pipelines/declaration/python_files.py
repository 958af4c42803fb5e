"""Pipelines declared in Python files, and the lines of what these raise."""

import importlib
import traceback
from pathlib import Path

from pydantic import ValidationError

from contracts.errors import InvalidPipeline, TaskloreError
from contracts.pipelines import Pipeline
from runtime.source_files import execute, make_importable, name_of_its_own, place_in_package
from supervisor.pipelines.declaration.declarations import problems_in
from supervisor.pipelines.declaration.problems import Place, place_in_words


def pipeline_in(path: Path, label: str) -> Pipeline:
    """Return the pipeline that the file *path*, called *label* in messages, declares.

    It is the one called `pipeline`, else the only one at the top level. The file runs; its folder, or the one above its
    package, can be imported from, behind everything that is installed.

    Raises:
        InvalidPipeline: the file raises, or has no pipeline or several; the message names its line and the cure.
    """
    folder, name = place_in_package(path)
    make_importable(folder)
    try:
        module = importlib.import_module(name) if "." in name else execute(name_of_its_own(path), path)
    except (Exception, SystemExit) as error:
        raise InvalidPipeline(_describe(error, path, label)) from error
    found = {name: value for name, value in vars(module).items() if isinstance(value, Pipeline)}
    several = {id(one): one for one in found.values()}
    if "pipeline" in found or len(several) == 1:
        return found.get("pipeline") or next(iter(found.values()))
    if several:
        raise InvalidPipeline([f"{label}: it declares {', '.join(found)}; call the one that is meant `pipeline`"])
    raise InvalidPipeline([f"{label}: it declares no pipeline; write `pipeline = Pipeline(...)` at its top level"])


def lines_in(pipeline: Pipeline, file: Path) -> dict[Place, int]:
    """Return the lines at which the pipeline and its parts were made in *file*; those made elsewhere have none."""
    parts: list[tuple[Place, str]] = [((), pipeline.where)]
    parts += [(("inputs", name), declared.where) for name, declared in pipeline.inputs.items()]
    parts += [(("phases", n), phase.where) for n, phase in enumerate(pipeline.phases)]
    split = [(place, where.rpartition(":")) for place, where in parts]
    return {place: int(line) for place, (name, _, line) in split if name == str(file)}


def _describe(error: BaseException, path: Path, label: str) -> list[str]:
    """Return the sentences of *error*, with the last line of *path* that led to it."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return [f"{label}:{error.lineno}: this is no Python: {error.msg}"]
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    place = f"{label}:{own[-1].lineno}" if own else label
    if isinstance(error, ValidationError) and error.title in ("Pipeline", "Phase", "Input"):
        return [f"{place}: {place_in_words(one.place, {})}{one.text}" for one in problems_in(error)]
    message = str(error) if isinstance(error, TaskloreError) else f"it raised {type(error).__name__}: {error}"
    return [f"{place}: {message}"]
