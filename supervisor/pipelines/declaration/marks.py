"""Marks of the files, standards and decisions that a phase reads; a mark changes with its source.

The mark at `f:{path below the root}` has size, time of change and a digest of the content: a file of the same size and
time is not read again, and one of another time was touched, which counts too. A mark from another machine has no time:
there the content decides. Those at `s:{tag}` and `d:{tag}` are the project memory's, of standards and decisions.
"""

import fcntl
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG

from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.pipelines.declaration.globs import matches, reason_against

#: Files and folders that are passed on the way to those that match: a root that is a whole disk is a mistake.
MOST_PASSED = 200_000
#: Bytes that are read at a time.
_CHUNK = 1024 * 1024
#: Bytes of the path that macOS tells of an open file: MAXPATHLEN of its headers.
_MACOS_PATH = 1024

FILE = "f:"
STANDARD = "s:"
DESIGN = "d:"

_NOUNS = {FILE: "file", STANDARD: "standard", DESIGN: "design"}
#: Folders that change whenever somebody looks, and hold nothing that anybody wrote; a glob may still name them.
_PASSED_BY = {".git", ".hg", ".svn", "__pycache__"}
_MAGIC = re.compile(r"[*?\[]")


class FingerprintBudget:
    """The budget of one fingerprint: files that match, bytes to read, seconds from now on.

    Each check raises InvalidInput, which names the limit and the cure.
    """

    def __init__(
        self, files: int = 20_000, size: int = 1024**3, seconds: float = 10.0
    ) -> None:
        self._files = files
        self._bytes = size
        self._seconds = seconds
        self._left = size
        self._ends_at = time.monotonic() + seconds

    def check_files(self, number: int) -> None:
        """Return when *number* files are not too many."""
        if number > self._files:
            raise over_budget(f"more than {self._files:,} files match", "FILES")

    def spend(self, size: int = 0) -> None:
        """Note that *size* bytes were read; return when there is room for more, and time."""
        self._left -= size
        if self._left < 0:
            raise over_budget(
                f"more than {self._bytes:,} bytes would be read", "MAX_BYTES"
            )
        if time.monotonic() > self._ends_at:
            raise over_budget(
                f"looking at the files took more than {self._seconds:g} s", "S"
            )


def over_budget(spent: str, setting: str) -> InvalidInput:
    """Return the error of a fingerprint that needs more than *setting* allows."""
    cure = f"write narrower globs, or raise TASKLORE_FINGERPRINT_{setting} where the supervisor runs"
    return InvalidInput(f"reads_files: {spent}; {cure}")


def file_marks(
    root: Path,
    globs: Sequence[str],
    known: Mapping[str, str] | None = None,
    budget: FingerprintBudget | None = None,
) -> dict[str, str]:
    """Return the mark of each file below *root* that one of *globs* matches; *known* marks spare the reading.

    A link is followed only to a file below *root*. A folder that is a link is passed by unless a glob names it and it
    leads to one below *root*; so are those of version control. A disk may not answer: this is for a child process.

    Raises:
        InvalidInput: a glob leads out of *root*, or it takes more than the *budget*.
    """
    found: dict[str, str] = {}
    home = root.resolve()
    budget = budget or FingerprintBudget()
    for path in _matching(home, globs, budget):
        # A name that is no UTF-8 goes where only that can be kept.
        place = FILE + os.fsencode(path).decode("utf-8", "backslashreplace")
        mark = _mark_of(home, path, (known or {}).get(place), budget)
        if mark is not None:
            found[place] = mark
        budget.check_files(len(found))
    return found


