"""`tasklore memory export|import`: a person's documents as JSON files of this machine."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasklore.commands.memory.calls import pour_lines, send_line
from tasklore.commands.operations.problems import ApiRefused
from tasklore.commands.pictures import memory_files
from tasklore.commands.render.screen import print_error, print_json, printable, say
from tasklore.commands.render.words import count_of
from tasklore.contracts.errors import InvalidInput


def export_documents(
    user: str, folder: Path, resource: str | None, *, scope: str = "user"
) -> None:
    """Write the documents of *user* in *scope*, or one, into *folder*, a file each; `-` writes one to stdout.

    Raises:
        InvalidInput: several documents are to go to stdout, or *folder* cannot be written to.
    """
    is_stdout = str(folder) == "-"
    if is_stdout and resource is None:
        raise InvalidInput("stdout takes one document; say which with --resource")
    pieces: list[bytes] = []
    given = {"user": user, "scope": scope, "resource": resource}
    pour_lines("export", given, pieces.append)
    views = [json.loads(line) for line in b"".join(pieces).splitlines() if line]
    files = {one["resource"]: one["content"].encode() for one in views}
    if is_stdout:
        sys.stdout.buffer.write(next(iter(files.values())))
        sys.stdout.buffer.flush()
        return
    if not files:
        say(f"{printable(user)!r} has no documents yet; nothing was written")
        return
    write_files(folder, files)
    say(f"{count_of(len(files), 'document')} in {folder}")


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write *files*, by document, into *folder*.

    Raises:
        InvalidInput: *folder* cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one, content in files.items():
            # The name comes from a server, which is not to choose another folder.
            (folder / f"{Path(one).name}.json").write_bytes(content)
    except OSError as error:
        why = error.strerror or error
        raise InvalidInput(
            f"FOLDER {str(folder)!r} cannot be written to ({why}); name another one"
        ) from error


def import_documents(
    user: str,
    files: Sequence[Path],
    resource: str | None,
    *,
    is_json: bool,
    scope: str = "user",
) -> int:
    """Put *files* in the place of documents of *user*, and return the exit code: unusable input when one was refused.

    Raises:
        InvalidInput: several files are given with *resource*.
    """
    if resource is not None and len(files) > 1:
        raise InvalidInput(
            "--resource says what one file is; give one, or files that name themselves"
        )
    done: list[Any] = []
    for file in files:
        line = {"file": str(file), "resource": resource}
        try:
            sent = {**line, "content": read_text(file)}
            one = send_line("import", {"user": user, "scope": scope}, sent)["files"][0]
        except InvalidInput as error:
            one = _refused(file, error)
        except ApiRefused as error:
            if error.body.get("status") not in (413, 422):
                raise
            one = _refused(file, error)
        done.append(one)
        if one["error"] is not None:
            print_error(f"{file}: {one['error']}")
        elif not is_json:
            print(memory_files.draw({"files": [one]}), flush=True)
    view = {"user": user, "files": done}
    if is_json:
        print_json(view)
    return memory_files.code_of(view)


def _refused(file: Path, error: Exception) -> dict[str, Any]:
    return {"file": str(file), "plan_id": None, "revisions": {}, "error": str(error)}


def read_text(file: Path) -> str:
    """Return the text of *file*, byte for byte.

    Raises:
        InvalidInput: it cannot be read, or is no UTF-8.
    """
    try:
        return file.read_bytes().decode()
    except OSError as error:
        raise InvalidInput(
            f"cannot be read ({error.strerror or error}); name a file"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error
