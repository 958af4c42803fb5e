"""What became of a request, told from wherever it is known: this process, the conversation, or the ledger.

No process has to remember: a record says which task a request becomes, the ledger what became of that, the conversation
what was answered without one. A request whose process died before it was understood is begun again by whoever is asked.
"""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field

from contracts.messages import CompletionReport, PersonReply, PersonRequest, ReplyPart, TaskAssignment, TaskCall
from memory.command_batch import Commands
from memory.conversations.inbox import is_utterance
from memory.ledger.requests import Known, RequestRecord
from supervisor.http.admission.keys import Caller
from supervisor.http.parts import Parts
from supervisor.http.problems import not_found, refusal_of
from supervisor.http.replies import is_none
from supervisor.http.requests.parts import PartTask, ended_part, read_body, rebuilt, tasks_of
from supervisor.http.requests.work import MOST, Underway
from supervisor.replies.wording import describe_failure, describe_result
from supervisor.requests.first_readings import HeardTurn, PartRead, heard_turn
from supervisor.requests.incoming import place_of_turn

log = structlog.get_logger(__name__)

#: Seconds between looks at a request that another process works on.
LOOK_S = 0.5
#: Messages of a conversation in which the turns of a request are looked for first, and then.
_NEAR, _FAR = 50, 2000
#: What is said of a request that was lost before anything of it was kept.
_LOST = "This request was lost before it was understood. Send it again with the same Idempotency-Key."

#: What is said when nothing of the answer is there.
_GONE = "Something went wrong with this request, or what was answered is no longer kept. Send it again."

State = Literal["accepted", "running", "done"]


def _is_empty(parts: tuple[BaseModel, ...]) -> bool:
    return not parts


class AskedPart(BaseModel):
    """One of several tasks that a request became; `task` is null while others go on and only its end is known here.

    `reply` is there when it has ended and others go on; after that the reply to the whole has it.
    """

    model_config = ConfigDict(frozen=True)

    task_id: str
    agent_id: str | None
    task: TaskCall | None
    reply: ReplyPart | None = Field(default=None, exclude_if=is_none)


class Asked(BaseModel):
    """A request as it stands: `accepted`, `running` once it is a task, `done` with its reply.

    Of one that asked for several tasks `parts` has those, and the fields of the one task are null.
    """

    model_config = ConfigDict(frozen=True)

    request_id: str
    conversation_id: str
    state: State
    task_id: str | None = None
    agent_id: str | None = None
    task: TaskCall | None = None
    reply: PersonReply | None = None
    parts: tuple[AskedPart, ...] = Field(default=(), exclude_if=_is_empty)


class Place:
    """Where one request lies: *key* in the records, *request_id* as its sender named it, *caller* who looks there."""

    __slots__ = ("caller", "key", "request_id")

    def __init__(self, key: str, request_id: str, caller: Caller) -> None:
        self.key = key
        self.request_id = request_id
        self.caller = caller


async def look(parts: Parts, place: Place, text: str | None = None) -> Asked:
    """Return what became of a request; *text* is what was asked, None when only the conversation knows.

    Raises:
        Refused: 404, there is none.
        MemoryUnavailable: it cannot be told now.
    """
    if (underway := parts.work.find(place.key)) is not None and (asked := _told_here(place, underway)) is not None:
        return asked
    known = await parts.records.find(place.key)
    if known.record is None:
        raise not_found(f"there is no request {place.request_id!r}, or it is more than a day old")
    return await _look_at(parts, place, known, known.record, text)


async def wait_for(parts: Parts, place: Place, within_s: float, text: str | None = None) -> Asked:
    """Return what became of a request: at its end, or after *within_s* seconds, or when this process leaves.

    Raises:
        Refused: 500, the fault is ours.
    """
    loop = asyncio.get_running_loop()
    gives_up_at = loop.time() + within_s
    while True:
        underway = parts.work.find(place.key)
        if underway is not None:
            await underway.wait(gives_up_at - loop.time())
            if underway.error is not None:
                raise refusal_of(underway.error)
            if (asked := _told_here(place, underway)) is not None and asked.state == "done":
                return asked
        asked = await look(parts, place, text)
        left_s = gives_up_at - loop.time()
        if asked.state == "done" or left_s <= 0 or parts.life.draining.is_set():
            return asked
        if parts.work.find(place.key) is None:
            await asyncio.sleep(min(LOOK_S, left_s))


