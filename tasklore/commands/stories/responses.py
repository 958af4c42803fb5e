"""The responses of a story in files: one each, named by chapter and number, such as `Ch5-R120.md`."""

import re
from pathlib import Path

from tasklore.commands.stories.folder import InvalidStory, StoryFolder
from tasklore.contracts.analysis.stories import StoryResponse

FOLDER = "responses"
_SUFFIXES = (".md", ".txt")
#: `Ch5-R120`, `ch05_r120`, `R120`, and a title behind any of them.
_NAME = re.compile(
    r"(?:ch(?:apter)?[ _-]*(?P<chapter>[0-9]{1,9})[ _-]*)?r(?:esponse)?[ _-]*(?P<number>[0-9]{1,9})(?:[ ._-].*)?",
    re.IGNORECASE,
)


def responses_in(folder: Path | str) -> list[Path]:
    """Return the files in the `responses` of the story in *folder*, in the order of their numbers; [] without any.

    Raises:
        InvalidStory: there is no such folder, a file has no number, or two have the same.
    """
    files = StoryFolder(folder)
    names = list_responses(files)
    files.demand_none()
    return [files.path(name) for name in names]


def list_responses(files: StoryFolder) -> list[str]:
    """Return the names of the responses in order; problems are added to *files*."""
    names, others = files.files(FOLDER, _SUFFIXES)
    for name in others:
        if not files.is_folder(name):
            files.refuse(
                name,
                "a response is a file that ends in .md or .txt; rename it, or remove it",
            )
    by_number: dict[int, str] = {}
    for name in names:
        if (found := _NAME.fullmatch(Path(name).stem)) is None:
            files.refuse(name, "its name has no number; call it such as Ch1-R001.md")
            continue
        other = by_number.setdefault(int(found["number"]), name)
        if other != name:
            cure = "numbers continue from chapter to chapter"
            files.refuse(
                name, f"{other} is response {int(found['number'])} already; {cure}"
            )
    return [by_number[number] for number in sorted(by_number)]


def read_response(path: Path | str, folder: Path | str | None = None) -> StoryResponse:
    """Return the response in a file such as `Ch5-R120.md`; without a chapter in its name it is of the first.

    A file in *folder*, that of the story, is read with the same care as all other files there.

    Raises:
        InvalidStory: there is no such file, it cannot be read, it is empty, or its name has no number.
    """
    file = Path(path).expanduser()
    if not (file.exists() or file.is_symlink()):
        raise InvalidStory(
            [
                f"there is no file {path}; name one that is there, such as those in {FOLDER} of the story"
            ]
        )
    if (found := _NAME.fullmatch(file.stem)) is None:
        raise InvalidStory(
            [
                f"{path}: its name does not say which response it is; rename it like Ch1-R007.md"
            ]
        )
    files = StoryFolder(folder if folder is not None else file.parent)
    inside = files.name_of(file) if folder is not None else None
    if inside is None:
        files = StoryFolder(file.parent)
    text = files.read(inside) if inside is not None else files.read_outside(file)
    files.demand_none()
    if not (text or "").strip():
        raise InvalidStory([f"{path}: it is empty; write the response into it"])
    chapter = int(found["chapter"]) if found["chapter"] else 1
    return StoryResponse(number=int(found["number"]), chapter=chapter, text=text or "")
