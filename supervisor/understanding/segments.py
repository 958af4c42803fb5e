"""The segments of an utterance, each of which asks for a task of its own."""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from supervisor.understanding.routing import Choice, Router, Task
from supervisor.understanding.slots import fill
from supervisor.understanding.utterance import STOP, Utterance, word_set

#: Tasks of one utterance; more start nothing.
MOST_TASKS = 8
#: Places at which an utterance may be cut: each costs a look at the words behind it.
_MOST_CUTS = 24
#: Evidence from which on a part of a sentence asks for another task: a keyword, not a mere cue.
_STRONG = 2.8
_CUT = re.compile(
    r"(?P<full>[.!?;](?=\s)\s*|\s*\n\s*)(?:(?:and|then|also)\s+)*"
    r"|(?:\s*,\s*|\s+)(?:and then|and also|and|then|also|but also|but(?!\s+(?:with|without|for|only|not|now)\b)|plus"
    r"|as well as)\s+|\s*,\s+",
    re.IGNORECASE,
)
#: Words that open a request of their own.
_OPENERS = word_set("i i'm i'd i've we what what's how where when who which can could please is are let tell give show")
#: What begins the same task once more, or takes back what was said of it.
_AGAIN = re.compile(r"(?:again|once more|the same (?:for|with|again|but|on|at)|what about|how about)\b", re.IGNORECASE)
_CORRECTION = re.compile(r"(?:sorry|no|actually|or rather|wait|i mean|or)\b", re.IGNORECASE)


class Segment(NamedTuple):
    """One part of an utterance, *start* to *end*, with the task it asks for."""

    start: int
    end: int
    utterance: Utterance
    choice: Choice | None


def segments_of(
    utterance: Utterance, whole: Choice | None, router: Router, about: Collection[Task] = ()
) -> list[Segment]:
    """Return the segments of *utterance*, mostly one; a part that asks for no task stays with its neighbour.

    *whole* is what all of it is chosen for. The first may ask for none where it answers a question *about* a task, or
    goes on with it.
    """
    cuts = list(_cuts(utterance))
    if not cuts:
        return [Segment(0, len(utterance.text), utterance, whole)]
    places = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(utterance.text)]
    read = [utterance.only(place) for place in zip(places, ends, strict=True)]
    if not any(_may_open(part, router) for part in read[1:]):
        return [Segment(0, len(utterance.text), utterance, whole)]
    found: list[tuple[int, int, Choice | None]] = []
    for start, end, part in zip(places, ends, read, strict=True):
        choice = router.choose(part) if not found or _may_open(part, router) else None
        if found and not _begins_anew(found[-1], part, choice, utterance, about):
            first, _, before = found[-1]
            found[-1] = (first, end, before if before is not None else choice)
        else:
            found.append((start, end, choice))
    if len(found) == 1:
        return [Segment(0, len(utterance.text), utterance, whole)]
    alone = dict(zip(zip(places, ends, strict=True), read, strict=True))
    segments = []
    for start, end, choice in found:
        part = alone.get((start, end)) or utterance.only((start, end))
        segments.append(Segment(start, end, part, choice if (start, end) in alone else router.choose(part)))
    return segments


def _cuts(utterance: Utterance) -> Iterator[tuple[int, int]]:
    """Yield where *utterance* may be cut, outside of its values and of what is quoted."""
    closed = (*utterance.quoted_spans, *utterance.value_spans)
    for number, match in enumerate(_CUT.finditer(utterance.text)):
        if number >= _MOST_CUTS:
            return
        is_inside = any(start <= match.start() and match.end() <= end for start, end in closed)
        if not is_inside and match.start() and match.end() < len(utterance.text):
            yield match.span()


def _may_open(part: Utterance, router: Router) -> bool:
    """Return whether *part* begins as a request may, so that it is worth a look at all tasks."""
    words = [token for token in part.tokens if token.is_word]
    first = next((token for token in words if token.text not in STOP), None)
    is_request = first is not None and (words[0].text in _OPENERS or first.stem in router.openers)
    return is_request or (bool(words) and _AGAIN.match(part.text, words[0].start) is not None)


def _begins_anew(
    last: tuple[int, int, Choice | None],
    part: Utterance,
    choice: Choice | None,
    whole: Utterance,
    about: Collection[Task],
) -> bool:
    """Return whether *part* asks for another task than *last* does, or for the same once more."""
    words = [token for token in part.tokens if token.is_word]
    if words and _AGAIN.match(part.text, words[0].start) and last[2] is not None:
        return True
    if (
        choice is None
        or choice.rivals
        or choice.score < _STRONG
        or (last[2] is None and (not about or choice.task in about))
    ):
        return False
    if _CORRECTION.match(part.text, words[0].start if words else 0):
        return False
    if last[2] is not None and not part.value_spans:
        content = {token.stem for token in words if token.text not in STOP}
        if len(content) == 1 and content <= last[2].task.said:
            return False  # the "book it" behind "Is it free?"
    if last[2] is None or choice.task is not last[2].task:
        return True
    before, find = whole.only(last[:2]), choice.task.cues.find
    leading = {cue.slot for cue in find(part.tokens) if cue.first == 0}
    if leading and leading.isdisjoint(cue.slot for cue in find(before.tokens)):
        return False  # the "spent 42k" behind "limit 50k"
    twice = fill(before, choice.task).values.keys() & fill(part, choice.task).values.keys()
    return any(slot.name in twice for slot in choice.task.schema.slots if not slot.is_list)
