"""What the supervisor's service does to a reply before it goes out, and to what was said on both sides."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts import subjects
from contracts.errors import MemoryUnavailable, MessageTooLarge, NotAccepted
from contracts.messages import ChatTurn, CompletionReport, MemoryNote, PersonReply, PersonRequest, TaskAssignment
from contracts.subjects import MAX_BODY
from supervisor.catalogue import Catalogue
from supervisor.replies.combined import fit
from supervisor.requests.readings import LOOK_BACK
from supervisor.requests.request import Alongside
from supervisor.service import Publish, Service
from supervisor.understanding.outcome import Unfitting
from tests.fakes.stores import FakeConversations
from tests.unit.patient import card


class Puzzled:
    """An interpreter that understands nothing, and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[str | None, list[str]]] = []
        self.asked_at: list[datetime | None] = []
        self.says = "I do not understand."
        self.gate, self.asked = asyncio.Event(), asyncio.Event()
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
        """Say so, once the gate is open."""
        self.asked_at.append(now)
        self.shown.append((user_id, [turn.text for turn in previous if turn.speaker == "person"]))
        self.asked.set()
        await self.gate.wait()
        return Unfitting(self.says)


class AwayConversations(FakeConversations):
    """A store that is away."""

    async def append(
        self, conversation_id: str, turn: bytes, turn_id: str, *, user_id: str | None = None, beside: object = ()
    ) -> bool:
        """Keep nothing."""
        raise MemoryUnavailable("away")


