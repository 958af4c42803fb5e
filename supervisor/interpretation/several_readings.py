"""A model's reading of a sentence that asks for several tasks: each call proven like a single one, beside the others.

The rules have cut the sentence, and know how many tasks it asks for. A model may add to one of them what the rules left
open, and may say what a part is for that the rules cannot place; that is put to the person as a question. Whatever else
it names, and whoever it names that nobody is, changes nothing.
"""

from collections.abc import Sequence

import structlog

from supervisor.interpretation.believing import as_filled, conclude_with, named_by, offered_as, put_as_question
from supervisor.interpretation.open_questions import is_unplaced
from supervisor.understanding.outcome import Missing, Several, Single, Span, Understood, Unfitting
from supervisor.interpretation.proof.claims import CallReading
from supervisor.interpretation.proof.proving import Sources, add_proven
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.wishes.routing import Prepared, Router
from supervisor.interpretation.wishes.several import MOST_TASKS

log = structlog.get_logger(__name__)

#: A call of a model, with the task that it names.
_Call = tuple[Prepared, CallReading]


def may_add(part: Single, beside: Several) -> bool:
    """Return whether a model could add anything to *part*, and it is plain to which part of *beside* it would."""
    if isinstance(part, Unfitting):
        is_open = True
    elif isinstance(part, Missing):
        is_open = not part.doubted and not is_unplaced(part.question)
    else:
        is_open = isinstance(part, Understood) and not part.is_certain
    return is_open and sum(_task_of(one) == _task_of(part) for one in beside.parts) == 1


def judge_several(
    calls: Sequence[CallReading], by_rules: Several, router: Router, sources: Sources
) -> tuple[Single, ...]:
    """Return the parts of *by_rules*, improved by what of *calls* is proven."""
    known = [(task, call) for call in calls[:MOST_TASKS] if (task := router.find(call.agent_id, call.task_name))]
    if len(known) < len(calls):
        log.info("llm_calls_dropped", calls=len(calls) - len(known))
    parts = list(by_rules.parts)
    for place, part in enumerate(parts):
        if not may_add(part, by_rules):
            continue
        beside = [span for other, one in enumerate(parts) if other != place for span in getattr(one, "spans", ())]
        if isinstance(part, Unfitting):
            others = [one for one in known if not any(_task_of(each) == offered_as(one[0]) for each in by_rules.parts)]
            parts[place] = _asked_about(others, sources, beside) or part
        elif isinstance(part, Understood | Missing):
            meant = [one for one in known if offered_as(one[0]) == named_by(part)]
            parts[place] = _completed(part, meant, sources, beside)
    return tuple(parts)


def _completed(part: Understood | Missing, meant: Sequence[_Call], sources: Sources, beside: Sequence[Span]) -> Single:
    """Return *part* with what the one call of *meant* proves for it."""
    if len(meant) != 1:
        return part
    [(task, call)] = meant
    filled = as_filled(part)
    unsure = add_proven(filled, task, call.values, sources, elsewhere=beside)
    return conclude_with(task, filled, unsure) if filled.spans != list(part.spans) or filled.doubts else part


def _asked_about(others: Sequence[_Call], sources: Sources, beside: Sequence[Span]) -> Single | None:
    """Return the question whether the one call of *others* is meant by words that the rules cannot place."""
    if len(others) != 1:
        return None
    [(task, call)] = others
    filled = Filled()
    unsure = add_proven(filled, task, call.values, sources, elsewhere=beside)
    return put_as_question(task, filled, unsure)


def _task_of(part: Single) -> tuple[str | None, str | None]:
    if isinstance(part, Unfitting):
        return None, None
    return part.agent_id, part.task.name if isinstance(part, Understood) else part.task_name