def _told_here(place: Place, underway: Underway) -> Asked | None:
    """Return how far *underway* is, None where only the records and the ledger can tell."""
    if underway.reply is not None and underway.reply.kind != "pending":
        return _done(place, underway.reply)
    routed = underway.routed
    conversation_id = routed[0].conversation_id if routed else None
    return _running(place, routed, conversation_id or place.request_id, underway.parts) if routed else None


def _done(place: Place, reply: PersonReply) -> Asked:
    return Asked(
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
    place: Place,
    assignments: Sequence[TaskAssignment],
    conversation_id: str,
    ended: Mapping[str, ReplyPart] = MappingProxyType({}),
) -> Asked:
    first = assignments[0]
    if first.parent_id is not None:
        ordered = sorted(assignments, key=lambda one: one.task_id)
        told = [
            AskedPart(task_id=one.task_id, agent_id=one.agent_id, task=one.task, reply=ended.get(one.task_id))
            for one in ordered
        ]
        return _running_parts(place, told, conversation_id)
    return Asked(
        request_id=place.request_id,
        conversation_id=conversation_id,
        state="running",
        task_id=first.task_id,
        agent_id=first.agent_id,
        task=first.task,
    )


def _running_parts(place: Place, told: Sequence[AskedPart], conversation_id: str) -> Asked:
    return Asked(request_id=place.request_id, conversation_id=conversation_id, state="running", parts=tuple(told))


async def _look_at(parts: Parts, place: Place, known: Known, record: RequestRecord, text: str | None) -> Asked:
    entry = await parts.ledger.read(record.task_id)
    newest = entry.generations[entry.newest] if entry is not None else None
    report = read_body(CompletionReport, newest.report) if newest is not None else None
    conversation_id = record.conversation_id or place.request_id
    # A wish to cancel it leaves an entry, too, where it became several tasks.
    is_one_task = newest is not None and (newest.assignment is not None or report is not None)
    if not is_one_task and (known.end is None or known.end.parts):
        tasks = await tasks_of(parts, record.task_id)
        if known.end is not None:
            answers = await _answers_to(parts, place, record)
            return _done(place, rebuilt(parts, place.request_id, conversation_id, known.end, tasks, answers))
        if tasks and (known.is_held or parts.work.find(place.key) is not None or parts.life.draining.is_set()):
            has_ended = any(task.report is not None for task in tasks.values())
            turns = await _turns_of(parts, place, record) if has_ended else {}
            told = [_as_part(parts, task, _part_read(turns.get("person"), at)) for at, task in tasks.items()]
            return _running_parts(place, told, conversation_id)
    if known.end is not None or report is not None:
        turns = await _turns_of(parts, place, record)
        return _done(place, _rebuilt(parts, place, known, conversation_id, report, turns))
    assignment = read_body(TaskAssignment, newest.assignment) if newest is not None else None
    if assignment is not None:
        return _running(place, [assignment], conversation_id)
    accepted = Asked(request_id=place.request_id, conversation_id=conversation_id, state="accepted")
    if known.is_held or parts.work.find(place.key) is not None or parts.life.draining.is_set():
        return accepted
    return await _begin_again(parts, place, record, text) or accepted


def _as_part(parts: Parts, task: PartTask, read: PartRead | None) -> AskedPart:
    call = task.assignment.task if task.assignment is not None else read.task if read is not None else None
    return AskedPart(task_id=task.task_id, agent_id=task.agent_id, task=call, reply=ended_part(parts, task, read))


def _rebuilt(
    parts: Parts,
    place: Place,
    known: Known,
    conversation_id: str,
    report: CompletionReport | None,
    turns: Mapping[str, HeardTurn],
) -> PersonReply:
    """Return the reply as it was, out of what is kept of it."""
    turn, end, read = turns.get("assistant"), known.end, _task_read(turns.get("person"))
    task = turn.task if turn is not None else read.task
    if report is not None:
        offer = parts.catalogue().find(report.agent_id, report.task_name)
        is_well = report.status == "completed"
        card = offer.task if offer is not None else None
        how = read.remembered, read.computed
        text = describe_result(report, card, task, *how) if is_well else describe_failure(report)
        kind = "answer" if is_well else "failed"
        if turn is not None and end is not None and end.kind == kind:
            # As it was said: with what was remembered, or reckoned from an earlier value.
            text = turn.text
    elif turn is not None:
        kind, text = end.kind if end is not None else "unable", turn.text
    else:
        kind, text = "failed", _GONE
    return PersonReply.model_validate(
        {
            "request_id": place.request_id,
            "conversation_id": conversation_id,
            "kind": kind,
            "text": text,
            "agent_id": report.agent_id if report is not None else turn.agent_id if turn is not None else None,
            "task": task,
            "missing": end.missing if end is not None else (),
            "report": report,
            "elapsed_ms": end.elapsed_ms if end is not None else 0,
        }
    )


