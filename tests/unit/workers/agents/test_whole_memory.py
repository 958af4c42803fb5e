"""A whole person is forgotten from a chat by one sentence that they were shown, and by nothing else."""

from datetime import datetime, timedelta

import pytest

from tasklore import Context
from tasklore.contracts.messages import ChatTurn, TaskAssignment, TaskCall
from tasklore.workers.agents.memory_worker import agent
from tasklore.workers.agents.memory_worker.whole_memory import (
    Everything,
    forget_all_about_me,
    forgetting_words,
)
from tasklore.workers.testing import NOW, AgentKit
from tests.integration.documents import FOOD, USER, commit, like, liked, plan

TASK = "forget_all_about_me"
ENGLISH = forgetting_words()[0]


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


def shown(text: str, at: datetime = NOW, task: str = TASK) -> ChatTurn:
    """Return what the agent answered before."""
    return ChatTurn(
        turn_id=f"a-{task}",
        conversation_id="c",
        user_id=USER,
        speaker="assistant",
        text=text,
        at=at,
        request_id="r0",
        agent_id="MemoryAgent",
        task=TaskCall(name=task, parameters={}),
    )


async def answer(
    *turns: ChatTurn, request_id: str | None = "r1", forgets_in_chat: bool = True
) -> tuple[str, bool]:
    """Return what the task answers in a conversation of *turns*, and whether the memory is there after it."""
    kit = AgentKit(agent, conversation=turns)
    kit.services.forgets_in_chat = forgets_in_chat
    await commit(kit.services.edits, plan("p1", like("Eggs")))
    for turn in turns:
        await kit.services.conversations.append(
            "c", turn.model_dump_json().encode(), turn.turn_id
        )
    assignment = TaskAssignment(
        task_id="t1",
        agent_id="MemoryAgent",
        supervisor_id="kit",
        task=TaskCall(name=TASK, parameters={}),
        created_at=NOW,
        user_id=USER,
        conversation_id="c",
        request_id=request_id,
    )
    context = Context(agent.tasks[TASK], assignment, kit.services)
    said = await forget_all_about_me(Everything(), context)
    return said, await liked(kit.services.edits) == ["Eggs"]


SHOWN = shown(ENGLISH.lost.format(held="1 documents", sentence=ENGLISH.sentence))


async def test_the_first_answer_says_what_would_be_lost_and_touches_nothing() -> None:
    said, is_there = await answer(person("forget everything about me", "r1"))
    assert said == ENGLISH.lost.format(
        held=f"1 documents, 1 items in them, 1 turns of our conversations (since {NOW.date()})",
        sentence=ENGLISH.sentence,
    )
    assert is_there


@pytest.mark.parametrize("words", forgetting_words(), ids=lambda words: words.name)
async def test_the_sentence_forgets_in_each_language(words: object) -> None:
    """It was shown before, in that language."""
    assert isinstance(words, type(ENGLISH))
    question = words.lost.format(held="", sentence=words.sentence)
    typed = f"{words.sentence.upper()}!"
    said, is_there = await answer(shown(question), person(typed, "r1"))
    assert said.startswith(words.done.partition(":")[0])
    assert not is_there


@pytest.mark.parametrize("words", forgetting_words(), ids=lambda words: words.name)
async def test_each_language_is_answered_in_its_own_words(words: object) -> None:
    """Whatever wording it was."""
    assert isinstance(words, type(ENGLISH))
    for text in words.asks:
        said, is_there = await answer(person(text, "r1"))
        assert said.startswith(words.lost.partition(":")[0])
        assert is_there


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "yes please, all of it",
        "delete my last order",
        "forget it",
        "delete my account",
        "forget about the pizza",
        "lösche mein Konto",
        "olvida lo de la pizza",
        "supprime ma dernière commande",
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
        said.startswith(one.lost.partition(":")[0]) for one in forgetting_words()
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
async def test_a_deployment_refuses_it_in_each_language(words: object) -> None:
    """Neither the question nor the sentence does anything where only an operator may erase a person."""
    assert isinstance(words, type(ENGLISH))
    question = words.lost.format(held="", sentence=words.sentence)
    for text in (words.asks[0], words.sentence):
        said, is_there = await answer(
            shown(question), person(text, "r1"), forgets_in_chat=False
        )
        assert (said, is_there) == (words.refused, True)
