"""What became of a request, told from wherever it is known: this process, the conversation, or the ledger.

No process has to remember: a record says which task a request becomes, the ledger what became of that, the conversation
what was answered without one. A request whose process died before it was understood is begun again by whoever is asked.
"""

import asyncio
from typing import Literal, TypeVar

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.messages import ChatTurn, CompletionReport, PersonReply, PersonRequest, TaskAssignment, TaskCall
from memory.inbox import is_utterance
from memory.requests import Known, RequestRecord
from supervisor.http.keys import Caller
from supervisor.http.parts import Parts
from supervisor.http.problems import not_found, refusal_of
from supervisor.http.work import MOST, Underway
from supervisor.replies import describe_failure, describe_result

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
_Model = TypeVar("_Model", bound=BaseModel)


class Asked(BaseModel):
    """A request as it stands: `accepted`, `running` once it is a task, `done` with its reply."""

    model_config = ConfigDict(frozen=True)

    request_id: str
    conversation_id: str
    state: State
    task_id: str | None = None
    agent_id: str | None = None
    task: TaskCall | None = None
    reply: PersonReply | None = None


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
    return _running(place, routed, routed.conversation_id or place.request_id) if routed is not None else None


def _done(place: Place, reply: PersonReply) -> Asked:
    return Asked(
        request_id=place.request_id,
        conversation_id=reply.conversation_id,
        state="done",
        task_id=reply.report.task_id if reply.report is not None else None,
        agent_id=reply.agent_id,
        task=reply.task,
        reply=reply,
    )


def _running(place: Place, assignment: TaskAssignment, conversation_id: str) -> Asked:
    return Asked(
        request_id=place.request_id,
        conversation_id=conversation_id,
        state="running",
        task_id=assignment.task_id,
        agent_id=assignment.agent_id,
        task=assignment.task,
    )


async def _look_at(parts: Parts, place: Place, known: Known, record: RequestRecord, text: str | None) -> Asked:
    entry = await parts.ledger.read(record.task_id)
    newest = entry.generations[entry.newest] if entry is not None else None
    report = _read(CompletionReport, newest.report) if newest is not None else None
    conversation_id = record.conversation_id or place.request_id
    if known.end is not None or report is not None:
        turns = await _turns_of(parts, conversation_id, place)
        return _done(place, _rebuilt(parts, place, known, conversation_id, report, turns.get("assistant")))
    assignment = _read(TaskAssignment, newest.assignment) if newest is not None else None
    if assignment is not None:
        return _running(place, assignment, conversation_id)
    accepted = Asked(request_id=place.request_id, conversation_id=conversation_id, state="accepted")
    if known.is_held or parts.work.find(place.key) is not None or parts.life.draining.is_set():
        return accepted
    return await _begin_again(parts, place, record, text) or accepted


def _rebuilt(
    parts: Parts,
    place: Place,
    known: Known,
    conversation_id: str,
    report: CompletionReport | None,
    turn: ChatTurn | None,
) -> PersonReply:
    """Return the reply as it was, out of what is kept of it."""
    end, task = known.end, turn.task if turn is not None else None
    if report is not None:
        offer = parts.catalogue().find(report.agent_id, report.task_name)
        is_well = report.status == "completed"
        card = offer.task if offer is not None else None
        text = describe_result(report, card, task) if is_well else describe_failure(report)
        kind = "answer" if is_well else "failed"
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
    person = (await _turns_of(parts, conversation_id, place)).get("person")
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
            "wait_ms": 600_000,
        }
    )
    await begin(parts, place, request)
    return None


async def begin(parts: Parts, place: Place, request: PersonRequest) -> None:
    """Begin *request* at *place*, where it is not under way yet.

    Raises:
        Refused: 429, too much with the caller's key is under way; 503, too much of all.
    """
    await parts.work.begin(place.key, request, place.caller.name, parts.share(MOST))


async def _turns_of(parts: Parts, conversation_id: str, place: Place) -> dict[str, ChatTurn]:
    """Return what was said for one request, by its speaker; another user may have chosen the same id."""
    request_id = place.request_id
    wanted = request_id.encode()
    for count in (_NEAR, _FAR):
        stored = await parts.conversations.recent(conversation_id, count)
        named = [body for body in stored if wanted in body and not is_utterance(body)]
        turns = [turn for body in named if (turn := _read(ChatTurn, body)) is not None]
        own = [turn for turn in turns if turn.request_id == request_id and place.caller.may_hear(turn.user_id)]
        found: dict[str, ChatTurn] = {turn.speaker: turn for turn in own}
        if found or len(stored) < count:
            return found
    return {}


def _read(model: type[_Model], body: bytes | None) -> _Model | None:
    if body is None:
        return None
    try:
        return model.model_validate_json(body)
    except ValidationError:
        log.warning("unreadable", model=model.__name__)
        return None
