"""The segments of an utterance, each of which asks for a task of its own."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from supervisor.understanding.routing import Choice, Router
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
    r"|(?:\s*,\s*|\s+)(?:and then|and also|and|then|also|but also|plus|as well as)\s+|\s*,\s+",
    re.IGNORECASE,
)
#: Words that open a request of their own.
_OPENERS = word_set("i i'm i'd i've we what what's how where when who which can could please is are let tell give show")


class Segment(NamedTuple):
    """One part of an utterance with the task it asks for; it stands at *start* in the whole."""

    start: int
    utterance: Utterance
    choice: Choice | None


def segments_of(utterance: Utterance, router: Router) -> list[Segment]:
    """Return the segments of *utterance*, mostly one; a part that asks for no task of its own stays with its neighbour."""
    whole = router.choose(utterance)
    cuts = list(_cuts(utterance))
    if not cuts:
        return [Segment(0, utterance, whole)]
    places = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(utterance.text)]
    found: list[tuple[int, int, Choice | None]] = []
    for start, end in zip(places, ends, strict=True):
        part = utterance.part(start, end)
        choice = router.choose(part)
        if found and not _begins_anew(found[-1], part, choice, utterance):
            first, _, before = found[-1]
            found[-1] = (first, end, before if before is not None else choice)
        else:
            found.append((start, end, choice))
    if len(found) == 1:
        return [Segment(0, utterance, whole)]
    parts = [(start, utterance.part(start, end)) for start, end, _ in found]
    return [Segment(start, part, router.choose(part)) for start, part in parts]


def _cuts(utterance: Utterance) -> Iterator[tuple[int, int]]:
    """Yield where *utterance* may be cut, outside of its values and of what is quoted."""
    closed = [(one.start, one.end) for one in (*utterance.quoted, *utterance.amounts, *utterance.moments)]
    for number, match in enumerate(_CUT.finditer(utterance.text)):
        if number >= _MOST_CUTS:
            return
        is_inside = any(start <= match.start() and match.end() <= end for start, end in closed)
        if not is_inside and match.start() and match.end() < len(utterance.text):
            yield match.span()


def _begins_anew(
    last: tuple[int, int, Choice | None], part: Utterance, choice: Choice | None, whole: Utterance
) -> bool:
    """Return whether *part* asks for another task than *last* does, or for the same once more."""
    if choice is None or choice.rivals or choice.score < _STRONG or last[2] is None:
        return False
    words = [token for token in part.tokens if token.is_word]
    first = next((token for token in words if token.text not in STOP), None)
    if first is None or not (words[0].text in _OPENERS or first.stem in choice.task.openers):
        return False
    if choice.task is not last[2].task:
        return last[2].task not in choice.rivals
    if first.stem not in choice.task.openers:
        return False
    before = fill(whole.part(last[0], last[1]), choice.task).values
    now = fill(part, choice.task).values
    return any(slot.name in before and slot.name in now for slot in choice.task.schema.slots if not slot.is_list)
