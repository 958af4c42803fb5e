"""The last task once more for another name: "and for Bob too", "the same to Bob", "and Oslo?"."""

import re

from quantities.times import stretches
from supervisor.interpretation.earlier_tasks.references import Past
from supervisor.understanding.outcome import Span, Understood
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.listing import is_wordy
from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import word_set

_FURTHER = re.compile(
    r"\W*(?P<joint>(?:(?:and|also|now|then|ok|okay|please|plus|next)\b\W+)*)"
    r"(?P<same>(?:(?:what|how) about|(?:do )?(?:(?:the )?same|likewise|again)(?: thing)?)\s+)?(?:also\s+)?"
    r"(?:(?P<before>for|to|in|at|with|of|from)\s+)?"
    r"(?P<name>[^\W\d_][^.;:?!\n()\"]{0,80}?)"
    r"(?P<too>(?:,?\s+(?:too|as well|also|again|likewise))*)(?:,?\s+(?:please|thanks|thank you|next))*\W*",
    re.IGNORECASE,
)
#: Small words inside of one name, or between several.
_SMALL = word_set("and of de la le the da del di van von der den el al upon in to for")
#: Words of what follows; more is a sentence.
_MOST_WORDS = 12
#: Characters of a sentence that says no more than that.
_LONGEST = 160


def further_of(scene: Scene, past: Past, task: Prepared) -> Understood | None:
    """Return *past* with the name that *scene* says instead of its own, None when *scene* says anything else.

    A mere "and Bob?" is enough where the task has nothing but the name; else what announces the name, or "the same".
    """
    match = _FURTHER.fullmatch(scene.text) if len(scene.text) <= _LONGEST else None
    if match is None or not (match["joint"].strip() or match["same"] or match["too"]):
        return None
    name = match["name"].strip(" ,")
    if not _is_name(name) or any(start == 0 for start, _ in stretches(name)):
        return None
    shape = _field(past, task, match["before"])
    parameters = past.call.parameters
    if shape is None or any(one.name not in parameters for one in task.shape.required):
        return None
    if len(parameters) > 1 and not (match["same"] or match["too"] or match["before"]):
        return None
    start = match.start("name")
    spans = [Span(other, *match.span(), match[0], past.turn.turn_id) for other in parameters if other != shape.name]
    call = past.call.model_copy(update={"parameters": {**parameters, shape.name: name}})
    spans.append(Span(shape.name, start, start + len(name), name))
    return Understood(past.offer.agent.agent_id, call, tuple(spans))


def _is_name(text: str) -> bool:
    words = text.replace(",", " ").split()
    if not words or len(words) > _MOST_WORDS or not text[0].isupper():
        return False
    return all(word[0].isupper() or word in _SMALL for word in words) and words[-1][0].isupper()


def _field(past: Past, task: Prepared, before: str | None) -> FieldShape | None:
    """Return the field of one name that the last task has; of several the one that *before* announces."""
    named = [
        shape
        for shape in task.shape.fields
        if shape.kind == "text"
        and not shape.is_list
        and isinstance(past.call.parameters.get(shape.name), str)
        and not is_wordy(shape)
    ]
    if len(named) < 2:
        return named[0] if named else None
    own = [shape for shape in named if any(phrase.stems == (before,) for phrase in shape.phrases)]
    return own[0] if len(own) == 1 else None
