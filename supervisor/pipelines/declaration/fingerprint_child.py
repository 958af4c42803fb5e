"""The program of a child process that looks at files for pipelines: it answers each line of JSON with one.

Jobs come from clients, and disks may not answer: the parent kills it when it takes too long.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.pipelines.declaration.globs import matches
from tasklore.supervisor.pipelines.declaration.marks import (
    FingerprintBudget,
    file_marks,
)

#: Seconds after which it ends by itself, beyond those it is given: its parent may be gone.
_LATE_S = 2
#: Bytes of memory that it may have: some hundred thousand names.
_MOST_MEMORY = 1024**3
#: How far its parent, which serves, goes before it.
_NICE = 5
#: Bytes of a path, as the system takes them.
_LONGEST_PATH = 4096


def answer(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return what *job* asks for: the marks of each look, and by glob the first of `changed` that fits it.

    A look is globs, and marks that are known. An absolute path among `changed` is taken from the root.

    Raises:
        InvalidInput: the root lies below none of `roots`, or it takes too much; the message names field and cure.
    """
    budget = FingerprintBudget(*job["budget"])
    home = _resolve_root(job["root"], job["roots"])
    marks = list[dict[str, str]]()
    fresh = dict[str, str]()
    for globs, known in job["looks"]:
        marks.append(file_marks(home, globs, {**known, **fresh}, budget))
        fresh |= marks[-1]
    firsts: dict[str, str] = {}
    for path in job["changed"]:
        below = (
            str(Path(path).relative_to(home))
            if Path(path).is_relative_to(home)
            else str(Path(path))
        )
        for glob in job["globs"]:
            budget.spend()
            if glob not in firsts and matches(glob, below[:_LONGEST_PATH]):
                firsts[glob] = below
    return {"marks": marks, "changed": firsts}


def _resolve_root(root: str, roots: list[str]) -> Path:
    if "\0" in root or len(os.fsencode(root)) > _LONGEST_PATH:
        raise InvalidInput(
            f"root: {root[:100]!r} is not a valid path (no NUL, at most "
            f"{_LONGEST_PATH:,} bytes); give a folder"
        )
    home = os.path.realpath(root)
    if Path(home).is_symlink():
        raise InvalidInput(f"root: {root!r} is a link in a circle; give a folder")
    if not any(Path(home).is_relative_to(os.path.realpath(one)) for one in roots):
        raise InvalidInput(
            f"root: {root!r} lies below none of the folders that TASKLORE_PIPELINE_ROOTS names where the supervisor "
            "runs; give one that does, or add it there (`tasklore up` allows the folder it is started in)"
        )
    return Path(home)


def main() -> None:
    """Answer jobs from stdin until it ends."""
    os.nice(_NICE)
    # macOS maps more than this before the first line runs, and refuses; files and seconds stay bounded.
    if sys.platform != "darwin":
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    for line in sys.stdin.buffer:
        job = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, job["budget"][2] + _LATE_S)
        try:
            answered = answer(job)
        except (InvalidInput, OSError, ValueError) as error:
            answered = {"refused": str(error)}
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(answered), flush=True)  # noqa: T201  # its answer


if __name__ == "__main__":
    main()
