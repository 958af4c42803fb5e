"""The document that is meant: a file, stdin, or that of a story; only the last needs a server."""

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasklore.commands.operations.local import LocalApi
from tasklore.commands.operations.problems import ApiRefused
from tasklore.commands.operations.values import fill_request
from tasklore.contracts.errors import InvalidInput, Unreachable

if TYPE_CHECKING:
    from tasklore.contracts.analysis.document import AnalysisDocument
    from tasklore.contracts.analysis.stories import Entity

#: The document of a story in its folder, as `tasklore analyses run` writes it.
STATE_FILE = Path("state") / "agent_analysis.json"
_STDIN = "-"


def ask_story(verb: str, story_id: str, **values: Any) -> dict[str, Any]:
    """Return the view of the operation *verb* on the analyses of a story; a value None is not given.

    Raises:
        Unreachable, ApiRefused: as `ask_value`.
    """
    view = ask_value(verb, story_id, **values)
    return dict(view) if isinstance(view, dict) else {}


def ask_value(verb: str, story_id: str, **values: Any) -> object:
    """Return the body of the answer of the operation *verb* on the analyses of a story; a value None is not given.

    Raises:
        Unreachable: no API answers.
        ApiRefused: it refuses, such as for a story that is not there.
    """
    given = {name: value for name, value in values.items() if value is not None}
    try:
        exchange = LocalApi("analyses").open(verb)
        request = fill_request(exchange.entry, {"story_id": story_id, **given})
        return exchange.read_view(exchange.ask(request))
    except ApiRefused as error:
        if error.body.get("status") not in (404, 422):
            raise
        told = f"{error} (a file would be named with a slash or a dot: ./{story_id})"
        raise ApiRefused(told, error.code, error.body) from error
    except Unreachable as error:
        raise Unreachable(
            f"{story_id!r} is not a file here, so it is taken as a story id: {error}"
        ) from error


def read_file(source: str, number: int | None = None) -> "AnalysisDocument":
    """Return the document in the file *source*.

    Raises:
        InvalidInput: it is no analysis document, or it is asked for response *number*.
    """
    # Imported here: it brings pydantic, which a command about a story in the store does without.
    from tasklore.contracts.analysis.document import read_document

    if number is not None:
        raise InvalidInput(
            f"--response goes with the id of a story; {source!r} is a file, and about one response"
        )
    raw = read_raw(source)
    try:
        return read_document(raw)
    except InvalidInput as error:
        raise InvalidInput(f"{source}: {error}") from error


def read_entities(source: str) -> "tuple[Entity, ...]":
    """Return the entities of the story in whose folder the file *source* lies; none for a file elsewhere."""
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


def write_state(folder: Path, document: "AnalysisDocument") -> int | None:
    """Write *document* into the folder of its story, and return None.

    The document of a later response stays; then its number is returned.

    Raises:
        InvalidInput: it cannot be written.
    """
    from tasklore.memory.stories import analysis_file

    with contextlib.suppress(InvalidInput):
        number = analysis_file.read_file(folder / STATE_FILE).meta.response_number
        if number > document.meta.response_number:
            return number
    analysis_file.write_file(folder / STATE_FILE, document)
    return None


def document_in(view: Mapping[str, Any]) -> "AnalysisDocument | None":
    """Return the document in a *view* of an analysis.

    Raises:
        Unreachable: it is none: another version made it.
    """
    from tasklore.contracts.analysis.document import read_document

    if view["document"] is None:
        return None
    try:
        return read_document(view["document"])
    except InvalidInput as error:
        msg = f"the API did not answer with an analysis ({error})"
        raise Unreachable(f"{msg}; are the versions the same?") from error
