"""`tasklore memory migrate`: older Markdown memories turned into documents."""

import difflib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from contracts.errors import InvalidInput, TaskloreError
from memory.documents.files import seed_files
from memory.documents.files.older_markdown import OlderDocument, Unparsed, read
from memory.documents.items import METADATA, leaf_values
from memory.documents.kinds import Kinds
from memory.documents.plans import Document
from tasklore.exits import FAILED, OK
from tasklore.memory.files import read_file
from tasklore.memory.lines import one_line
from tasklore.memory.stores import UserMemory, user_memory
from tasklore.render.screen import complain, printable, styled

#: What older files are called.
_OLDER = "resource_*.md"
#: What a migrated original is called afterwards.
_ARCHIVE = ".archive"


@dataclass(frozen=True, slots=True)
class _Move:
    """One older file, what it became, and what is remembered in its place so far."""

    file: Path
    made: OlderDocument
    now: Document | None

    @property
    def archive(self) -> Path:
        return self.file.with_name(self.file.name + _ARCHIVE)

    @property
    def is_stored(self) -> bool:
        """Whether the document is what the file says: an earlier run stored it and could not rename the file."""
        return self.now is not None and self.now.revision > 0 and _lines(self.now.body) == _lines(self.made.body)


async def migrate_folder(folder: Path, user: str, *, is_dry: bool) -> int:
    """Import every `resource_*.md` of *folder* for *user* and rename it; *is_dry* only shows what would change.

    A file is renamed once its document is stored. One whose document holds something else already is left alone:
    neither of the two may be lost. Returns the exit code: failed when a file was left.

    Raises:
        InvalidInput: *folder* is none, or never held such a file.
        Unreachable: Redis does not answer.
    """
    files = _files_of(folder)
    if not files:
        print(f"Nothing to migrate in {folder}: every resource_*.md has its {_ARCHIVE} name already.")
        return OK
    left = 0
    async with user_memory() as memory:
        for file in files:
            try:
                move = await _planned(memory, user, file)
                if is_dry:
                    _show(move)
                else:
                    await _migrate(memory, user, move)
            except TaskloreError as error:
                if not isinstance(error, InvalidInput):
                    raise
                complain(f"{file}: {error}")
                left += 1
    return FAILED if left else OK


def _files_of(folder: Path) -> list[Path]:
    """Return the files that are to be migrated; none when all of them have been."""
    try:
        names = [file.name for file in folder.iterdir()]
    except OSError as error:
        msg = f"FOLDER {str(folder)!r} cannot be read ({error.strerror or error}); name the one with the older files"
        raise InvalidInput(msg) from error
    files = sorted(folder / name for name in names if fnmatchcase(name, _OLDER))
    if not files and not any(fnmatchcase(name, _OLDER + _ARCHIVE) for name in names):
        raise InvalidInput(f"FOLDER {str(folder)!r} has no {_OLDER}; name the one where the older files lie")
    return files


def _read(file: Path, kinds: Kinds) -> OlderDocument:
    """Return the document in *file*; what has no date is of the day on which the file was last changed."""
    try:
        text = read_file(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start} is no UTF-8; save the file as UTF-8") from error
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
    return read(text, kinds, name=file.name, added=changed)


async def _planned(memory: UserMemory, user: str, file: Path) -> _Move:
    made = _read(file, memory.kinds)
    now = (await memory.documents.snapshot(user, [made.resource_id])).documents.get(made.resource_id)
    move = _Move(file, made, now)
    if now is not None and now.revision and any(leaf_values(now.body)) and not move.is_stored:
        raise InvalidInput(
            f"{made.resource_id} of {user!r} holds something else already (revision {now.revision}), which would be "
            "replaced; export and merge it by hand, or migrate into another user"
        )
    if move.archive.exists():
        raise InvalidInput(
            f"{move.archive.name} is there already; move it away, since the original is to have that name"
        )
    return move


async def _migrate(memory: UserMemory, user: str, move: _Move) -> None:
    if not os.access(move.file.parent, os.W_OK):
        raise InvalidInput(f"{str(move.file.parent)!r} does not let the file be renamed; make it writable")
    if not move.is_stored:
        content = seed_files.write(move.made.body)
        await memory.documents.import_document(
            user, content, at=datetime.now(UTC), resource=move.made.resource_id, by="migration"
        )
    try:
        move.file.rename(move.archive)
    except OSError as error:
        msg = f"stored, but it cannot be renamed ({error.strerror or error}); mend that and do this again"
        raise InvalidInput(msg) from error
    count = sum(1 for _ in leaf_values(move.made.body))
    entries = "1 entry" if count == 1 else f"{count} entries"
    print(f"{styled(move.file.name, 'bold')} -> {move.made.resource_id}: {entries}; kept as {move.archive.name}")
    _list(move.made.unparsed)


def _show(move: _Move) -> None:
    """Print what the document would be against what it is."""
    before = _lines(move.now.body if move.now is not None and move.now.revision else {})
    after = _lines(move.made.body)
    names = f"{move.made.resource_id} as it is", f"{move.made.resource_id} from {move.file.name}"
    if before == after:
        print(f"{styled(move.file.name, 'bold')}: {move.made.resource_id} is that already; only its name would change")
    for line in difflib.unified_diff(before, after, *names, lineterm=""):
        style = "green" if line.startswith("+") else "red" if line.startswith("-") else ""
        print(styled(printable(line), style) if style else printable(line))
    _list(move.made.unparsed)


def _lines(body: object) -> list[str]:
    if not isinstance(body, dict):
        return []
    return seed_files.write({name: value for name, value in body.items() if name != METADATA}).decode().splitlines()


def _list(unparsed: Sequence[Unparsed]) -> None:
    for line in _unread(unparsed):
        print(f"  {styled(line, 'yellow')}")


def _unread(unparsed: Sequence[Unparsed]) -> Iterator[str]:
    for one in unparsed:
        yield f"line {one.line} is kept at {one.kept_at} as it is written ({one.why}): {one_line(one.text)}"
