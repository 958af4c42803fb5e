"""Answers to whether several names are meant as one or each for itself: "each", "as one", "only Ada"."""

import re
from collections.abc import Sequence

from contracts.messages import ChatTurn
from supervisor.interpretation.conclusions import conclude
from supervisor.interpretation.earlier_tasks.references import Past
from supervisor.understanding.outcome import Ambiguous, Single, Span
from supervisor.interpretation.questions import names_asked
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import LIGHT, word_set

_EACH = word_set("each both all separately individually apart every everyone")
_SEVERAL = word_set("two three four several separate")
_ONE = word_set("one together whole single")
_FIRST, _SECOND = word_set("first former 1st"), word_set("second latter 2nd last")
#: What may stand beside the words that choose.
_BESIDE = LIGHT | word_set(
    "please no yes yeah ok okay sorry only just not and then mean meant want by itself themselves myself one ones name"
    " names place places text task tasks as it's that's thing person people greeting tell greet too also well"
)
#: They answer, but not what was asked.
_NEITHER = word_set("yes yeah yep no nope ok okay sure right correct exactly")
_WORDS = re.compile(r"[\w']+")


def settled_by(asking: Sequence[Past]) -> frozenset[str]:
    """Return the texts about which *asking*, the tasks with an open question, asked whether they are one name."""
    found = (names_asked(past.turn) for past in asking)
    return frozenset(asked[1] for asked in found if asked is not None and asked[1] is not None)


def told_apart(text: str, past: Past, task: Prepared) -> list[Single]:
    """Return what *text* makes of the names that *past* asked about; empty when it says something else.

    What chooses nothing ("yes") is asked again.
    """
    asked = names_asked(past.turn)
    shape = next((one for one in task.shape.fields if asked is not None and one.label == asked[0]), None)
    # What a task has already was no question of ours, but something that its agent wrote.
    if asked is None or shape is None or shape.name in past.call.parameters:
        return []
    values = _chosen(text, asked[1], asked[2])
    if values is None:
        return []
    if not values:
        call = past.call
        question = _question_in(past.turn)
        return [Ambiguous(question, past.offer.agent.agent_id, call.name, dict(call.parameters), (shape.name,))]
    return [_completed(text, past, task, shape.name, value) for value in values]


def _question_in(turn: ChatTurn) -> str:
    return turn.text[: turn.text.index("?") + 1]


def _chosen(text: str, whole: str | None, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return what *text* chooses of *names*, or *whole*; empty for neither, None when it is about something else."""
    named = tuple(name for name in names if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE))
    rest = text
    for name in named:
        rest = re.sub(rf"\b{re.escape(name)}\b", " ", rest, flags=re.IGNORECASE)
    words = [word.lower() for word in _WORDS.findall(rest)]
    said = frozenset(words)
    choosing = said & (_EACH | _SEVERAL | _ONE | _FIRST | _SECOND)
    if said - _BESIDE - choosing:
        # "Each 30" is more than was asked: better asked again than taken for a name.
        return () if said & _EACH else None
    if len(named) == 1:
        return None if "not" in said or words == ["no"] else named
    if said & (_EACH | _SEVERAL):
        return names
    if named:
        return None
    return _by_place(said, whole, names)


def _by_place(said: frozenset[str], whole: str | None, names: tuple[str, ...]) -> tuple[str, ...] | None:
    if whole is None:
        if said & _FIRST:
            return names[:1]
        return names[-1:] if said & _SECOND else (() if said & _NEITHER else None)
    if said & _SECOND:
        return names
    if said & (_ONE | _FIRST) or said == {"as", "it", "is"}:
        return (whole,)
    return () if said and said <= _NEITHER else None


def _completed(text: str, past: Past, task: Prepared, name: str, value: str) -> Single:
    """Return the task of *past* with *value*, which the person chose in *text*."""
    filled = Filled(values={**past.call.parameters, name: value})
    for known in past.call.parameters:
        filled.spans.append(Span(known, 0, len(past.turn.text), past.turn.text, past.turn.turn_id))
    filled.point(name, 0, len(text), text)
    return conclude(task, filled)
