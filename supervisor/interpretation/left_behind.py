"""Questions that were left open when the person spoke of something else, and are answered later in a few words."""

from collections.abc import Iterator, Sequence

from contracts.messages import ChatTurn
from supervisor.interpretation.earlier_tasks.references import Past, past_tasks
from supervisor.understanding.outcome import Ambiguous, Interpretation, Missing, Single, Understood, Unfitting
from supervisor.interpretation.picks import BESIDE
from supervisor.interpretation.questions import fields_asked, is_left
from supervisor.interpretation.reading import SentenceReader
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared, Router
from supervisor.interpretation.words import STOP

#: Questions so far behind that nobody remembers them are as good as answered.
_MOST = 4
#: Anything answers a question for one of these, and a yes any for the other.
_LOOSE = frozenset({"text", "boolean", "other"})


def answer_left_behind(
    scene: Scene,
    found: Interpretation,
    router: Router,
    previous: Sequence[ChatTurn],
    past: Sequence[Past],
    asking: Sequence[Past],
) -> Single | None:
    """Return what *scene* makes of a question that was left behind, where it says no more than that.

    Only where *found*, what it comes to otherwise, is nothing or lacks a value. *asking* are the tasks that the last
    turns asked about.
    """
    if not isinstance(found, Unfitting | Missing):
        return None
    choice = router.choose(scene)
    for place in _left_open(previous, past, asking):
        before = previous[: place + 1]
        reading = SentenceReader(router, before, past_tasks(before, router.catalogue))
        asked = reading.past[0]
        answered = reading.answer(scene, choice)
        if _completes(answered, found, asked, reading.prepared(asked), scene):
            return answered
    return None


def _left_open(previous: Sequence[ChatTurn], past: Sequence[Past], asking: Sequence[Past]) -> list[int]:
    """Return where in *previous* the questions stand that nobody answered, the latest first.

    None of *asking*, those of the last turn, and none about a task that was spoken of again since.
    """
    places = {id(turn): place for place, turn in enumerate(previous)}
    given_up = max((place for place, turn in enumerate(previous) if is_left(turn)), default=-1)
    seen: set[tuple[str, str]] = set()
    found = []
    for one in past:
        name = one.offer.agent.agent_id, one.call.name
        place = places.get(id(one.turn), -1)
        if name not in seen and one not in asking and "?" in one.turn.text and place > given_up:
            found.append(place)
        seen.add(name)
    return found[:_MOST]


def _completes(answered: Single | None, found: Interpretation, asked: Past, task: Prepared, scene: Scene) -> bool:
    """Return whether *answered*, which *scene* makes of the question *asked*, is better than *found* without it."""
    if not isinstance(answered, Understood | Missing | Ambiguous):
        return False
    if isinstance(found, Missing):
        is_same = (found.agent_id, found.task_name) == (asked.offer.agent.agent_id, asked.call.name)
        return is_same and isinstance(answered, Understood) and found.known.keys().isdisjoint(asked.call.parameters)
    values = answered.task.parameters if isinstance(answered, Understood) else answered.known
    kinds = {shape.name: shape.kind for shape in task.shape.fields}
    news = [name for name in values if name not in asked.call.parameters]
    asks = {shape.name for shape in fields_asked(asked.turn, task.shape)}
    is_told = bool(news) and asks.issuperset(news) and all(kinds[name] not in _LOOSE for name in news)
    return is_told and not any(_unread(scene, answered, task))


def _unread(scene: Scene, answered: Understood | Missing | Ambiguous, task: Prepared) -> Iterator[str]:
    """Yield the words of *scene* that are no part of the answer: a sentence of its own has some."""
    read = [(span.start, span.end) for span in answered.spans if span.source is None]
    read += [(scene.tokens[cue.first].start, scene.tokens[cue.end - 1].end) for cue in task.cues.find(scene.tokens)]
    for token in scene.tokens:
        if token.is_word and token.text not in STOP | BESIDE and not any(a <= token.start < b for a, b in read):
            yield token.text
