"""The analysis of the last response as a file, `state/agent_analysis.json`: indented JSON, for people and tools.

A reader finds the old document or the new one, whole, also while it is written.
"""

import contextlib
import json
import os
from pathlib import Path

from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.errors import InvalidInput

#: Most bytes of a file that is read: a hundred times what ten talkative agents leave.
MAX_BYTES = 8 * 1024 * 1024


def file_form(document: AnalysisDocument) -> bytes:
    """Return *document* as it stands in a file: by its short keys in its order, indented by two, in UTF-8."""
    return (json.dumps(document.body(), ensure_ascii=False, indent=2) + "\n").encode()


def write_file(path: Path, document: AnalysisDocument) -> None:
    """Write *document* to *path*, whose folder is made when it is not there; a crash leaves the old file or the new.

    Raises:
        InvalidInput: it cannot be written; the message says why.
    """
    body = file_form(document)
    try:
        # What a link leads to is written, and the link stays.
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with unfinished.open("wb") as opened:
                opened.write(body)
                opened.flush()
                os.fsync(opened.fileno())
            with contextlib.suppress(FileNotFoundError):
                unfinished.chmod(target.stat().st_mode & 0o777)
            unfinished.replace(target)
            _settle(target.parent)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise InvalidInput(
            f"{str(path)!r} cannot be written ({why}); free that place or name another"
        ) from error


def read_file(path: Path) -> AnalysisDocument:
    """Return the document that *path* holds, in this form or an older one.

    Raises:
        InvalidInput: there is no such file, or it is no analysis document; the message names it.
    """
    try:
        with path.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
    except OSError as error:
        why = error.strerror or str(error)
        raise InvalidInput(
            f"{str(path)!r} cannot be read ({why}); name an analysis document"
        ) from error
    if len(raw) > MAX_BYTES:
        raise InvalidInput(
            f"{str(path)!r} has more than {MAX_BYTES:,} bytes; an analysis document has some thousand"
        )
    try:
        return read_document(raw)
    except InvalidInput as error:
        raise InvalidInput(f"{str(path)!r}: {error}") from error


def _settle(folder: Path) -> None:
    """Make the new name in *folder* outlive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
