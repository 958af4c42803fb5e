"""Pipelines by what is typed: a file, or the name under which one is installed."""

import difflib
from collections.abc import Sequence
from importlib import metadata, resources
from importlib.metadata import EntryPoint
from pathlib import Path

from contracts.errors import ConfigurationError, InvalidInput
from contracts.pipelines import Pipeline
from supervisor.pipelines.files import Source, read_pipeline

#: Where packages name the pipelines they bring: `name = "module:attribute"`, or `"package:file.toml"`.
GROUP = "tasklore.pipelines"

_SUFFIXES = (".toml", ".py")


def read_source(text: str) -> Source:
    """Return the pipeline that *text* means: a file when it looks like one, else the installed one of that name.

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
    nearest = difflib.get_close_matches(text, found, n=1)
    cure = f"did you mean {nearest[0]!r}?" if nearest else "`tasklore pipeline list` shows those that are installed"
    raise InvalidInput(f"{text!r} is neither a file (.toml or .py) nor an installed pipeline; {cure}")


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
