"""Finding the pipeline in a Python file, and saying which of its lines raised."""

import importlib
import traceback
from pathlib import Path
from types import ModuleType

from pydantic import ValidationError

from contracts.errors import InvalidPipeline, TaskloreError
from contracts.pipelines import Pipeline
from runtime.source_files import execute, make_importable, name_of_its_own, place_in_package
from supervisor.pipelines.declaration.declarations import sentences


def pipeline_in(path: Path, label: str) -> Pipeline:
    """Return the pipeline that the file *path*, called *label* in messages, declares.

    It is the one called `pipeline`, else the only one at the top level. The file runs; its folder, or the one above its
    package, can be imported from, behind everything that is installed.

    Raises:
        InvalidPipeline: the file raises, or has no pipeline or several; the message names its line and the cure.
    """
    found = {name: value for name, value in vars(_loaded(path, label)).items() if isinstance(value, Pipeline)}
    if "pipeline" in found:
        return found["pipeline"]
    several = tuple({id(one): one for one in found.values()}.values())
    if len(several) == 1:
        return several[0]
    if several:
        names = ", ".join(found)
        raise InvalidPipeline([f"{label}: it declares {names}; call the one that is meant `pipeline`"])
    raise InvalidPipeline([f"{label}: it declares no pipeline; write `pipeline = Pipeline(...)` at its top level"])


def _loaded(path: Path, label: str) -> ModuleType:
    folder, name = place_in_package(path)
    make_importable(folder)
    try:
        if "." in name:
            return importlib.import_module(name)
        return execute(name_of_its_own(path), path)
    except (Exception, SystemExit) as error:
        raise InvalidPipeline(_told(error, path, label)) from error


def _told(error: BaseException, path: Path, label: str) -> list[str]:
    """Return what *error* says, with the line of the file, or of the last file of the user's, that raised it."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return [f"{label}:{error.lineno}: this is no Python: {error.msg}"]
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    place = f"{label}:{own[-1].lineno}" if own else label
    if isinstance(error, ValidationError) and error.title in ("Pipeline", "Phase", "Input"):
        return [f"{place}: {sentence}" for sentence in sentences(error)]
    said = str(error) if isinstance(error, TaskloreError) else f"it raised {type(error).__name__}: {error}"
    return [f"{place}: {said}"]
