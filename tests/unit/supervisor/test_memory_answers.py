"""What memory answers is told in sentences; programs read the same result."""

from typing import Any

import pytest

from tasklore.contracts.messages import TaskCall
from tasklore.memory.documents.items import Body
from tasklore.supervisor.replies.memory_answers import word_memory_answer
from tasklore.supervisor.replies.report_texts import word_report
from tasklore.workers.agents.memory_worker import agent
from tasklore.workers.testing import AgentKit
from tests.memory_bench import documents

FOOD = documents(food__likes=["Sushi", "Pasta"])


async def _answer(
    task: str,
    parameters: dict[str, Any],
    said: tuple[str, ...] = (),
    bodies: dict[str, Body] | None = None,
) -> str:
    kit = AgentKit(agent, conversation=said, documents=bodies or {})
    report = await kit.run(task, parameters, user_id="ana")
    assert report.status == "completed", report.error
    call = TaskCall(name=task, parameters=parameters)
    wording = word_report(report, None, call)
    assert wording.text == word_memory_answer(report, call)
    assert wording.origin is not None
    return wording.text


async def test_nothing_is_known_of_who_said_nothing() -> None:
    assert await _answer("about_me", {}) == "I know nothing about you yet."


async def test_what_is_known_is_told_with_what_was_said_lately() -> None:
    said = ("My sister is coming on Friday", "what can you do?")
    assert await _answer("about_me", {}, said, FOOD) == (
        "This I know about you:\n- Food likes: Sushi, Pasta\n"
        'And you said:\n- "My sister is coming on Friday"'
    )
    assert await _answer("about_me", {}, said) == (
        'You said:\n- "My sister is coming on Friday"'
    )
    assert (
        await _answer("about_me", {}, (), FOOD)
        == "This I know about you:\n- Food likes: Sushi, Pasta"
    )


async def test_an_answer_from_memory_stands_alone() -> None:
    answer = await _answer("recall", {"question": "how old is my grandmother?"})
    assert answer == "Nothing was said about that."


@pytest.mark.parametrize(
    ("task", "parameters", "text"),
    [
        (
            "keep_turns",
            {"is_on": False},
            (
                "From now on I keep nothing of what you say. What I have kept so far"
                " stays until it is forgotten."
            ),
        ),
        (
            "keep_turns",
            {"days": 30},
            "From now on I keep what you say, word for word, for 30 days.",
        ),
        (
            "change_item",
            {"operation": "add", "category": "food.likes", "value": "Ramen"},
            "I have noted that: Ramen.",
        ),
    ],
)
async def test_what_was_changed_is_said(
    task: str, parameters: dict[str, Any], text: str
) -> None:
    assert await _answer(task, parameters, (), FOOD) == text


async def test_what_is_forgotten_is_said_with_what_is_not_reached() -> None:
    text = await _answer("forget_me", {}, ("I moved to Krakow",))
    assert text.startswith(
        "I have forgotten everything that I knew about you. Not reached from here: "
    )
    assert "`tasklore memory forget USER`" in text


async def test_what_is_left_is_no_success() -> None:
    kit = AgentKit(agent)
    report = await kit.run("forget_me", {}, user_id="ana")
    left = report.model_copy(
        update={"result": {"removed": {}, "left": {"turns": 3, "items": 0}}}
    )
    assert word_memory_answer(left, None) == (
        "I have forgotten what I could reach. Still there: 3 turns."
    )


async def test_results_of_others_and_of_unknown_form_are_told_as_any_other() -> None:
    """A later version may return something else."""
    kit = AgentKit(agent)
    report = await kit.run("about_me", {}, user_id="ana")
    assert (
        word_memory_answer(report.model_copy(update={"agent_id": "Other"}), None)
        is None
    )
    for result in ({"food": 5}, {"food": [5]}, [1]):
        odd = report.model_copy(update={"result": result})
        assert word_memory_answer(odd, None) is None
