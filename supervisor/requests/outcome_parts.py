"""A request that asked for several tasks, as far as it has come: its tasks, from the ledger, and their cancellation.

No record lists these tasks: their ids follow from that of the request.
"""

import asyncio
from typing import NamedTuple, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from tasklore.contracts.messages import CompletionReport, ReplyPart, TaskAssignment
from tasklore.memory.ledger.ledger import Ledger
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.operations.forms import Cancelled
from tasklore.supervisor.replies.report_texts import has_result, word_report
from tasklore.supervisor.requests.readings import PartRead
from tasklore.supervisor.requests.request import part_task_id
from tasklore.supervisor.understanding.rules import MOST_TASKS

log = structlog.get_logger(__name__)

_Model = TypeVar("_Model", bound=BaseModel)


class PartTask(NamedTuple):
    """One task of such a request: its assignment until it has ended, and then its report."""

    task_id: str
    assignment: TaskAssignment | None
    report: CompletionReport | None

    @property
    def agent_id(self) -> str | None:
        """The agent of the task."""
        known = self.report or self.assignment
        return known.agent_id if known is not None else None


async def read_tasks(ledger: Ledger, whole: str) -> dict[int, PartTask]:
    """Return the tasks that are part of *whole*, the id that the one task of the request would have, by their places.

    Raises:
        MemoryUnavailable: the ledger does not answer.
    """
    places = range(1, MOST_TASKS + 1)
    entries = await asyncio.gather(
        *(ledger.read(part_task_id(whole, place)) for place in places)
    )
    found = {}
    for place, entry in zip(places, entries, strict=True):
        if entry is not None:
            newest = entry.generations[entry.newest]
            assignment = read_body(TaskAssignment, newest.assignment)
            report = read_body(CompletionReport, newest.report)
            found[place] = PartTask(part_task_id(whole, place), assignment, report)
    return found


def build_part(
    catalogue: Catalogue, task: PartTask, read: PartRead | None
) -> ReplyPart | None:
    """Return the reply of one *task*, which was read as *read*, while others go on; None while it goes on, too."""
    report = task.report
    if report is None:
        return None
    call = read.task if read is not None else None
    card = catalogue.card_of(report.agent_id, report.task_name)
    how = (read.remembered, read.computed) if read is not None else ()
    return ReplyPart(
        kind="answer" if has_result(report) else "failed",
        **word_report(report, card, call, *how)._asdict(),
        task_id=task.task_id,
        agent_id=report.agent_id,
        task=call,
        report=report,
    )


async def cancel_task(canceller: Canceller, task_id: str, reason: str) -> Cancelled:
    """Cancel a task and return the result.

    Raises:
        MemoryUnavailable: the ledger does not answer.
    """
    found = await canceller.cancel(task_id, reason)
    return Cancelled(outcome=found.outcome, status=found.status)


async def cancel_request(
    canceller: Canceller, ledger: Ledger, whole: str, reason: str
) -> Cancelled:
    """Cancel a request: its one task, or each of several; return the result.

    It is `cancelled` when anything of it was, and `too_late` when all of it had ended.

    Raises:
        MemoryUnavailable: the ledger does not answer.
    """
    # Noted before its tasks are looked for: one that is handed over after that is cancelled as a child of it.
    found = [await cancel_task(canceller, whole, reason)]
    if found[0].outcome == "noted":
        tasks = await read_tasks(ledger, whole)
        found += await asyncio.gather(
            *(cancel_task(canceller, one.task_id, reason) for one in tasks.values())
        )
    order = ("cancelled", "too_late", "noted")
    return min(found, key=lambda one: order.index(one.outcome))


def read_body(model: type[_Model], body: bytes | None) -> _Model | None:
    """Return *body* as a *model*; None when there is none, or it cannot be read."""
    if body is None:
        return None
    try:
        return model.model_validate_json(body)
    except ValidationError:
        log.warning("unreadable", model=model.__name__)
        return None
