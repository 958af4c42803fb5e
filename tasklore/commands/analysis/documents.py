"""The document that is meant: a file, stdin, or that of a story in the store; only the last needs a server."""

import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.errors import InvalidInput, UnknownStory, Unreachable
from tasklore.contracts.identifiers import checked_name

if TYPE_CHECKING:
    from tasklore.contracts.analysis.stories import Entity
    from tasklore.memory.stories.analyses import AnalysisStore
    from tasklore.memory.stories.store import StoryStore
    from tasklore.runtime.servers.valkey import Valkey

T = TypeVar("T")

#: The document of a story in its folder, as `tasklore analysis run` writes it.
STATE_FILE = Path("state") / "agent_analysis.json"
_STDIN = "-"
#: Seconds for one read: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True)
class StoryStores:
    """The stores of stories and of their analyses, open."""

    stories: "StoryStore"
    analyses: "AnalysisStore"

    async def find(self, story_id: str, number: int | None = None) -> AnalysisDocument:
        """Return the analysis of response *number*, None is the latest one.

        Raises:
            InvalidInput: *story_id* is no name, or there is no such analysis; the message names those there are.
            MemoryUnavailable: Redis did not answer.
        """
        try:
            numbers = await self.analyses.numbers(checked_name(story_id, "STORY"))
        except UnknownStory as error:
            raise UnknownStory(
                f"{error} (a file would be named with a slash or a dot: ./{story_id})"
            ) from error
        if not numbers:
            raise InvalidInput(
                f"nothing of story {story_id!r} was analysed; `tasklore analysis run STORY_DIR` does"
            )
        number = numbers[-1] if number is None else number
        document = await self.analyses.read(story_id, number)
        if document is None:
            kept = _spell_ranges(numbers)
            raise InvalidInput(
                f"no analysis of response {number} of {story_id!r} is kept; there are {kept}"
            )
        return document


@contextlib.asynccontextmanager
async def open_stores() -> AsyncIterator[StoryStores]:
    """Open the stories and analyses of the system that runs here.

    Raises:
        Unreachable: no system runs here, or its Redis does not answer.
    """
    from tasklore.commands.places import open_redis

    async with open_redis("tasklore-analysis", 2 * _DEADLINE_S) as client:
        yield stores_on(client)


def stores_on(client: "Valkey") -> StoryStores:
    """Return stories and analyses over a connection that is open."""
    from tasklore.memory.stories.analyses import AnalysisStore
    from tasklore.memory.stories.store import StoryStore

    return StoryStores(
        StoryStore(client, deadline_s=_DEADLINE_S),
        AnalysisStore(client, deadline_s=_DEADLINE_S),
    )


def document_of(source: str, number: int | None = None) -> AnalysisDocument:
    """Return the document *source*: a file, or that of response *number* of a story; None is the latest.

    Raises:
        InvalidInput: it is no analysis document, there is none, or a file is asked for a response.
        Unreachable: it names a story, and no system runs here.
    """
    if not is_file(source):
        return _read_store(source, lambda stores: stores.find(source, number))
    if number is not None:
        raise InvalidInput(
            f"--response goes with the id of a story; {source!r} is a file, and about one response"
        )
    raw = read_raw(source)
    try:
        return read_document(raw)
    except InvalidInput as error:
        raise InvalidInput(f"{source}: {error}") from error


def entities_of(source: str) -> "tuple[Entity, ...]":
    """Return the entities of the story of the document *source*; none for a file outside the folder of a story.

    Raises:
        Unreachable: it names a story, and no system runs here.
    """
    if not is_file(source):
        return _read_store(source, lambda stores: stores.stories.entities(source))
    folder = (
        Path(source) if Path(source).is_dir() else Path(source).resolve().parent.parent
    )
    if source == _STDIN or not (folder / "story.toml").is_file():
        return ()
    from tasklore.commands.stories.files import read_story

    with contextlib.suppress(InvalidInput):
        return read_story(folder).entities
    return ()


def is_file(source: str) -> bool:
    """Return whether *source* is a file rather than a story: it has a slash or a dot, or exists."""
    return source == _STDIN or "/" in source or "." in source or Path(source).is_file()


def read_raw(file: str) -> bytes:
    """Return the content of *file*, of stdin, or of the document in a story's folder.

    Raises:
        InvalidInput: it cannot be read.
    """
    if file == _STDIN:
        return sys.stdin.buffer.read()
    path = Path(file) / STATE_FILE if Path(file).is_dir() else Path(file)
    try:
        return path.read_bytes()
    except OSError as error:
        msg = f"{path} cannot be read ({error.strerror or error}); name another file"
        raise InvalidInput(msg) from error


def write_state(folder: Path, document: AnalysisDocument) -> int | None:
    """Write *document* into the folder of its story, and return None.

    The document of a later response stays; then its number is returned.

    Raises:
        InvalidInput: it cannot be written.
    """
    from tasklore.memory.stories.analysis_file import read_file, write_file

    with contextlib.suppress(InvalidInput):
        number = read_file(folder / STATE_FILE).meta.response_number
        if number > document.meta.response_number:
            return number
    write_file(folder / STATE_FILE, document)
    return None


def _read_store(story_id: str, read: Callable[[StoryStores], Awaitable[T]]) -> T:
    from tasklore.commands import running

    async def open_and_read() -> T:
        async with open_stores() as stores:
            return await read(stores)

    try:
        return running.run(open_and_read())
    except Unreachable as error:
        raise Unreachable(
            f"{story_id!r} is no file here, so it names a story: {error}"
        ) from error


def _spell_ranges(numbers: Sequence[int]) -> str:
    """Return sorted *numbers* as people write them: "3, 7 to 12"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number, number])
    return ", ".join(
        str(first) if first == last else f"{first} to {last}" for first, last in runs
    )
