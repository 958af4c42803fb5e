"""`tasklore stories load`: a folder is read here, and its beginning sent to the operation of that name."""

from pathlib import Path

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.render.screen import print_json
from tasklore.commands.stories.check import (
    document_of,
    look,
    spell_counts,
    title_of,
)


def load_folder(folder: Path, *, as_json: bool) -> int:
    """Load the story in *folder*, print its counts, and return the exit code.

    Raises:
        Unreachable: no server answers.
        ApiRefused: the API refuses it.
    """
    reading = look(folder, as_json=as_json)
    if reading is None:
        return USAGE
    base = reading.base
    view = LocalApi("stories").ask("load", **base.model_dump(mode="json"))
    if as_json:
        print_json({**document_of(reading), **view})
        return OK
    as_before = "" if view["changed"] else "; it is as it was before"
    print(f"Loaded {title_of(base)}: {spell_counts(base)}{as_before}.")
    return OK
