"""The supervisor's main job: a person's text in, an answer out, whatever happens in between."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import structlog

from contracts import subjects
from contracts.errors import MemoryUnavailable, MessageTooLarge, NotAccepted
from contracts.identifiers import new_id
from contracts.messages import ChatTurn, PersonReply, PersonRequest, Speaker, TaskAssignment, TaskCall, TaskCard
from supervisor.catalogue import Catalogue
from supervisor.combined import as_part, combined, fitting
from supervisor.dispatch import Dispatch
from supervisor.interpretation.outcome import Interpretation, Several, Single, Understood
from supervisor.part_ids import part_task_id, part_turn_id
from supervisor.replies import interpretation_reply, other_words_reply, report_reply
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
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,
        now: datetime | None = None,
    ) -> Interpretation:
        """Return what *text* asks for, given what was said before, who asks and when."""


class Remembering(Protocol):
    """What the service needs of the conversation store."""

    async def append(self, conversation_id: str, turn: bytes, turn_id: str, *, user_id: str | None = None) -> bool:
        """Add a turn once, to a conversation of *user_id* when that is known."""

    async def recent(self, conversation_id: str, count: int = 20) -> list[bytes]:
        """Return the last turns, oldest first."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request with the ids it goes by, and who hears of its tasks."""

    request: PersonRequest
    request_id: str
    conversation_id: str
    task_id: str
    routed: Callable[[TaskAssignment], None]

    def turn_id(self, speaker: Speaker) -> str:
        """Return the id of the turn in which *speaker* says their part of it."""
        return f"{_digest(self.request.user_id, self.conversation_id, self.request_id)}-{speaker[0]}"


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

        The same `request_id` again starts nothing twice: it finds what it started, and fails with other words. *routed*
        hears of each task when it has been handed over. *before* is what was said earlier, for whoever knows that
        better than the store; None: what the store holds of the conversation.
        """
        started = time.monotonic()
        request_id = request.request_id or new_id(int(self._now().timestamp() * 1000))
        conversation_id = request.conversation_id or request_id
        task_id = self.task_id_of(request) if request.request_id is not None else request_id
        asked = _Asked(request, request_id, conversation_id, task_id, routed)
        stored = await stored_turns(self._conversations, conversation_id, LOOK_BACK) if before is None else []
        own = next((place for place, turn in enumerate(stored) if turn.turn_id == asked.turn_id("person")), None)
        if own is not None and stored[own].text != request.text:
            return other_words_reply(request_id=request_id, conversation_id=conversation_id)
        # Neither what was said since a request was first heard nor the hour may change what a repeat of it means.
        previous = before if before is not None else _theirs(stored[:own], asked)
        heard_at = stored[own].at if own is not None else self._now()
        await self._note(asked, "person", request.text)
        found = await self._interpreter.interpret(
            request.text,
            catalogue=self._catalogue(),
            previous=previous,
            user_id=request.user_id,
            now=heard_at,
        )
        reply = await (self._answer_all(found, asked) if isinstance(found, Several) else self._answer_one(found, asked))
        reply = fitting(reply.model_copy(update={"elapsed_ms": int((time.monotonic() - started) * 1000)}))
        # "Still at it" is no turn: the answer to a repeated request will be the one that is kept.
        if reply.kind != "pending":
            await self._note_answer(asked, reply)
        return reply

    async def _answer_all(self, found: Several, asked: _Asked) -> PersonReply:
        """Answer each part of *found*, its tasks side by side, within the one time that was given."""
        async with asyncio.TaskGroup() as group:
            answering = [
                group.create_task(self._answer_one(part, asked, place)) for place, part in enumerate(found.parts, 1)
            ]
        parts = [
            as_part(one.result(), part_task_id(asked.task_id, place) if isinstance(part, Understood) else None)
            for place, (part, one) in enumerate(zip(found.parts, answering, strict=True), 1)
        ]
        return combined(parts, request_id=asked.request_id, conversation_id=asked.conversation_id)

    async def _answer_one(self, found: Single, asked: _Asked, place: int = 0) -> PersonReply:
        """Answer *found*, the part at *place* of several; 0 is the only one there is."""
        if isinstance(found, Understood):
            return await self._run(found, asked, place)
        return interpretation_reply(found, request_id=asked.request_id, conversation_id=asked.conversation_id)

    async def _run(self, found: Understood, asked: _Asked, place: int) -> PersonReply:
        card = self._card_of(found)
        assignment = self._assignment(found, card, asked, place)
        report = None
        problem: NotAccepted | MessageTooLarge | None = None
        try:
            await self._dispatch.assign(assignment)
            asked.routed(assignment)
            report = await self._reports.report_of(assignment, asked.request.wait_ms / 1000)
        except NotAccepted as error:
            log.warning("task_not_accepted", task_id=assignment.task_id, error=str(error))
            problem = error
        except MessageTooLarge as error:
            if not place:
                raise
            # The other parts are answered all the same.
            problem = error
        return report_reply(
            report,
            card,
            assignment=assignment,
            request_id=asked.request_id,
            conversation_id=asked.conversation_id,
            problem=problem,
            remembered=found.remembered,
            computed=found.computed,
        )

    def _assignment(self, found: Understood, card: TaskCard | None, asked: _Asked, place: int) -> TaskAssignment:
        """Return the task for *found*; as a part of several it is a child of the request, and is cancelled with it."""
        now, request = self._now(), asked.request
        return TaskAssignment(
            task_id=part_task_id(asked.task_id, place) if place else asked.task_id,
            agent_id=found.agent_id,
            supervisor_id=self._supervisor_id,
            task=found.task,
            created_at=now,
            deadline=now + timedelta(seconds=card.deadline_s) if card is not None and card.deadline_s else None,
            max_attempts=card.max_attempts if card is not None else MAX_ATTEMPTS,
            memory=request.memory if request.memory != "other" else "bypass",
            request_id=asked.request_id,
            parent_id=asked.task_id if place else None,
            user_id=request.user_id,
            conversation_id=asked.conversation_id,
        )

    def _card_of(self, found: Understood) -> TaskCard | None:
        offer = self._catalogue().find(found.agent_id, found.task.name)
        return offer.task if offer is not None else None

    def task_id_of(self, request: PersonRequest) -> str:
        """Return the id of the task that *request* becomes, which has an id: the same whenever it is sent again."""
        asked = self._supervisor_id, request.user_id, request.conversation_id, request.request_id
        return f"r-{_digest(*asked)}"

    async def _note_answer(self, asked: _Asked, reply: PersonReply) -> None:
        """Keep *reply* as one turn, or as one for each part: what asks back last, as that is what is answered next."""
        if not reply.parts:
            await self._note(asked, "assistant", reply.text, (reply.agent_id, reply.task))
            return
        places = sorted(range(len(reply.parts)), key=lambda place: reply.parts[place].kind == "question")
        for place in places:
            part = reply.parts[place]
            await self._note(asked, "assistant", part.text, (part.agent_id, part.task), place + 1)

    async def _note(
        self,
        asked: _Asked,
        speaker: Speaker,
        text: str,
        about: tuple[str | None, TaskCall | None] = (None, None),
        place: int = 0,
    ) -> None:
        """Keep one turn in the conversation, and publish it for whoever learns from it; *about* is agent and task."""
        request, conversation_id = asked.request, asked.conversation_id
        turn_id = asked.turn_id(speaker)
        turn = ChatTurn(
            turn_id=part_turn_id(turn_id, place) if place else turn_id,
            conversation_id=conversation_id,
            user_id=request.user_id,
            speaker=speaker,
            text=text,
            at=self._now(),
            request_id=asked.request_id,
            agent_id=about[0],
            task=about[1],
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


def _theirs(turns: Sequence[ChatTurn], asked: _Asked) -> list[ChatTurn]:
    """Return those of *turns* that were said to and by whoever asks now, or to nobody known.

    What is known of one user may stand in an answer to them; it must not become a value for another.
    """
    theirs = (None, asked.request.user_id)
    return [turn for turn in turns if turn.request_id != asked.request_id and turn.user_id in theirs]


def _digest(*parts: str | None) -> str:
    """Return 32 hexadecimal digits of *parts*: two people may choose one request id."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
