"""Reads Python files as syntax trees; a file that cannot be read or parsed is named and harms no other."""

import ast
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from examples.repository_health.shapes import Unparsed
from examples.repository_health.walk import demand_going_on
from tasklore import Context

#: Bytes of a file that is parsed: a larger one was made by a program, and its tree takes a hundred times as much.
LARGEST = 1_000_000

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class SourceFile(NamedTuple):
    """A Python file: its path relative to the folder, its text and its tree."""

    path: str
    text: str
    tree: ast.Module


def read_sources(
    root: Path,
    files: Sequence[str],
    context: Context,
    having: "re.Pattern[str] | None" = None,
) -> Iterator[SourceFile | Unparsed]:
    """Yield each of *files* below *root* as it could be read, in order; those that are gone are left out.

    So are those whose text has nothing that *having* finds: parsing takes a hundred times as long as looking.

    Raises:
        GiveUp: the task was called off meanwhile.
    """
    for path in files:
        demand_going_on(context)
        found = _read(root, path, having)
        if found is not None:
            yield found


def read_text(file: Path) -> str:
    """Return the text of a Python file in the encoding that it declares.

    Raises:
        OSError: it cannot be read.
        SyntaxError: it declares an encoding that there is not.
        ValueError: it is not in that encoding.
    """
    with tokenize.open(file) as opened:
        return opened.read()


def is_below(root: Path, file: Path) -> bool:
    """Tell whether *file* is one of *root*, with every link in its path resolved."""
    try:
        return file.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        return False


def docstring_of(node: Documented) -> ast.Expr | None:
    """Return the statement that is the docstring of *node*, None when it has none."""
    if node.body and isinstance(node.body[0], ast.Expr):
        value = node.body[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return node.body[0]
    return None


def inner_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements right inside *node*, and the handlers and cases that hold some; no expressions."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        inner = getattr(node, name, None)
        if isinstance(inner, list):
            yield from inner


def _read(
    root: Path, path: str, having: "re.Pattern[str] | None"
) -> SourceFile | Unparsed | None:
    file = root / path
    try:
        if not is_below(root, file) or not file.is_file():
            # It is gone since it was found, or was never there: whoever asks may name any path.
            return None
        size = file.stat().st_size
        if size > LARGEST:
            return Unparsed(
                path=path, why=f"has {size:,} bytes, at most {LARGEST:,} are parsed"
            )
        text = read_text(file)
        if having is not None and not having.search(text):
            return None
        with warnings.catch_warnings():
            # What the compiler thinks of somebody's string literals is no word of ours.
            warnings.simplefilter("ignore")
            return SourceFile(path, text, ast.parse(text, path))
    except SyntaxError as error:
        return Unparsed(path=path, why=f"line {error.lineno or 1}: {error.msg}")
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return Unparsed(path=path, why=f"{type(error).__name__}: {error}")
