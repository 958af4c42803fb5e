"""`tasklore story load|delete`: a folder made the beginning of its story, and a story taken out of the store."""

import sys
from pathlib import Path

import typer

from contracts.errors import UnknownStory
from contracts.identifiers import checked_name
from tasklore.analysis.documents import open_stores
from tasklore.exits import OK, USAGE, Refused
from tasklore.render.screen import patience, print_json, printable
from tasklore.story.check import as_document, called, counts, looked_at


async def load_aloud(folder: Path, *, as_json: bool) -> int:
    """Make the story in *folder* the beginning that agents read, print what it is, and return the exit code.

    Raises:
        Unreachable: no system runs here, or its Redis does not answer.
    """
    reading = looked_at(folder, as_json=as_json)
    if reading is None:
        return USAGE
    async with open_stores() as stores, patience("loading"):
        is_new = await stores.stories.load(reading.base)
    if as_json:
        print_json({**as_document(reading), "changed": is_new})
        return OK
    as_before = "" if is_new else "; it is as it was before"
    print(f"Loaded {called(reading.base)}: {counts(reading.base)}{as_before}.")
    return OK


async def delete_aloud(story_id: str, *, is_sure: bool, as_json: bool) -> None:
    """Remove a story with everything that is kept of it, and say so.

    Raises:
        InvalidInput: *story_id* is none.
        Refused: nobody confirmed it.
        UnknownStory: there is none of that id.
        Unreachable: no system runs here, or its Redis does not answer.
    """
    checked_name(story_id, "STORY")
    async with open_stores() as stores:
        title = (await stores.stories.settings(story_id)).title
        if not is_sure:
            _confirm(story_id, title)
        if not await stores.stories.delete(story_id):
            raise UnknownStory(f"there is no story {story_id!r}; `tasklore story list` shows those there are")
    if as_json:
        print_json({"story_id": story_id, "deleted": True})
        return
    print(f"Deleted {story_id}.")


def _confirm(story_id: str, title: str) -> None:
    if not sys.stdin.isatty():
        raise Refused("what was found in a story cannot be brought back; say --yes to mean it")
    named = f"{story_id} ({' '.join(printable(title).split())})" if title else story_id
    if not typer.confirm(f"Remove {named}, its responses and their analyses? It cannot be undone.", err=True):
        raise Refused("nothing was removed")
