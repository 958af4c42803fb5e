"""Pipelines by what is typed: a file, the name of one that is installed, or of one in TASKLORE_PIPELINES_DIR."""

import difflib
from collections.abc import Sequence
from importlib import metadata, resources
from importlib.metadata import EntryPoint
from pathlib import Path

from contracts.errors import ConfigurationError, InvalidInput
from contracts.pipelines import Pipeline
from runtime.settings import Settings
from supervisor.pipelines.declaration.files import Source, read_pipeline

#: Where packages name the pipelines they bring: `name = "module:attribute"`, or `"package:file.toml"`.
GROUP = "tasklore.pipelines"

_SUFFIXES = (".toml", ".py")


def read_source(text: str) -> Source:
    """Return the pipeline that *text* means: a file when it looks like one, else the one that is known by that name.

    Raises:
        InvalidPipeline: it is there and cannot be read; each problem has its line.
        InvalidInput: there is neither.
        ConfigurationError: the package that brings it is broken.
    """
    path = Path(text)
    if path.suffix in _SUFFIXES or len(path.parts) > 1 or path.is_file():
        return read_pipeline(path)
    found = {one.name: one for one in installed()}
    if text in found:
        return _loaded(found[text])
    files = {file.stem: file for file in _declared()}
    if text in files:
        return read_pipeline(files[text])
    nearest = difflib.get_close_matches(text, [*found, *files], n=1)
    cure = f"did you mean {nearest[0]!r}?" if nearest else "`tasklore pipeline list` shows those that are known"
    raise InvalidInput(f"{text!r} is neither a file (.toml or .py) nor the name of a known pipeline; {cure}")


def known_names() -> list[str]:
    """Return the names of installed pipelines, and of files in TASKLORE_PIPELINES_DIR."""
    return sorted({*(one.name for one in installed()), *(file.stem for file in _declared())})


def _declared() -> list[Path]:
    folder = Settings.load().pipelines_dir
    return sorted(folder.glob("*.toml")) if folder is not None else []


def installed() -> Sequence[EntryPoint]:
    """Return where each installed pipeline is, by name."""
    return sorted(metadata.entry_points(group=GROUP), key=lambda one: one.name)


def _loaded(point: EntryPoint) -> Source:
    """Return the pipeline that an installed package names.

    Raises:
        ConfigurationError: there is none; the message names the package's mistake.
        InvalidPipeline: it cannot be read.
    """
    try:
        if point.attr.endswith(".toml"):
            with resources.as_file(resources.files(point.module) / point.attr) as file:
                return read_pipeline(file)
        found = point.load()
    except (ImportError, AttributeError, FileNotFoundError) as error:
        msg = f"the installed pipeline {point.name!r} ({point.value}) cannot be loaded: {error}; install it again"
        raise ConfigurationError(msg) from error
    if isinstance(found, Pipeline):
        return Source(found)
    if isinstance(found, str | Path):
        return read_pipeline(Path(found))
    msg = f"the installed pipeline {point.name!r} ({point.value}) is a {type(found).__name__}, not a Pipeline or a path"
    raise ConfigurationError(msg)
