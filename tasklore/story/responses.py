"""The responses of a story in files: one each, named by chapter and number, such as `Ch5-R120.md`."""

import re
from pathlib import Path
from typing import NamedTuple

from contracts.analysis.stories import StoryResponse
from tasklore.story.problems import Findings, InvalidStory
from tasklore.story.texts import LARGEST_FILE, Texts, text_of

FOLDER = "responses"
_SUFFIXES = (".md", ".txt")
#: `Ch5-R120`, `ch05_r120`, `R120`, and a title behind any of them.
_NAMED = re.compile(
    r"(?:ch(?:apter)?[ _-]*(?P<chapter>[0-9]{1,9})[ _-]*)?r(?:esponse)?[ _-]*(?P<number>[0-9]{1,9})(?:[ ._-].*)?",
    re.IGNORECASE,
)


class Numbered(NamedTuple):
    """What a file's name says; None is nothing."""

    chapter: int | None
    number: int | None


def numbers_of(name: str) -> Numbered:
    """Return chapter and number from the file name *name*."""
    found = _NAMED.fullmatch(Path(name).stem)
    if found is None:
        return Numbered(None, None)
    return Numbered(int(found["chapter"]) if found["chapter"] else None, int(found["number"]))


def responses_in(folder: Path | str) -> list[Path]:
    """Return the files in the `responses` of the story in *folder*, in the order of their numbers; [] without any.

    Raises:
        InvalidStory: there is no such folder, a file has no number, or two have the same.
    """
    texts = Texts(folder)
    found = listed_responses(texts)
    texts.findings.demand_none()
    return [texts.path(name) for name in found]


def listed_responses(texts: Texts) -> list[str]:
    """Return the names of the responses of the story that *texts* reads, in order; what is wrong is noted there."""
    wanted, others = texts.files(FOLDER, _SUFFIXES)
    for name in others:
        if not texts.is_folder(name):
            texts.findings.refuse(name, None, "a response is a file that ends in .md or .txt; rename it, or remove it")
    by_number: dict[int, str] = {}
    for name in wanted:
        number = numbers_of(name).number
        if number is None:
            texts.findings.refuse(name, None, "its name has no number; call it such as Ch1-R001.md")
        elif by_number.setdefault(number, name) != name:
            texts.findings.refuse(
                name, None, f"{by_number[number]} is response {number} already; numbers go on from chapter to chapter"
            )
    return [by_number[number] for number in sorted(by_number)]


def read_response(path: Path | str, folder: Path | str | None = None) -> StoryResponse:
    """Return the response in a file such as `Ch5-R120.md`; without a chapter in its name it is of the first.

    A file in *folder*, that of the story, is read with the same care as all that is in it.

    Raises:
        InvalidStory: there is no such file, it cannot be read, it is empty, or its name has no number.
    """
    file = Path(path).expanduser()
    if not (file.exists() or file.is_symlink()):
        raise InvalidStory([f"there is no file {path}; name one that is there, such as those in {FOLDER} of the story"])
    named = numbers_of(file.name)
    if named.number is None:
        raise InvalidStory([f"{path}: its name does not say which response it is; rename it like Ch1-R007.md"])
    texts = Texts(folder) if folder is not None else None
    inside = texts.name_of(file) if texts is not None else None
    text = _text(file, str(path)) if texts is None or inside is None else _text_in(texts, inside)
    if not text.strip():
        raise InvalidStory([f"{path}: it is empty; write the response into it"])
    return StoryResponse(number=named.number, chapter=1 if named.chapter is None else named.chapter, text=text)


def _text_in(texts: Texts, name: str) -> str:
    text = texts.read(name)
    texts.findings.demand_none()
    return text or ""


def _text(file: Path, label: str) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        why = f"it cannot be read ({error.strerror or error}); give the path of a text"
        raise InvalidStory([f"{label}: {why}"]) from error
    if len(content) > LARGEST_FILE:
        raise InvalidStory([f"{label}: it has more than {LARGEST_FILE // 1024} KB; give one response alone"])
    findings = Findings(str(Path(label).parent))
    text = text_of(content, Path(label).name, findings)
    findings.demand_none()
    return text or ""
