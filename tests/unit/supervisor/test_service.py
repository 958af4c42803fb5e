"""The supervisor's service: conversations, repeats of requests, and answers from memory."""

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasklore.contracts import subjects
from tasklore.contracts.errors import MemoryUnavailable, MessageTooLarge, NotAccepted
from tasklore.contracts.messages import (
    ChatTurn,
    CompletionReport,
    PersonReply,
    PersonRequest,
    TaskAssignment,
    TaskCall,
)
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.requests.request import ExtraCommands
from tasklore.supervisor.service import Publish, Service
from tasklore.supervisor.understanding.outcome import Understood, Unfitting
from tests.fakes.stores import FakeConversations
from tests.unit.patient import card
from tests.unit.supervisor.reports import FakeReports, report


class Puzzled:
    """An interpreter that understands nothing, and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[str | None, list[str]]] = []
        self.asked_at: list[datetime | None] = []
        self.says = "I do not understand."
        self.gate = asyncio.Event()
        self.asked = asyncio.Event()
        self.gate.set()

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,
        now: datetime | None = None,
    ) -> Unfitting:
        self.asked_at.append(now)
        self.shown.append(
            (user_id, [turn.text for turn in previous if turn.speaker == "person"])
        )
        self.asked.set()
        await self.gate.wait()
        return Unfitting(self.says)


class Conversations(FakeConversations):
    """Conversations of a store that can be away from an append on or for reading, and can forget."""

    def __init__(self, *, away_from: int = 1000) -> None:
        super().__init__()
        self.kept: asyncio.Queue[str] = asyncio.Queue()
        self.beside: list[object] = []
        self.is_forgotten = self.is_away = False
        self._away_from = away_from

    async def append(
        self,
        conversation_id: str,
        turn: bytes,
        turn_id: str,
        *,
        user_id: str | None = None,
        beside: object = (),
    ) -> bool:
        if len(self.beside) >= self._away_from:
            raise MemoryUnavailable("away")
        self.beside.append(beside)
        is_new = await super().append(conversation_id, turn, turn_id, user_id=user_id)
        self.kept.put_nowait(turn_id)
        return is_new

    async def recent(self, conversation_id: str, count: int = 20) -> list[bytes]:
        if self.is_away:
            raise MemoryUnavailable("away")
        return [] if self.is_forgotten else await super().recent(conversation_id, count)


def service(
    conversations: FakeConversations,
    publish: Publish,
    interpreter: Puzzled | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    agent: "Recalls | None" = None,
) -> Service:
    """Return a service that knows no agent, or the one that answers from memory."""
    asked: Any = agent or Recalls(None)
    return Service(
        "S",
        catalogue=agent.catalogue if agent is not None else Catalogue,
        interpreter=interpreter or Puzzled(),
        dispatch=asked,
        reports=asked,
        conversations=conversations,
        publish=publish,
        now=now,
    )


def reply_with(result: Any, text: str = "Found.") -> PersonReply:
    return PersonReply(
        request_id="r",
        conversation_id="c",
        kind="answer",
        text=text,
        report=report(result=result, supervisor_id="S"),
    )


@pytest.mark.parametrize(("user", "owner"), [("ann", "ann"), (None, "talk")])
async def test_both_turns_are_published_for_listeners(
    user: str | None, owner: str
) -> None:
    sent: list[tuple[str, bytes, str]] = []

    def publish(subject: str, body: bytes, message_id: str) -> None:
        sent.append((subject, body, message_id))

    request = PersonRequest(
        text="I like omelettes", request_id="r1", conversation_id="talk", user_id=user
    )
    reply = await service(FakeConversations(), publish).answer(request)
    turns = [ChatTurn.model_validate_json(body) for _, body, _ in sent]
    assert reply.text == "I do not understand."
    assert [(turn.speaker, turn.text) for turn in turns] == [
        ("person", request.text),
        ("assistant", reply.text),
    ]
    assert {subject for subject, _, _ in sent} == {subjects.turns(owner)}
    assert [name for _, _, name in sent] == [turn.turn_id for turn in turns]
    assert {turn.user_id for turn in turns} == {user}


@pytest.mark.parametrize("away_from", [2, 1])
async def test_a_record_of_a_request_is_stored_with_both_turns(away_from: int) -> None:
    conversations = Conversations(away_from=away_from)
    alongside = ExtraCommands(
        (("SET", "record", "1"),), lambda reply: [("SET", "end", reply.kind)]
    )
    answering = service(conversations, lambda _subject, _body, _name: None)
    await answering.answer(
        PersonRequest(text="hi", request_id="r", wait_ms=1), alongside=alongside
    )
    both = [(("SET", "record", "1"),), [("SET", "end", "unable")]]
    assert conversations.beside == both[:away_from]
    assert alongside.has_ended == (away_from == 2)


async def test_a_conversation_is_listed_under_its_user() -> None:
    conversations = FakeConversations()
    answering = service(conversations, lambda _subject, _body, _name: None)
    await answering.answer(
        PersonRequest(text="hi", conversation_id="talk", user_id="ann")
    )
    await answering.answer(PersonRequest(text="hi", conversation_id="other"))
    assert await conversations.of_user("ann") == ["talk"]


async def test_turns_of_another_user_are_not_referred_to() -> None:
    interpreter = Puzzled()
    answering = service(
        FakeConversations(), lambda _subject, _body, _name: None, interpreter
    )
    for user in (None, "ann", "ben", "ann", None):
        await answering.answer(
            PersonRequest(text=f"by {user}", conversation_id="talk", user_id=user)
        )
    assert interpreter.shown == [
        (None, []),
        ("ann", ["by None"]),
        ("ben", ["by None"]),
        ("ann", ["by None", "by ann"]),
        (None, ["by None"]),
    ]


async def test_an_answer_needs_neither_store_nor_stream() -> None:
    def publish(subject: str, body: bytes, message_id: str) -> None:
        raise MessageTooLarge("too large")

    reply = await service(Conversations(away_from=0), publish).answer(
        PersonRequest(text="hi", user_id="ann")
    )
    assert reply.text == "I do not understand."


async def test_a_request_whose_process_died_is_read_by_the_turns_and_time_it_came_at() -> (
    None
):
    conversations = Conversations()
    interpreter = Puzzled()
    today = [datetime(2026, 11, 22, 23, 59, tzinfo=UTC)]
    answering = service(
        conversations,
        lambda _subject, _body, _name: None,
        interpreter,
        lambda: today[-1],
    )
    before = PersonRequest(text="a nap of 3000", conversation_id="talk", user_id="ann")
    unread = PersonRequest(
        text="double that, tomorrow",
        request_id="r1",
        conversation_id="talk",
        user_id="ann",
    )
    await answering.answer(before)
    conversations.kept = asyncio.Queue()
    interpreter.gate.clear()
    dying = asyncio.create_task(answering.answer(unread))
    await conversations.kept.get()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    interpreter.gate.set()
    today.append(datetime(2026, 11, 24, 23, 59, tzinfo=UTC))
    await answering.answer(before.model_copy(update={"text": "a nap of 100"}))

    assert (await answering.answer(unread)).text == "I do not understand."
    assert interpreter.shown[1] == interpreter.shown[3] == ("ann", ["a nap of 3000"])
    assert interpreter.asked_at[1] == interpreter.asked_at[3] == today[0]
    said = [
        ChatTurn.model_validate_json(body)
        for body in await conversations.recent("talk")
    ]
    assert [turn.text for turn in said].count(unread.text) == 1


async def test_two_supervisors_of_one_request_use_the_reading_stored_first() -> None:
    conversations = FakeConversations()
    first = Puzzled()
    second = Puzzled()
    first.says = "The first."
    second.says = "The second."
    request = PersonRequest(text="hm", request_id="r1", conversation_id="talk")
    first.gate.clear()
    late = asyncio.create_task(
        service(conversations, lambda *_: None, first).answer(request)
    )
    await first.asked.wait()
    quick = await service(conversations, lambda *_: None, second).answer(request)
    first.gate.set()
    assert [quick.text, (await late).text] == ["The second.", "The second."]


@pytest.mark.parametrize(
    ("trouble", "words"),
    [("is_forgotten", "has been forgotten"), ("is_away", "Ask again in a moment")],
)
async def test_a_repeat_that_cannot_be_looked_up_starts_nothing(
    trouble: str, words: str
) -> None:
    conversations = Conversations()
    answering = service(conversations, lambda *_: None)
    request = PersonRequest(
        text="a nap of 3000", request_id="r1", conversation_id="talk"
    )
    await answering.answer(request)
    setattr(conversations, trouble, True)
    reply = await answering.answer(request)
    assert (reply.kind, words in reply.text) == ("failed", True)


class Recalls(FakeReports):
    """A memory agent that answers what is put to it with *result*; None: it takes too long."""

    def __init__(self, result: Any, *, is_away: bool = False) -> None:
        self.result = result
        self.is_away = is_away
        self.assigned: list[TaskAssignment] = []

    def catalogue(self) -> Catalogue:
        return Catalogue([card("MemoryAgent", "recall")])

    async def assign(self, assignment: TaskAssignment, **_: Any) -> None:
        if self.is_away:
            raise NotAccepted("away")
        self.assigned.append(assignment)

    async def report_of(
        self, assignment: TaskAssignment, within_s: float, *, is_new: bool = False
    ) -> CompletionReport | None:
        return reply_with(self.result).report if self.result is not None else None


async def test_words_that_fit_no_task_are_asked_of_the_memory_agent() -> None:
    agent = Recalls(
        {"answer": "To Krakow.", "quotations": [{"text": "I moved to Krakow"}]}
    )
    answering = service(FakeConversations(), lambda *_: None, agent=agent)
    request = PersonRequest(
        text="where did I move?", request_id="r1", conversation_id="talk", user_id="ann"
    )
    replies = [await answering.answer(request), await answering.answer(request)]
    assert [(one.kind, one.text, one.agent_id) for one in replies] == [
        ("answer", "To Krakow.", "MemoryAgent")
    ] * 2
    assert {(one.task_id, one.user_id) for one in agent.assigned} == {
        (answering.task_id_of(request), "ann")
    }
    assert agent.assigned[0].task.parameters == {"question": "where did I move?"}


@pytest.mark.parametrize("deadline_s", [None, 60.0])
async def test_the_deadline_of_a_task_that_words_ask_for_is_its_own(
    deadline_s: float | None,
) -> None:
    class Declares(Recalls):
        def catalogue(self) -> Catalogue:
            whole = card("MemoryAgent", "recall")
            task = whole.tasks[0].model_copy(update={"deadline_s": deadline_s})
            return Catalogue([whole.model_copy(update={"tasks": (task,)})])

    agent = Declares(None)
    answering = service(FakeConversations(), lambda *_: None, agent=agent)
    await answering.answer(PersonRequest(text="where?", user_id="ann", wait_ms=1))
    [sent] = agent.assigned
    assert (sent.deadline is None, sent.has_own_deadline) == (
        (True, None) if deadline_s is None else (False, True)
    )


@pytest.mark.parametrize(
    ("user", "agent"),
    [
        ("ann", Recalls({"answer": "Nothing was said about that.", "quotations": []})),
        ("ann", Recalls(None)),
        ("ann", Recalls({}, is_away=True)),
        (
            None,
            Recalls(
                {"answer": "To Krakow.", "quotations": [{"text": "I moved to Krakow"}]}
            ),
        ),
    ],
)
async def test_without_an_answer_from_memory_the_usual_reply_is_given(
    user: str | None, agent: Recalls
) -> None:
    answering = service(FakeConversations(), lambda *_: None, agent=agent)
    reply = await answering.answer(
        PersonRequest(text="where did I move?", user_id=user, wait_ms=1)
    )
    assert (reply.kind, reply.text) == ("unable", "I do not understand.")


class Found(FakeReports, Puzzled):
    """An interpreter that finds a task which needs a yes, and a supervisor that notes what it assigns."""

    def __init__(self) -> None:
        super().__init__()
        self.assigned: list[TaskAssignment] = []
        self.within: list[float] = []
        self.state: str | None = None

    async def interpret(self, text: str, **_: Any) -> Understood:  # type: ignore[override]
        return Understood(
            agent_id="PayAgent",
            task=TaskCall(name="pay", parameters={"amount": 12}),
            approver="role:finance",
        )

    def catalogue(self) -> Catalogue:
        # Its agent was retired between reading and assigning.
        return Catalogue()

    async def wait_of(self, task_id: str) -> None:
        """Say that it waits for nothing."""

    async def assign(self, assignment: TaskAssignment, **_: Any) -> None:
        self.assigned.append(assignment)

    async def state_of(self, _task_id: str) -> str | None:
        return self.state

    async def report_of(
        self, assignment: TaskAssignment, within_s: float, *, is_new: bool = False
    ) -> CompletionReport | None:
        self.within.append(within_s)
        return None


async def test_a_task_that_needs_a_yes_is_sent_once_with_who_must_agree_and_is_not_waited_for() -> (
    None
):
    """A repeat goes by the first reading, also where the agent is gone, and leaves no copy behind."""
    found = Found()
    store = FakeConversations()
    answering = service(store, lambda *_: None, found, agent=found)  # type: ignore[arg-type]
    request = PersonRequest(
        text="pay 12", request_id="r1", conversation_id="talk", user_id="ann"
    )
    replies = [await answering.answer(request)]
    found.state = "waiting"
    replies.append(await answering.answer(request))
    found.state = "running"
    await answering.answer(request)
    assert [round(within_s) for within_s in found.within] == [0, 0, 30]
    (sent,) = found.assigned
    assert sent.approval is not None
    assert (sent.approval.who, sent.approval.words, sent.deadline) == (
        "role:finance",
        "pay 12",
        None,
    )
    assert sent.approval.until - sent.created_at == timedelta(days=7)
    assert {(one.kind, one.approval_id) for one in replies} == {
        ("pending", f"{sent.task_id}.start")
    }
    turn = json.loads((await store.recent("talk", 9))[0])
    assert (turn["read_as"]["form"], turn["read_as"]["parts"][0]["approver"]) == (
        2,
        "role:finance",
    )


async def test_a_request_is_known_once_its_words_are_kept() -> None:
    """By its id, its user and its conversation, whether the repeat names that or not; not while the store is away."""
    conversations = Conversations()
    answering = service(conversations, lambda *_: None)
    request = PersonRequest(text="hello", request_id="r1", user_id="ann")
    assert not await answering.is_known(request)
    await answering.answer(request)
    assert await answering.is_known(request)
    assert await answering.is_known(
        request.model_copy(update={"conversation_id": "r1"})
    )
    for other in ({"user_id": "bob"}, {"conversation_id": "c"}, {"request_id": None}):
        assert not await answering.is_known(request.model_copy(update=other))
    conversations.is_away = True
    assert not await answering.is_known(request)
