"""One reply out of several, for the tasks of one sentence in their order."""

from collections.abc import Sequence

from tasklore.contracts import subjects
from tasklore.contracts.messages import (
    CompletionReport,
    PersonReply,
    ReplyKind,
    ReplyPart,
)

#: Kinds by precedence: the whole has the first one that a part has, so that open parts come before done ones.
_KINDS: tuple[ReplyKind, ...] = ("pending", "question", "failed", "answer", "unable")
#: Stands between the parts of a text.
BETWEEN = "\n\n"
#: Characters of the text that stay when the result does not fit.
_KEPT_WORDS = 2000


def combine(
    parts: Sequence[ReplyPart], *, request_id: str, conversation_id: str
) -> PersonReply:
    """Return *parts* as one reply: its text has theirs, numbered, and `missing` is that of the first question."""
    kinds = {part.kind for part in parts}
    return PersonReply(
        request_id=request_id,
        conversation_id=conversation_id,
        kind=next((kind for kind in _KINDS if kind in kinds), "other"),
        text=join_parts(parts),
        missing=next((part.missing for part in parts if part.kind == "question"), ()),
        parts=tuple(parts),
    )


def join_parts(parts: Sequence[ReplyPart]) -> str:
    """Return the texts of *parts* as they stand in the text of the whole."""
    return BETWEEN.join(number_part(place, part) for place, part in enumerate(parts, 1))


def number_part(place: int, part: ReplyPart) -> str:
    """Return the text of *part* as it stands at *place*, from 1, in the text of the whole."""
    return f"{place}. {part.text}"


def to_part(reply: PersonReply, task_id: str | None) -> ReplyPart:
    """Return *reply*, which is about one task, as a part of one about several."""
    return ReplyPart(
        kind=reply.kind,
        text=reply.text,
        task_id=task_id,
        agent_id=reply.agent_id,
        task=reply.task,
        missing=reply.missing,
        report=reply.report,
        approval_id=reply.approval_id,
        heading=reply.heading,
        origin=reply.origin,
        taken=reply.taken,
        waits_for=reply.waits_for,
    )


def fit(reply: PersonReply) -> PersonReply:
    """Return *reply* as it is, or without the results that would not fit into a message beside its own words.

    A text that is the result stays whole for as long as it fits without its copy in the report.
    """
    if _fits(reply):
        return reply
    if not reply.parts:
        if reply.report is None:
            return reply
        text, report = _without_copy(reply.text, reply.report)
        made = reply.model_copy(update={"text": text, "report": report})
        if report.result is None and _fits(made):
            return made
        text, report = _without_result(reply.text, reply.report)
        return reply.model_copy(update={"text": text, "report": report})
    for shorten in (_without_copy, _without_result):
        parts = list(reply.parts)
        for place in sorted(
            range(len(parts)), key=lambda place: -len(parts[place].model_dump_json())
        ):
            part = parts[place]
            if part.report is None:
                continue
            text, report = shorten(part.text, part.report)
            parts[place] = part.model_copy(update={"text": text, "report": report})
            made = combine(
                parts,
                request_id=reply.request_id,
                conversation_id=reply.conversation_id,
            )
            made = made.model_copy(update={"elapsed_ms": reply.elapsed_ms})
            if _fits(made):
                return made
    return reply


def _fits(reply: PersonReply) -> bool:
    return len(reply.model_dump_json().encode()) <= subjects.MAX_BODY


def _without_copy(text: str, report: CompletionReport) -> tuple[str, CompletionReport]:
    if isinstance(report.result, str) and text.startswith(report.result):
        return text, report.model_copy(update={"result": None})
    return text, report


def _without_result(
    text: str, report: CompletionReport
) -> tuple[str, CompletionReport]:
    where = subjects.report(report.supervisor_id, report.task_id, report.generation)
    short = (
        f"{text[:_KEPT_WORDS]}\nThe whole result is too large for a reply; its "
        f"report is kept at {where} for an hour."
    )
    return short, report.model_copy(update={"result": None})
