"""`tasklore memory migrate`: a folder of older Markdown memories turned into documents."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tasklore.commands.exits import OK
from tasklore.commands.memory.calls import send_line
from tasklore.commands.memory.files import read_text
from tasklore.commands.pictures import memory_migration
from tasklore.commands.render.screen import complain, print_json, say
from tasklore.contracts.errors import InvalidInput

#: The names of older files, and the end of the name that a migrated original gets.
_OLDER = "resource_*.md"
_ARCHIVE = ".archive"


def migrate_folder(
    user: str, folder: Path, *, is_dry: bool, is_json: bool, scope: str = "user"
) -> int:
    """Turn every `resource_*.md` of *folder* into a document of *user* and rename it; *is_dry* only shows changes.

    A file is renamed once its document is stored. One whose document holds something else already is left alone:
    neither of the two may be lost. Returns the exit code: failed when a file was left.
    """
    files = list_older_files(folder)
    if not files:
        say(
            f"nothing to migrate in {folder}: every resource_*.md has its {_ARCHIVE} name already"
        )
        return OK
    done = []
    given = {"user": user, "scope": scope, "dry_run": is_dry}
    for file in files:
        one = _migrate(file, given)
        done.append(one)
        if one["error"] is not None:
            complain(f"{file}: {one['error']}")
        elif not is_json:
            print(memory_migration.draw({"files": [one]}), flush=True)
    view = {"user": user, "files": done}
    if is_json:
        print_json(view)
    return memory_migration.code_of(view)


def list_older_files(folder: Path) -> list[Path]:
    """Return the files that are to be migrated; none when all of them have been.

    Raises:
        InvalidInput: *folder* cannot be read, or never held such a file.
    """
    try:
        names = [file.name for file in folder.iterdir()]
    except OSError as error:
        msg = f"FOLDER {str(folder)!r} cannot be read ({error.strerror or error}); name the one with the older files"
        raise InvalidInput(msg) from error
    files = sorted(folder / name for name in names if fnmatchcase(name, _OLDER))
    if not files and not any(fnmatchcase(name, _OLDER + _ARCHIVE) for name in names):
        raise InvalidInput(
            f"FOLDER {str(folder)!r} has no {_OLDER}; name the one where the older files lie"
        )
    return files


def _migrate(file: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what became of *file*, which is sent with the values *given*."""
    archive = file.with_name(file.name + _ARCHIVE)
    try:
        _demand_room(file, archive)
        changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
        line = {
            "file": file.name,
            "content": read_text(file).removeprefix("\ufeff"),
            "changed": changed.isoformat(),
        }
        view = send_line("migrate", given, line)
        one: dict[str, Any] = dict(view["files"][0])
        if one["error"] is None and not given["dry_run"]:
            file.rename(archive)
    except OSError as error:
        return _refused(
            file,
            f"stored, but it cannot be renamed ({error.strerror or error}); mend that and do this again",
        )
    except InvalidInput as error:
        return _refused(file, str(error))
    return one


def _demand_room(file: Path, archive: Path) -> None:
    """Return when *file* can be renamed to *archive*.

    Raises:
        InvalidInput: it cannot.
    """
    if archive.exists():
        raise InvalidInput(
            f"{archive.name} is there already; move it away, since the original is to have that name"
        )
    if not os.access(file.parent, os.W_OK):
        raise InvalidInput(
            f"{str(file.parent)!r} does not let the file be renamed; make it writable"
        )


def _refused(file: Path, error: str) -> dict[str, Any]:
    return {"file": file.name, "state": "refused", "error": error}
