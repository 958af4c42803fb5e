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
#: Settings of 0.2 that nobody had a reason to change, behind the prefix, and what each is now.
REMOVED = {
    "PUBLISH_DEADLINE_S": "a constant: an unstored message is published again for 240 s",
    "TURNS_KEEP_DAYS": "a constant: a learned turn is known for 7 days",
    "SWEEP_S": "a constant: expired items and sessions are swept every 3600 s",
    "REDIS_MAX_CONNECTIONS": "a constant: 32 connections of a process to Redis",
    "LISTEN_LEASE_S": "TASKLORE_ACK_WAIT_S, which holds for turns and facts as for tasks",
    "LISTEN_ATTEMPTS": "TASKLORE_MAX_ATTEMPTS, or @agent.listen(attempts=...)",
    "LISTEN_BATCH_TURNS": "a constant: 8 turns of one person in one question",
    "LISTEN_LONGEST_S": "a constant: a turn waits 120 s for others at most",
    "ANALYSIS_LEASE_S": "TASKLORE_PIPELINE_LEASE_S, which holds for analyses as for runs",
    "LLM_EDITOR_MODEL": "of no use: no role of a model read it",
    "LLM_EDITOR_TEMPERATURE": "of no use: no role of a model read it",
    "LLM_SUPERVISOR_TEMPERATURE": "a constant: 0, or none with TASKLORE_LLM_TEMPERATURE=none",
    "LLM_FINDER_TEMPERATURE": "a constant: 0.1, or none with TASKLORE_LLM_TEMPERATURE=none",
}
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
    strangers = {
        name: bare
        for name, bare in ours.items()
        if bare not in known and bare not in REMOVED
    }
    nearest = {
        name: difflib.get_close_matches(bare, known, n=1, cutoff=_ALIKE)
        for name, bare in strangers.items()
    }
    return {
        name: variable_of(found[0]) if found else None
        for name, found in nearest.items()
    }


def removed_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return each variable that was a setting, with its successor."""
    return {
        name: REMOVED[bare]
        for name in sorted(environ)
        if name.upper().startswith(PREFIX)
        and (bare := name.upper().removeprefix(PREFIX)) in REMOVED
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
