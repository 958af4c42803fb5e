"""The routes of typed tasks: for programs that know agent and task, without a word of interpretation."""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

import structlog
from fastapi import APIRouter, Depends, Path
from pydantic import ConfigDict, Field, JsonValue, WithJsonSchema, model_validator
from starlette.requests import Request
from starlette.responses import Response

from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import NAME_PATTERN, Name, new_id
from tasklore.contracts.message_parts import is_none
from tasklore.contracts.messages import CompletionReport, TaskAssignment, TaskCall
from tasklore.memory.ledger.ledger import LedgerEntry
from tasklore.memory.ledger.requests import RequestRecord, place_of
from tasklore.memory.ledger.task_state import describe_state, explain_state
from tasklore.memory.ledger.task_tree import TaskTree, Trace
from tasklore.memory.webhooks.outbox import Callback, WebhookOutbox
from tasklore.supervisor.catalogue import Offer
from tasklore.supervisor.dispatch import MOST_AHEAD, RoomCheck
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.owners import demand_conversation, task_place
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.http.requests.routes import (
    IdempotencyKey,
    claim_record,
    demand_kept,
    is_known,
)
from tasklore.supervisor.http.responses import (
    ACCEPTED,
    cancel_task,
    respond_json,
    while_connected,
)
from tasklore.supervisor.operations.card_fit import demand_fit, demand_task
from tasklore.supervisor.operations.forms import Cancelled, Later, View, digest_of
from tasklore.supervisor.operations.refusals import Fault, Refused, not_found, unusable
from tasklore.supervisor.requests.request import whole_task_id
from tasklore.supervisor.service import MAX_ATTEMPTS
from tasklore.supervisor.webhooks.addresses import NotAllowed

log = structlog.get_logger(__name__)

TaskId = Annotated[
    str,
    Path(
        pattern=NAME_PATTERN, description="The id of a task, as the answer to it says."
    ),
]
_ASKING = Depends(require_role("ask"))
#: How long after its deadline, or its start where it has none, the address of a task is kept: longer than any wait.
_CALLS_BACK = timedelta(days=40)
#: The name of a task, or the call as assignments have it.
_CALL = {
    "anyOf": [
        {"type": "string", "pattern": NAME_PATTERN},
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": NAME_PATTERN},
                "parameters": {"type": "object"},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
    ]
}


class TaskOptions(Later):
    """How a task is sent, and how long its answer is waited for."""

    user: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=256,
            description="In whose name, and with whose memory; that of the key, where it has one.",
        ),
    ] = None
    tenant: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description="Whose budgets it spends; that of the key, where it has one.",
        ),
    ] = None
    priority: Annotated[
        Literal["interactive", "normal", "batch"],
        Field(description="Whose turn is sooner where tasks of an agent wait."),
    ] = "normal"
    conversation: Annotated[
        str | None,
        Field(
            min_length=1, max_length=256, description="The conversation it belongs to."
        ),
    ] = None
    memory: Annotated[
        Literal["use", "refresh", "bypass"],
        Field(
            description="Whether a remembered result may serve, is computed anew and kept, or neither."
        ),
    ] = "use"
    within_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=604_800,
            description="How long it may take from its start, its time in the queue included.",
        ),
    ] = None
    max_attempts: Annotated[
        int | None,
        Field(ge=1, le=1000, description="Runs at most, the first included."),
    ] = None
    wait_seconds: Annotated[
        float,
        Field(
            ge=0, le=600, description="How long the answer waits for the task's end."
        ),
    ] = 30.0
    callback_url: Annotated[
        str | None,
        Field(
            description="Hears of its end, and of questions that it asks, by signed webhooks."
        ),
    ] = None


