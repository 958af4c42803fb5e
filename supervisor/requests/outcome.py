"""The outcome of a request: its reply as it is kept, and until there is one how far it is.

No process has to remember: a reply is kept when it is first made, and until then the ledger says how far its tasks are.
A request whose process died before that is begun again by the next look: it was read once for all, so that the same
tasks are waited for, and what has ended is answered at once. So is one that 0.2 has answered, which kept no replies.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from pydantic import Field

from tasklore.contracts.callers import Caller
from tasklore.contracts.message_parts import is_none
from tasklore.contracts.messages import (
    CompletionReport,
    PersonReply,
    PersonRequest,
    ReplyPart,
    TaskAssignment,
    TaskCall,
)
from tasklore.memory.command_batch import Commands
from tasklore.memory.conversations.inbox import is_utterance
from tasklore.memory.ledger.requests import KnownRequest, RequestRecord
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.refusals import not_found, refusal_of
from tasklore.supervisor.requests.kept_replies import (
    FailedTask,
    failed_tasks_of,
    read_reply,
)
from tasklore.supervisor.requests.outcome_parts import (
    PartTask,
    build_part,
    read_body,
    read_tasks,
)
from tasklore.supervisor.requests.readings import HeardTurn, PartRead, parse_turn
from tasklore.supervisor.requests.services import RequestServices
from tasklore.supervisor.requests.work import MOST, InFlight, is_unstarted

#: Seconds between looks at a request that another process works on.
LOOK_S = 0.5
#: Seconds that a reply may be late which says why a request is not done.
PENDING_LATE_S = 2.0
#: Messages of a conversation among which the turns of a request are looked for first, and then.
_NEAR = 50
_FAR = 2000
#: Seconds that a look waits for a request which it begins again: one of which all tasks have ended takes none.
AGAIN_S = 1.0
#: The reply to a request of which no words are left.
_LOST = (
    "This request was lost before it was understood, or what was said is no longer kept. Send it again with the same"
    " Idempotency-Key."
)


class AskedPart(View):
    """One of several tasks that a request became; `task` is null while others go on and only its end is known here.

    `reply` is there when it has ended and others go on; after that the reply to the whole has it.
    """

    task_id: str
    agent_id: str | None
    task: TaskCall | None
    reply: ReplyPart | None = Field(default=None, exclude_if=is_none)


class NeededApproval(View):
    """The question `id`, which `who` has to answer with yes before a task starts."""

    id: str
    who: str


class Lookup(View):
    """A request now: `accepted`, `running` once it is a task, `done` with its reply.

    The reply of one that runs is `pending`, and there only for who asked for it.

    Of one that asked for several tasks `parts` has those, and the fields of the one task are null. `approvals` are the
    yes of other persons that running tasks need before they start.
    """

    request_id: str
    conversation_id: str
    state: Literal["accepted", "running", "done"]
    task_id: str | None = None
    agent_id: str | None = None
    task: TaskCall | None = None
    reply: PersonReply | None = None
    parts: tuple[AskedPart, ...] = Field(default=(), exclude_if=lambda parts: not parts)
    approvals: tuple[NeededApproval, ...] = Field(
        default=(), exclude_if=lambda approvals: not approvals
    )


class RequestPlace(NamedTuple):
    """The place of one request: its *key* in the records, *request_id* as *caller*, its sender, named it."""

    key: str
    request_id: str
    caller: Caller


async def read_outcome(
    services: RequestServices, place: RequestPlace, text: str | None = None
) -> Lookup:
    """Return the state of a request; *text* is its words, None when only the conversation has them.

    Raises:
        Refused: 404, there is none.
        MemoryUnavailable: the store does not answer.
    """
    if (underway := services.work.find(place.key)) is not None and (
        asked := _read_underway(place, underway)
    ) is not None:
        return asked
    known = await services.records.find(place.key)
    if known.record is None:
        raise not_found(
            f"there is no request {place.request_id!r}, or it is more than a day old"
        )
    return await _read_stored(
        services, place=place, known=known, record=known.record, text=text
    )


async def wait_for(
    services: RequestServices,
    place: RequestPlace,
    within_s: float,
    text: str,
    keep: Callable[[], Awaitable[None]],
    *,
    hears_pending: bool = False,
) -> Lookup:
    """Return a request at its end, or as it is after *within_s* seconds, or when this process leaves.

    *keep* makes sure that its record is there, before it is looked up and thus promised to be found. Who
    *hears_pending* gets the reply that says why it is not done, as soon as there is one.

    Raises:
        Refused: 500, the fault is ours; as *keep*.
    """
    is_kept = False
    loop = asyncio.get_running_loop()
    gives_up_at = loop.time() + within_s
    while True:
        underway = services.work.find(place.key)
        if underway is not None:
            late_s = PENDING_LATE_S if hears_pending else 0.0
            await underway.wait(gives_up_at + late_s - loop.time())
            if underway.error is not None:
                raise refusal_of(underway.error)
            now = _read_underway(place, underway)
            if now is not None and now.state == "done":
                return now
            if now is not None and hears_pending and underway.reply is not None:
                await keep()
                return now.model_copy(update={"reply": underway.reply})
        if not is_kept:
            await keep()
            is_kept = True
        asked = await read_outcome(services, place, text)
        left_s = gives_up_at - loop.time()
        if asked.state == "done" or left_s <= 0 or services.draining.is_set():
            return asked
        if services.work.find(place.key) is None:
            await asyncio.sleep(min(LOOK_S, left_s))


async def begin(
    services: RequestServices,
    place: RequestPlace,
    request: PersonRequest,
    *,
    is_new: bool = False,
    claim: Commands = (),
) -> InFlight | None:
    """Begin *request* at *place*, unless it is under way there; arguments and result as of `Work.begin`.

    Raises:
        Refused: 429, too much with the caller's key is under way; 503, too much of all.
    """
    holder = place.caller.holder
    most = services.share(MOST)
    return await services.work.begin(
        place.key, request, holder, most, is_new=is_new, claim=claim
    )


def _read_underway(place: RequestPlace, underway: InFlight) -> Lookup | None:
    """Return how far *underway* is, None where only the records and the ledger know."""
    if underway.reply is not None and underway.reply.kind != "pending":
        return _finish(place, underway.reply)
    routed = underway.routed
    if not routed:
        return None
    return _running(
        place, routed, routed[0].conversation_id or place.request_id, underway.parts
    )


def _finish(place: RequestPlace, reply: PersonReply) -> Lookup:
    return Lookup(
        request_id=place.request_id,
        conversation_id=reply.conversation_id,
        state="done",
        task_id=reply.report.task_id if reply.report is not None else None,
        agent_id=reply.agent_id,
        task=reply.task,
        reply=reply,
        parts=tuple(
            AskedPart(task_id=part.task_id, agent_id=part.agent_id, task=part.task)
            for part in reply.parts
            if part.task_id is not None
        ),
    )


def _running(
    place: RequestPlace,
    assignments: Sequence[TaskAssignment],
    conversation_id: str,
    ended: Mapping[str, ReplyPart] = MappingProxyType({}),
) -> Lookup:
    asked = Lookup(
        request_id=place.request_id,
        conversation_id=conversation_id,
        state="running",
        approvals=_needed_approvals(assignments),
    )
    first = assignments[0]
    if first.parent_id is None:
        return asked.model_copy(
            update={
                "task_id": first.task_id,
                "agent_id": first.agent_id,
                "task": first.task,
            }
        )
    found = tuple(
        AskedPart(
            task_id=one.task_id,
            agent_id=one.agent_id,
            task=one.task,
            reply=ended.get(one.task_id),
        )
        for one in sorted(assignments, key=lambda one: one.task_id)
    )
    return asked.model_copy(update={"parts": found})


def _needed_approvals(
    assignments: Iterable[TaskAssignment],
) -> tuple[NeededApproval, ...]:
    return tuple(
        NeededApproval(id=one.approval_id or "", who=one.approval.who)
        for one in assignments
        if one.approval is not None
    )


async def _read_stored(
    services: RequestServices,
    place: RequestPlace,
    known: KnownRequest,
    record: RequestRecord,
    text: str | None,
) -> Lookup:
    reply = await _read_kept(services, place, known)
    if reply is not None:
        return _finish(place, reply)
    is_held = (
        known.is_held
        or services.work.find(place.key) is not None
        or services.draining.is_set()
    )
    going = await _read_going(services, place, record, is_held=is_held)
    if going is not None:
        return going
    accepted = Lookup(
        request_id=place.request_id,
        conversation_id=record.conversation_id or place.request_id,
        state="accepted",
    )
    if is_held:
        return accepted
    return await _begin_again(services, place, record, text) or accepted


async def _read_kept(
    services: RequestServices, place: RequestPlace, known: KnownRequest
) -> PersonReply | None:
    """Return the reply as it is kept, None when there is none, or when tasks that failed have gone on since."""
    if known.reply is None:
        return None
    reply = await read_reply(known.reply, services.ledger)
    if reply is None or known.record is None:
        return reply
    for task in failed_tasks_of(reply, known.record.task_id):
        if await _has_gone_on(services, task):
            if not await services.records.forget_reply(place.key, known.reply):
                return None
            # Another process has made it again meanwhile.
            return await _read_again(services, place)
    return reply


async def _read_again(
    services: RequestServices, place: RequestPlace
) -> PersonReply | None:
    """Return the reply as it is kept by now, None when there is none."""
    known = await services.records.find(place.key)
    if known.reply is None:
        return None
    return await read_reply(known.reply, services.ledger)


async def forget_unstarted(services: RequestServices, place: RequestPlace) -> bool:
    """Remove the reply that nothing was started; return whether the request is without one, and may begin again."""
    known = await services.records.find(place.key)
    if known.reply is None:
        return True
    reply = await read_reply(known.reply, services.ledger)
    if reply is not None and not is_unstarted(reply):
        return False
    return not await services.records.forget_reply(place.key, known.reply)


async def _has_gone_on(services: RequestServices, task: FailedTask) -> bool:
    """Return whether *task* was sent again since it failed, or is there although its reply says that it is not.

    The acknowledgement of a task may be lost, though the task is not.
    """
    entry = await services.ledger.read(task.name)
    if entry is None:
        return False
    if task.generation is not None:
        return entry.newest > task.generation
    newest = entry.generations[entry.newest]
    # A request to cancel one that never was leaves an entry, too.
    return newest.assignment is not None or newest.report is not None


async def _read_going(
    services: RequestServices,
    place: RequestPlace,
    record: RequestRecord,
    *,
    is_held: bool,
) -> Lookup | None:
    """Return a request whose tasks go on, None where there are none, or where they have ended.

    Of several tasks that some process follows, or a person is asked about, those that have ended have their replies.
    """
    conversation_id = record.conversation_id or place.request_id
    entry = await services.ledger.read(await services.ledger.name(record.task_id))
    newest = entry.generations[entry.newest] if entry is not None else None
    report = read_body(CompletionReport, newest.report) if newest is not None else None
    if report is not None:
        if not is_held:
            return None
        # It has ended, and its reply is about to be kept.
        said = await _read_words(services, place, record)
        return Lookup(
            request_id=place.request_id,
            conversation_id=conversation_id,
            state="running",
            task_id=record.task_id,
            agent_id=report.agent_id,
            task=next((one.task for one in _parts_read(said)), None),
        )
    assignment = (
        read_body(TaskAssignment, newest.assignment) if newest is not None else None
    )
    if assignment is not None:
        return _running(place, [assignment], conversation_id)
    # A cancellation leaves an entry, too, where the request became several tasks.
    tasks = await read_tasks(services.ledger, record.task_id)
    has_ended = any(task.report is not None for task in tasks.values())
    going = [
        one.assignment
        for one in tasks.values()
        if one.assignment is not None and one.report is None
    ]
    needed = _needed_approvals(going)
    read = _parts_read(
        await _read_words(services, place, record) if has_ended or needed else None
    )
    # One that waits for a person is not begun again by each look, once all of it was handed over.
    is_whole = bool(needed) and len(tasks) == sum(one.kind == "task" for one in read)
    if not tasks or not (is_held or is_whole):
        return None
    found = []
    for number, task in tasks.items():
        one = read[number - 1] if number <= len(read) else None
        call = (
            task.assignment.task
            if task.assignment is not None
            else one.task
            if one is not None
            else None
        )
        reply = build_part(services.catalogue(), task, one)
        found.append(
            AskedPart(
                task_id=task.task_id, agent_id=task.agent_id, task=call, reply=reply
            )
        )
    return Lookup(
        request_id=place.request_id,
        conversation_id=conversation_id,
        state="running",
        parts=tuple(found),
        approvals=needed,
    )


async def _begin_again(
    services: RequestServices,
    place: RequestPlace,
    record: RequestRecord,
    text: str | None,
) -> Lookup | None:
    """Go on with a request that no process works on, and return it if that takes no time, else None.

    Without the words that were said its report answers it; without that one it has its end, unless its sender says the
    *text* again, which begins it.
    """
    conversation_id = record.conversation_id or place.request_id
    person = await _read_words(services, place, record)
    if person is None:
        reported = await _read_reported(services, place, record)
        if reported is not None:
            return _finish(place, reported)
    if person is None and text is None:
        reply = PersonReply(
            request_id=place.request_id,
            conversation_id=conversation_id,
            kind="failed",
            text=_LOST,
        )
        return _finish(place, reply)
    if person is None:
        return None
    caller = record.sender
    if caller is not None:
        caller = caller.model_copy(update={"user": place.caller.user})
    request = PersonRequest(
        text=person.text,
        request_id=place.request_id,
        conversation_id=conversation_id,
        user_id=person.user_id,
        tenant=record.tenant,
        caller=caller,
        memory=record.memory,
        time_zone=record.time_zone,
        not_before=record.not_before,
        wait_ms=600_000,
    )
    underway = await begin(services, place, request)
    if underway is None:
        return None
    has_ended = await underway.wait(AGAIN_S)
    if has_ended and underway.reply is None and underway.error is None:
        # A part of the answer was there: what is kept with it counts.
        known = await services.records.find(place.key)
        kept = await _read_kept(services, place, known)
        return None if kept is None else _finish(place, kept)
    return _read_underway(place, underway)


async def _read_reported(
    services: RequestServices, place: RequestPlace, record: RequestRecord
) -> PersonReply | None:
    """Return the reply by the report alone to a request of one task, None while it has none."""
    entry = await services.ledger.read(await services.ledger.name(record.task_id))
    if entry is None:
        return None
    report = read_body(CompletionReport, entry.generations[entry.newest].report)
    task = PartTask(record.task_id, assignment=None, report=report)
    said = build_part(services.catalogue(), task, None)
    if said is None:
        return None
    return PersonReply(
        request_id=place.request_id,
        conversation_id=record.conversation_id or place.request_id,
        kind=said.kind,
        text=said.text,
        agent_id=said.agent_id,
        report=report,
        heading=said.heading,
        origin=said.origin,
        taken=said.taken,
    )


def _parts_read(person: HeardTurn | None) -> tuple[PartRead, ...]:
    """Return what the words of *person* were read as; nothing when that is not known."""
    return (
        person.read_as.parts
        if person is not None and person.read_as is not None
        else ()
    )


async def _read_words(
    services: RequestServices, place: RequestPlace, record: RequestRecord
) -> HeardTurn | None:
    """Return the person's turn of a request, the last if an earlier try left another; None where it is not kept."""
    conversation_id = record.conversation_id or place.request_id
    request_id = place.request_id.encode()
    for count in (_NEAR, _FAR):
        stored = await services.conversations.recent(conversation_id, count)
        named = [
            body for body in stored if request_id in body and not is_utterance(body)
        ]
        turns = [turn for body in named if (turn := parse_turn(body)) is not None]
        own = [
            turn
            for turn in turns
            if turn.request_id == place.request_id
            and turn.speaker == "person"
            and place.caller.may_hear(turn.user_id)
            and _is_of(services, turn, record)
        ]
        if own:
            return own[-1]
        if len(stored) < count:
            break
    return None


def _is_of(services: RequestServices, turn: HeardTurn, record: RequestRecord) -> bool:
    """Return whether *turn* is part of the request of *record*: another user may have chosen its id there.

    The record names no user, but the task, which is another one for each user's request.
    """
    asked = PersonRequest(
        text="-",
        request_id=turn.request_id,
        conversation_id=turn.conversation_id,
        user_id=turn.user_id,
    )
    return services.service.task_id_of(asked) == record.task_id
