"""One utterance that answers several open questions: by their words, by their places, or in their order."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from supervisor.understanding.dialogue.conversation import Open
from supervisor.understanding.dialogue.picks import LEAVES_ONE, PLACES, says_nothing
from supervisor.understanding.outcome import Ambiguous, Missing, Single
from supervisor.understanding.routing import Choice
from supervisor.understanding.slots import fill
from supervisor.understanding.utterance import STOP, Utterance

_SEPARATOR = re.compile(r"\s*[;\n]\s*|,\s+(?:(?:and|then)\s+)?|\s+and\s+", re.IGNORECASE)
_FOR_ALL = re.compile(r"\b(?:for )?(?:both|each|all)(?: of them)?\b", re.IGNORECASE)
_PLACE = re.compile(
    r"(?:\bfor )?\b(?:the )?(first|second|third|fourth|last|latter|former|other|then)\b(?: one)?(?:\s+is\b|\s*:)?",
    re.IGNORECASE,
)
#: Between two numbers, neither of which is said for good.
_RANGE = re.compile(r"\bbetween\b[^,;.]*\d|\d\S*\s+or\s+\S*\d", re.IGNORECASE)
_UNTOLD = "(I cannot tell which of these questions that answers.)"

_Region = tuple[int, int]
#: Reads an utterance as the answer to one question; None when it is about something else.
Answer = Callable[[Open, Utterance, Choice | None], Single | None]


def read_several(
    opened: Sequence[Open], answer: Answer, utterance: Utterance, choice: Choice | None
) -> list[Single] | None:
    """Return what each of *opened* comes to by *utterance*, each clause as its *answer*; None for something else."""
    clauses = _clauses(utterance.text)
    leaves_one = any(LEAVES_ONE.match(utterance.text[slice(*one)]) for one in clauses)
    if leaves_one and choice is not None and choice.task not in [one.task for one in opened]:
        return None
    if leaves_one or says_nothing(utterance.text) or _RANGE.search(utterance.text):
        return [ask_again(one) for one in opened]
    if match := _FOR_ALL.search(utterance.text):
        rest = utterance.without([match.span()])
        same = [answer(one, rest, None) for one in opened]
        return [found for found in same if found is not None] if all(same) else None
    taken: dict[int, list[_Region]] = defaultdict(list)
    loose: list[_Region] = []
    for region in clauses:
        place, regions = _place(utterance, region, len(opened), [*taken, *range(len(loose))])
        if place is None and (place := _fitting(opened, utterance.part(*region), taken)) is None:
            loose.append(region)
        elif place < 0:
            return [ask_again(one, is_untold=True) for one in opened]
        else:
            taken[place] += regions
    free = [place for place in range(len(opened)) if place not in taken]
    if loose and len(loose) == len(free) and all(_is_bare(utterance.part(*one)) for one in loose):
        taken |= {place: [region] for place, region in zip(free, loose, strict=True)}
        loose = []
    if loose and not taken and (choice is not None or not utterance.amounts):
        return None
    answered = [
        answer(one, utterance.only(taken[place]), None) if place in taken else None for place, one in enumerate(opened)
    ]
    pairs = zip(opened, answered, strict=True)
    return [found or ask_again(one, is_untold=bool(loose)) for one, found in pairs]


def _place(utterance: Utterance, region: _Region, count: int, taken: Sequence[int]) -> tuple[int | None, list[_Region]]:
    """Return which question is answered by its place ("the second is 4"), -1 for one that there is not."""
    match = _PLACE.search(utterance.text, *region)
    if match is None:
        return None, [region]
    place = PLACES.get(match[1].lower(), -1)
    if match[1].lower() in {"other", "then"}:
        free = [one for one in range(count) if one not in taken]
        place = free[0] if taken and len(free) == 1 else count
    if place >= count:
        return -1, []
    return place % count, [(region[0], match.start()), (match.end(), region[1])]


def _fitting(opened: Sequence[Open], said: Utterance, taken: dict[int, list[_Region]]) -> int | None:
    """Return the one question that *said* answers: by a cue of its task, or as the only one that it fits."""
    fitting, cued = [], []
    for place, one in enumerate(opened):
        if one.task is None:
            continue
        filled = fill(said, one.task, one.slots)
        if any(cue.slot.name in filled.values for cue in one.task.cues.find(said.tokens)):
            cued.append(place)
        names = {slot.name for slot in one.slots if slot.kind != "text" or not said.amounts}
        if names & filled.values.keys() and place not in taken and _is_bare(said, allows_text=True):
            fitting.append(place)
    if cued:
        return cued[0] if len(cued) == 1 else None
    return fitting[0] if len(fitting) == 1 else None


def ask_again(one: Open, *, is_untold: bool = False) -> Single:
    """Return the question of *one* again, in the same words."""
    text = one.turn.text.removesuffix(_UNTOLD).rstrip()
    text = f"{text} {_UNTOLD}" if is_untold else text
    if one.task is None or one.turn.task is None:
        return Ambiguous(text)
    agent_id, name = one.task.key
    return Missing(agent_id, name, one.turn.task.parameters, tuple(slot.name for slot in one.slots), text)


def _clauses(text: str) -> list[_Region]:
    starts, ends = [0], []
    for match in _SEPARATOR.finditer(text):
        ends.append(match.start())
        starts.append(match.end())
    return [(start, end) for start, end in zip(starts, [*ends, len(text)], strict=True) if text[start:end].strip()]


def _is_bare(said: Utterance, *, allows_text: bool = False) -> bool:
    """Return whether *said* is a value and small words: "between 40k" and "50k or 60k" are no answers."""
    if len(said.amounts) > 1 or "or" in said.stems or "between" in said.stems:
        return False
    taken = said.value_spans
    words = [token for token in said.tokens if token.is_word and token.text not in STOP]
    others = [token for token in words if not any(start <= token.start < end for start, end in taken)]
    return allows_text or not others or not taken
