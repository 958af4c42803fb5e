"""How a task stands, in the words that everybody has: the trace, lists, answers and HTTP."""

from datetime import datetime

from pydantic import ValidationError

from tasklore.contracts.admission.waits import RunWait, explain_wait
from tasklore.contracts.messages import TaskAssignment
from tasklore.memory.ledger.ledger import Generation


def describe_state(task: Generation) -> str:
    """Return the word for how *task* stands.

    It is `accepted`, `running`, `waiting` for its next run, `cancelling`, or the status of its report.
    """
    return "cancelling" if task.report is None and task.cancel_request else task.state


def explain_state(task: Generation, now: datetime) -> RunWait | None:
    """Return why *task* waits, None where it runs or has ended, or where that is not known."""
    if task.report is not None or task.state not in ("accepted", "waiting"):
        return None
    if task.state == "waiting" or task.assignment is None:
        return task.waits_for
    try:
        sent = TaskAssignment.model_validate_json(task.assignment)
    except ValidationError:
        return task.waits_for
    return explain_wait(
        task.waits_for,
        agent_id=sent.agent_id,
        sent_at=sent.created_at,
        begins_at=sent.waits_from,
        now=now,
    )
