"""The project as files: its rooms, its modules and their syntax trees."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: The folders of the one package that is shipped, from the top down; all but the first are linked into it.
ROOMS = (
    "tasklore",
    "supervisor",
    "workers",
    "memory",
    "runtime",
    "contracts",
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def modules(*folders: str) -> list[Path]:
    """Return every module in *folders*, by path; of every room when none is named."""
    return sorted(
        file for folder in folders or ROOMS for file in (ROOT / folder).rglob("*.py")
    )


def name_of(file: Path) -> str:
    """Return *file* as a reader would point at it: relative to the project."""
    return file.relative_to(ROOT).as_posix()


@cache
def tree_of(file: Path) -> ast.Module:
    """Return the syntax tree of *file*, read once a process; nobody changes it."""
    return ast.parse(file.read_text("utf-8"), str(file))


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield every function and method in *tree*, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def docstring_of(node: ast.AST) -> ast.Constant | None:
    """Return the constant that is the docstring of *node*, None when it has none."""
    if (
        isinstance(node, _DOCUMENTED)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    ):
        value = node.body[0].value
        return (
            value
            if isinstance(value, ast.Constant) and isinstance(value.value, str)
            else None
        )
    return None


def strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield every string that the code uses, pieces of f-strings too and docstrings not."""
    docstrings = {id(docstring_of(node)) for node in ast.walk(tree)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node


def project_files() -> Iterator[Path]:
    """Yield every text file that belongs to the project; nothing that tools leave behind."""
    yield from (
        file
        for file in sorted(ROOT.iterdir())
        if file.is_file() and not _is_left_behind(file)
    )
    for folder in sorted(ROOT.iterdir()):
        if folder.is_dir() and not _is_left_behind(folder):
            for file in sorted(folder.rglob("*")):
                if file.is_file() and not any(
                    _is_left_behind(part) for part in _parts(file)
                ):
                    yield file


def _parts(file: Path) -> list[Path]:
    return [Path(part) for part in file.relative_to(ROOT).parts]


def _is_left_behind(path: Path) -> bool:
    own = (".ci", ".gitignore", ".importlinter", ".dockerignore", ".github")
    return (path.name.startswith(".") and path.name not in own) or path.name in (
        "__pycache__",
        "dist",
    )
