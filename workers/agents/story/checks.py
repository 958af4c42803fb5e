"""Checks of a finding: quotations, lengths, numbers and persons: form and grounding, never judgement."""

from collections.abc import Iterator
from dataclasses import dataclass

from tasklore.contracts.quantities.numerals import find_amounts
from tasklore.memory.grounding import locate, numbers_in
from tasklore.workers.agents.story.blocks import plain_prose
from tasklore.workers.agents.story.view import StoryView

#: Characters of a quotation, and of a name, a place or a time.
LONGEST_QUOTATION = 300
LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class FindingFault:
    """A fault of a finding: the field, and a complaint with its cure."""

    field: str
    complaint: str

    def __str__(self) -> str:
        return f"{self.field}: {self.complaint}"


def stands_in(quotation: str, text: str) -> bool:
    """Return whether *quotation* has a letter or digit, is short enough, and stands in *text*."""
    if len(quotation) > LONGEST_QUOTATION or not any(map(str.isalnum, quotation)):
        return False
    return next(locate(quotation.strip(" .\u2026"), text), None) is not None


def check_length(field: str, text: str, most: int) -> Iterator[FindingFault]:
    """Yield a fault when *text* is empty or longer than *most* characters."""
    if not text.strip():
        yield FindingFault(field, "is needed")
    elif len(text) > most:
        yield FindingFault(field, f"has more than {most} characters; shorten it")


def check_numbers(field: str, text: str, *sources: str) -> Iterator[FindingFault]:
    """Yield the numbers in digits of *text* that none of *sources* has, in digits or in words."""
    if not (numbers := numbers_in(text)):
        return
    readings = {
        reading
        for source in sources
        for one in numbers_in(source)
        for reading in one.readings
    }
    readings |= {
        reading
        for source in sources
        for one in find_amounts(source)
        for reading in one.readings
    }
    for number in numbers:
        if number.readings and readings.isdisjoint(number.readings):
            yield FindingFault(
                field, f"{text[number.start : number.end]} was not told; leave it out"
            )


def check_person(field: str, name: str, view: StoryView) -> Iterator[FindingFault]:
    """Yield a fault unless *name* is of a character: declared in the story's files, or new in the response."""
    owner = view.handles.owner(name)
    if owner is not None and not view.is_character(owner):
        yield FindingFault(field, f"{name!r} is no character")
    elif owner is None and (
        len(name) > LONGEST_NAME or not stands_in(name, plain_prose(view.response.text))
    ):
        yield FindingFault(
            field,
            f"{name[:LONGEST_NAME]!r} is nobody's name; use a name as it is given or as the text has it",
        )
