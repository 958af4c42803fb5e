"""`tasklore memory migrate`: older Markdown memories turned into documents."""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import JsonValue

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.memory.files import read_file
from tasklore.commands.memory.lines import one_line
from tasklore.commands.memory.stores import UserMemory, user_memory
from tasklore.commands.render.screen import complain, printable, styled
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.files import seed_files
from tasklore.memory.documents.files.older_markdown import OlderDocument, read
from tasklore.memory.documents.items import METADATA, leaf_values
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Document

#: The names of older files, and the end of the name that a migrated original gets.
_OLDER = "resource_*.md"
_ARCHIVE = ".archive"


@dataclass(frozen=True, slots=True)
class _Move:
    """One older file, the document made of it, and the document in its place so far."""

    file: Path
    made: OlderDocument
    now: Document | None

    @property
    def archive(self) -> Path:
        return self.file.with_name(self.file.name + _ARCHIVE)

    @property
    def is_stored(self) -> bool:
        """Whether the document equals the file: an earlier run stored it and could not rename the file."""
        return (
            self.now is not None
            and self.now.revision > 0
            and _lines(self.now.body) == _lines(self.made.body)
        )


async def migrate_folder(folder: Path, user: str, *, is_dry: bool) -> int:
    """Import every `resource_*.md` of *folder* for *user* and rename it; *is_dry* only shows what would change.

    A file is renamed once its document is stored. One whose document holds something else already is left alone:
    neither of the two may be lost. Returns the exit code: failed when a file was left.
    """
    files = list_older_files(folder)
    if not files:
        print(
            f"Nothing to migrate in {folder}: every resource_*.md has its {_ARCHIVE} name already."
        )
        return OK
    left = 0
    async with user_memory() as memory:
        for file in files:
            try:
                made = read_older(file, memory.kinds)
                now = (
                    await memory.documents.snapshot(user, [made.resource_id])
                ).documents.get(made.resource_id)
                move = _Move(file, made, now)
                _check_move(move, user)
                if is_dry:
                    _show(move)
                else:
                    await _migrate(memory, user, move)
                for line in made.unparsed:
                    where = f"line {line.line} is kept at {line.kept_at} as it is written ({line.why})"
                    print(f"  {styled(f'{where}: {one_line(line.text)}', 'yellow')}")
            except InvalidInput as error:
                complain(f"{file}: {error}")
                left += 1
    return FAILED if left else OK


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


def read_older(file: Path, kinds: Kinds) -> OlderDocument:
    """Return the document in *file*; an entry without a date is of the day on which the file was last changed.

    Raises:
        InvalidInput: it cannot be read, or is no UTF-8.
    """
    try:
        text = read_file(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"byte {error.start} is no UTF-8; save the file as UTF-8"
        ) from error
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
    return read(text, kinds, name=file.name, added=changed)


def _check_move(move: _Move, user: str) -> None:
    if (
        move.now is not None
        and move.now.revision
        and any(leaf_values(move.now.body))
        and not move.is_stored
    ):
        raise InvalidInput(
            f"{move.made.resource_id} of {user!r} holds something else already (revision {move.now.revision}), which "
            "would be replaced; export and merge it by hand, or migrate into another user"
        )
    if move.archive.exists():
        raise InvalidInput(
            f"{move.archive.name} is there already; move it away, since the original is to have that name"
        )


async def _migrate(memory: UserMemory, user: str, move: _Move) -> None:
    if not os.access(move.file.parent, os.W_OK):
        raise InvalidInput(
            f"{str(move.file.parent)!r} does not let the file be renamed; make it writable"
        )
    if not move.is_stored:
        content = seed_files.write(move.made.body)
        await memory.documents.import_document(
            user,
            content,
            at=datetime.now(UTC),
            resource=move.made.resource_id,
            by="migration",
        )
    try:
        move.file.rename(move.archive)
    except OSError as error:
        msg = f"stored, but it cannot be renamed ({error.strerror or error}); mend that and do this again"
        raise InvalidInput(msg) from error
    count = sum(1 for _ in leaf_values(move.made.body))
    entries = "1 entry" if count == 1 else f"{count} entries"
    print(
        f"{styled(move.file.name, 'bold')} -> {move.made.resource_id}: {entries}; kept as {move.archive.name}"
    )


def _show(move: _Move) -> None:
    """Print the difference between the document so far and the one made of the file."""
    before = _lines(move.now.body if move.now is not None and move.now.revision else {})
    after = _lines(move.made.body)
    names = (
        f"{move.made.resource_id} as it is",
        f"{move.made.resource_id} from {move.file.name}",
    )
    if before == after:
        print(
            f"{styled(move.file.name, 'bold')}: {move.made.resource_id} is that already; only its name would change"
        )
    for line in difflib.unified_diff(before, after, *names, lineterm=""):
        style = (
            "green" if line.startswith("+") else "red" if line.startswith("-") else ""
        )
        print(styled(printable(line), style) if style else printable(line))


def _lines(body: Mapping[str, JsonValue]) -> list[str]:
    return (
        seed_files.write(
            {name: value for name, value in body.items() if name != METADATA}
        )
        .decode()
        .splitlines()
    )
