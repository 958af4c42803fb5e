"""`tasklore analysis migrate`: analyses in the Markdown form turned into documents."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from contracts.analysis import read_document, upcast
from contracts.errors import InvalidInput
from tasklore.analysis_markdown import Unread, read_markdown
from tasklore.analysis_sources import content_of
from tasklore.document_lines import one_line
from tasklore.exits import FAILED, OK
from tasklore.pipeline_lines import counted
from tasklore.screen import complain, printable, styled


def migrate_files(files: Sequence[Path], *, force: bool) -> int:
    """Write the document of each of *files* beside it, and return the exit code: failed when one was not written.

    The originals stay as they are; a document that is there is written over only with *force*.
    """
    failed = 0
    for file in files:
        try:
            _migrate(file, force=force)
        except InvalidInput as error:
            complain(f"{file}: {printable(str(error))}")
            failed += 1
    return FAILED if failed else OK


def _migrate(file: Path, *, force: bool) -> None:
    target = file.with_suffix(".json")
    if target == file:
        raise InvalidInput("this is no Markdown file by its name; `tasklore analysis check` looks at documents")
    if target.exists() and not force:
        raise InvalidInput(f"{target.name} is there already; move it away, or write over it with --force")
    try:
        text = content_of(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start} is no UTF-8; save the file as UTF-8") from error
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC).replace(microsecond=0)
    found = read_markdown(text, updated=changed.isoformat())
    try:
        document = upcast(read_document(found.body))
    except InvalidInput:
        # What is wrong with the document comes of what could not be read.
        _list(found.unread)
        raise
    _write(target, document.minified() + b"\n")
    agents = counted(sum(1 for _ in document.sections()), "agent")
    print(f"{styled(file.name, 'bold')} -> {target.name}: {agents}; {file.name} is kept")
    _list(found.unread)


def _write(target: Path, content: bytes) -> None:
    """Write *target* whole or not at all."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InvalidInput(f"{target.name} cannot be written ({error.strerror or error}); mend that") from error


def _list(unread: Sequence[Unread]) -> None:
    for one in unread:
        print(f"  {styled(f'line {one.line} was not read ({one.why}): {one_line(one.text)}', 'yellow')}")
