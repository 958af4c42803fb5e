"""`tasklore session export|import`: a session as a JSON file."""

import json
import sys
from pathlib import Path
from typing import Any

from contracts.errors import InvalidInput
from contracts.identifiers import checked_name
from memory.sessions.session import SessionLoadReport
from tasklore.exits import OK, USAGE
from tasklore.pipeline.stores import open_stores
from tasklore.render.screen import complain, patience, print_json, printable, say
from tasklore.render.words import count_of
from tasklore.session.views import root_of

#: Bytes of a file that is read: far above a session whose entries are as large as they may be, below what fills memory.
MAX_FILE = 1024**3


async def export_file(session_id: str, file: str | None, *, is_forced: bool) -> None:
    """Write the session to *file*: `-` is stdout, None `agentdb-{session_id}.json` in the current folder.

    Raises:
        UnknownSession: there is none.
        InvalidInput: the file is there and *is_forced* is not said, or it cannot be written.
        Unreachable: Redis does not answer.
    """
    path = Path(f"agentdb-{checked_name(session_id, 'SESSION')}.json" if file is None else file)
    if file != "-":
        demand_free(path, is_forced=is_forced)
    async with open_stores("tasklore-session") as stores, patience("reading the session"):
        await root_of(stores, session_id)
        document = await stores.cache.export(session_id)
    if file == "-":
        print_json(document)
        return
    write_json(path, document, is_forced=is_forced)
    say(f"{count_of(len(document['cache']), 'entry')} in {path}")


async def import_file(file: Path, session_id: str | None, *, as_json: bool) -> int:
    """Make the session that *file* holds, `-` reads stdin, print what became of its entries, return the exit code.

    That is the one of unusable input when an entry was refused; the others are there, and without any there is no
    session.

    Raises:
        InvalidInput: it is no such file, an entry cannot be taken, or a session of that id is there.
        Unreachable: Redis does not answer.
    """
    name = None if session_id is None else checked_name(session_id, "--session")
    document = read_json(file)
    if not isinstance(document.get("cache"), dict):
        raise InvalidInput(f"{_called(file)} is no file of a session; write one with `tasklore session export`")
    async with open_stores("tasklore-session") as stores, patience("writing the session"):
        report = await stores.cache.load(document, name)
    if as_json:
        print_json(
            {
                "session_id": report.session_id,
                "loaded": report.loaded,
                "expired": list(report.expired),
                "refused": dict(report.refused),
            }
        )
    else:
        _tell(report, file)
    return USAGE if report.refused else OK


def _tell(report: SessionLoadReport, file: Path) -> None:
    if report.loaded or not report.refused:
        print(f"{count_of(report.loaded, 'entry')} in session {report.session_id}.")
    if report.expired:
        print(f"{count_of(len(report.expired), 'entry')} left out, as their time is over:")
        print("\n".join(f"  {printable(key)}" for key in report.expired))
    for key, why in report.refused.items():
        complain(f"{printable(key)}: {printable(why)}")
    if report.refused and not report.loaded:
        complain(f"no entry can be taken, so no session was made; mend {_called(file)} as said, and import it again")


def demand_free(path: Path, *, is_forced: bool) -> None:
    """Return when *path* may be written.

    Raises:
        InvalidInput: something is there, and writing over it was not asked for.
    """
    if path.exists() and not is_forced:
        raise InvalidInput(f"{str(path)!r} is there already; say --force to write over it, or name another file")


def write_json(path: Path, document: Any, *, is_forced: bool) -> None:
    """Write *document* as a JSON file; what is there is written over only when *is_forced*.

    Raises:
        InvalidInput: it is there, or cannot be written.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False)
    try:
        with path.open("w" if is_forced else "x", encoding="utf-8") as opened:
            opened.write(f"{text}\n")
    except FileExistsError as error:
        msg = f"{str(path)!r} is there already; say --force to write over it, or name another file"
        raise InvalidInput(msg) from error
    except OSError as error:
        msg = f"{str(path)!r} cannot be written ({error.strerror or error}); name another file"
        raise InvalidInput(msg) from error


def read_json(file: Path) -> dict[str, Any]:
    """Return the JSON object that *file* holds, `-` reads stdin.

    Raises:
        InvalidInput: it cannot be read, or is none; the message names the file and the place.
    """
    try:
        if str(file) == "-":
            content = sys.stdin.buffer.read(MAX_FILE + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            raise InvalidInput(f"{_called(file)} is larger than {MAX_FILE // 1024**2:,} MiB; it cannot be read")
        document = json.loads(content)
    except OSError as error:
        raise InvalidInput(f"{_called(file)} cannot be read ({error.strerror or error}); name a file") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{_called(file)} is no JSON ({error}); mend it") from error
    if not isinstance(document, dict):
        raise InvalidInput(f"{_called(file)} is no JSON object; write one with `tasklore session export`")
    return document


def _called(file: Path) -> str:
    return "stdin" if str(file) == "-" else repr(str(file))
