"""`tasklore project decide|standard|export|import`: add records to a project, and its file of JSON lines."""

import contextlib
import os
import sys
from pathlib import Path

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.project.stores import choose_project, open_projects
from tasklore.commands.project.views import print_documents
from tasklore.commands.render.screen import (
    complain,
    patience,
    print_json,
    printable,
    say,
)
from tasklore.commands.render.words import count_of
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.projects.lines import as_document, read_line, write_line
from tasklore.memory.projects.project import Kind, Record
from tasklore.memory.projects.records import RefusedRecord

#: Refused lines that are listed; the others are only counted.
_MOST_LISTED = 10


async def add_record(
    project: str | None,
    kind: Kind,
    text: str,
    *,
    tags: tuple[str, ...],
    by: str | None,
    supersedes: str | None,
    as_json: bool,
) -> None:
    """Append a record and print its id.

    Raises:
        InvalidInput: a part of it cannot be taken, or the project is not clear.
        Unreachable: Redis does not answer.
    """
    async with open_projects() as memory, patience("noting it"):
        name = await choose_project(memory, project, may_be_new=True)
        is_new = not await memory.search(name, limit=1)
        record = await memory.append(
            name, kind, text, tags=tags, by=by, supersedes=supersedes
        )
    if as_json:
        print_documents({"project_id": name, **as_document(record)})
        return
    instead = f", in place of {supersedes}" if supersedes is not None else ""
    print(f"{record.record_id} in project {name}{instead}")
    if is_new:
        say(f"project {name} is new; `tasklore project list` shows all there are")


async def export_records(project: str | None, file: str, *, is_forced: bool) -> None:
    """Write every record of a project to *file*, oldest first, a line each; `-` is stdout.

    A file is there whole or not at all.

    Raises:
        InvalidInput: the file exists and *is_forced* is False, or it cannot be written.
        Unreachable: Redis does not answer.
    """
    path = Path(file)
    count = 0
    async with open_projects() as memory, patience("writing the records"):
        name = await choose_project(memory, project)
        if file == "-":
            async for record in memory.export(name):
                sys.stdout.buffer.write(write_line(record))
            sys.stdout.buffer.flush()
            return
        demand_free(path, is_forced=is_forced)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with unfinished.open("wb") as opened:
                async for record in memory.export(name):
                    opened.write(write_line(record))
                    count += 1
                opened.flush()
                os.fsync(opened.fileno())
            unfinished.replace(path)
        except OSError as error:
            raise InvalidInput(
                f"{file!r} cannot be written ({error.strerror or error}); name another file"
            ) from error
        finally:
            unfinished.unlink(missing_ok=True)
    say(f"{count_of(count, 'record')} of project {name} in {printable(file)}")


async def import_records(project: str | None, file: str, *, as_json: bool) -> int:
    """Add the records of *file* (`-` reads stdin) to a project, print the outcome, and return the exit code.

    A refused record makes it the code of unusable input; the others are added.

    Raises:
        InvalidInput: the file cannot be read, or the project is not clear.
        Unreachable: Redis does not answer.
    """
    records, unread = _read(file)
    async with open_projects() as memory, patience("reading the records"):
        name = await choose_project(memory, project, may_be_new=True)
        loaded = await memory.load(name, records)
    refused = (*unread, *loaded.refused)
    if as_json:
        listed = [{"record_id": one.record_id, "why": one.why} for one in refused]
        print_json(
            {
                "project_id": name,
                "added": loaded.added,
                "known": loaded.known,
                "refused": listed,
            }
        )
        return USAGE if refused else OK
    known = f"; {loaded.known:,} were there already" if loaded.known else ""
    print(f"{count_of(loaded.added, 'record')} added to project {name}{known}")
    for one in refused[:_MOST_LISTED]:
        complain(printable(f"{one.record_id}: {one.why}"))
    if len(refused) > _MOST_LISTED:
        complain(
            f"and {len(refused) - _MOST_LISTED:,} more were refused; --json names them all"
        )
    return USAGE if refused else OK


def _read(file: str) -> tuple[list[Record], list[RefusedRecord]]:
    """Return the records of *file*, and its lines that are no record."""
    records = list[Record]()
    unread = list[RefusedRecord]()
    try:
        with (
            contextlib.nullcontext(sys.stdin.buffer)
            if file == "-"
            else Path(file).open("rb") as lines
        ):
            for number, line in enumerate(lines, 1):
                try:
                    if line.strip():
                        records.append(read_line(line))
                except InvalidInput as error:
                    unread.append(RefusedRecord(f"line {number}", str(error)))
    except OSError as error:
        raise InvalidInput(
            f"{file!r} cannot be read ({error.strerror or error}); name a file"
        ) from error
    return records, unread


def demand_free(path: Path, *, is_forced: bool) -> None:
    """Return when *path* may be written.

    Raises:
        InvalidInput: it exists, and *is_forced* is False.
    """
    if path.exists() and not is_forced:
        raise InvalidInput(
            f"{str(path)!r} is there already; say --force to write over it, or name another file"
        )
