"""What a phase reads beside its session, as marks that change when it does: files, standards and design.

A mark of a file is `f:{path below the root}` and says size, time of change and a digest of the content: where size and
time are as before the file is not read, and where only the time differs it was touched, which counts too. A mark that
comes from another machine has no time: there the content decides. `s:{tag}` and `d:{tag}` are what the project's memory
says of the standards and decisions with that tag.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG

from contracts.errors import InvalidInput
from supervisor.pipelines.globs import matches, unusable

#: Files that one phase may watch: their marks are some 2 MB, and reading them all takes seconds.
MOST_FILES = 20_000
#: Files that are passed on the way to them: a root that is a whole disk is a mistake.
MOST_PASSED = 200_000

FILE, STANDARD, DESIGN = "f:", "s:", "d:"

_NOUNS = {FILE: "file", STANDARD: "standard", DESIGN: "design"}
#: Folders that change whenever somebody looks, and hold nothing that anybody wrote; a glob may still name them.
_PASSED_BY = {".git", ".hg", ".svn", "__pycache__"}
_MAGIC = re.compile(r"[*?\[]")


def file_marks(root: Path, globs: Sequence[str], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the mark of each file below *root* that one of *globs* matches; *known* marks spare the reading.

    A link is followed only to a file that lies below *root* itself; a folder that is a link is passed by unless a glob
    names it and it leads to one below *root*, and so are those of version control. Where there is no such folder there
    is no file. Slow: for a thread.

    Raises:
        InvalidInput: a glob leads out of *root*, or there are more files than are watched.
    """
    found: dict[str, str] = {}
    home = root.resolve()
    for path in _matching(home, globs):
        place = FILE + path
        mark = _mark_of(home, path, (known or {}).get(place))
        if mark is not None:
            found[place] = mark
        if len(found) > MOST_FILES:
            raise InvalidInput(
                f"more than {MOST_FILES:,} files below {str(root)!r} match {', '.join(globs)}; write narrower globs"
            )
    return found


def tag_marks(kind: str, marks: Mapping[str, str]) -> dict[str, str]:
    """Return *marks* of tags, of *kind* `STANDARD` or `DESIGN`, as marks beside those of files."""
    return {f"{kind}{tag}": mark for tag, mark in marks.items()}


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return what differs between the marks *before* and *after*, such as "file 'a.py' changed", sorted."""
    found = []
    # That a phase looked for files and found none is noted as a file without a name.
    for place in sorted((before.keys() | after.keys()) - {FILE}):
        old, new = before.get(place), after.get(place)
        noun, name = _NOUNS.get(place[:2], "mark"), place[2:]
        if old is None:
            found.append(f"{noun} {name!r} is new")
        elif new is None:
            found.append(f"{noun} {name!r} is gone")
        elif old != new and not place.startswith(FILE):
            found.append(f"{noun} {name!r} changed")
        elif old != new and (what := _change_of(old, new)):
            found.append(f"{noun} {name!r} {what}")
    return found


def told(found: Sequence[str]) -> str:
    """Return *found*, what `changes` says, as one reason: the first three, and how many more."""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"{', '.join(found[:3])}{more}"


def without_times(marks: Mapping[str, str]) -> dict[str, str]:
    """Return *marks* as they serve on another machine, where the same files bear other times."""
    return {
        place: f"{mark.partition(':')[0]}::{mark.rpartition(':')[2]}" if place.startswith(FILE) and mark else mark
        for place, mark in marks.items()
    }


def _change_of(old: str, new: str) -> str:
    """Return what became of a file between two marks that differ, "" when nothing did."""
    if old.rpartition(":")[2] != new.rpartition(":")[2]:
        return "changed"
    return "was touched" if old.split(":")[1] and new.split(":")[1] else ""


def _mark_of(home: Path, path: str, known: str | None) -> str | None:
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
        with os.fdopen(os.open(full, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return seen + hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError:
        return None


def _is_inside(home: Path, path: Path) -> bool:
    """Return whether *path* lies below *home*, wherever links lead; one in a circle leads to itself."""
    return Path(os.path.realpath(path)).is_relative_to(home)


def _matching(home: Path, globs: Sequence[str]) -> Iterator[str]:
    """Yield the path of each file below *home* that matches, in order; a path may come twice."""
    passed = 0
    for start in _starts(globs):
        if not _is_inside(home, home / start):
            # A folder on the way to it is a link that leads out.
            continue
        for folder, folders, files in os.walk(home / start):
            folders[:] = sorted(one for one in folders if not _is_passed_by(one, globs))
            inside = Path(folder).relative_to(home).as_posix()
            passed += len(files)
            if passed > MOST_PASSED:
                raise InvalidInput(
                    f"more than {MOST_PASSED:,} files lie where {', '.join(globs)} leads below {str(home)!r}; "
                    "begin the globs with a folder, or choose a nearer root"
                )
            paths = (name if inside == "." else f"{inside}/{name}" for name in sorted(files))
            yield from (path for path in paths if any(matches(glob, path) for glob in globs))


def _is_passed_by(folder: str, globs: Iterable[str]) -> bool:
    return folder in _PASSED_BY and not any(folder in glob for glob in globs)


def _starts(globs: Sequence[str]) -> list[str]:
    """Return the folders to walk: for each glob the part before its first wildcard, none below another.

    Raises:
        InvalidInput: a glob leads out of the root.
    """
    fixed = set()
    for glob in globs:
        if why := unusable(glob):
            raise InvalidInput(f"reads_files {glob!r} {why}")
        steps = glob.split("/")[:-1]
        magic = next((at for at, step in enumerate(steps) if _MAGIC.search(step)), len(steps))
        fixed.add("/".join(steps[:magic]))
    return sorted(one for one in fixed if not any(one != other and _is_below(one, other) for other in fixed))


def _is_below(path: str, other: str) -> bool:
    return other == "" or path.startswith(f"{other}/")
