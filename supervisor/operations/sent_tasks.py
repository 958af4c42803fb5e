"""Tasks that are sent, and how one stands: for every operation that has work done."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

import structlog
from pydantic import Field
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.message_parts import is_none
from tasklore.contracts.messages import CompletionReport, TaskAssignment, TaskCall
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.ledger.ledger import Ledger, LedgerEntry
from tasklore.memory.ledger.requests import RequestRecord, RequestRecords, place_of
from tasklore.memory.ledger.task_state import describe_state, explain_state
from tasklore.memory.webhooks.outbox import Callback, WebhookOutbox
from tasklore.runtime.task_caller import TaskCaller, find_deadline
from tasklore.supervisor.approvals.answers import Answers
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.catalogue import Catalogue, Offer
from tasklore.supervisor.dispatch import Dispatch, RoomCheck
from tasklore.supervisor.operations.forms import View, digest_of
from tasklore.supervisor.operations.idempotency import (
    claim_record,
    demand_kept,
    is_known,
)
from tasklore.supervisor.operations.owners import task_place
from tasklore.supervisor.operations.refusals import Fault, Refused, not_found, unusable
from tasklore.supervisor.reports.reports import ReportWaiter
from tasklore.supervisor.requests.request import whole_task_id
from tasklore.supervisor.service import MAX_ATTEMPTS
from tasklore.supervisor.webhooks.addresses import Addresses, NotAllowed

log = structlog.get_logger(__name__)

#: How long after its deadline, or its start where it has none, the address of a task is kept: longer than any wait.
_CALLS_BACK = timedelta(days=40)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskLooks:
    """The stores of tasks, and their cancellation: as much as an operator has without a supervisor."""

    redis: Redis
    ledger: Ledger
    records: RequestRecords
    canceller: Canceller


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskServices(TaskLooks):
    """The services of the operations of tasks.

    `webhooks` None: there are none. `leaving` is set when the process ends: waits are given up.
    """

    supervisor_id: str
    catalogue: Callable[[], Catalogue]
    dispatch: Dispatch
    reports: ReportWaiter
    conversations: Conversations
    answers: Answers
    webhooks: Addresses | None
    leaving: asyncio.Event


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


async def send_task(
    services: TaskServices, caller: Caller, task: NewTask, wait_s: float
) -> Sent:
    """Send *task*, once for an id that was chosen, and return its state after *wait_s* seconds at the latest.

    Raises:
        OwnerFull: the caller keeps too much; nothing was kept.
        Refused: 409, another task came under that id.
            503, it was sent and its id could not be kept.
        NotAccepted: it is not known to be stored; send it again with the same id.
    """
    now = datetime.now(UTC)
    assignment = _make_assignment(services, caller, task, now)
    body = assignment.model_dump(
        mode="json", exclude={"caller", "created_at", "deadline", "not_before"}
    )
    callback = task.callback
    if task.starts_at is not None and task.starts_at > now + timedelta(seconds=wait_s):
        wait_s = 0.0
    place = task_place(caller, assignment.task_id)
    # A repeat of what was accepted takes no room, and is answered however much its sender keeps.
    if task.is_bounded and (
        task.chosen is None or not await is_known(services.records, place)
    ):
        beside = len(callback.model_dump_json().encode()) if callback else 0
        await services.dispatch.demand_room(assignment, beside)
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
        tenant=assignment.tenant,
    )
    is_new = await claim_record(services.records, place, record, task.chosen)
    is_sent = not is_new and await services.ledger.read(assignment.named) is not None
    if callback is not None and not is_sent:
        until = (assignment.deadline or assignment.waits_from) + _CALLS_BACK
        await WebhookOutbox(services.redis).await_task(
            assignment.task_id, callback, until
        )
    room: RoomCheck = "checked" if task.is_bounded else "counted"
    task_caller = TaskCaller(
        send=partial(services.dispatch.assign, room=room), reports=services.reports
    )
    report = await task_caller.call(
        assignment,
        within_s=wait_s,
        is_new=is_new,
        is_sent=is_sent,
        leaving=services.leaving,
    )
    if report is None:
        await demand_kept(services.records, place, record)
        return await _see_unfinished(services, assignment, has_waited=wait_s > 0)
    return to_sent(report)


async def _see_unfinished(
    services: TaskServices, assignment: TaskAssignment, *, has_waited: bool
) -> Sent:
    """Return *assignment* as the ledger has it by now where its sender *has_waited*, else as it was sent."""
    if has_waited:
        try:
            entry = await services.ledger.read(assignment.named)
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


def demand_callback(
    services: TaskServices, url: str | None, user_id: str | None, caller: Caller
) -> Callback | None:
    """Return *url* as the address of a task.

    Raises:
        Refused: 422, webhooks are off, or may not go there.
    """
    if url is None:
        return None
    if services.webhooks is None:
        words = "webhooks require TASKLORE_WEBHOOK_SECRET; set it for every supervisor"
        raise unusable([Fault(where="callback_url", message=words)])
    try:
        return services.webhooks.make_callback(url, user_id, caller)
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
    services: TaskServices, caller: Caller, task: NewTask, now: datetime
) -> TaskAssignment:
    card = task.offer.task
    deadline = find_deadline(task.starts_at or now, card.deadline_s, task.within_s)
    # Two callers may choose one id, and a program on NATS may have chosen it too.
    chosen_id = (
        f"t-{place_of(caller.space, 'task', task.chosen)}" if task.chosen else None
    )
    return TaskAssignment(
        task_id=chosen_id or new_id(time.time_ns() // 1_000_000),
        agent_id=task.offer.agent.agent_id,
        supervisor_id=services.supervisor_id,
        task=TaskCall(name=card.name, parameters=task.parameters),
        created_at=now,
        deadline=deadline.at,
        has_own_deadline=deadline.is_own,
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


async def read_task(services: TaskLooks, caller: Caller, task_id: str) -> Sent:
    """Return the state of a task that *caller* may see.

    Raises:
        Refused: 404, there is none.
        MemoryUnavailable: the store does not answer.
    """
    # One of several tasks of a request is its sender's as the request is.
    whole = whole_task_id(task_id)
    known = await services.records.find(task_place(caller, whole or task_id))
    entry = await services.ledger.read(await services.ledger.name(task_id))
    # A key for one user sees what was sent, or asked for, with it; any other, every task there is.
    is_unknown = known.record is None and (caller.user is not None or entry is None)
    is_gone = is_unknown or (whole is not None and entry is None)
    if is_gone or not await _is_of_tenant(services, caller, known.record, entry):
        raise not_found(
            f"there is no task {task_id!r}: its record has expired "
            "(TASKLORE_LEDGER_KEEP_DAYS), no worker has received it yet, or the "
            "message was not a readable task (GET /v1/dead-letters?reason=unreadable)"
        )
    if entry is None:
        return Sent(task_id=task_id, state="accepted", status="accepted")
    return _view_entry(entry)


async def _is_of_tenant(
    services: TaskLooks,
    caller: Caller,
    record: RequestRecord | None,
    entry: LedgerEntry | None,
) -> bool:
    """Return whether a task is one of the tenant of *caller*, by the record of who sent it, or as the ledger has it."""
    if caller.own_tenant is None:
        return True
    tenant = None if record is None else record.tenant
    if tenant is None and entry is not None:
        tenant = await services.ledger.tenant_of(entry)
    return caller.may_see(caller.user, tenant)


def _view_entry(entry: LedgerEntry) -> Sent:
    task_id = entry.task_id
    newest = entry.generations[entry.newest]
    if newest.report is not None:
        return to_sent(CompletionReport.model_validate_json(newest.report))
    status = describe_state(newest)
    if newest.state == "running":
        return Sent(task_id=task_id, state="running", status=status)
    if newest.cancel_request is not None:
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
