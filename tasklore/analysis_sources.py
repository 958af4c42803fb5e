"""Which document is meant: a file, stdin, or what is kept of a story; only the last needs a server."""

import sys
from pathlib import Path

from contracts.analysis import AnalysisDocument, read_document
from contracts.errors import InvalidInput, Unreachable

#: Where `tasklore analysis run` leaves the document, in the folder of its story.
STATE_FILE = Path("state") / "agent_analysis.json"
_STDIN = "-"


def document_of(word: str, number: int | None = None) -> AnalysisDocument:
    """Return the document that *word* names, of response *number* when it names a story; None is the latest.

    Raises:
        InvalidInput: it is no analysis document, there is none, or a file is asked for a response.
        Unreachable: it names a story, and no system runs here.
    """
    if not is_file(word):
        return _kept(word, number)
    if number is not None:
        raise InvalidInput(f"--response goes with the id of a story; {word!r} is a file, and about one response")
    raw = raw_of(word)
    try:
        return read_document(raw)
    except InvalidInput as error:
        raise InvalidInput(f"{word}: {error}") from error


def is_file(word: str) -> bool:
    """Return whether *word* means a file rather than a story: by a slash or a dot in it, or because it is there."""
    return word == _STDIN or "/" in word or "." in word or Path(word).is_file()


def raw_of(file: str) -> bytes:
    """Return what is in *file*, or comes from stdin; of a story's folder, the document in it.

    Raises:
        InvalidInput: it cannot be read.
    """
    if file == _STDIN:
        return sys.stdin.buffer.read()
    path = Path(file) / STATE_FILE if Path(file).is_dir() else Path(file)
    try:
        return content_of(path)
    except InvalidInput as error:
        raise InvalidInput(f"{path} {error}") from error


def content_of(path: Path) -> bytes:
    """Return what is in the file *path*.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot be read ({error.strerror or error}); name another file") from error


def _kept(story_id: str, number: int | None) -> AnalysisDocument:
    from tasklore import running
    from tasklore.analysis_stores import open_stores

    async def look() -> AnalysisDocument:
        async with open_stores() as stores:
            return await stores.found(story_id, number)

    try:
        return running.run(look())
    except Unreachable as error:
        raise Unreachable(f"{story_id!r} is no file here, so it names a story: {error}") from error
