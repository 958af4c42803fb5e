"""Which of several likely tasks a person chose who was asked: "the first", "the budget one", the agent's name."""

import re
from collections.abc import Sequence

from contracts.messages import ChatTurn
from supervisor.interpretation.questions import tasks_asked
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared, Router
from supervisor.interpretation.words import stems_of, word_set

_ORDINALS = {
    "first": 0, "1": 0, "1st": 0, "one": 0, "former": 0, "second": 1, "2": 1, "2nd": 1, "two": 1, "third": 2, "3": 2,
    "3rd": 2, "three": 2, "fourth": 3, "4": 3, "4th": 3, "four": 3, "fifth": 4, "5": 4, "5th": 4, "last": -1,
    "latter": -1,
}  # fmt: skip
#: What may stand beside the number of a choice: more words are a sentence of their own.
_BESIDE = word_set(
    "the i mean meant want take choose pick please option number no task agent would like yes that's it's"
)
#: "The first one": the number is the other word.
_ONE = "one"
_WORDS = re.compile(r"[\w']+")


def offered_by(turn: ChatTurn | None, router: Router) -> tuple[Prepared, ...]:
    """Return the tasks that *turn* asked to choose from, in its order; empty when it asked something else."""
    if turn is None or turn.speaker != "assistant":
        return ()
    by_name = {(task.offer.agent.agent_id, task.offer.label): task for task in router.tasks}
    return tuple(by_name[name] for name in tasks_asked(turn) if name in by_name)


def chosen_of(scene: Scene, offered: Sequence[Prepared]) -> Prepared | None:
    """Return the one of *offered* that *scene* names, by its place or by words that only it has; None for none."""
    if (place := _place_in(scene.text)) is not None:
        return offered[place] if place < len(offered) else None
    said = {token.stem for token in scene.tokens if token.is_word}
    own = [task.names | set(stems_of(task.offer.agent.agent_id)) | set(stems_of(task.offer.label)) for task in offered]
    shared = frozenset.intersection(*(frozenset(names) for names in own)) if own else frozenset()
    counts = [len(said & (names - shared)) for names in own]
    best = max(counts, default=0)
    return offered[counts.index(best)] if best and counts.count(best) == 1 else None


def _place_in(text: str) -> int | None:
    """Return the place that "the second one" names, counted from 0 (-1 is the last); None for any other text."""
    words = _WORDS.findall(text.lower())
    named = [word for word in words if word in _ORDINALS]
    if len(named) == 2 and _ONE in named:
        named.remove(_ONE)
    others = [word for word in words if word not in _ORDINALS and word not in _BESIDE]
    return _ORDINALS[named[0]] if len(named) == 1 and not others else None
