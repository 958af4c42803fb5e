"""The routes of questions that tasks ask persons, and of signals to tasks."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field, JsonValue

from contracts.identifiers import NAME_PATTERN
from contracts.waits import Answer, Refusal, parse_wait_id, wait_id
from memory.ledger.waits import WaitState
from supervisor.approvals.answers import AnswerRefused
from supervisor.http.admission.keys import Caller, require_role
from supervisor.http.parts import ApiParts
from supervisor.http.problems import Refused, answers, not_found
from supervisor.http.responses import Form, View
from supervisor.http.tasks import TaskId, read_task

ApprovalId = Annotated[str, Path(max_length=80, description="The id of a question, as the list says.")]
SignalName = Annotated[str, Path(pattern=NAME_PATTERN, description="The name of the signal.")]

_ASKING = Depends(require_role("ask"))
_ANSWERING = Depends(require_role("approve", "ask"))


class Answered(View):
    """The answer that counts: by whom, when, and through which door."""

    value: JsonValue
    by: str
    at: datetime
    door: str


class Question(View):
    """A question that a task asks: *who* may answer now, empty for everybody, and until when.

    `answer_schema` None takes `{"approved": true or false, "note": "why"}`. `digest` is of this very question.
    """

    id: str
    state: Literal["open", "answered", "expired", "ended"]
    question: str
    task_id: str
    agent_id: str
    task: str
    who: tuple[str, ...]
    asked_at: datetime
    until: datetime
    digest: str
    answer_schema: dict[str, Any] | None = None
    answer: Answered | None = None
    refused: tuple[Refusal, ...] = ()


class Questions(View):
    """Open questions that the caller may answer."""

    approvals: tuple[Question, ...]


class Reply(Form):
    """An answer; with *digest* it counts only for the question that had it."""

    answer: JsonValue
    digest: Annotated[str | None, Field(pattern=r"^[0-9a-f]{32}$")] = None


class Signal(Form):
    """The value of a signal."""

    value: JsonValue = None


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes below `/v1/approvals`, and of signals."""
    router = APIRouter(prefix="/v1", tags=["approvals"])

    @router.get("/approvals", summary="List the questions that wait for you")
    async def list_open(
        caller: Annotated[Caller, _ANSWERING], limit: Annotated[int, Query(ge=1, le=1000)] = 100
    ) -> Questions:
        found = []
        for name in await parts.answers.waits.list_open("ask", 10_000):
            state = await parts.answers.waits.read(name.task_id, name.slot)
            if state is not None and _may_see(caller, state):
                question = view_of(name.task_id, state)
                found += [question] if question.state == "open" else []
            if len(found) >= limit:
                break
        return Questions(approvals=tuple(found))

    @router.get("/approvals/{approval_id}", summary="See a question and its answer", responses=answers(404))
    async def see(approval_id: ApprovalId, caller: Annotated[Caller, _ANSWERING]) -> Question:
        task_id, state = await _demand(parts, caller, approval_id)
        return view_of(task_id, state)

    @router.post("/approvals/{approval_id}", summary="Answer a question", responses=answers(404, 409))
    async def answer(approval_id: ApprovalId, body: Reply, caller: Annotated[Caller, _ANSWERING]) -> Question:
        try:
            task_id, slot = parse_wait_id(approval_id)
            await parts.answers.answer(task_id, slot, body.answer, caller.as_person(), digest=body.digest)
        except AnswerRefused as refused:
            raise refuse(refused) from refused
        return view_of(task_id, await parts.answers.read(task_id, slot))

    @router.post("/tasks/{task_id}/signals/{name}", summary="Send a signal to a task", responses=answers(404, 409))
    async def signal(task_id: TaskId, name: SignalName, body: Signal, caller: Annotated[Caller, _ASKING]) -> Answered:
        await read_task(parts, caller, task_id)
        try:
            sent = await parts.answers.signal(task_id, name, body.value, caller.as_person())
        except AnswerRefused as refused:
            raise refuse(refused) from refused
        return _answered(sent)

    return router


def view_of(task_id: str, state: WaitState) -> Question:
    """Return the question in *state* as it stands now."""
    wait, now = state.wait, datetime.now(UTC)
    stands: Literal["open", "answered", "expired", "ended"] = "open"
    if state.answer is not None and state.answer.door != "time":
        stands = "answered"
    elif state.answer is not None or now > wait.until:
        stands = "expired"
    elif state.has_report:
        stands = "ended"
    return Question(
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
        answer=None if state.answer is None else _answered(state.answer),
        refused=state.refusals,
    )


def refuse(refused: AnswerRefused) -> Refused:
    """Return the problem that says why an answer does not count."""
    status = {"unknown": 404, "person": 403}.get(refused.why, 409)
    return Refused(status, f"approval-{refused.why}", str(refused))


def _answered(answer: Answer) -> Answered:
    return Answered(value=answer.value, by=answer.by, at=answer.at, door=answer.door)


def _may_see(caller: Caller, state: WaitState) -> bool:
    return "admin" in caller.roles or caller.as_person().may_answer(state, datetime.now(UTC))


async def _demand(parts: ApiParts, caller: Caller, approval_id: str) -> tuple[str, WaitState]:
    """Return the task and the state of a question that *caller* may see.

    Raises:
        Refused: 404, there is none.
    """
    task_id, slot = parse_wait_id(approval_id)
    try:
        state = await parts.answers.read(task_id, slot)
    except AnswerRefused as refused:
        raise refuse(refused) from refused
    if not _may_see(caller, state):
        raise not_found(f"there is no question {approval_id!r} for you")
    return task_id, state
