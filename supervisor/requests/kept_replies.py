"""Kept replies: how a reply lies beside the record of its request, and is read again as it was.

A small reply is kept whole. The results of a large one stay in the ledger, where they lie for as long anyway: it is
kept without them and without the words that repeat them, and they are put back when it is read.
"""

from typing import Any, ClassVar, NamedTuple, TypeVar

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import CompletionReport, PersonReply, ReplyPart
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import Reply
from tasklore.supervisor.replies.combined import join_parts
from tasklore.supervisor.replies.report_texts import has_result
from tasklore.supervisor.requests.outcome_parts import read_body

log = structlog.get_logger(__name__)

#: Bytes of a reply that is kept whole; a result beyond that is in the ledger alone, which is paid for once.
MOST_BYTES = 32 * 1024
#: Stands for words that repeated a result which the ledger no longer has.
_GONE = "The result is no longer kept. Ask for it again."

_Answer = TypeVar("_Answer", PersonReply, ReplyPart)


class KeptReply(BaseModel):
    """A reply as it is kept; places are 0 for the whole, and those of its parts from 1.

    At those `left_out` the result is in the ledger alone. At those `cut` the words are without their beginning: that of
    the whole without those of its parts, the others without a result that is a text.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    reply: PersonReply
    left_out: tuple[int, ...] = Field(default=(), exclude_if=lambda places: not places)
    cut: tuple[int, ...] = Field(default=(), exclude_if=lambda places: not places)


def spell_reply(reply: PersonReply, user_id: str | None) -> Reply:
    """Return *reply* as it is kept; its words are those of *user_id*, None for a nameless one's."""
    body = KeptReply(reply=reply).model_dump_json().encode()
    if len(body) > MOST_BYTES:
        body = _leave_out(reply).model_dump_json().encode()
    return Reply(body, user_id)


async def read_reply(body: bytes, ledger: Ledger) -> PersonReply | None:
    """Return the reply in *body* as it was made; None when this version cannot read it.

    Raises:
        MemoryUnavailable: the ledger, which has a part of it, does not answer.
    """
    try:
        kept = KeptReply.model_validate_json(body)
    except ValidationError:
        log.warning("unreadable_reply")
        return None
    reply = kept.reply
    if not reply.parts:
        return await _put_back(ledger, kept, 0, reply)
    parts = [
        await _put_back(ledger, kept, place, part)
        for place, part in enumerate(reply.parts, 1)
    ]
    spoken = join_parts(parts) if 0 in kept.cut else ""
    return reply.model_copy(
        update={"parts": tuple(parts), "text": f"{spoken}{reply.text}"}
    )


class FailedTask(NamedTuple):
    """A task that failed: *generation* is that which did, None where nothing was known to be started."""

    name: str
    generation: int | None


def failed_tasks_of(reply: PersonReply, task_id: str) -> list[FailedTask]:
    """Return the tasks that *reply* says have failed, in the order of its parts; *task_id* is that of a single one."""
    failed = [
        (part.task_id, part.report) for part in reply.parts if part.kind == "failed"
    ]
    if reply.kind == "failed" and not reply.parts:
        failed = [(task_id, reply.report)]
    return [
        FailedTask(own_id, None)
        if report is None
        else FailedTask(TaskName(report.agent_id, report.task_id), report.generation)
        for own_id, report in failed
        if own_id is not None
    ]


def _leave_out(reply: PersonReply) -> KeptReply:
    """Return *reply* without its results."""
    left_out: list[int] = []
    cut: list[int] = []

    def shorten(place: int, answer: _Answer) -> _Answer:
        report = answer.report
        if report is None or report.result is None:
            return answer
        left_out.append(place)
        text = answer.text
        if isinstance(report.result, str) and text.startswith(report.result):
            cut.append(place)
            text = text.removeprefix(report.result)
        bare = report.model_copy(update={"result": None})
        return answer.model_copy(update={"text": text, "report": bare})

    if reply.parts:
        spoken = join_parts(reply.parts)
        if reply.text.startswith(spoken):
            cut.append(0)
            reply = reply.model_copy(update={"text": reply.text.removeprefix(spoken)})
        parts = tuple(shorten(place, part) for place, part in enumerate(reply.parts, 1))
        reply = reply.model_copy(update={"parts": parts})
    else:
        reply = shorten(0, reply)
    return KeptReply(reply=reply, left_out=tuple(left_out), cut=tuple(cut))


async def _put_back(
    ledger: Ledger, kept: KeptReply, place: int, answer: _Answer
) -> _Answer:
    """Return *answer*, kept at *place*, with its result from the ledger."""
    report = answer.report
    if place not in kept.left_out or report is None:
        return answer
    result = await _find_result(ledger, report)
    spoken = ""
    if place in kept.cut:
        spoken = result if isinstance(result, str) else _GONE
    whole = report.model_copy(update={"result": result})
    return answer.model_copy(update={"text": f"{spoken}{answer.text}", "report": whole})


async def _find_result(ledger: Ledger, report: CompletionReport) -> Any:
    """Return the result that *report* is kept without, None when it is there no longer."""
    task_id = TaskName(report.agent_id, report.task_id)
    body = await ledger.find_report(task_id, report.generation)
    found = read_body(CompletionReport, body)
    return found.result if found is not None and has_result(found) else None
