"""The routes of questions that tasks ask persons."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import Field, JsonValue

from tasklore.contracts.admission.waits import parse_wait_id
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.memory.ledger.run_rows import tenant_in
from tasklore.memory.ledger.waits import WaitState
from tasklore.supervisor.approvals.answers import AnswerRefused
from tasklore.supervisor.approvals.links import Link
from tasklore.supervisor.approvals.questions import (
    ApprovalQuestion,
    list_questions,
    view_of,
)
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.approvals.page import PATH
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.persons import as_person, refuse_answer
from tasklore.supervisor.operations.refusals import Refused, not_found

ApprovalId = Annotated[
    str, Path(max_length=80, description="The id of a question, as the list says.")
]
_MANAGING = Depends(require_role("admin"))
_ANSWERING = Depends(require_role("approve", "ask"))


class Questions(View):
    """Open questions that the caller may answer."""

    approvals: tuple[ApprovalQuestion, ...]


class ApprovalReply(Form):
    """An answer; with *digest* it counts only for the question that had it."""

    answer: JsonValue
    digest: Annotated[str | None, Field(pattern=r"^[0-9a-f]{32}$")] = None


class LinkWish(Form):
    """In whose name a link answers, `user:ana` or `role:finance`, and for how many seconds."""

    who: Annotated[str, Field(max_length=261)]
    within_seconds: Annotated[int, Field(ge=1, le=2_505_600)] = 86_400


class SignedLink(View):
    """A link that answers one question once."""

    url: str
    expires_at: datetime


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes below `/v1/approvals`."""
    router = APIRouter(prefix="/v1", tags=["approvals"])

    @router.get(
        "/approvals",
        operation_id="approvals_list",
        summary="List the questions that wait for you",
        responses=answers(),
    )
    async def list_open(
        caller: Annotated[Caller, _ANSWERING],
        limit: Annotated[
            int, Query(ge=1, le=1000, description="Questions at most.")
        ] = 100,
        task_id: Annotated[
            str | None,
            Query(pattern=NAME_PATTERN, description="Those of this task alone."),
        ] = None,
    ) -> Questions:
        return Questions(approvals=await _list_open(parts, caller, limit, task_id))

    @router.get(
        "/approvals/{approval_id}",
        operation_id="approvals_show",
        summary="See a question and its answer",
        responses=answers(404),
    )
    async def see(
        approval_id: ApprovalId, caller: Annotated[Caller, _ANSWERING]
    ) -> ApprovalQuestion:
        task_id, state = await _demand(parts, caller, approval_id)
        return view_of(task_id, state)

    @router.post(
        "/approvals/{approval_id}",
        operation_id="approvals_answer",
        summary="Answer a question",
        responses=answers(404, 409),
    )
    async def answer(
        approval_id: ApprovalId,
        body: ApprovalReply,
        caller: Annotated[Caller, _ANSWERING],
    ) -> ApprovalQuestion:
        task_id, slot = parse_wait_id(approval_id)
        if not await _is_of_tenant(parts, caller, task_id):
            raise _no_question(approval_id)
        try:
            await parts.answers.answer(
                task_id, slot, body.answer, as_person(caller), digest=body.digest
            )
        except AnswerRefused as refused:
            raise refuse_answer(refused) from refused
        return view_of(task_id, await parts.answers.read(task_id, slot))

    @router.post(
        "/approvals/{approval_id}/links",
        operation_id="approvals_link",
        summary="Make a link that answers a question",
        responses=answers(404),
    )
    async def link(
        approval_id: ApprovalId,
        body: LinkWish,
        request: Request,
        caller: Annotated[Caller, _MANAGING],
    ) -> SignedLink:
        if parts.links is None:
            raise not_found(
                "there are no links without TASKLORE_APPROVAL_SECRET; set it for every supervisor"
            )
        _, state = await _demand(parts, caller, approval_id)
        maker = as_person(caller)
        if caller.user is not None and body.who not in (maker.names or ()):
            detail = f"who: this key is for one user, and answers as none but {', '.join(sorted(maker.names or ()))}"
            raise Refused(403, "other-user", f"{detail}; use a key without a user")
        expires = datetime.now(UTC).replace(microsecond=0) + timedelta(
            seconds=body.within_seconds
        )
        made = Link(
            approval_id=approval_id,
            digest=state.wait.digest,
            who=body.who,
            expires=int(expires.timestamp()),
            made_by=maker.name,
        )
        address = (parts.links.address or str(request.base_url)).rstrip("/")
        return SignedLink(
            url=f"{address}{PATH}{parts.links.make(made)}", expires_at=expires
        )

    return router


async def _list_open(
    parts: ApiParts, caller: Caller, limit: int, task_id: str | None
) -> tuple[ApprovalQuestion, ...]:
    """Return open questions that *caller* may answer, of all tasks or of one."""
    waits = parts.answers.waits
    if task_id is not None:
        if not await _is_of_tenant(parts, caller, task_id):
            return ()
        return await list_questions(
            waits, limit, lambda one: _may_see(caller, one), task_id=task_id
        )
    if caller.own_tenant is None:
        return await list_questions(waits, limit, lambda one: _may_see(caller, one))
    return await list_questions(
        waits,
        limit,
        lambda one: (
            tenant_in(one.assignment) == caller.own_tenant and _may_see(caller, one)
        ),
        with_assignments=True,
    )


def _may_see(caller: Caller, state: WaitState) -> bool:
    sees_all = "admin" in caller.roles and caller.user is None
    return sees_all or as_person(caller).may_answer(state, datetime.now(UTC))


async def _demand(
    parts: ApiParts, caller: Caller, approval_id: str
) -> tuple[str, WaitState]:
    """Return the task and the state of a question that *caller* may see.

    Raises:
        Refused: 404, there is none.
    """
    task_id, slot = parse_wait_id(approval_id)
    if not await _is_of_tenant(parts, caller, task_id):
        raise _no_question(approval_id)
    try:
        state = await parts.answers.read(task_id, slot)
    except AnswerRefused as refused:
        raise refuse_answer(refused) from refused
    if not _may_see(caller, state):
        raise _no_question(approval_id)
    return task_id, state


def _no_question(approval_id: str) -> Refused:
    return not_found(f"there is no question {approval_id!r} for you")


async def _is_of_tenant(parts: ApiParts, caller: Caller, task_id: str) -> bool:
    """Return whether the task *task_id* is one of the tenant of *caller*; True for a caller of none."""
    if caller.own_tenant is None:
        return True
    ledger = parts.for_tasks.ledger
    entry = await ledger.read(await ledger.name(task_id))
    tenant = None if entry is None else await ledger.tenant_of(entry)
    return caller.own_tenant == tenant
