"""The command line in this process: given words, it says how it ended and what it printed."""

import contextlib
import functools
import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import typer
from typer.main import get_command

from tasklore.commands.command_line import finish, run_command_line


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and what it wrote."""

    code: int
    stdout: str
    stderr: str


@contextlib.contextmanager
def standing_in(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Give commands in *folder* within the block, with no setting of ours but those of *variables*."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TASKLORE_")
    }
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, {**inherited, **variables}, clear=True),
    ):
        yield


@functools.cache
def _tree(app: typer.Typer, _groups: int) -> Any:
    """Return the commands of *app*, made once for so many groups: that is most of what a command costs here."""
    return get_command(app)


def run(words: Sequence[str], stdin: str = "") -> Ended:
    """Run `tasklore` with *words*, as no terminal, to its end."""
    out = _stream()
    err = _stream()
    given = _stream(stdin)
    with (
        mock.patch.object(sys, "argv", ["tasklore", *words]),
        mock.patch.object(sys, "stdin", given),
        mock.patch.object(
            typer.main,
            "get_command",
            lambda app: _tree(app, len(app.registered_groups)),
        ),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            finish(run_command_line)
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Ended(code, _read(out), _read(err))


def _stream(text: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8", write_through=True)


def _read(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
