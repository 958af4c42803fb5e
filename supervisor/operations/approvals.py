"""Approvals: questions that tasks ask persons, their answers, and links that answer them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Protocol
from urllib.parse import urlsplit

from pydantic import Field, JsonValue

from tasklore.contracts.admission.waits import parse_wait_id
from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_rows import tenant_in
from tasklore.memory.ledger.waits import Waits, WaitState
from tasklore.supervisor.approvals.answers import (
    AnswerRefused,
    Answers,
    demand_question,
)
from tasklore.supervisor.approvals.links import (
    LINK_ROLE,
    PATH,
    ApprovalLink,
    Links,
)
from tasklore.supervisor.approvals.questions import (
    ApprovalQuestion,
    list_questions,
    view_of,
)
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.persons import as_person, refuse_answer
from tasklore.supervisor.operations.refusals import Refused, not_found
from tasklore.supervisor.operations.table import Shows, operation

ApprovalId = Annotated[
    str, Field(max_length=80, description="The id of a question, from the list.")
]
_Digest = Annotated[
    str | None,
    Field(
        pattern=r"^[0-9a-f]{32}$",
        description="Digest of the question you saw; the answer is refused if the "
        "question has changed.",
    ),
]
#: Addresses at which a process listens to all that reach its machine, and at which nobody reaches it.
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - looked for, not listened at
#: How long a link may answer: 29 days.
_LONGEST_S = 2_505_600


class ApprovalLooks(Protocol):
    """A holder of the store of questions, and of the ledger, which knows whose task asks."""

    @property
    def waits(self) -> Waits:
        """The store of questions."""

    @property
    def ledger(self) -> Ledger:
        """The ledger of their tasks."""


@dataclass(frozen=True, kw_only=True)
class ApprovalStore:
    """The store of questions and the ledger alone."""

    waits: Waits
    ledger: Ledger


@dataclass(frozen=True, kw_only=True)
class ApprovalServices:
    """The services of operations of approvals; `links` None: no secret signs them."""

    answers: Answers
    ledger: Ledger
    links: Links | None

    @property
    def waits(self) -> Waits:
        """The store of questions."""
        return self.answers.waits


class Questions(View):
    """Open questions that the caller may answer."""

    approvals: tuple[ApprovalQuestion, ...]


class ApprovalReply(Form):
    """An answer; with *digest* it counts only for the question that had it."""

    answer: Annotated[
        JsonValue,
        Field(
            description="The answer, matching the schema of the question.",
            json_schema_extra={"x-cli": {"metavar": "JSON"}},
        ),
    ]
    digest: _Digest = None


class Decision(Form):
    """A yes or a no; with *digest* it counts only for the question that had it."""

    note: Annotated[
        str, Field(max_length=2000, description="Reason; shown to the task.")
    ] = ""
    digest: _Digest = None
    dry_run: Annotated[
        bool, Field(strict=True, description="Only show the question; send no answer.")
    ] = False


class LinkWish(Form):
    """In whose name a link answers, `user:ana` or `role:finance`, and for how long."""

    who: Annotated[
        str,
        Field(
            max_length=261,
            description="Who may answer by it, such as user:ana or role:finance.",
        ),
    ]
    within_seconds: Annotated[
        int, Field(ge=1, le=_LONGEST_S, description="How long the link is valid.")
    ] = 86_400


class SignedLink(View):
    """A link that answers one question once."""

    url: str
    expires_at: datetime


@operation(
    "approvals",
    "list",
    "GET /v1/approvals",
    roles=("approve", "ask"),
    shows=Shows(
        rows="approvals",
        columns=("id", "until", "agent_id", "who", "question"),
        example="approvals list",
    ),
)
async def list_approvals(
    services: ApprovalLooks,
    caller: Caller,
    *,
    limit: Annotated[
        int, Field(ge=1, le=1000, description="Maximum number of questions.")
    ] = 100,
    task_id: Annotated[
        str | None,
        Field(
            pattern=NAME_PATTERN,
            description="Only questions of this task.",
            json_schema_extra={"x-cli": {"option": "--task", "metavar": "TASK"}},
        ),
    ] = None,
) -> Questions:
    """List the questions that wait for your answer, the next deadline first; those of one task in their own order.

    Raises:
        MemoryUnavailable: the ledger does not answer.
    """
    if task_id is not None:
        return Questions(
            approvals=await _list_of_task(services, caller, limit, task_id)
        )
    found = await list_questions(
        services.waits,
        limit,
        lambda one: (
            caller.own_tenant in (None, tenant_in(one.assignment))
            and _may_see(caller, one)
        ),
        with_assignments=caller.own_tenant is not None,
    )
    return Questions(approvals=found)


@operation(
    "approvals",
    "show",
    "GET /v1/approvals/{approval_id}",
    roles=("approve", "ask"),
    problems=(404,),
    shows=Shows(example="approvals show 0199c1d2.1"),
)
async def show_approval(
    services: ApprovalLooks, caller: Caller, approval_id: ApprovalId
) -> ApprovalQuestion:
    """Show a question, its answer, and the rejected answers: who, when, and by which interface.

    Raises:
        Refused: 404, there is none for the caller.
    """
    task_id, state = await _demand(services, caller, approval_id)
    return view_of(task_id, state)


@operation(
    "approvals",
    "answer",
    "POST /v1/approvals/{approval_id}",
    roles=("approve", "ask"),
    problems=(404, 409),
    shows=Shows(
        arguments=("answer",),
        example="""approvals answer 0199c1d2.1 '{"account": "savings"}'""",
    ),
)
async def answer_approval(
    services: ApprovalServices,
    caller: Caller,
    approval_id: ApprovalId,
    reply: ApprovalReply,
) -> ApprovalQuestion:
    """Answer a question. The first answer counts; the task continues at once.

    Raises:
        Refused: 404, there is none; 403, it asks others; 409, it is answered, over, or another one by now.
        InvalidInput: the answer does not fit it.
    """
    return await _answer(services, caller, approval_id, reply)


@operation(
    "approvals",
    "approve",
    "POST /v1/approvals/{approval_id}/approve",
    roles=("approve", "ask"),
    problems=(404, 409),
    shows=Shows(
        confirm="Approve {approval_id}?", example="approvals approve 0199c1d2.1"
    ),
)
async def approve(
    services: ApprovalServices,
    caller: Caller,
    approval_id: ApprovalId,
    decision: Decision,
) -> ApprovalQuestion:
    """Answer yes to the question as it is shown. The first answer counts; the task continues at once.

    Raises:
        Refused: as for any answer.
    """
    return await _decide(services, caller, approval_id, decision, approved=True)


@operation(
    "approvals",
    "reject",
    "POST /v1/approvals/{approval_id}/reject",
    roles=("approve", "ask"),
    problems=(404, 409),
    shows=Shows(
        confirm="Reject {approval_id}?",
        example="approvals reject 0199c1d2.1 --note 'twice this month'",
    ),
)
async def reject(
    services: ApprovalServices,
    caller: Caller,
    approval_id: ApprovalId,
    decision: Decision,
) -> ApprovalQuestion:
    """Answer no to the question as it is shown. The first answer counts; the task continues at once.

    Raises:
        Refused: as for any answer.
    """
    return await _decide(services, caller, approval_id, decision, approved=False)


@operation(
    "approvals",
    "link",
    "POST /v1/approvals/{approval_id}/links",
    roles=(LINK_ROLE,),
    problems=(404,),
    shows=Shows(arguments=("who",), example="approvals link 0199c1d2.1 role:finance"),
)
async def link_approval(
    services: ApprovalServices,
    caller: Caller,
    approval_id: ApprovalId,
    wish: LinkWish,
    *,
    base_url: str,
) -> SignedLink:
    """Create a link by which one person can answer a question, once.

    The link becomes invalid when the API key that created it is removed.

    Raises:
        Refused: 404, there is no such question, no secret that signs links, or no address for them; 403, the key
            answers as others.
    """
    if services.links is None:
        raise not_found(
            "links require TASKLORE_APPROVAL_SECRET; set it for every supervisor"
        )
    _, state = await _demand(services, caller, approval_id)
    maker = as_person(caller)
    if caller.user is not None and wish.who not in (maker.names or ()):
        detail = f"who: this key is for one user, and answers as none but {', '.join(sorted(maker.names or ()))}"
        raise Refused(403, "other-user", f"{detail}; use a key without a user")
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(
        seconds=wish.within_seconds
    )
    made = ApprovalLink(
        approval_id=approval_id,
        digest=state.wait.digest,
        who=wish.who,
        expires=int(expires.timestamp()),
        made_by=maker.name,
        maker=services.links.makers.holder_of(caller),
    )
    address = (services.links.address or base_url).rstrip("/")
    if urlsplit(address).hostname in _EVERYWHERE:
        raise not_found(
            "links are unavailable, as the address of this supervisor is not reachable "
            "from outside; set TASKLORE_APPROVAL_URL for every supervisor"
        )
    return SignedLink(
        url=f"{address}{PATH}{services.links.make(made)}", expires_at=expires
    )


OPERATIONS = (
    list_approvals,
    show_approval,
    answer_approval,
    approve,
    reject,
    link_approval,
)
#: Those that answer nothing.
OPERATOR_OPERATIONS = (list_approvals, show_approval)


async def _list_of_task(
    services: ApprovalLooks, caller: Caller, limit: int, task_id: str
) -> tuple[ApprovalQuestion, ...]:
    """Return open questions of one task, in its own order."""
    if not await _is_of_tenant(services, caller, task_id):
        return ()
    return await list_questions(
        services.waits, limit, lambda one: _may_see(caller, one), task_id=task_id
    )


async def _decide(
    services: ApprovalServices,
    caller: Caller,
    approval_id: str,
    decision: Decision,
    *,
    approved: bool,
) -> ApprovalQuestion:
    if decision.dry_run:
        task_id, state = await _demand(services, caller, approval_id)
        return view_of(task_id, state)
    reply = ApprovalReply(
        answer={"approved": approved, "note": decision.note}, digest=decision.digest
    )
    return await _answer(services, caller, approval_id, reply)


async def _answer(
    services: ApprovalServices, caller: Caller, approval_id: str, reply: ApprovalReply
) -> ApprovalQuestion:
    task_id, slot = parse_wait_id(approval_id)
    if not await _is_of_tenant(services, caller, task_id):
        raise _no_question(approval_id)
    try:
        await services.answers.answer(
            task_id, slot, reply.answer, as_person(caller), digest=reply.digest
        )
        return view_of(task_id, await services.answers.read(task_id, slot))
    except AnswerRefused as refused:
        raise refuse_answer(refused) from refused


def _may_see(caller: Caller, state: WaitState) -> bool:
    sees_all = "admin" in caller.roles and caller.user is None
    return sees_all or as_person(caller).may_answer(state, datetime.now(UTC))


async def _demand(
    services: ApprovalLooks, caller: Caller, approval_id: str
) -> tuple[str, WaitState]:
    """Return the task and the state of a question that *caller* may see.

    Raises:
        Refused: 404, there is none.
    """
    task_id, slot = parse_wait_id(approval_id)
    if not await _is_of_tenant(services, caller, task_id):
        raise _no_question(approval_id)
    try:
        state = await demand_question(services.waits, task_id, slot)
    except AnswerRefused as refused:
        raise refuse_answer(refused) from refused
    if not _may_see(caller, state):
        raise _no_question(approval_id)
    return task_id, state


def _no_question(approval_id: str) -> Refused:
    return not_found(f"there is no question {approval_id!r} for you")


async def _is_of_tenant(services: ApprovalLooks, caller: Caller, task_id: str) -> bool:
    """Return whether a task is one of the tenant of *caller*; True for a caller of none."""
    if caller.own_tenant is None:
        return True
    entry = await services.ledger.read(await services.ledger.name(task_id))
    tenant = None if entry is None else await services.ledger.tenant_of(entry)
    return caller.own_tenant == tenant


def for_supervisor(parts: SupervisorDependencies) -> ApprovalServices:
    """Return the services of operations of approvals in a supervisor."""
    return ApprovalServices(
        answers=parts.answers, ledger=parts.ledger, links=parts.links
    )


def for_operator(parts: OperatorDependencies) -> ApprovalStore:
    """Return the stores of looks at approvals by the rights of an operator."""
    return ApprovalStore(waits=Waits(parts.redis), ledger=parts.ledger)


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(for_supervisor, OPERATIONS),
    operator=serve(for_operator, OPERATOR_OPERATIONS),
)