class Send(TaskOptions):
    """A task for an agent.

    `task` is its name, or an object of `name` and `parameters`, as in the assignments on the wire. `agent_id` may be
    left out where one agent alone has a task of that name.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    agent_id: Name | None = None
    task: Annotated[Name, WithJsonSchema(_CALL)]
    parameters: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, body: Any) -> Any:
        """Take the name and the parameters out of an object `task`."""
        call = body.get("task") if isinstance(body, dict) else None
        if not isinstance(call, dict):
            return body
        if unknown := call.keys() - {"name", "parameters"}:
            named = ", ".join(str(name)[:100] for name in sorted(unknown)[:3])
            raise ValueError(f"task has {named}; give it `name` and `parameters` alone")
        if "parameters" in body and "parameters" in call:
            raise ValueError("give `parameters` once, in `task` or beside it")
        flat = {"parameters": call["parameters"]} if "parameters" in call else {}
        return {**body, "task": call.get("name"), **flat}


class Sent(View):
    """A task now: `accepted`, `running`, or `done` with its one report, whatever its status.

    `cancelled` has no report, or none yet: it was cancelled before it was sent, or while it waited, and will not run.
    `status` is the same in the words of the trace and of lists: `accepted`, `running`, `waiting` for its next run,
    `cancelling`, or the status of its report. `due` is when an accepted task may begin, left out where that is at once.
    `waits_for` is why it waits, left out where it does not, or where that is not known.
    """

    task_id: str
    state: Literal["accepted", "running", "cancelled", "done"]
    status: str
    report: CompletionReport | None = None
    due: datetime | None = Field(default=None, exclude_if=is_none)
    waits_for: RunWait | None = Field(default=None, exclude_if=is_none)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """One task to send; *chosen* is the id that its sender gave it, None when it gave none.

    One that is not *is_bounded* is sent however much its sender keeps.
    """

    offer: Offer
    parameters: dict[str, Any]
    user_id: str | None
    conversation_id: str | None
    chosen: str | None
    memory: Literal["use", "refresh", "bypass"] = "use"
    within_s: float | None = None
    max_attempts: int | None = None
    priority: Literal["interactive", "normal", "batch"] = "normal"
    starts_at: datetime | None = None
    callback: Callback | None = None
    is_bounded: bool = True


_SENT = {202: {"model": Sent, **ACCEPTED}, **answers(404, 409)}


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes below `/v1/tasks`."""
    router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

    @router.post(
        "",
        operation_id="tasks_send",
        summary="Send a task to an agent",
        response_model=Sent,
        responses=_SENT,
    )
    async def send(
        body: Send,
        request: Request,
        caller: Annotated[Caller, _ASKING],
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        sent = await send_and_wait(
            parts,
            request,
            caller,
            agent_id=body.agent_id,
            task=body.task,
            parameters=body.parameters,
            place="parameters.",
            options=body,
            chosen=idempotency_key,
        )
        return respond_json(
            sent, f"/v1/tasks/{sent.task_id}", is_done=sent.report is not None
        )

    @router.get(
        "/{task_id}",
        operation_id="tasks_show",
        summary="See what became of a task",
        responses=answers(404),
    )
    async def see(task_id: TaskId, caller: Annotated[Caller, _ASKING]) -> Sent:
        return await read_task(parts, caller, task_id)

    @router.get(
        "/{task_id}/trace",
        operation_id="tasks_trace",
        summary="See the tree of the tasks that a task called",
        responses=answers(404),
    )
    async def trace(task_id: TaskId, caller: Annotated[Caller, _ASKING]) -> Trace:
        await read_task(parts, caller, task_id)
        if (found := await TaskTree(parts.redis).read(task_id)) is None:
            raise not_found(
                f"there is nothing of task {task_id!r} in the ledger yet, or it is past its time"
            )
        return found

    @router.delete(
        "/{task_id}",
        operation_id="tasks_cancel",
        summary="Cancel a task",
        responses=answers(404),
    )
    async def cancel(task_id: TaskId, caller: Annotated[Caller, _ASKING]) -> Cancelled:
        await read_task(parts, caller, task_id)
        return await cancel_task(parts, task_id, f"cancelled by {caller.name}")

    return router


async def send_and_wait(
    parts: ApiParts,
    request: Request,
    caller: Caller,
    *,
    agent_id: str | None,
    task: str,
    parameters: dict[str, JsonValue],
    place: str,
    options: TaskOptions,
    chosen: str | None,
) -> Sent:
    """Send *task* as *options* say it, and return its state once it has ended, or they wait no longer.

    *place* is where the body has *parameters*, *chosen* the id that the sender gave the task. None as *agent_id*
    is the one agent that has such a task.

    Raises:
        ClientDisconnect: the client left; the task goes on.
        Refused: as `send_task`; 403, it is for another user; 404, there is no such task; 422, it cannot be sent so,
            or its agent rejected it.
    """
    user_id = caller.demand_user(options.user)
    sender = caller.for_tenant(options.tenant)
    offer = demand_task(parts.catalogue(), agent_id, task)
    demand_fit(offer.task, parameters, place)
    await demand_conversation(parts, caller, options.conversation)
    new = NewTask(
        offer=offer,
        parameters=parameters,
        user_id=user_id,
        conversation_id=options.conversation,
        chosen=chosen,
        memory=options.memory,
        within_s=options.within_seconds,
        max_attempts=options.max_attempts,
        priority=options.priority,
        starts_at=_demand_kept(options.find_start(datetime.now(UTC))),
        callback=_demand_callback(parts, options.callback_url, user_id, sender),
    )
    sent = await while_connected(
        request.receive, send_task(parts, sender, new, options.wait_seconds)
    )
    demand_accepted(sent.report)
    return sent


async def send_task(
    parts: ApiParts, caller: Caller, task: NewTask, wait_s: float
) -> Sent:
    """Send *task*, once for an id that was chosen, and return its state after *wait_s* seconds at the latest.

    Raises:
        OwnerFull: the caller keeps too much; nothing was kept.
        Refused: 409, another task came under that id.
            503, it was sent and its id could not be kept.
        NotAccepted: it is not known to be stored; send it again with the same id.
    """
    now = datetime.now(UTC)
    assignment = _make_assignment(parts, caller, task, now)
    body = assignment.model_dump(
        mode="json", exclude={"caller", "created_at", "deadline", "not_before"}
    )
    callback = task.callback
    if task.starts_at is not None and task.starts_at > now + timedelta(seconds=wait_s):
        wait_s = 0.0
    place = task_place(caller, assignment.task_id)
    # A repeat of what was accepted takes no room, and is answered however much its sender keeps.
    if task.is_bounded and (task.chosen is None or not await is_known(parts, place)):
        beside = len(callback.model_dump_json().encode()) if callback else 0
        await parts.dispatch.demand_room(assignment, beside)
    record = RequestRecord(
        digest=digest_of(
            {
                **body,
                "within_s": task.within_s,
                **({"callback": callback.url} if callback else {}),
            }
        ),
        task_id=assignment.task_id,
        at_ms=int(now.timestamp() * 1000),
    )
    is_new = await claim_record(parts, place, record, task.chosen)
    awaited = asyncio.ensure_future(
        parts.reports.report_of(assignment, wait_s, is_new=is_new)
    )
    leaving = asyncio.ensure_future(parts.life.leaving.wait())
    try:
        if is_new or await parts.ledger.read(assignment.named) is None:
            if callback is not None:
                until = (assignment.deadline or assignment.waits_from) + _CALLS_BACK
                await WebhookOutbox(parts.redis).await_task(
                    assignment.task_id, callback, until
                )
            room: RoomCheck = "checked" if task.is_bounded else "counted"
            await parts.dispatch.assign(assignment, room=room)
        await asyncio.wait({awaited, leaving}, return_when=asyncio.FIRST_COMPLETED)
        report = awaited.result() if awaited.done() else None
    finally:
        awaited.cancel()
        leaving.cancel()
        await asyncio.gather(awaited, leaving, return_exceptions=True)
    if report is None:
        await demand_kept(parts, place, record)
        return await _see_unfinished(parts, assignment, has_waited=wait_s > 0)
    return to_sent(report)


async def _see_unfinished(
    parts: ApiParts, assignment: TaskAssignment, *, has_waited: bool
) -> Sent:
    """Return *assignment* as the ledger has it by now where its sender *has_waited*, else as it was sent."""
    if has_waited:
        try:
            entry = await parts.ledger.read(assignment.named)
        except MemoryUnavailable as error:
            log.info("task_not_seen", task_id=assignment.task_id, error=str(error))
        else:
            if entry is not None:
                return _view_entry(entry)
    return Sent(
        task_id=assignment.task_id,
        state="accepted",
        status="accepted",
        due=assignment.not_before,
    )


def _demand_kept(starts_at: datetime | None) -> datetime | None:
    """Return *starts_at* when a message can wait so long.

    Raises:
        Refused: 422, it lies too far ahead.
    """
    if starts_at is not None and starts_at > datetime.now(UTC) + MOST_AHEAD:
        words = f"a task waits for {MOST_AHEAD.days} days at most; POST /v1/schedules with that `at` instead"
        raise unusable([Fault(where="at", message=words)])
    return starts_at


def _demand_callback(
    parts: ApiParts, url: str | None, user_id: str | None, caller: Caller
) -> Callback | None:
    """Return *url* as the address of a task.

    Raises:
        Refused: 422, webhooks are off, or may not go there.
    """
    if url is None:
        return None
    if parts.webhooks is None:
        words = "there are no webhooks without TASKLORE_WEBHOOK_SECRET; set it for every supervisor"
        raise unusable([Fault(where="callback_url", message=words)])
    try:
        return parts.webhooks.make_callback(url, user_id, caller)
    except NotAllowed as error:
        raise unusable([Fault(where="callback_url", message=str(error))]) from error


def demand_accepted(report: CompletionReport | None) -> None:
    """Return unless the agent refused the parameters.

    Raises:
        Refused: 422, with the agent's own words.
    """
    if report is not None and report.status == "rejected":
        detail = (
            report.error.message
            if report.error is not None
            else "the agent could not take the parameters"
        )
        raise Refused(422, "rejected", detail)


def _make_assignment(
    parts: ApiParts, caller: Caller, task: NewTask, now: datetime
) -> TaskAssignment:
    card = task.offer.task
    within_s = task.within_s or card.deadline_s
    # Two callers may choose one id, and a program on NATS may have chosen it too.
    chosen_id = (
        f"t-{place_of(caller.space, 'task', task.chosen)}" if task.chosen else None
    )
    return TaskAssignment(
        task_id=chosen_id or new_id(time.time_ns() // 1_000_000),
        agent_id=task.offer.agent.agent_id,
        supervisor_id=parts.supervisor_id,
        task=TaskCall(name=card.name, parameters=task.parameters),
        created_at=now,
        deadline=(task.starts_at or now) + timedelta(seconds=within_s)
        if within_s
        else None,
        has_own_deadline=task.within_s is None if within_s else None,
        max_attempts=min(
            task.max_attempts or card.max_attempts, card.max_attempts or MAX_ATTEMPTS
        ),
        memory=task.memory,
        user_id=task.user_id,
        caller=caller,
        priority=task.priority if task.priority != "normal" else None,
        conversation_id=task.conversation_id,
        not_before=task.starts_at,
    )


async def read_task(parts: ApiParts, caller: Caller, task_id: str) -> Sent:
    """Return the state of a task that *caller* may see.

    Raises:
        Refused: 404, there is none.
        MemoryUnavailable: the store does not answer.
    """
    # One of several tasks of a request is its sender's as the request is.
    whole = whole_task_id(task_id)
    known = await parts.records.find(task_place(caller, whole or task_id))
    entry = await parts.ledger.read(await parts.ledger.name(task_id))
    # A key for one user sees what was sent, or asked for, with it; any other, every task there is.
    is_unknown = known.record is None and (caller.user is not None or entry is None)
    if is_unknown or (whole is not None and entry is None):
        raise not_found(f"there is no task {task_id!r}, or it is past its time")
    if entry is None:
        return Sent(task_id=task_id, state="accepted", status="accepted")
    return _view_entry(entry)


def _view_entry(entry: LedgerEntry) -> Sent:
    task_id = entry.task_id
    newest = entry.generations[entry.newest]
    if newest.report is not None:
        return to_sent(CompletionReport.model_validate_json(newest.report))
    status = describe_state(newest)
    if newest.state == "running":
        return Sent(task_id=task_id, state="running", status=status)
    if newest.wish is not None:
        return Sent(task_id=task_id, state="cancelled", status=status)
    due = (
        TaskAssignment.model_validate_json(newest.assignment).not_before
        if newest.assignment
        else None
    )
    return Sent(
        task_id=task_id,
        state="accepted",
        status=status,
        due=due if newest.state == "accepted" else None,
        waits_for=explain_state(newest, datetime.now(UTC)),
    )


def to_sent(report: CompletionReport) -> Sent:
    """Return the state of a task that ended with *report*."""
    return Sent(
        task_id=report.task_id, state="done", status=report.status, report=report
    )
