"""Which of several likely tasks a person chose who was asked: "the first", "the budget one", the agent's name."""

from collections.abc import Sequence

from contracts.messages import ChatTurn
from supervisor.interpretation.picks import pick
from supervisor.interpretation.questions import tasks_asked
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared, Router
from supervisor.interpretation.words import stems_of


def offered_by(turn: ChatTurn | None, router: Router) -> tuple[Prepared, ...]:
    """Return the tasks that *turn* asked to choose from, in its order; empty when it asked something else."""
    if turn is None or turn.speaker != "assistant":
        return ()
    by_name = {(task.offer.agent.agent_id, task.offer.label): task for task in router.tasks}
    return tuple(by_name[name] for name in tasks_asked(turn) if name in by_name)


def chosen_of(scene: Scene, offered: Sequence[Prepared]) -> tuple[Prepared, ...] | None:
    """Return those of *offered* that *scene* names, by their places or by words that only one has.

    Empty for none of them, None when it names nothing.
    """
    if (places := pick(scene.text, len(offered), may_be_digit=True)) is not None:
        return tuple(offered[place] for place in places)
    said = {token.stem for token in scene.tokens if token.is_word}
    own = [task.names | set(stems_of(task.offer.agent.agent_id)) | set(stems_of(task.offer.label)) for task in offered]
    shared = frozenset.intersection(*(frozenset(names) for names in own)) if len(own) > 1 else frozenset()
    counts = [len(said & (names - shared)) for names in own]
    best = max(counts, default=0)
    return (offered[counts.index(best)],) if best and counts.count(best) == 1 else None
