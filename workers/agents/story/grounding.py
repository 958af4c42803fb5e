"""Whether what a model found stands in what it was shown: quotations and names are looked up, numbers compared."""

import re
from collections.abc import Iterable, Iterator, Sequence

from contracts.stories import Entity
from memory.grounding import locate, numbers_in
from workers.agents.story.names import Names
from workers.agents.story.text import one_line

#: What is looked at of one list of an answer: more than any section keeps.
MOST_CHECKED = 24
#: Characters of a quotation, and of a name that no file has.
_LONGEST_QUOTATION, _LONGEST_NAME = 400, 80
#: Tags of one memory or thread.
_MOST_TAGS = 5
_TAG = re.compile(r"[^\W\d_](?:[^\W\d]|-){0,29}")


def quotation_in(said: str, text: str) -> str | None:
    """Return *said* as it stands in *text*, on one line; None when it does not, or is all of a chapter."""
    if len(said) > _LONGEST_QUOTATION or not any(map(str.isalnum, said)):
        return None
    place = next(locate(said, text), None)
    return None if place is None else " ".join(text[place.start : place.end].split())


def name_in(said: str, text: str, entities: Sequence[Entity]) -> str | None:
    """Return the full name of whom *said* means: of a file, else as it stands in *text*; None for neither."""
    known = Names(entities).owner(said)
    if known is not None:
        return known
    line = " ".join(said.split())
    is_named = 0 < len(line) <= _LONGEST_NAME and next(locate(line, text), None) is not None
    return line if is_named else None


def faults_of(place: str, quotation: str, text: str) -> Iterator[str]:
    """Yield what is wrong with a *quotation*, for the model that gave it; *place* names the finding."""
    if quotation_in(quotation, text) is None:
        yield f"{place}: its quotation {quotation[:80]!r} does not stand in the response; copy its words"


def number_faults(place: str, said: str, sources: Iterable[str]) -> Iterator[str]:
    """Yield the numbers of *said* that stand in none of *sources*."""
    known = {reading for source in sources for number in numbers_in(source) for reading in number.readings}
    for number in numbers_in(said):
        if not known & set(number.readings):
            yield f"{place}: the number {said[number.start : number.end]!r} stands nowhere; leave it out"


def line_of(said: str, sources: Iterable[str], limit: int) -> str | None:
    """Return *said* as one line of at most *limit* characters; None when it is empty or has a number of its own."""
    if not said.strip() or next(number_faults("", said, sources), None) is not None:
        return None
    return one_line(said, limit)


def tags_from(said: Iterable[str]) -> tuple[str, ...]:
    """Return those of *said* that are plain words, in small letters and once each, at most five."""
    plain = ("_".join(tag.casefold().split()) for tag in said)
    return tuple(dict.fromkeys(tag for tag in plain if _TAG.fullmatch(tag)))[:_MOST_TAGS]
