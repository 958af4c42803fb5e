"""The service: a person's text in, an answer out, whatever happens in between."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from tasklore.contracts import subjects
from tasklore.contracts.admission.limits import Payer
from tasklore.contracts.admission.waits import APPROVED_WITHIN
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    MessageTooLarge,
    NotAccepted,
)
from tasklore.contracts.identifiers import new_id, user_token
from tasklore.contracts.messages import (
    ChatTurn,
    CompletionReport,
    PersonReply,
    PersonRequest,
    ReplyPart,
    RequiredApproval,
    TaskAssignment,
    TaskCall,
)
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.recall import is_question
from tasklore.runtime.task_caller import (
    HasWorker,
    TaskCaller,
    TaskDeadline,
    find_deadline,
)
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.dispatch import MOST_AHEAD, Dispatch
from tasklore.supervisor.replies.combined import combine, fit, join_parts, to_part
from tasklore.supervisor.replies.languages import Phraser, ReplyText, tells_language
from tasklore.supervisor.replies.notices import (
    KEPT,
    MEMORY_AGENT,
    Learned,
    say_kept,
    with_notes,
)
from tasklore.supervisor.replies.report_texts import part_reply, report_reply
from tasklore.supervisor.reports.reports import ReportWaiter
from tasklore.supervisor.requests.readings import (
    LOOK_BACK,
    FirstReading,
    PartRead,
    RequestReadings,
    ShownTurn,
    find_turn,
    read_turns,
)
from tasklore.supervisor.requests.request import (
    Ended,
    ExtraCommands,
    Incoming,
    ignore_part,
    part_task_id,
    single_task_id,
    turn_id_of,
)
from tasklore.supervisor.understanding.model import ROLE, reading_for
from tasklore.supervisor.understanding.outcome import Interpreter
from tasklore.supervisor.understanding.questions import says_nothing_fits

log = structlog.get_logger(__name__)

#: Runs, the first included, of a task whose card was retired between understanding and assigning it.
MAX_ATTEMPTS = 5

#: The task of the memory agent that answers questions, and the characters of one.
RECALL = "recall"
LONGEST_QUESTION = 2_000

#: Earlier words of a person that tell their language where the last ones do not.
_NEAR_WORDS = 3
#: Kinds of replies that a model may say in other words than rules do.
_REWORDED = ("question", "unable")
#: How a turn is published to TURNS: subject, body and message id; returns at once.
Publish = Callable[[str, bytes, str], None]


class Service:
    """Answers requests for one supervisor id; several replicas may serve one id."""

    def __init__(
        self,
        supervisor_id: str,
        *,
        catalogue: Callable[[], Catalogue],
        interpreter: Interpreter,
        dispatch: Dispatch,
        reports: ReportWaiter,
        conversations: Conversations,
        publish: Publish,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        time_zone: str = "UTC",
        learned: Learned | None = None,
        has_worker: HasWorker | None = None,
        phraser: Phraser | None = None,
    ) -> None:
        self._has_worker = has_worker
        self._phraser = phraser
        self._supervisor_id = supervisor_id
        self._learned = learned
        self._catalogue = catalogue
        self._understanding = RequestReadings(
            interpreter=interpreter,
            catalogue=catalogue,
            conversations=conversations,
            publish=self._publish_turn,
            now=now,
            time_zone=time_zone,
        )
        self._caller = TaskCaller(
            send=partial(dispatch.assign, room="refusable"), reports=reports
        )
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
        ended: Ended = ignore_part,
        is_new: bool = False,
        alongside: ExtraCommands | None = None,
        among: Catalogue | None = None,
    ) -> PersonReply:
        """Return the answer to *request*, or a question for missing values, or `pending` past `wait_ms`.

        The same `request_id` again starts nothing twice: its first reading counts, and other words are refused.
        *routed* is called with each task once it has been handed over, *ended* with each of several parts once it is
        answered. *before* is the turns before it, where the caller knows them better than the store; None: those that
        the store holds of the conversation. With *is_new* its ids were just made, so that no report is looked for.
        *alongside* goes into the store together with the turns of both sides. *among* is the part of the catalogue that
        the words are for, None all of it.
        """
        started = time.monotonic()
        if (
            request.not_before is not None
            and request.not_before > self._now() + MOST_AHEAD
        ):
            raise InvalidInput(
                f"a task waits for {MOST_AHEAD.days} days at most; make a schedule for a later one"
            )
        request_id = request.request_id
        if request_id is None:
            # A repeat comes with the id that was given here, and is the same task.
            request_id = new_id(int(self._now().timestamp() * 1000))
            request = request.model_copy(update={"request_id": request_id})
        conversation_id = request.conversation_id or request_id
        task_id = self.task_id_of(request)
        asked = Incoming(
            request=request,
            request_id=request_id,
            conversation_id=conversation_id,
            task_id=task_id,
            routed=routed,
            ended=ended,
            is_new=is_new,
            alongside=alongside or ExtraCommands(),
            among=among,
        )
        owner = request.user_id if self._learned is not None else None
        taking = (
            asyncio.ensure_future(self._learned.lines(owner))
            if self._learned and owner
            else None
        )
        payer = Payer(
            tenant=request.tenant or "",
            user=user_token(request.user_id) if request.user_id else "",
            agent=ROLE,
        )
        try:
            with reading_for(payer) as reader:
                read = await self._understanding.of(asked, before)
            if isinstance(read, FirstReading) and read.is_repeat:
                asked = replace(asked, is_repeat=True)
            reply = (
                read
                if isinstance(read, PersonReply)
                else await self._answer(read, asked)
            )
            lines = await taking if taking is not None else ()
            if reply.kind == "unable" and request.user_id:
                reply = await self._from_memory(reply, request.user_id, asked)
            by_rules = None
            if isinstance(read, FirstReading) and self._phraser is not None:
                with reading_for(payer):
                    phrased = await self._phrase(reply, asked, self._phraser)
                if phrased != reply:
                    by_rules = reply
                    reply = phrased
            reply = (
                reply.model_copy(update={"text": with_notes(reply.text, lines)})
                if lines
                else reply
            )
        finally:
            if taking is not None:
                taking.cancel()
        reply = fit(
            reply.model_copy(
                update={
                    "elapsed_ms": int((time.monotonic() - started) * 1000),
                    "read_by_rules": reader.trouble or None,
                }
            )
        )
        # "Still at it" is no turn: the answer to a repeated request will be the one that is kept. Neither is a refusal.
        if reply.kind != "pending" and isinstance(read, FirstReading):
            await self._note_answer(asked, reply, by_rules)
        return reply

    async def _phrase(
        self, reply: PersonReply, asked: Incoming, phraser: Phraser
    ) -> PersonReply:
        """Return *reply* with its questions and refusals in the language of the person who *asked*."""
        parts = list(reply.parts) or [to_part(reply, None)]
        places = [place for place, part in enumerate(parts) if part.kind in _REWORDED]
        if not places or asked.is_repeat:
            return reply
        said = [_said(parts[place]) for place in places]
        words = asked.request.text
        if not tells_language(words):
            turns = await read_turns(
                self._conversations, asked.conversation_id, LOOK_BACK
            )
            own = [turn.text for turn in turns if turn.speaker == "person"]
            words = "\n".join([*own[-_NEAR_WORDS:], words])
        texts = await phraser.phrase(words, said)
        for place, text in zip(places, texts, strict=True):
            part = parts[place]
            if text != part.text and self._has_effects(part):
                # A yes to it has effects: whoever reads English sees that it was not said otherwise.
                text = f"{text}\n({part.text})"
            parts[place] = part.model_copy(update={"text": text})
        if not reply.parts:
            return reply.model_copy(update={"text": parts[0].text})
        return reply.model_copy(
            update={"text": join_parts(parts), "parts": tuple(parts)}
        )

    def _has_effects(self, part: ReplyPart) -> bool:
        """Return whether *part* asks about a task that is to be confirmed."""
        if part.agent_id is None or part.task is None:
            return False
        card = self._catalogue().card_of(part.agent_id, part.task.name)
        return card is not None and bool(card.confirm)

    async def _from_memory(
        self, reply: PersonReply, owner: str, asked: Incoming
    ) -> PersonReply:
        """Return memory's answer to words that ask for no task: learned, recalled or kept; else *reply*."""
        recalling = asyncio.ensure_future(self._recall(asked))
        try:
            turn_id = asked.turn_id("person")
            taught = (
                await self._learned.of_turn(owner, turn_id)
                if self._learned is not None
                else ()
            )
            if taught:
                return reply.model_copy(
                    update={"kind": "answer", "text": with_notes("", taught)}
                )
            if (recalled := await recalling) is not None:
                return recalled
            is_kept = self._learned is not None and await self._learned.is_kept(
                owner, turn_id
            )
            return await self._say_kept(reply, asked) if is_kept else reply
        finally:
            recalling.cancel()
            await asyncio.gather(recalling, return_exceptions=True)

    async def _say_kept(self, reply: PersonReply, asked: Incoming) -> PersonReply:
        """Return *reply* to kept words of *asked*; what that means is said once in a conversation."""
        was_said = False
        asks = is_question(asked.request.text)
        if not asks:
            turns = await read_turns(
                self._conversations, asked.conversation_id, LOOK_BACK
            )
            was_said = any(turn.text.startswith(KEPT) for turn in turns)
        return say_kept(reply, is_question=asks, was_said=was_said)

    async def _recall(self, asked: Incoming) -> PersonReply | None:
        """Return the memory agent's answer to *asked*, None when it has none."""
        offer = (asked.among or self._catalogue()).find(MEMORY_AGENT, RECALL)
        if offer is None:
            return None
        task = TaskCall(
            name=RECALL, parameters={"question": asked.request.text[:LONGEST_QUESTION]}
        )
        assignment = self._assignment(
            MEMORY_AGENT, task=task, asked=asked, task_id=asked.task_id, parent_id=None
        )
        try:
            report = await self._report_of(assignment, asked)
        except (NotAccepted, MessageTooLarge) as error:
            log.warning("question_not_put_to_memory", error=str(error))
            return None
        found = (
            report.result
            if report is not None and report.status == "completed"
            else None
        )
        if not isinstance(found, dict) or not found.get("quotations"):
            return None
        return PersonReply(
            request_id=asked.request_id,
            conversation_id=asked.conversation_id,
            kind="answer",
            text=str(found["answer"]),
            agent_id=MEMORY_AGENT,
            task=task,
            report=report,
        )

    async def _answer(self, read: FirstReading, asked: Incoming) -> PersonReply:
        """Answer each part of *read*, its tasks side by side, within the one time that was given."""
        if len(read.parts) == 1:
            return await self._answer_part(read.parts[0], asked, read.task_id)
        async with asyncio.TaskGroup() as group:
            answering = [
                group.create_task(self._answer_one_of(part, place, asked, read.task_id))
                for place, part in enumerate(read.parts, start=1)
            ]
        parts = [one.result() for one in answering]
        return combine(
            parts, request_id=asked.request_id, conversation_id=asked.conversation_id
        )

    async def _answer_one_of(
        self, part: PartRead, place: int, asked: Incoming, whole: str
    ) -> ReplyPart:
        """Answer *part*, at *place* among several, and call `ended` before the others have ended."""
        task_id = part_task_id(whole, place)
        reply = await self._answer_part(part, asked, task_id, parent_id=whole)
        answered = to_part(reply, task_id if part.kind == "task" else None)
        asked.ended(place, answered)
        return answered

    async def _answer_part(
        self,
        part: PartRead,
        asked: Incoming,
        task_id: str,
        parent_id: str | None = None,
    ) -> PersonReply:
        """Answer *part*; as one of several its task is a child of *parent_id*, and is cancelled with it."""
        if part.kind != "task" or part.agent_id is None or part.task is None:
            return part_reply(
                part, request_id=asked.request_id, conversation_id=asked.conversation_id
            )
        assignment = self._assignment(
            part.agent_id,
            task=part.task,
            asked=asked,
            task_id=task_id,
            parent_id=parent_id,
            approver=part.approver,
        )
        report = None
        problem: NotAccepted | MessageTooLarge | None = None
        try:
            report = await self._report_of(assignment, asked)
        except NotAccepted as error:
            log.warning(
                "task_not_accepted", task_id=assignment.task_id, error=str(error)
            )
            problem = error
        except MessageTooLarge as error:
            if assignment.parent_id is None:
                raise
            # The other parts are answered all the same.
            problem = error
        has_worker = True
        wait = None
        if report is None and problem is None:
            if self._has_worker is not None:
                has_worker = await self._has_worker(assignment.agent_id)
            wait = await self._reports.wait_of(assignment.named)
        return report_reply(
            report,
            self._catalogue().card_of(assignment.agent_id, assignment.task.name),
            assignment=assignment,
            request_id=asked.request_id,
            conversation_id=asked.conversation_id,
            problem=problem,
            remembered=part.remembered,
            computed=part.computed,
            has_worker=has_worker,
            wait=wait,
        )

    async def _report_of(
        self, assignment: TaskAssignment, asked: Incoming
    ) -> CompletionReport | None:
        """Hand *assignment* over and return its report, None when it takes longer than *asked* waits."""
        if asked.is_repeat and assignment.approval is None:
            report = await self._reports.report_of(assignment, 0.0)
            if report is not None:
                # It ended long ago: nothing is handed over again, and nothing needs room.
                asked.routed(assignment)
                return report
        within_s = asked.request.wait_ms / 1000
        state = None
        if assignment.approval is not None:
            state = await self._reports.state_of(assignment.named)
        is_late = assignment.waits_from > assignment.created_at + timedelta(
            seconds=within_s
        )
        if is_late or (assignment.approval is not None and state != "running"):
            # A person is asked, which may take days.
            within_s = 0.0
        return await self._caller.call(
            assignment,
            within_s=within_s,
            is_new=asked.is_new,
            # What waits for a person is sent once: whoever asks again for days would leave a copy each time.
            is_sent=state not in (None, "unknown", "away"),
            sent=asked.routed,
            has_worker=self._has_worker if asked.request.unserved_at_once else None,
        )

    def _assignment(
        self,
        agent_id: str,
        task: TaskCall,
        asked: Incoming,
        task_id: str,
        parent_id: str | None,
        approver: str | None = None,
    ) -> TaskAssignment:
        now = self._now()
        request = asked.request
        card = self._catalogue().card_of(agent_id, task.name)
        starts_at = request.not_before or now
        approval = None
        deadline = find_deadline(starts_at, card.deadline_s if card else None)
        if approver is not None:
            # The worker counts from the yes.
            deadline = TaskDeadline(None, None)
            until = starts_at + APPROVED_WITHIN
            approval = RequiredApproval(
                who=approver, words=request.text[:LONGEST_QUESTION], until=until
            )
        return TaskAssignment(
            task_id=task_id,
            agent_id=agent_id,
            supervisor_id=self._supervisor_id,
            task=task,
            created_at=now,
            deadline=deadline.at,
            has_own_deadline=deadline.is_own,
            max_attempts=card.max_attempts if card is not None else MAX_ATTEMPTS,
            memory=request.memory if request.memory != "other" else "bypass",
            request_id=asked.request_id,
            parent_id=parent_id,
            user_id=request.user_id,
            caller=request.asked_by,
            priority="interactive",
            not_before=request.not_before,
            conversation_id=asked.conversation_id,
            approval=approval,
        )

    def task_id_of(self, request: PersonRequest) -> str:
        """Return the id of the task that *request* becomes, which has an id: the same whenever it is sent again."""
        return single_task_id(self._supervisor_id, request)

    async def is_known(self, request: PersonRequest) -> bool:
        """Return whether the words of *request* are kept, so that it is a repeat; False where that is not known."""
        if request.request_id is None:
            return False
        conversation_id = request.conversation_id or request.request_id
        turn_id = turn_id_of(request, conversation_id, request.request_id, "person")
        try:
            found = await find_turn(self._conversations, conversation_id, turn_id)
        except MemoryUnavailable as error:
            log.info("request_not_found", error=str(error))
            return False
        return found is not None

    async def _note_answer(
        self, asked: Incoming, reply: PersonReply, by_rules: PersonReply | None
    ) -> None:
        """Keep *reply* as one turn, or as one for each part: a question last, as that is answered next.

        *by_rules* is what rules said, where a model said it in other words: it is kept beside, for the answer.
        """
        now = self._now()
        if not reply.parts:
            turn = asked.turn(
                "assistant",
                reply.text,
                now,
                (reply.agent_id, reply.task),
                kind=reply.kind,
            )
            turn = _with_words(turn, by_rules)
            await self._note(turn, asked, reply)
            return
        places = sorted(
            range(len(reply.parts)),
            key=lambda place: reply.parts[place].kind == "question",
        )
        for place in places:
            part = reply.parts[place]
            about = part.agent_id, part.task
            turn = asked.turn(
                "assistant",
                text=part.text,
                at=now,
                about=about,
                place=place + 1,
                kind=part.kind,
            )
            turn = _with_words(turn, by_rules and by_rules.parts[place])
            await self._note(turn, asked, reply if place == places[-1] else None)

    async def _note(
        self, turn: ChatTurn, asked: Incoming, reply: PersonReply | None
    ) -> None:
        """Keep *turn*, the last of *reply* if that is given, in its conversation, and publish it."""
        body = turn.model_dump_json(exclude_none=True).encode()
        alongside = asked.alongside
        try:
            is_first = await self._conversations.append(
                turn.conversation_id,
                body,
                turn.turn_id,
                user_id=turn.user_id,
                beside=() if reply is None else alongside.ending(reply),
            )
        except MemoryUnavailable as error:
            log.warning("turn_not_kept", error=str(error))
        else:
            alongside.has_ended = reply is not None
            alongside.is_first = is_first
        self._publish_turn(turn)

    def _publish_turn(self, turn: ChatTurn) -> None:
        said = turn.model_dump_json(exclude_none=True, exclude={"asked_as"})
        self._send_turn(turn, said.encode())

    def _send_turn(self, turn: ChatTurn, body: bytes) -> None:
        try:
            self._publish(
                subjects.turns(turn.user_id or turn.conversation_id), body, turn.turn_id
            )
        except MessageTooLarge as error:
            # The answer is there: it goes back, although no worker can learn from it.
            log.warning("turn_not_published", error=str(error))


def _said(part: ReplyPart) -> ReplyText:
    """Return *part*, a question or a refusal, with the values that it names."""
    call = part.task
    values = () if call is None else tuple(call.parameters.values())
    texts = tuple(one for one in values if isinstance(one, str) and one)
    is_free = part.kind == "unable" and says_nothing_fits(part.text)
    return ReplyText("cannot" if is_free else "same", part.text, texts)


def _with_words(turn: ChatTurn, by_rules: PersonReply | ReplyPart | None) -> ChatTurn:
    """Return *turn* with what *by_rules* said beside it, where that is something else."""
    if by_rules is None or by_rules.kind not in _REWORDED or by_rules.text == turn.text:
        return turn
    return ShownTurn.model_validate({**dict(turn), "asked_as": by_rules.text})
