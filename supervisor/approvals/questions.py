"""Questions of tasks as people see them: their state, who is asked, and the audit of their answers."""

import heapq
from collections.abc import Callable
from datetime import UTC, datetime
from operator import not_
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from tasklore.contracts.admission.waits import WaitAnswer, WaitRefusal, wait_id
from tasklore.contracts.message_parts import is_none
from tasklore.memory.ledger.waits import Waits, WaitState

#: Open waits among which questions are looked for.
_MOST = 10_000
#: Questions that are read in one round trip, and with the assignments of their tasks, which may be long.
_PAGE = 1_000
_PAGE_OF_WHOLE = 50


class Answered(BaseModel):
    """The answer that counts: who gave it, when, and through which door."""

    model_config = ConfigDict(frozen=True)

    value: JsonValue
    by: str
    at: datetime
    door: str
    made_by: str | None = Field(default=None, exclude_if=is_none)


class OpenQuestion(BaseModel):
    """A question that a task asks: *who* may answer now, empty for everybody, and until when.

    `answer_schema` None takes `{"approved": true or false, "note": "why"}`. `digest` is of this very question.
    """

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: str
    question: str
    task_id: str
    agent_id: str
    task: str
    who: tuple[str, ...]
    asked_at: datetime
    until: datetime
    digest: str
    answer_schema: dict[str, Any] | None = None


class ApprovalQuestion(OpenQuestion):
    """A question with its state; `refused_left_out` is how many answers did not count beside those in `refused`."""

    state: Literal["open", "answered", "expired", "ended"]
    answer: Answered | None = None
    refused: tuple[WaitRefusal, ...] = ()
    refused_left_out: int = Field(default=0, exclude_if=not_)


async def list_questions(
    waits: Waits,
    limit: int,
    is_shown: Callable[[WaitState], bool],
    *,
    task_id: str | None = None,
    with_assignments: bool = False,
) -> tuple[ApprovalQuestion, ...]:
    """Return up to *limit* open questions that are to be shown, those that end first, in that order.

    Of one task it is those that it asks now, in its own order.

    *is_shown* is asked of each; of all tasks together *with_assignments* of theirs, where it looks at these.

    Raises:
        MemoryUnavailable: the ledger did not answer in time.
    """
    if task_id is not None:
        asked = [
            view_of(task_id, state)
            for state in await waits.of(task_id)
            if state.wait.kind == "ask" and is_shown(state)
        ]
        return tuple(one for one in asked if one.state == "open")[:limit]
    found: list[ApprovalQuestion] = []
    names = await waits.list_open("ask", _MOST)
    size = _PAGE_OF_WHOLE if with_assignments else _PAGE
    for first in range(0, len(names), size):
        page = names[first : first + size]
        states = await waits.read_many(page, with_assignments=with_assignments)
        for name, state in zip(page, states, strict=True):
            if (
                state is not None
                and is_shown(state)
                and (one := view_of(name.task_id, state)).state == "open"
            ):
                found.append(one)
        # Which ones end first is known of all alone.
        found = heapq.nsmallest(limit, found, key=lambda one: (one.until, one.id))
    return tuple(found)


def view_of(task_id: str, state: WaitState) -> ApprovalQuestion:
    """Return the question in *state* as it stands now."""
    wait = state.wait
    now = datetime.now(UTC)
    stands: Literal["open", "answered", "expired", "ended"] = "open"
    if state.answer is not None and state.answer.door != "time":
        stands = "answered"
    elif state.answer is not None or now > wait.until:
        stands = "expired"
    elif state.has_report or state.is_withdrawn:
        stands = "ended"
    return ApprovalQuestion(
        id=wait_id(task_id, wait.slot),
        state=stands,
        question=wait.text,
        task_id=task_id,
        agent_id=wait.agent_id,
        task=wait.task_name,
        who=wait.those_asked(now),
        asked_at=wait.asked_at,
        until=wait.until,
        digest=wait.digest,
        answer_schema=wait.answer_schema,
        answer=None if state.answer is None else view_answer(state.answer),
        refused=state.refusals,
        refused_left_out=state.left_out,
    )


def view_answer(answer: WaitAnswer) -> Answered:
    """Return *answer* as people see it."""
    return Answered(
        value=answer.value,
        by=answer.by,
        at=answer.at,
        door=answer.door,
        made_by=answer.made_by,
    )
