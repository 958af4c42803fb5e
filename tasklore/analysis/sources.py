"""Which document is meant: a file, stdin, or what is kept of a story; only the last needs a server."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from contracts.analysis.document import AnalysisDocument, read_document
from contracts.errors import InvalidInput, Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from contracts.analysis.stories import Entity
    from tasklore.analysis.stores import StoryStores

T = TypeVar("T")

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


def entities_of(word: str) -> "tuple[Entity, ...]":
    """Return everybody and everything in the story of the document that *word* names; none where that is not known.

    Raises:
        Unreachable: it names a story, and no system runs here.
    """
    if is_file(word):
        folder = Path(word) if Path(word).is_dir() else Path(word).resolve().parent.parent
        if word == _STDIN or not (folder / "story.toml").is_file():
            return ()
        from tasklore.story.files import read_story

        with contextlib.suppress(InvalidInput):
            return read_story(folder).entities
        return ()
    return _look(word, lambda stores: stores.stories.entities(word))


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
    return _look(story_id, lambda stores: stores.found(story_id, number))


def _look(story_id: str, look: "Callable[[StoryStores], Awaitable[T]]") -> T:
    from tasklore import running
    from tasklore.analysis.stores import open_stores

    async def looking() -> T:
        async with open_stores() as stores:
            return await look(stores)

    try:
        return running.run(looking())
    except Unreachable as error:
        raise Unreachable(f"{story_id!r} is no file here, so it names a story: {error}") from error