def tag_marks(kind: str, marks: Mapping[str, str]) -> dict[str, str]:
    """Return *marks* of tags, of *kind* `STANDARD` or `DESIGN`, as marks beside those of files."""
    return {f"{kind}{tag}": mark for tag, mark in marks.items()}


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return what differs between the marks *before* and *after*, such as "file 'a.py' changed", sorted."""
    found = []
    # That a phase looked for files and found none is noted as a file without a name.
    for place in sorted((before.keys() | after.keys()) - {FILE}):
        old = before.get(place)
        new = after.get(place)
        noun = _NOUNS.get(place[:2], "mark")
        name = place[2:]
        if old is None:
            found.append(f"{noun} {name!r} is new")
        elif new is None:
            found.append(f"{noun} {name!r} is gone")
        elif old != new and not place.startswith(FILE):
            found.append(f"{noun} {name!r} changed")
        elif old != new and (what := _change_of(old, new)):
            found.append(f"{noun} {name!r} {what}")
    return found


def summarise(found: Sequence[str]) -> str:
    """Return the sentences of `changes` as one reason: the first three, and how many more."""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"{', '.join(found[:3])}{more}"


def without_times(marks: Mapping[str, str]) -> dict[str, str]:
    """Return *marks* as they serve on another machine, where the same files bear other times."""
    return {
        place: f"{mark.partition(':')[0]}::{mark.rpartition(':')[2]}"
        if place.startswith(FILE) and mark
        else mark
        for place, mark in marks.items()
    }


def _change_of(old: str, new: str) -> str:
    """Return what became of a file between two marks that differ, "" when nothing did."""
    if old.rpartition(":")[2] != new.rpartition(":")[2]:
        return "changed"
    return "was touched" if old.split(":")[1] and new.split(":")[1] else ""


def _mark_of(
    home: Path, path: str, known: str | None, budget: FingerprintBudget
) -> str | None:
    """Return the mark of the file *path*, None when it is gone again, no file, or a link that leads out."""
    full = home / path
    try:
        if full.is_symlink() and not _is_inside(home, full):
            return None
        stat = full.stat()
        # What a pipe or a device tells is no content, and reading one may never end.
        if not S_ISREG(stat.st_mode):
            return None
        seen = f"{stat.st_size}:{stat.st_mtime_ns}:"
        if known is not None and known.startswith(seen):
            return known
        # It may have become one by now: opening it must not wait.
        with os.fdopen(
            os.open(full, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0
        ) as file:
            # Or have become a link, as may a folder on the way: what is open has one place.
            is_file = S_ISREG(os.fstat(file.fileno()).st_mode)
            if not is_file or not _is_inside(home, _place_of(file.fileno(), full)):
                return None
            digest = hashlib.blake2b(digest_size=16)
            while chunk := file.read(_CHUNK):
                budget.spend(len(chunk))
                digest.update(chunk)
            return seen + digest.hexdigest()
    except OSError:
        return None


def _place_of(descriptor: int, named: Path) -> Path:
    """Return where the open file *descriptor* lies; *named* where the system does not say."""
    opened = Path(f"/proc/self/fd/{descriptor}")
    if sys.platform == "darwin":
        found = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(_MACOS_PATH))
        opened = Path(os.fsdecode(found.rstrip(b"\0")))
    return opened if opened.exists() else named


def _is_inside(home: Path, path: Path) -> bool:
    """Return whether *path* lies below *home*, wherever links lead; one in a circle leads to itself."""
    return Path(os.path.realpath(path)).is_relative_to(home)


def _matching(
    home: Path, globs: Sequence[str], budget: FingerprintBudget
) -> Iterator[str]:
    """Yield the path of each file below *home* that matches, in order; a path may come twice."""
    passed = 0
    for start in _starts(globs):
        if not _is_inside(home, home / start):
            # A folder on the way to it is a link that leads out.
            continue
        for folder, folders, files in os.walk(home / start):
            folders[:] = sorted(
                one
                for one in folders
                if one not in _PASSED_BY or any(one in glob for glob in globs)
            )
            inside = Path(folder).relative_to(home).as_posix()
            passed += len(files) + 1
            if passed > MOST_PASSED:
                raise InvalidInput(
                    f"reads_files: more than {MOST_PASSED:,} files and folders lie where {', '.join(globs)} leads; "
                    "begin the globs with a folder, or choose a nearer root"
                )
            budget.spend()
            for name in sorted(files):
                path = name if inside == "." else f"{inside}/{name}"
                budget.spend()
                if any(matches(glob, path) for glob in globs):
                    yield path


def _starts(globs: Sequence[str]) -> list[str]:
    """Return the folders to walk: for each glob the part before its first wildcard, none below another.

    Raises:
        InvalidInput: a glob leads out of the root.
    """
    fixed = set()
    for glob in globs:
        if why := reason_against(glob):
            raise InvalidInput(f"reads_files {glob!r} {why}")
        steps = glob.split("/")[:-1]
        magic = next(
            (at for at, step in enumerate(steps) if _MAGIC.search(step)), len(steps)
        )
        fixed.add("/".join(steps[:magic]))
    if "" in fixed:
        return [""]
    return sorted(
        one for one in fixed if not any(one.startswith(f"{other}/") for other in fixed)
    )
