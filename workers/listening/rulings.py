"""Check rulings against the draft that they name, and turn them into closings of rows."""

from collections import Counter
from collections.abc import Sequence

from tasklore.contracts.errors import TaskloreError
from tasklore.memory.documents.draft import AppliedPlan
from tasklore.memory.queues.claims import Closing
from tasklore.workers.listening.values import FactBatch, Ruling

#: Characters of a reason that stand in the table beside a fact.
MAX_REASON = 2_000


def closings_of(
    label: str,
    batch: FactBatch,
    rulings: Sequence[Ruling],
    applied: Sequence[AppliedPlan],
) -> list[Closing]:
    """Return how the rows of *batch* are closed; *label* names the listener in errors.

    Raises:
        TaskloreError: a fact has no ruling or two, one that was applied has no plan in the draft, or the draft holds a
            plan that no ruling speaks of. Nothing of the draft may be stored then.
    """
    due = Counter(pending.fact.fact_id for pending in batch.facts)
    ruled = Counter(ruling.fact_id for ruling in rulings)
    for fact_id in [*due, *ruled]:
        if ruled[fact_id] != due[fact_id]:
            msg = f"{label} ruled {ruled[fact_id]} times on fact {fact_id!r}; return one Ruling for each of the batch"
            raise TaskloreError(msg)
    in_draft = {one.plan.plan_id for one in applied}
    named = set[str]()
    for ruling in rulings:
        if ruling.plan is None:
            if ruling.outcome == "applied":
                raise TaskloreError(
                    f"{label} ruled {ruling.fact_id!r} applied without a plan; say which one it was"
                )
            continue
        if ruling.plan.plan_id not in in_draft:
            msg = f"{label} names plan {ruling.plan.plan_id!r}, which the draft lacks; hand it to context.draft.apply"
            raise TaskloreError(msg)
        named.add(ruling.plan.plan_id)
    if in_draft - named:
        msg = f"{label} applied plan {min(in_draft - named)!r}, of which no ruling speaks; name it in one"
        raise TaskloreError(msg)
    return [_closing_of(ruling) for ruling in rulings]


def _closing_of(ruling: Ruling) -> Closing:
    plan_id = ruling.plan.plan_id if ruling.plan is not None else None
    reason = ruling.reasoning[:MAX_REASON]
    match ruling.outcome:
        case "applied":
            return Closing(
                row_id=ruling.fact_id, state="done", reason=reason, plan_id=plan_id
            )
        case "known":
            return Closing(
                row_id=ruling.fact_id,
                state="done",
                reason=f"known: {reason}" if reason else "known",
                plan_id=plan_id,
            )
        case outcome:
            return Closing(
                row_id=ruling.fact_id, state=outcome, reason=reason, plan_id=plan_id
            )
