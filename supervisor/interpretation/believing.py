"""What becomes of a task once a model has added what it could prove: it is started, or asked about."""

from collections.abc import Set as AbstractSet

from supervisor.interpretation.conclusions import conclude
from supervisor.understanding.outcome import Ambiguous, Missing, Understood
from supervisor.interpretation.questions import ask_to_confirm
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.wishes.routing import Prepared

#: What the fields of one task come to.
Concluded = Understood | Missing | Ambiguous


def named_by(known: Understood | Missing) -> tuple[str, str]:
    """Return the agent and the task of *known*."""
    return known.agent_id, known.task.name if isinstance(known, Understood) else known.task_name


def offered_as(task: Prepared) -> tuple[str, str]:
    """Return the agent of *task* and its name."""
    return task.offer.agent.agent_id, task.offer.task.name


def as_filled(known: Understood | Missing) -> Filled:
    """Return what the rules found, without the values they only guessed at: those a model may place better."""
    values = known.task.parameters if isinstance(known, Understood) else known.known
    guessed, computed = set(getattr(known, "guessed", ())), dict(getattr(known, "computed", {}))
    return Filled(values=dict(values), spans=list(known.spans), guessed=guessed, computed=computed)


def conclude_with(task: Prepared, filled: Filled, unsure: AbstractSet[str]) -> Concluded:
    """Return what *filled* comes to; where only a model says whose value one of *unsure* is, the person is asked."""
    concluded = conclude(task, filled)
    if not unsure:
        return concluded
    if isinstance(concluded, Understood):
        return put_as_question(task, filled)
    for name in unsure:
        filled.drop(name)
    return conclude(task, filled)


def put_as_question(task: Prepared, filled: Filled, unsure: AbstractSet[str] = frozenset()) -> Concluded:
    """Return *filled* as a question that shows all of it: nothing but a model's word says that this task is meant.

    While something is missing its question shows none of it: then *unsure* is left out, and asked for.
    """
    concluded = conclude(task, filled)
    if not isinstance(concluded, Understood):
        for name in unsure:
            filled.drop(name)
        return conclude(task, filled)
    known = concluded.task.parameters
    agent_id, name = offered_as(task)
    return Ambiguous(ask_to_confirm(task.offer, known), agent_id, name, known, (), concluded.spans)
