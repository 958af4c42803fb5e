"""Finding the files of a folder: bounded, in one order, and never out of it through a link."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from tasklore import Context, GiveUp
from tasklore.contracts.errors import InvalidInput

#: Folders that hold what tools make or fetch; nobody wrote it here, and it is most of what lies there.
SKIPPED = (
    ".*_cache",
    ".bzr",
    ".eggs",
    ".git",
    ".hg",
    ".hypothesis",
    ".idea",
    ".nox",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "*.egg-info",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)
#: Files that are looked at; a folder with more is cut there and says so.
MOST_FILES = 50_000
#: Folders below each other; deeper ones are left out, as they are in every project we have seen.
_DEEPEST = 40
#: What lies in every virtual environment, whatever its folder is called.
_ENVIRONMENT = "pyvenv.cfg"


@dataclass
class Walk:
    """The walk's result: `files` by path relative to the folder, in bytes; the numbers of links and folders left out.

    `is_cut` tells that there are more files, or deeper folders, than are looked at.
    """

    files: dict[str, int] = field(default_factory=dict)
    links: int = 0
    skipped: int = 0
    is_cut: bool = False


def root_of(folder: str) -> Path:
    """Return *folder* as a whole path, with every link in it resolved; it counts from where the worker was started.

    Raises:
        InvalidInput: it is none of a folder that is here and may be read.
    """
    try:
        root = Path(folder).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInput(
            f"folder {folder!r} is not on the worker's machine; correct it: {error}"
        ) from error
    if not root.is_dir():
        raise InvalidInput(
            f"folder {folder!r} is no folder but a file; give the folder it lies in"
        )
    if not os.access(root, os.R_OK | os.X_OK):
        raise InvalidInput(
            f"folder {folder!r} may not be read by the worker; give it the right to, or another folder"
        )
    return root


def walk(
    root: Path, skip: Sequence[str], context: Context, most: int = MOST_FILES
) -> Walk:
    """Return the files below *root*, ordered by path; *skip* are patterns of names left out beside our own."""
    found = Walk()
    waiting = [("", 0)]
    while waiting and not found.is_cut:
        demand_going_on(context)
        inner, depth = waiting.pop()
        below: list[tuple[str, int]] = []
        for entry in _entries(root / inner):
            path = f"{inner}{entry.name}"
            if entry.is_symlink():
                found.links += 1
            elif entry.is_dir(follow_symlinks=False):
                if _is_skipped(entry, skip):
                    found.skipped += 1
                elif depth < _DEEPEST:
                    below.append((f"{path}/", depth + 1))
                else:
                    found.is_cut = True
            elif entry.is_file(follow_symlinks=False) and not any(
                fnmatchcase(entry.name, one) for one in skip
            ):
                if len(found.files) >= most:
                    found.is_cut = True
                    break
                found.files[path] = entry.stat(follow_symlinks=False).st_size
        waiting += reversed(below)
    found.files = dict(sorted(found.files.items()))
    return found


def demand_going_on(context: Context) -> None:
    """Stop a thread whose task was called off.

    Raises:
        GiveUp: the task shall not go on.
    """
    if context.cancelled:
        raise GiveUp("the task was called off while it read files")


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            # Names that are no text cannot stand in a message.
            readable = [entry for entry in entries if entry.name.isprintable()]
    except OSError:
        # It vanished, or is not ours to read: what cannot be read has no health.
        return
    yield from sorted(readable, key=lambda entry: entry.name)


def _is_skipped(entry: "os.DirEntry[str]", skip: Sequence[str]) -> bool:
    if any(fnmatchcase(entry.name, pattern) for pattern in skip):
        return True
    if any(fnmatchcase(entry.name, pattern) for pattern in SKIPPED):
        # A package that is called `build` was written by somebody.
        return not Path(entry.path, "__init__.py").is_file()
    return Path(entry.path, _ENVIRONMENT).is_file()