async def _begin_again(parts: Parts, place: Place, record: RequestRecord, text: str | None) -> Asked | None:
    """Go on with a request that nobody works on, and return None; or how it ended when nothing is known of it."""
    conversation_id = record.conversation_id or place.request_id
    person = (await _turns_of(parts, place, record)).get("person")
    if person is None and text is None:
        reply = PersonReply(request_id=place.request_id, conversation_id=conversation_id, kind="failed", text=_LOST)
        return _done(place, reply)
    if person is None:
        return None
    request = PersonRequest.model_validate(
        {
            "text": person.text,
            "request_id": place.request_id,
            "conversation_id": conversation_id,
            "user_id": person.user_id,
            "memory": record.memory,
            "time_zone": record.time_zone,
            "wait_ms": 600_000,
        }
    )
    await begin(parts, place, request)
    return None


async def begin(
    parts: Parts, place: Place, request: PersonRequest, *, is_new: bool = False, claim: Commands = ()
) -> None:
    """Begin *request* at *place*, where it is not under way yet; *is_new* and *claim* as in `Work.begin`.

    Raises:
        Refused: 429, too much with the caller's key is under way; 503, too much of all.
    """
    name, most = place.caller.name, parts.share(MOST)
    await parts.work.begin(place.key, request, name, most, is_new=is_new, claim=claim)


def _task_read(person: HeardTurn | None) -> PartRead:
    """Return the one task that the words of *person* were read as; without a call when it is not known, or several."""
    parts = person.read_as.parts if person is not None and person.read_as is not None else ()
    return parts[0] if len(parts) == 1 else PartRead(kind="task")


def _part_read(person: HeardTurn | None, place: int) -> PartRead | None:
    """Return what the words of *person* were read as at *place*, counted from 1; None when that is not known."""
    parts = person.read_as.parts if person is not None and person.read_as is not None else ()
    return parts[place - 1] if place <= len(parts) else None


async def _turns_of(parts: Parts, place: Place, record: RequestRecord) -> dict[str, HeardTurn]:
    """Return what was said for one request, by its speaker."""
    return {turn.speaker: turn for turn in await _said_for(parts, place, record)}


async def _answers_to(parts: Parts, place: Place, record: RequestRecord) -> dict[int, HeardTurn]:
    """Return what each part of a request was answered, by its place."""
    said = await _said_for(parts, place, record)
    return {place_of_turn(turn.turn_id): turn for turn in said if turn.speaker == "assistant"}


async def _said_for(parts: Parts, place: Place, record: RequestRecord) -> list[HeardTurn]:
    conversation_id = record.conversation_id or place.request_id
    wanted = place.request_id.encode()
    for count in (_NEAR, _FAR):
        stored = await parts.conversations.recent(conversation_id, count)
        named = [body for body in stored if wanted in body and not is_utterance(body)]
        turns = [turn for body in named if (turn := heard_turn(body)) is not None]
        heard = [turn for turn in turns if place.caller.may_hear(turn.user_id)]
        own = [turn for turn in heard if turn.request_id == place.request_id and _is_of(parts, turn, record)]
        if own or len(stored) < count:
            return own
    return []


def _is_of(parts: Parts, turn: HeardTurn, record: RequestRecord) -> bool:
    """Return whether *turn* was said for the request of *record*: another user may have chosen its id in one talk.

    The record names no user, but the task: of each user's request that is another one.
    """
    asked = PersonRequest(
        text="-", request_id=turn.request_id, conversation_id=turn.conversation_id, user_id=turn.user_id
    )
    return parts.service.task_id_of(asked) == record.task_id
