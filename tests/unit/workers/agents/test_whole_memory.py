"""A whole person is forgotten from a chat by one sentence that they were shown, and by nothing else."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from tasklore import Context
from tasklore.contracts.messages import ChatTurn, TaskAssignment, TaskCall
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.model import LlmInterpreter
from tasklore.supervisor.understanding.outcome import (
    Clarification,
    Interpretation,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.rules import RuleInterpreter
from tasklore.workers.agents.memory_worker import agent
from tasklore.workers.agents.memory_worker.whole_memory import (
    Everything,
    ForgettingWords,
    bring_my_memory_back,
    forget_all_about_me,
    forgetting_words,
)
from tasklore.workers.card import card_of
from tasklore.workers.testing import NOW, AgentKit
from tests.integration.documents import FOOD, USER, commit, like, liked, plan
from tests.understanding.recorded import Model

TASK = "forget_all_about_me"
BACK = "bring_my_memory_back"
ENGLISH = forgetting_words()[0]


#: What somebody wants gone who does not mean all of themselves: an order, nothing at all, an account, a topic.
OTHER_OBJECTS = (
    "delete my last order",
    "forget it",
    "delete my account",
    "forget about the pizza",
    "lösche meine letzte Bestellung",
    "vergiss es",
    "lösche mein Konto",
    "vergiss die Pizza",
    "borra mi último pedido",
    "olvídalo",
    "borra mi cuenta",
    "olvida lo de la pizza",
    "最後の注文を削除して",
    "忘れて",
    "アカウントを削除して",
    "ピザのことは忘れて",
)


def person(
    text: str, request_id: str, at: datetime = NOW, user: str = USER
) -> ChatTurn:
    """Return what somebody wrote in the request *request_id*."""
    return ChatTurn(
        turn_id=f"p-{request_id}",
        conversation_id="c",
        user_id=user,
        speaker="person",
        text=text,
        at=at,
        request_id=request_id,
    )


def shown(
    text: str, at: datetime = NOW, task: str = TASK, turn_id: str = "a-0"
) -> ChatTurn:
    """Return what the agent answered before."""
    return ChatTurn(
        turn_id=turn_id,
        conversation_id="c",
        user_id=USER,
        speaker="assistant",
        text=text,
        at=at,
        request_id="r0",
        agent_id="MemoryAgent",
        task=TaskCall(name=task, parameters={}),
    )


class Chat:
    """A conversation of somebody who likes eggs, and what the tasks of the memory answer in it."""

    def __init__(self, *turns: ChatTurn, is_allowed: bool = True) -> None:
        self.kit = AgentKit(agent, conversation=turns)
        self.kit.services.forgets_in_chat = is_allowed
        self.turns = turns

    async def begin(self) -> "Chat":
        """Let the person be remembered."""
        await commit(self.kit.services.edits, plan("p1", like("Eggs")))
        for turn in self.turns:
            await self.say(turn)
        return self

    async def say(self, turn: ChatTurn) -> None:
        """Add *turn*."""
        await self.kit.services.conversations.append(
            "c", turn.model_dump_json().encode(), turn.turn_id, user_id=USER
        )

    async def read(self) -> tuple[ChatTurn, ...]:
        """Return what stands in the conversation."""
        bodies = await self.kit.services.conversations.recent("c")
        return tuple(ChatTurn.model_validate_json(body) for body in bodies)

    async def texts(self) -> list[str]:
        """Return the texts of what stands in the conversation."""
        return [turn.text for turn in await self.read()]

    async def run(
        self, name: str = TASK, request_id: str | None = "r1", task_id: str = "t1"
    ) -> str:
        """Run the task *name* for a request, and return what it answers."""
        assignment = TaskAssignment(
            task_id=task_id,
            agent_id="MemoryAgent",
            supervisor_id="kit",
            task=TaskCall(name=name, parameters={}),
            created_at=NOW,
            user_id=USER,
            conversation_id="c",
            request_id=request_id,
        )
        # What the kit was given to begin with may be hidden since.
        self.kit.services.turns = await self.read()
        context = Context(agent.tasks[name], assignment, self.kit.services)
        task = {TASK: forget_all_about_me, BACK: bring_my_memory_back}[name]
        return await task(Everything(), context)

    async def is_there(self) -> bool:
        """Return whether what they like is remembered."""
        return await liked(self.kit.services.edits) == ["Eggs"]


async def answer(
    *turns: ChatTurn, request_id: str | None = "r1", is_allowed: bool = True
) -> tuple[str, bool]:
    """Return what the task answers in a conversation of *turns*, and whether the memory is there after it."""
    chat = await Chat(*turns, is_allowed=is_allowed).begin()
    said = await chat.run(request_id=request_id)
    return said, await chat.is_there()


SHOWN = shown(ENGLISH.lost.format(held="documents: 1", sentence=ENGLISH.sentence))


async def test_the_first_answer_says_what_would_be_lost_and_touches_nothing() -> None:
    said, is_there = await answer(person("forget everything about me", "r1"))
    assert said == ENGLISH.lost.format(
        held=f"documents: 1, items in them: 1, turns of our conversations: 1, since {NOW.date()}",
        sentence=ENGLISH.sentence,
    )
    assert is_there


@pytest.mark.parametrize("words", forgetting_words(), ids=lambda words: words.name)
async def test_the_sentence_forgets_in_each_language(words: ForgettingWords) -> None:
    """It was shown before, in that language."""
    question = words.lost.format(held="", sentence=words.sentence)
    typed = f"{words.sentence.upper()}!"
    said, is_there = await answer(shown(question), person(typed, "r1"))
    assert said.startswith(words.done.partition("{")[0])
    assert not is_there


@pytest.mark.parametrize("words", forgetting_words(), ids=lambda words: words.name)
async def test_each_language_is_answered_in_its_own_words(
    words: ForgettingWords,
) -> None:
    """Whatever wording it was."""
    for text in words.asks:
        said, is_there = await answer(person(text, "r1"))
        assert said.startswith(words.lost.partition("(")[0])
        assert is_there


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "yes please, all of it",
        *OTHER_OBJECTS,
        "forget everything about me",
        f"what happens if I type {ENGLISH.sentence}?",
        f"not: {ENGLISH.sentence}",
        forgetting_words()[1].sentence,
    ],
)
async def test_no_other_words_forget_whoever_read_them_so(text: str) -> None:
    """A model may take any of them for a wish to be forgotten; the sentence of another language was not shown."""
    said, is_there = await answer(SHOWN, person(text, "r1"))
    assert is_there
    assert any(
        said.startswith(one.lost.partition("(")[0]) for one in forgetting_words()
    )


@pytest.mark.parametrize(
    "turns",
    [
        (person(ENGLISH.sentence, "r1"),),
        (shown(SHOWN.text, task="about_me"), person(ENGLISH.sentence, "r1")),
        (
            shown(SHOWN.text, NOW - timedelta(minutes=31)),
            person(ENGLISH.sentence, "r1"),
        ),
        (SHOWN, person(ENGLISH.sentence, "r1", user="bob")),
        (SHOWN, person(ENGLISH.sentence, "r0"), person("yes", "r1")),
    ],
    ids=["never shown", "by another task", "long ago", "by somebody else", "before"],
)
async def test_a_sentence_that_was_not_shown_to_its_writer_forgets_nothing(
    turns: tuple[ChatTurn, ...],
) -> None:
    """Nor one of an earlier request."""
    _, is_there = await answer(*turns)
    assert is_there


async def test_a_program_forgets_nothing_by_this_task() -> None:
    """It has a task of its own, and no words in a conversation."""
    _, is_there = await answer(SHOWN, person(ENGLISH.sentence, "r1"), request_id=None)
    assert is_there
    assert not agent.tasks["forget_me"].in_words
    assert FOOD


async def test_nobody_is_asked_to_type_for_nothing() -> None:
    kit = AgentKit(agent)
    report = await kit.run(TASK, {}, user_id=USER)
    assert report.result == ENGLISH.nothing


@pytest.mark.parametrize("words", forgetting_words(), ids=lambda words: words.name)
async def test_a_deployment_refuses_it_in_each_language(words: ForgettingWords) -> None:
    """Neither the question nor the sentence does anything where only an operator may erase a person."""
    question = words.lost.format(held="", sentence=words.sentence)
    for text in (words.asks[0], words.sentence):
        said, is_there = await answer(
            shown(question), person(text, "r1"), is_allowed=False
        )
        assert (said, is_there) == (words.refused, True)


@pytest.mark.parametrize("words", forgetting_words(), ids=lambda words: words.name)
async def test_it_comes_back_by_one_sentence_of_any_language(
    words: ForgettingWords,
) -> None:
    """With the conversation in which it was forgotten, and what was said in it since."""
    question = words.lost.format(held="", sentence=words.sentence)
    chat = await Chat(shown(question), person(words.sentence, "r1")).begin()
    done = await chat.run()
    assert "2026-01-02 12:00 UTC" in done
    assert f'"{words.back}"' in done
    assert (await chat.is_there(), await chat.texts()) == (False, [])
    await chat.say(person(words.back, "r2"))
    assert await chat.run(BACK, "r2", "t2") == words.brought.format(told="")
    assert await chat.is_there()
    assert await chat.texts() == [question, words.sentence, words.back]
    assert await chat.run(BACK, "r2", "t3") == words.unhidden


async def test_what_was_learned_since_waits_to_be_ruled_on_again() -> None:
    chat = await Chat(SHOWN, person(ENGLISH.sentence, "r1")).begin()
    await chat.run()
    store = chat.kit.services.edits
    await commit(store, plan("p2", like("Ham")))
    await chat.say(person(ENGLISH.back, "r2"))
    said = await chat.run(BACK, "r2", "t2")
    assert said == ENGLISH.brought.format(told=ENGLISH.told)
    assert await liked(store) == ["Eggs"]
    facts = PersonalQueue(chat.kit.services.redis, "facts", deadline_s=60.0)
    assert [row.row_id for row in await facts.rows(USER, 9)] == ["t2-1"]


async def test_a_run_that_was_broken_off_is_finished_by_the_next() -> None:
    """It finds no sentence any more, as that is hidden with the rest."""
    chat = await Chat(SHOWN, person(ENGLISH.sentence, "r1")).begin()
    assert await chat.run() == await chat.run()
    assert (await chat.is_there(), await chat.texts()) == (False, [])
    await chat.say(person(ENGLISH.back, "r2"))
    again = await chat.run(BACK, "r2", "t2")
    assert again == await chat.run(BACK, "r2", "t2")
    assert await chat.is_there()


@pytest.mark.parametrize(
    "text", ["yes", "bring my order back", "undo it", "bring back the pizza", "ja"]
)
async def test_no_other_words_bring_it_back_whoever_read_them_so(text: str) -> None:
    """Who wanted to be forgotten is, until they say otherwise; the answer says how."""
    chat = await Chat(SHOWN, person(ENGLISH.sentence, "r1")).begin()
    await chat.run()
    await chat.say(person(text, "r2"))
    said = await chat.run(BACK, "r2", "t2")
    assert said == ENGLISH.offered.format(
        until="2026-01-02 12:00 UTC", back=ENGLISH.back
    )
    assert not await chat.is_there()


async def test_a_program_brings_it_back_by_a_task_of_its_own() -> None:
    chat = await Chat(SHOWN, person(ENGLISH.sentence, "r1")).begin()
    nothing = await chat.kit.run("bring_back", {}, user_id=USER)
    assert (nothing.status, nothing.error.type) == ("rejected", "UndoRefused")
    await chat.run()
    await commit(chat.kit.services.edits, plan("p2", like("Ham")))
    report = await chat.kit.run("bring_back", {}, user_id=USER)
    assert report.result == {"turns": 0, "items": 1}
    assert await chat.is_there()


async def test_forgetting_by_a_program_leaves_nothing_to_bring_back() -> None:
    """What was hidden goes with the rest, at once."""
    chat = await Chat(SHOWN, person(ENGLISH.sentence, "r1")).begin()
    await chat.run()
    report = await chat.kit.run("forget_me", {}, user_id=USER)
    assert report.result["removed"]["hidden keys"] > 0
    assert report.result["left"] == {}
    await chat.say(person(ENGLISH.back, "r2"))
    assert await chat.run(BACK, "r2", "t2") == ENGLISH.unhidden


CARDS = Catalogue([card_of(agent)])


async def read_by_model(
    text: str, previous: Sequence[ChatTurn], task: str
) -> Interpretation:
    """Return what becomes of *text* where a model takes it for *task*, "" for none."""
    intent = {"agent_id": "MemoryAgent", "task_name": task, "slots": []}
    model = Model({"reasoning": "", "intents": [intent] if task else [], "unfit": []})
    return await LlmInterpreter(model).interpret(
        text, catalogue=CARDS, previous=previous, user_id=USER, now=NOW
    )


@pytest.mark.parametrize("way", ["rules", "an honest model", "a hostile model"])
@pytest.mark.parametrize("text", OTHER_OBJECTS)
async def test_nothing_is_forgotten_by_what_means_something_else(
    text: str, way: str
) -> None:
    """Whoever reads it, also a yes after it: nothing of the memory is touched."""
    chat = await Chat().begin()
    said: list[ChatTurn] = []
    for number, words in enumerate((text, "yes", "ja", "sí", "はい", text), 1):
        if way == "rules":
            found = RuleInterpreter().understand(
                words, catalogue=CARDS, previous=said, now=NOW
            )
        else:
            task = TASK if way == "a hostile model" else ""
            found = await read_by_model(words, said, task)
        said.append(person(words, f"r{number}"))
        await chat.say(said[-1])
        assert isinstance(found, Understood | Unfitting | Clarification)
        is_started = isinstance(found, Understood)
        assert is_started == (way == "a hostile model")
        if is_started:
            report = await chat.run(request_id=f"r{number}", task_id=f"t{number}")
            said.append(shown(report, turn_id=f"a-{number}"))
            await chat.say(said[-1])
        assert await chat.is_there()
    assert len(await chat.texts()) == len(said)
