"""Environment variables: the name of a setting, those with our prefix that name none, and lists of folders."""

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

PREFIX = "TASKLORE_"

#: What a command that is a client of the API reads, behind the prefix: no settings, as it loads none.
OF_CLIENTS = frozenset(
    {
        "API_URL",
        "API_KEY",
        "API_CA_FILE",
        "OPERATIONS_URL",
        "OPERATIONS_KEY",
        "DIRECT",
    }
)
#: How alike a mistyped name must be to the one suggested, from 0 to 1.
_ALIKE = 0.6


def variable_of(name: str) -> str:
    """Return the environment variable of the setting *name*."""
    return f"{PREFIX}{name.upper()}"


def unknown_variables(
    environ: Mapping[str, str], settings: Iterable[str]
) -> dict[str, str | None]:
    """Return each variable with our prefix that names none of *settings*, with the nearest one that does, or None."""
    known = [*(name.upper() for name in settings), *OF_CLIENTS]
    ours = {
        name: name.upper().removeprefix(PREFIX)
        for name in sorted(environ)
        if name.upper().startswith(PREFIX)
    }
    strangers = {name: bare for name, bare in ours.items() if bare not in known}
    nearest = {
        name: difflib.get_close_matches(bare, known, n=1, cutoff=_ALIKE)
        for name, bare in strangers.items()
    }
    return {
        name: variable_of(found[0]) if found else None
        for name, found in nearest.items()
    }


def folders_in(folders: str) -> tuple[Path, ...]:
    """Return the folders that a list of paths names.

    Raises:
        ValueError: one is no whole path.
    """
    found = tuple(Path(folder) for folder in folders.split(os.pathsep) if folder)
    if not all(folder.is_absolute() for folder in found):
        raise ValueError(f"write whole paths, joined by {os.pathsep!r}")
    return found
