"""What became of a request that asked for several tasks, told from the ledger and the conversation.

No record says which tasks these are: their ids follow from that of the request.
"""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from contracts.messages import ChatTurn, CompletionReport, PersonReply, ReplyPart, TaskAssignment
from memory.ledger.requests import PartEnd, RequestEnd
from supervisor.http.parts import Parts
from supervisor.http.replies import Cancelled, cancelled
from supervisor.replies.combined import combined
from supervisor.replies.wording import describe_failure, describe_result
from supervisor.requests.first_readings import PartRead
from supervisor.requests.incoming import part_task_id
from supervisor.understanding.segments import MOST_TASKS

log = structlog.get_logger(__name__)

_Model = TypeVar("_Model", bound=BaseModel)
#: What is said of a part when nothing of its answer is there.
_GONE = "Something went wrong with this, or what was answered is no longer kept. Ask for it again."


class PartTask(NamedTuple):
    """One task of such a request: its assignment, which is not kept once it has ended, and then its report."""

    task_id: str
    assignment: TaskAssignment | None
    report: CompletionReport | None

    @property
    def agent_id(self) -> str | None:
        """Who has it, or had."""
        known = self.report or self.assignment
        return known.agent_id if known is not None else None


async def tasks_of(parts: Parts, whole: str) -> dict[int, PartTask]:
    """Return the tasks that are part of *whole*, the id that the one task of the request would have, by their places.

    Raises:
        MemoryUnavailable: the ledger does not answer.
    """
    places = range(1, MOST_TASKS + 1)
    entries = await asyncio.gather(*(parts.ledger.read(part_task_id(whole, place)) for place in places))
    found = {}
    for place, entry in zip(places, entries, strict=True):
        if entry is not None:
            newest = entry.generations[entry.newest]
            assignment = read_body(TaskAssignment, newest.assignment)
            report = read_body(CompletionReport, newest.report)
            found[place] = PartTask(part_task_id(whole, place), assignment, report)
    return found


def rebuilt(
    parts: Parts,
    request_id: str,
    conversation_id: str,
    end: RequestEnd,
    tasks: Mapping[int, PartTask],
    answers: Mapping[int, ChatTurn],
) -> PersonReply:
    """Return the reply as it was, out of what is kept of each of its parts."""
    told = [
        _rebuilt_part(parts, one, tasks.get(place), answers.get(place)) for place, one in enumerate(end.parts, start=1)
    ]
    reply = combined(told, request_id=request_id, conversation_id=conversation_id)
    return reply.model_copy(update={"elapsed_ms": end.elapsed_ms})


def _rebuilt_part(parts: Parts, end: PartEnd, task: PartTask | None, turn: ChatTurn | None) -> ReplyPart:
    report = task.report if task is not None else None
    if turn is not None:
        text = turn.text
    elif report is not None:
        offer = parts.catalogue().find(report.agent_id, report.task_name)
        card = offer.task if offer is not None else None
        text = describe_result(report, card) if report.status == "completed" else describe_failure(report)
    else:
        text = _GONE
    assignment = task.assignment if task is not None else None
    return ReplyPart.model_validate(
        {
            "kind": end.kind,
            "text": text,
            "task_id": task.task_id if task is not None else None,
            "agent_id": turn.agent_id if turn is not None else task.agent_id if task is not None else None,
            "task": turn.task if turn is not None else assignment.task if assignment is not None else None,
            "missing": end.missing,
            "report": report,
        }
    )


def ended_part(parts: Parts, task: PartTask, read: PartRead | None) -> ReplyPart | None:
    """Return what came of one *task*, which was read as *read*, while others go on; None while it goes on, too."""
    report = task.report
    if report is None:
        return None
    call = read.task if read is not None else None
    if report.status == "completed":
        offer = parts.catalogue().find(report.agent_id, report.task_name)
        how = (read.remembered, read.computed) if read is not None else ()
        text = describe_result(report, offer.task if offer is not None else None, call, *how)
    else:
        text = describe_failure(report)
    return ReplyPart(
        kind="answer" if report.status == "completed" else "failed",
        text=text,
        task_id=task.task_id,
        agent_id=report.agent_id,
        task=call,
        report=report,
    )


async def cancelled_whole(parts: Parts, whole: str, reason: str) -> Cancelled:
    """Cancel a request: its one task, or each of several; return what came of it.

    It is `cancelled` when anything of it was, and `too_late` when all of it had ended.

    Raises:
        MemoryUnavailable: the ledger does not answer.
    """
    # The wish stands before its tasks are looked for: one that is handed over after that finds it, being a child of it.
    came = [await cancelled(parts, whole, reason)]
    if came[0].outcome == "noted":
        tasks = await tasks_of(parts, whole)
        came += await asyncio.gather(*(cancelled(parts, one.task_id, reason) for one in tasks.values()))
    for outcome in ("cancelled", "too_late"):
        if found := [one for one in came if one.outcome == outcome]:
            return found[0]
    return came[0]


def read_body(model: type[_Model], body: bytes | None) -> _Model | None:
    """Return *body* as a *model*; None when there is none, or nobody can read it."""
    if body is None:
        return None
    try:
        return model.model_validate_json(body)
    except ValidationError:
        log.warning("unreadable", model=model.__name__)
        return None