class Told(FakeConversations):
    """A store that tells what it has kept."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: asyncio.Queue[str] = asyncio.Queue()

    async def append(
        self, conversation_id: str, turn: bytes, turn_id: str, *, user_id: str | None = None, beside: object = ()
    ) -> bool:
        """Keep it, and tell."""
        is_new = await super().append(conversation_id, turn, turn_id, user_id=user_id)
        self.kept.put_nowait(turn_id)
        return is_new


class Holed(FakeConversations):
    """A store out of which what was said is forgotten, or that tells nothing more."""

    has_holes = is_away = False

    async def recent(self, conversation_id: str, count: int = 20) -> list[bytes]:
        """Return what is left."""
        if self.is_away:
            raise MemoryUnavailable("away")
        return [] if self.has_holes else await super().recent(conversation_id, count)


def service(
    conversations: FakeConversations,
    publish: Publish,
    interpreter: Puzzled | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    agent: "Recalls | None" = None,
) -> Service:
    """Return a service that knows no agent, or the one that answers from memory."""
    return Service(
        "S",
        catalogue=agent.catalogue if agent is not None else Catalogue,
        interpreter=interpreter or Puzzled(),
        dispatch=agent,  # type: ignore[arg-type]  # without one nothing is assigned
        reports=agent,  # type: ignore[arg-type]
        conversations=conversations,
        publish=publish,
        now=now,
    )


def reply_with(result: Any, text: str = "Found.") -> PersonReply:
    """Return a reply that carries *result*."""
    report = CompletionReport(
        task_id="t1",
        agent_id="A",
        supervisor_id="S",
        task_name="x",
        status="completed",
        result=result,
        memory=MemoryNote(outcome="miss"),
        worker_id="w",
        finished_at=datetime.now(UTC),
    )
    return PersonReply(request_id="r", conversation_id="c", kind="answer", text=text, report=report)


def test_a_reply_that_fits_is_left_alone() -> None:
    """Nothing is taken out of it."""
    reply = reply_with({"remaining": 8000})

    assert fit(reply) is reply


def test_a_reply_too_large_for_a_message_says_where_the_result_lies() -> None:
    """Words and result together pass the limit that the result alone keeps."""
    result = "x" * (MAX_BODY - 1000)

    reply = fit(reply_with(result, text=result))

    assert len(reply.model_dump_json()) < MAX_BODY
    assert "reports.S.t1.1" in reply.text
    assert reply.report is not None
    assert reply.report.result is None


@pytest.mark.parametrize(("user", "owner"), [("ann", "ann"), (None, "talk")])
async def test_both_sides_of_a_talk_are_published_for_whoever_learns_from_it(user: str | None, owner: str) -> None:
    """To the subject of the user, or of the conversation when nobody is known; handed over, not waited for."""
    sent: list[tuple[str, bytes, str]] = []

    def publish(subject: str, body: bytes, message_id: str) -> None:
        sent.append((subject, body, message_id))

    request = PersonRequest(text="I like omelettes", request_id="r1", conversation_id="talk", user_id=user)
    reply = await service(FakeConversations(), publish).answer(request)
    turns = [ChatTurn.model_validate_json(body) for _, body, _ in sent]
    assert reply.text == "I do not understand."
    assert [(turn.speaker, turn.text) for turn in turns] == [("person", request.text), ("assistant", reply.text)]
    assert {subject for subject, _, _ in sent} == {subjects.turns(owner)}
    assert [name for _, _, name in sent] == [turn.turn_id for turn in turns]
    assert {turn.user_id for turn in turns} == {user}


class Beside(FakeConversations):
    """A store that tells what it took together with each turn; *away_from* the turn at that place on it is away."""

    def __init__(self, away_from: int = 2) -> None:
        super().__init__()
        self.beside: list[object] = []
        self._away_from = away_from

    async def append(
        self, conversation_id: str, turn: bytes, turn_id: str, *, user_id: str | None = None, beside: object = ()
    ) -> bool:
        """Keep it, and tell."""
        if len(self.beside) >= self._away_from:
            raise MemoryUnavailable("away")
        self.beside.append(beside)
        return await super().append(conversation_id, turn, turn_id, user_id=user_id)


@pytest.mark.parametrize("away_from", [2, 1])
async def test_what_goes_along_with_a_request_is_kept_with_the_turns_of_both_sides(away_from: int) -> None:
    """Whoever gave it learns whether its end is kept, which it is not where the answer cannot be."""
    conversations = Beside(away_from)
    alongside = Alongside((("SET", "record", "1"),), lambda reply: [("SET", "end", reply.kind)])
    answering = service(conversations, lambda _subject, _body, _name: None)
    await answering.answer(PersonRequest(text="hi", request_id="r", wait_ms=1), alongside=alongside)
    both = [(("SET", "record", "1"),), [("SET", "end", "unable")]]
    assert conversations.beside == both[:away_from]
    assert alongside.has_ended == (away_from == 2)


async def test_a_conversation_is_noted_as_its_users() -> None:
    """Forgetting them has to find it; of somebody unknown nothing is noted."""
    conversations = FakeConversations()
    answering = service(conversations, lambda _subject, _body, _name: None)
    await answering.answer(PersonRequest(text="hi", conversation_id="talk", user_id="ann"))
    await answering.answer(PersonRequest(text="hi", conversation_id="other"))
    assert await conversations.of_user("ann") == ["talk"]


async def test_what_was_said_by_or_to_another_user_is_not_referred_to() -> None:
    """What is known of one stands in answers to them; in a conversation whose name two know it goes to neither."""
    interpreter = Puzzled()
    answering = service(FakeConversations(), lambda _subject, _body, _name: None, interpreter)
    for user in (None, "ann", "ben", "ann", None):
        await answering.answer(PersonRequest(text=f"by {user}", conversation_id="talk", user_id=user))
    assert interpreter.shown == [
        (None, []),
        ("ann", ["by None"]),
        ("ben", ["by None"]),
        ("ann", ["by None", "by ann"]),
        (None, ["by None"]),
    ]


async def test_an_answer_needs_neither_the_store_nor_the_stream() -> None:
    """What cannot be kept or published is a loss for those who learn, not for who asked."""

    def publish(subject: str, body: bytes, message_id: str) -> None:
        raise MessageTooLarge("too large")

    reply = await service(AwayConversations(), publish).answer(PersonRequest(text="hi", user_id="ann"))
    assert reply.text == "I do not understand."


async def test_a_repeat_is_not_read_again() -> None:
    """What it was read as is kept with its words: whatever was said since, and whoever reads them otherwise by now."""
    interpreter = Puzzled()
    answering = service(FakeConversations(), lambda _subject, _body, _name: None, interpreter)
    repeated = PersonRequest(text="double that", request_id="r1", conversation_id="talk", user_id="ann")
    first = await answering.answer(repeated)
    for number in range(LOOK_BACK):
        await answering.answer(PersonRequest(text=f"a nap of {number}", conversation_id="talk", user_id="ann"))
    interpreter.says = "I still do not."
    assert (await answering.answer(repeated)).text == first.text
    assert [asked[-1:] for _, asked in interpreter.shown].count([]) == 1


async def test_what_was_kept_unread_is_read_by_what_was_said_before_it_and_at_its_hour() -> None:
    """Its process died while it was read: neither what was said since nor a night may change what it means."""
    conversations, interpreter = Told(), Puzzled()
    today = [datetime(2026, 11, 22, 23, 59, tzinfo=UTC)]
    answering = service(conversations, lambda _subject, _body, _name: None, interpreter, lambda: today[-1])
    before = PersonRequest(text="a nap of 3000", conversation_id="talk", user_id="ann")
    unread = PersonRequest(text="double that, tomorrow", request_id="r1", conversation_id="talk", user_id="ann")
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
    said = [ChatTurn.model_validate_json(body) for body in await conversations.recent("talk")]
    assert [turn.text for turn in said].count(unread.text) == 1


async def test_of_two_who_read_one_request_at_once_the_first_to_keep_it_counts() -> None:
    """Two supervisors whose models differ: both answer with the one reading."""
    conversations, first, second = FakeConversations(), Puzzled(), Puzzled()
    first.says, second.says = "The first.", "The second."
    request = PersonRequest(text="hm", request_id="r1", conversation_id="talk")
    first.gate.clear()
    late = asyncio.create_task(service(conversations, lambda *_: None, first).answer(request))
    await first.asked.wait()
    quick = await service(conversations, lambda *_: None, second).answer(request)
    first.gate.set()
    assert [quick.text, (await late).text] == ["The second.", "The second."]


async def test_a_repeat_of_what_was_forgotten_starts_nothing() -> None:
    """Its words are gone, and what they became stands nowhere else."""
    conversations, interpreter = Holed(), Puzzled()
    answering = service(conversations, lambda *_: None, interpreter)
    request = PersonRequest(text="a nap of 3000", request_id="r1", conversation_id="talk")
    await answering.answer(request)
    conversations.has_holes = True
    reply = await answering.answer(request)
    assert (reply.kind, "has been forgotten" in reply.text) == ("failed", True)


async def test_a_repeat_that_nobody_can_look_up_is_told_so() -> None:
    """It was read before: another reading of it must not be started beside that."""
    conversations = Holed()
    answering = service(conversations, lambda *_: None)
    request = PersonRequest(text="a nap of 3000", request_id="r1", conversation_id="talk")
    await answering.answer(request)
    conversations.is_away = True
    reply = await answering.answer(request)
    assert (reply.kind, "Ask again in a moment" in reply.text) == ("failed", True)


async def test_a_request_id_that_comes_again_with_other_words_is_refused() -> None:
    """What it started is found by the id: its result would stand under the words of another question."""
    interpreter = Puzzled()
    answering = service(FakeConversations(), lambda _subject, _body, _name: None, interpreter)
    await answering.answer(PersonRequest(text="a nap of 3000", request_id="r1", conversation_id="talk"))
    reply = await answering.answer(PersonRequest(text="a nap of 100", request_id="r1", conversation_id="talk"))
    assert (reply.kind, "other words" in reply.text, len(interpreter.shown)) == ("failed", True, 1)
    await answering.answer(PersonRequest(text="a nap of 100", request_id="r1", conversation_id="other talk"))
    await answering.answer(PersonRequest(text="a nap of 100", request_id="r1", conversation_id="talk", user_id="ann"))
    assert len(interpreter.shown) == 3


class Recalls:
    """A memory agent that answers what is put to it with *result*; None: it takes too long."""

    def __init__(self, result: Any, *, is_away: bool = False) -> None:
        self.result = result
        self.is_away = is_away
        self.assigned: list[TaskAssignment] = []

    def catalogue(self) -> Catalogue:
        """Return it alone."""
        return Catalogue([card("MemoryAgent", "recall")])

    async def assign(self, assignment: TaskAssignment) -> None:
        """Take it."""
        if self.is_away:
            raise NotAccepted("away")
        self.assigned.append(assignment)

    async def report_of(
        self, assignment: TaskAssignment, within_s: float, *, is_new: bool = False
    ) -> CompletionReport | None:
        """Return its report."""
        return reply_with(self.result).report if self.result is not None else None


async def test_words_that_fit_no_task_are_answered_from_memory() -> None:
    """As a task of the memory agent, in the name of who asks; a repeat finds the same task."""
    agent = Recalls({"answer": "To Krakow.", "quotations": [{"text": "I moved to Krakow"}]})
    answering = service(FakeConversations(), lambda *_: None, agent=agent)
    request = PersonRequest(text="where did I move?", request_id="r1", conversation_id="talk", user_id="ann")

    replies = [await answering.answer(request), await answering.answer(request)]

    assert [(one.kind, one.text, one.agent_id) for one in replies] == [("answer", "To Krakow.", "MemoryAgent")] * 2
    assert {(one.task_id, one.user_id) for one in agent.assigned} == {(answering.task_id_of(request), "ann")}
    assert agent.assigned[0].task.parameters == {"question": "where did I move?"}


@pytest.mark.parametrize(
    ("user", "agent"),
    [
        ("ann", Recalls({"answer": "Nothing was said about that.", "quotations": []})),
        ("ann", Recalls(None)),
        ("ann", Recalls({}, is_away=True)),
        (None, Recalls({"answer": "To Krakow.", "quotations": [{"text": "I moved to Krakow"}]})),
    ],
)
async def test_what_memory_cannot_answer_gets_the_usual_reply(user: str | None, agent: Recalls) -> None:
    """Where nothing was said, it takes too long, it is away, or nobody known asks."""
    answering = service(FakeConversations(), lambda *_: None, agent=agent)
    reply = await answering.answer(PersonRequest(text="where did I move?", user_id=user, wait_ms=1))
    assert (reply.kind, reply.text) == ("unable", "I do not understand.")
