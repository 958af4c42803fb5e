"""The supervisor's main job: a person's text in, an answer out, whatever happens in between."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import structlog

from contracts import subjects
from contracts.errors import MemoryUnavailable, MessageTooLarge, NotAccepted
from contracts.identifiers import new_id
from contracts.messages import ChatTurn, PersonReply, PersonRequest, Speaker, TaskAssignment, TaskCard
from supervisor.catalogue import Catalogue
from supervisor.dispatch import Dispatch
from supervisor.interpretation.outcome import Interpretation, Understood
from supervisor.replies import interpretation_reply, report_reply
from supervisor.reports import ReportDesk
from supervisor.turns import stored_turns

log = structlog.get_logger(__name__)

#: Turns that a reference such as "same history" may reach back to.
LOOK_BACK = 20

#: Runs, the first included, of a task whose card was retired between understanding and assigning it.
MAX_ATTEMPTS = 5


class Interpreting(Protocol):
    """What the service needs of an interpreter."""

    async def interpret(
        self, text: str, *, catalogue: Catalogue, previous: Sequence[ChatTurn], user_id: str | None = None
    ) -> Interpretation:
        """Return what *text* asks for, given what was said before and who asks."""


class Remembering(Protocol):
    """What the service needs of the conversation store."""

    async def append(self, conversation_id: str, turn: bytes, turn_id: str, *, user_id: str | None = None) -> bool:
        """Add a turn once, to a conversation of *user_id* when that is known."""

    async def recent(self, conversation_id: str, count: int = 20) -> list[bytes]:
        """Return the last turns, oldest first."""


#: How a turn is published to TURNS: subject, body and message id; returns at once.
Publish = Callable[[str, bytes, str], None]


class Service:
    """Answers requests for one supervisor id; several replicas may serve one id."""

    def __init__(
        self,
        supervisor_id: str,
        *,
        catalogue: Callable[[], Catalogue],
        interpreter: Interpreting,
        dispatch: Dispatch,
        reports: ReportDesk,
        conversations: Remembering,
        publish: Publish,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._supervisor_id = supervisor_id
        self._catalogue = catalogue
        self._interpreter = interpreter
        self._dispatch = dispatch
        self._reports = reports
        self._conversations = conversations
        self._publish = publish
        self._now = now

    async def answer(
        self,
        request: PersonRequest,
        *,
        routed: Callable[[TaskAssignment], None] = lambda _assignment: None,
        before: Sequence[ChatTurn] | None = None,
    ) -> PersonReply:
        """Return the answer to *request*, or what is missing, or `pending` when it takes longer than `wait_ms`.

        The same `request_id` again starts nothing twice: it finds the task that it started. *routed* hears of the task
        when it has been handed over. *before* is what was said earlier, for whoever knows that better than the store;
        None: what the store holds of the conversation.
        """
        started = time.monotonic()
        request_id = request.request_id or new_id(int(self._now().timestamp() * 1000))
        conversation_id = request.conversation_id or request_id
        previous = before if before is not None else await self._previous(request, conversation_id, request_id)
        await self._note(request, request_id, conversation_id, "person", request.text)
        found = await self._interpreter.interpret(
            request.text, catalogue=self._catalogue(), previous=previous, user_id=request.user_id
        )
        if isinstance(found, Understood):
            reply = await self._run(found, request, request_id, conversation_id, routed)
        else:
            reply = interpretation_reply(found, request_id=request_id, conversation_id=conversation_id)
        reply = fitting(reply.model_copy(update={"elapsed_ms": int((time.monotonic() - started) * 1000)}))
        # "Still at it" is no turn: the answer to a repeated request will be the one that is kept.
        if reply.kind != "pending":
            await self._note(request, request_id, conversation_id, "assistant", reply.text, reply)
        return reply

    async def _run(
        self,
        found: Understood,
        request: PersonRequest,
        request_id: str,
        conversation_id: str,
        routed: Callable[[TaskAssignment], None],
    ) -> PersonReply:
        now = self._now()
        card = self._card_of(found)
        assignment = TaskAssignment(
            task_id=self.task_id_of(request) if request.request_id is not None else request_id,
            agent_id=found.agent_id,
            supervisor_id=self._supervisor_id,
            task=found.task,
            created_at=now,
            deadline=now + timedelta(seconds=card.deadline_s) if card is not None and card.deadline_s else None,
            max_attempts=card.max_attempts if card is not None else MAX_ATTEMPTS,
            memory=request.memory if request.memory != "other" else "bypass",
            request_id=request_id,
            user_id=request.user_id,
            conversation_id=conversation_id,
        )
        report = None
        problem = None
        try:
            await self._dispatch.assign(assignment)
            routed(assignment)
            report = await self._reports.report_of(assignment, request.wait_ms / 1000)
        except NotAccepted as error:
            log.warning("task_not_accepted", task_id=assignment.task_id, error=str(error))
            problem = error
        return report_reply(
            report,
            card,
            assignment=assignment,
            request_id=request_id,
            conversation_id=conversation_id,
            problem=problem,
            remembered=found.remembered,
        )

    def _card_of(self, found: Understood) -> TaskCard | None:
        offer = self._catalogue().find(found.agent_id, found.task.name)
        return offer.task if offer is not None else None

    def task_id_of(self, request: PersonRequest) -> str:
        """Return the id of the task that *request* becomes, which has an id: the same whenever it is sent again."""
        asked = self._supervisor_id, request.user_id, request.conversation_id, request.request_id
        return f"r-{_digest(*asked)}"

    async def _previous(self, request: PersonRequest, conversation_id: str, request_id: str) -> list[ChatTurn]:
        """Return what was said before to and by whoever asks now, or to nobody known.

        What is known of one user may stand in an answer to them; it must not become a value for another.
        """
        turns = await stored_turns(self._conversations, conversation_id, LOOK_BACK)
        theirs = (None, request.user_id)
        return [turn for turn in turns if turn.request_id != request_id and turn.user_id in theirs]

    async def _note(
        self,
        request: PersonRequest,
        request_id: str,
        conversation_id: str,
        speaker: Speaker,
        text: str,
        reply: PersonReply | None = None,
    ) -> None:
        """Keep one turn in the conversation, and publish it for whoever learns from it."""
        turn = ChatTurn(
            turn_id=f"{_digest(request.user_id, conversation_id, request_id)}-{speaker[0]}",
            conversation_id=conversation_id,
            user_id=request.user_id,
            speaker=speaker,
            text=text,
            at=self._now(),
            request_id=request_id,
            agent_id=reply.agent_id if reply is not None else None,
            task=reply.task if reply is not None else None,
        )
        body = turn.model_dump_json(exclude_none=True).encode()
        try:
            await self._conversations.append(conversation_id, body, turn.turn_id, user_id=request.user_id)
        except MemoryUnavailable as error:
            log.warning("turn_not_kept", error=str(error))
        try:
            self._publish(subjects.turns(request.user_id or conversation_id), body, turn.turn_id)
        except MessageTooLarge as error:
            # The answer is there: that nobody can learn from it is no reason to keep it from who asked.
            log.warning("turn_not_published", error=str(error))


def _digest(*parts: str | None) -> str:
    """Return 32 hexadecimal digits of *parts*: two people may choose one request id."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def fitting(reply: PersonReply) -> PersonReply:
    """Return *reply* as it is, or without the result that would not fit into a message beside its own words."""
    size = len(reply.model_dump_json().encode())
    if size <= subjects.MAX_BODY or reply.report is None:
        return reply
    where = subjects.report(reply.report.supervisor_id, reply.report.task_id, reply.report.generation)
    text = f"{reply.text[:2000]}\nThe whole result is too large for a reply; its report lies at {where} for an hour."
    return reply.model_copy(update={"text": text, "report": reply.report.model_copy(update={"result": None})})
