"""`tasklore memory export|import`: a person's documents as JSON files."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.memory.stores import (
    find_resource,
    find_stored_resource,
    user_memory,
)
from tasklore.commands.render.screen import complain, print_json, printable, say
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.plans import resource_of

#: How the name of a document begins that is of no kind; a mistyped word is not to become a new document.
_PREFIX = "resource_"


async def export_documents(folder: Path, user: str, resource: str | None) -> None:
    """Write the documents of *user*, or one, into *folder*, a file each; `-` writes one to stdout.

    Raises:
        InvalidInput: several documents are to go to stdout.
    """
    is_stdout = str(folder) == "-"
    if is_stdout and resource is None:
        raise InvalidInput("stdout takes one document; say which with --resource")
    async with user_memory() as memory:
        if resource is not None:
            wanted = [await find_stored_resource(memory, user, resource)]
        else:
            documents = (await memory.documents.snapshot(user)).documents
            wanted = [one for one, document in documents.items() if document.revision]
        files = {
            one: await memory.documents.export_document(user, one) for one in wanted
        }
    if is_stdout:
        sys.stdout.buffer.write(files[wanted[0]])
        sys.stdout.buffer.flush()
        return
    if not files:
        say(f"{user!r} has no documents yet; nothing was written")
        return
    write_files(folder, files)
    say(f"{len(files)} {'document' if len(files) == 1 else 'documents'} in {folder}")


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write *files*, by document, into *folder*.

    Raises:
        InvalidInput: *folder* cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one, content in files.items():
            (folder / f"{one}.json").write_bytes(content)
    except OSError as error:
        why = error.strerror or error
        raise InvalidInput(
            f"FOLDER {str(folder)!r} cannot be written to ({why}); name another one"
        ) from error


async def import_documents(
    files: Sequence[Path], user: str, resource: str | None, *, as_json: bool = False
) -> int:
    """Put *files* in the place of documents of *user*, and return the exit code: unusable input when one was refused.

    Raises:
        InvalidInput: *resource* means no document, or several files are given with it.
    """
    if resource is not None and len(files) > 1:
        raise InvalidInput(
            "--resource says what one file is; give one, or files that name themselves"
        )
    done: list[dict[str, Any]] = []
    async with user_memory() as memory:
        wanted = None
        if resource is not None:
            stored = (await memory.documents.snapshot(user)).documents
            try:
                wanted = find_resource(resource, memory.kinds, stored)
            except InvalidInput as error:
                if not resource.startswith(_PREFIX):
                    raise InvalidInput(
                        f"{error}, or {_PREFIX}... for a new one"
                    ) from error
                wanted = resource_of(resource)
        for file in files:
            try:
                now = datetime.now(UTC)
                content = read_file(file)
                record = await memory.documents.import_document(
                    user, content, at=now, resource=wanted
                )
            except InvalidInput as error:
                complain(f"{file}: {error}")
                done.append({"file": str(file), "error": str(error)})
                continue
            revisions = {} if record is None else dict(record.revisions)
            done.append(
                {
                    "file": str(file),
                    "plan_id": record and record.plan_id,
                    "revisions": revisions,
                }
            )
            if not as_json:
                become = ", ".join(
                    f"{one} is at revision {number}"
                    for one, number in revisions.items()
                )
                print(
                    printable(f"{file}: {become or 'as it is remembered already'}"),
                    flush=True,
                )
    if as_json:
        print_json(done)
    return USAGE if any("error" in one for one in done) else OK


def read_file(file: Path) -> bytes:
    """Return the content of *file*.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"cannot be read ({error.strerror or error}); name a file"
        ) from error
