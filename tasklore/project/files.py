"""`tasklore project decide|standard|export|import`: what goes into a project's memory, and its file of JSON lines."""

import os
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from contracts.errors import InvalidInput
from memory.projects.lines import as_document, read_line, write_line
from memory.projects.project import Kind, ProjectLoadReport, Record
from memory.projects.records import RefusedRecord
from tasklore.exits import OK, USAGE
from tasklore.project.stores import meant_project, open_projects
from tasklore.project.views import print_documents
from tasklore.render.screen import complain, patience, print_json, printable, say

#: Lines that are refused and named one by one; the others are only counted.
_NAMED = 10


async def note(
    project: str | None,
    kind: Kind,
    text: str,
    *,
    tags: tuple[str, ...],
    by: str | None,
    supersedes: str | None,
    as_json: bool,
) -> None:
    """Append a record and say which it is.

    Raises:
        InvalidInput: a part of it can be none, or it is not clear which project is meant.
        Unreachable: Redis does not answer.
    """
    async with open_projects() as memory, patience("noting it"):
        name = await meant_project(memory, project, may_be_new=True)
        is_new = not await memory.search(name, limit=1)
        record = await memory.append(name, kind, text, tags=tags, by=by, supersedes=supersedes)
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
        InvalidInput: the file is there and *is_forced* is not said, or it cannot be written.
        Unreachable: Redis does not answer.
    """
    path = Path(file)
    async with open_projects() as memory, patience("writing the records"):
        name = await meant_project(memory, project)
        if file == "-":
            await _write_stdout(memory.export(name))
            return
        _demand_free(path, is_forced=is_forced)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            count = await _write(unfinished, memory.export(name))
            unfinished.replace(path)
        except OSError as error:
            raise InvalidInput(f"{file!r} cannot be written ({error.strerror or error}); name another file") from error
        finally:
            unfinished.unlink(missing_ok=True)
    say(f"{count:,} {'record' if count == 1 else 'records'} of project {name} in {printable(file)}")


async def import_records(project: str | None, file: str, *, as_json: bool) -> int:
    """Add the records of *file* (`-` reads stdin) to a project, say what came of them, and return the exit code.

    That is the one of unusable input when one was refused; the others are there.

    Raises:
        InvalidInput: the file cannot be read, or it is not clear which project is meant.
        Unreachable: Redis does not answer.
    """
    records, unread = _read(file)
    async with open_projects() as memory, patience("reading the records"):
        name = await meant_project(memory, project, may_be_new=True)
        loaded = await memory.load(name, records)
    report = ProjectLoadReport(loaded.added, loaded.known, (*unread, *loaded.refused))
    if as_json:
        refused = [{"record_id": one.record_id, "why": one.why} for one in report.refused]
        print_json({"project_id": name, "added": report.added, "known": report.known, "refused": refused})
    else:
        _tell(name, report)
    return USAGE if report.refused else OK


def _tell(name: str, report: ProjectLoadReport) -> None:
    known = f"; {report.known:,} were there already" if report.known else ""
    print(f"{report.added:,} {'record' if report.added == 1 else 'records'} added to project {name}{known}")
    for one in report.refused[:_NAMED]:
        complain(printable(f"{one.record_id}: {one.why}"))
    if len(report.refused) > _NAMED:
        complain(f"and {len(report.refused) - _NAMED:,} more were refused; --json names them all")


def _demand_free(path: Path, *, is_forced: bool) -> None:
    if path.exists() and not is_forced:
        raise InvalidInput(f"{str(path)!r} is there already; say --force to write over it, or name another file")


async def _write_stdout(records: AsyncIterator[Record]) -> None:
    async for record in records:
        sys.stdout.buffer.write(write_line(record))
    sys.stdout.buffer.flush()


async def _write(path: Path, records: AsyncIterator[Record]) -> int:
    count = 0
    with path.open("wb") as opened:
        async for record in records:
            opened.write(write_line(record))
            count += 1
        opened.flush()
        os.fsync(opened.fileno())
    return count


def _read(file: str) -> tuple[list[Record], list[RefusedRecord]]:
    """Return the records of *file*, and its lines that are none."""
    try:
        if file == "-":
            return _read_lines(sys.stdin.buffer)
        with Path(file).open("rb") as opened:
            return _read_lines(opened)
    except OSError as error:
        raise InvalidInput(f"{file!r} cannot be read ({error.strerror or error}); name a file") from error


def _read_lines(lines: Iterable[bytes]) -> tuple[list[Record], list[RefusedRecord]]:
    records, unread = list[Record](), list[RefusedRecord]()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            records.append(read_line(line))
        except InvalidInput as error:
            unread.append(RefusedRecord(f"line {number}", str(error)))
    return records, unread
