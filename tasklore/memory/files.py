"""`tasklore memory export|import`: a person's documents as JSON files."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contracts.errors import InvalidInput
from memory.documents.plans import resource_of
from tasklore.exits import OK, USAGE
from tasklore.memory.stores import UserMemory, meant_resource, stored_resource, user_memory
from tasklore.render.screen import complain, print_json, printable, say

#: How the name of a document begins that is of no kind; a mistyped word is not to become a new document.
_PREFIX = "resource_"


async def export_all(folder: Path, user: str, resource: str | None) -> None:
    """Write the documents of *user*, or one, into *folder*, a file each; `-` writes one to stdout.

    Raises:
        InvalidInput: *resource* is no document, *folder* cannot be written to, or several are to go to stdout.
        Unreachable: Redis does not answer.
    """
    is_stdout = str(folder) == "-"
    if is_stdout and resource is None:
        raise InvalidInput("stdout takes one document; say which with --resource")
    async with user_memory() as memory:
        if resource is not None:
            wanted = [await stored_resource(memory, user, resource)]
        else:
            documents = (await memory.documents.snapshot(user)).documents
            wanted = [one for one, document in documents.items() if document.revision]
        files = {one: await memory.documents.export_document(user, one) for one in wanted}
    if is_stdout:
        sys.stdout.buffer.write(files[wanted[0]])
        sys.stdout.buffer.flush()
        return
    if not files:
        say(f"{user!r} has no documents yet; nothing was written")
        return
    _write_all(folder, files)
    say(f"{len(files)} {'document' if len(files) == 1 else 'documents'} in {folder}")


def _write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one, content in files.items():
            (folder / f"{one}.json").write_bytes(content)
    except OSError as error:
        raise InvalidInput(
            f"FOLDER {str(folder)!r} cannot be written to ({error.strerror or error}); name another one"
        ) from error


async def import_all(files: Sequence[Path], user: str, resource: str | None, *, as_json: bool = False) -> int:
    """Put *files* in the place of documents of *user*, and return the exit code: unusable input when one was refused.

    Raises:
        InvalidInput: *user* names nobody, or *resource* no document.
        Unreachable: Redis does not answer.
    """
    if resource is not None and len(files) > 1:
        raise InvalidInput("--resource says what one file is; give one, or files that name themselves")
    taken: list[dict[str, Any]] = []
    async with user_memory() as memory:
        wanted = None if resource is None else await _own_name(memory, user, resource)
        for file in files:
            try:
                taken.append(await _import(memory, file, user, wanted, is_quiet=as_json))
            except InvalidInput as error:
                complain(f"{file}: {error}")
                taken.append({"file": str(file), "error": str(error)})
    if as_json:
        print_json(taken)
    return USAGE if any("error" in one for one in taken) else OK


async def _own_name(memory: UserMemory, user: str, word: str) -> str:
    """Return which document *word* means, which may be one that is not there yet."""
    documents = (await memory.documents.snapshot(user)).documents
    try:
        return meant_resource(word, memory.kinds, documents)
    except InvalidInput as error:
        if word.startswith(_PREFIX):
            return resource_of(word)
        raise InvalidInput(f"{error}, or {_PREFIX}... for a new one") from error


async def _import(memory: UserMemory, file: Path, user: str, resource: str | None, *, is_quiet: bool) -> dict[str, Any]:
    record = await memory.documents.import_document(user, read_file(file), at=datetime.now(UTC), resource=resource)
    revisions = {} if record is None else dict(record.revisions)
    if not is_quiet:
        become = ", ".join(f"{one} is at revision {number}" for one, number in revisions.items())
        print(printable(f"{file}: {become or 'as it is remembered already'}"), flush=True)
    return {"file": str(file), "plan_id": record.plan_id if record is not None else None, "revisions": revisions}


def read_file(file: Path) -> bytes:
    """Return the content of *file*.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot be read ({error.strerror or error}); name a file") from error
