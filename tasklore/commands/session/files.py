"""`tasklore session export|import`: a session as a JSON file."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.pipeline.stores import open_stores
from tasklore.commands.render.screen import (
    complain,
    patience,
    print_json,
    printable,
    say,
)
from tasklore.commands.render.words import count_of
from tasklore.commands.session.views import find_root
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import checked_name

#: Bytes of a file that is read: far above a session whose entries are as large as they may be, below what fills memory.
MAX_FILE = 1024**3


async def export_file(session_id: str, file: str | None, *, is_forced: bool) -> None:
    """Write the session to *file*: `-` is stdout, None `agentdb-{session_id}.json` in the current folder.

    Raises:
        UnknownSession: there is no such session.
        InvalidInput: the file exists and *is_forced* is False, or it cannot be written.
        Unreachable: Redis does not answer.
    """
    path = Path(
        f"agentdb-{checked_name(session_id, 'SESSION')}.json" if file is None else file
    )
    if file != "-":
        demand_free(path, is_forced=is_forced)
    async with (
        open_stores("tasklore-session") as stores,
        patience("reading the session"),
    ):
        await find_root(stores, session_id)
        document = await stores.cache.export(session_id)
    if file == "-":
        print_json(document)
        return
    _write_json(path, document, is_forced=is_forced)
    say(f"{count_of(len(document['cache']), 'entry')} in {path}")


async def import_file(file: Path, session_id: str | None, *, as_json: bool) -> int:
    """Make a session from *file*, `-` reads stdin, print the outcome for its entries, return the exit code.

    A refused entry makes it the code of unusable input; the others are loaded, and without any there is no session.

    Raises:
        InvalidInput: it is no such file, an entry cannot be taken, or a session of that id exists.
        Unreachable: Redis does not answer.
    """
    name = None if session_id is None else checked_name(session_id, "--session")
    document = _read_json(file)
    label = "stdin" if str(file) == "-" else repr(str(file))
    if not isinstance(document.get("cache"), dict):
        raise InvalidInput(
            f"{label} is no file of a session; write one with `tasklore session export`"
        )
    async with (
        open_stores("tasklore-session") as stores,
        patience("writing the session"),
    ):
        report = await stores.cache.load(document, name)
    code = USAGE if report.refused else OK
    if as_json:
        outcome = {"session_id": report.session_id, "loaded": report.loaded}
        print_json(
            {
                **outcome,
                "expired": list(report.expired),
                "refused": dict(report.refused),
            }
        )
        return code
    if report.loaded or not report.refused:
        print(f"{count_of(report.loaded, 'entry')} in session {report.session_id}.")
    if report.expired:
        print(
            f"{count_of(len(report.expired), 'entry')} left out, as their time is over:"
        )
        print("\n".join(f"  {printable(key)}" for key in report.expired))
    for key, why in report.refused.items():
        complain(f"{printable(key)}: {printable(why)}")
    if report.refused and not report.loaded:
        complain(
            f"no entry can be taken, so no session was made; mend {label} as said, and import it again"
        )
    return code


def demand_free(path: Path, *, is_forced: bool) -> None:
    """Return when *path* may be written.

    Raises:
        InvalidInput: it exists, and *is_forced* is False.
    """
    if path.exists() and not is_forced:
        raise InvalidInput(
            f"{str(path)!r} is there already; say --force to write over it, or name another file"
        )


def _write_json(path: Path, document: Any, *, is_forced: bool) -> None:
    try:
        with path.open("w" if is_forced else "x", encoding="utf-8") as opened:
            opened.write(f"{json.dumps(document, indent=2, ensure_ascii=False)}\n")
    except FileExistsError:
        demand_free(path, is_forced=False)
    except OSError as error:
        msg = f"{str(path)!r} cannot be written ({error.strerror or error}); name another file"
        raise InvalidInput(msg) from error


def _read_json(file: Path) -> dict[str, Any]:
    """Return the JSON object in *file*, `-` reads stdin.

    Raises:
        InvalidInput: it cannot be read, or is no JSON object; the message names the file and the place.
    """
    label = "stdin" if str(file) == "-" else repr(str(file))
    try:
        with (
            contextlib.nullcontext(sys.stdin.buffer)
            if label == "stdin"
            else file.open("rb") as opened
        ):
            content = opened.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            raise InvalidInput(
                f"{label} is larger than {MAX_FILE // 1024**2:,} MiB; it cannot be read"
            )
        document = json.loads(content)
    except OSError as error:
        raise InvalidInput(
            f"{label} cannot be read ({error.strerror or error}); name a file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{label} is no JSON ({error}); mend it") from error
    if not isinstance(document, dict):
        raise InvalidInput(
            f"{label} is no JSON object; write one with `tasklore session export`"
        )
    return document
