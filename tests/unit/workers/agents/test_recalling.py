"""Questions about a conversation are answered from memory, with the words that the answer rests on."""

import pytest

from tasklore.contracts.errors import LlmUnavailable
from tasklore.memory.recall import Memory
from tasklore.workers.agents.memory_worker import agent
from tasklore.workers.agents.memory_worker.recall import NOTHING_SAID, Worded, _nearest
from tasklore.workers.testing import AgentKit
from tests.memory_bench import documents, item

USER = "ana"
SAID = ("I moved to Krakow in March", "did I move?", "I'm allergic to peanuts")


def _worded(answer: str, *quotations: str, is_answered: bool = True) -> Worded:
    return Worded(
        reasoning="it stands there",
        is_answered=is_answered,
        answer=answer,
        quotations=quotations,
    )


def _kit(*answers: Worded | LlmUnavailable) -> AgentKit:
    return AgentKit(
        agent,
        llm=answers,
        conversation=SAID,
        documents=documents(food__likes=["Sushi", "Pasta"]),
    )


async def _ask(kit: AgentKit, question: str) -> tuple[str, list[str]]:
    report = await kit.run("recall", {"question": question}, user_id=USER)
    assert report.status == "completed", report.error
    return report.result["answer"], [one["text"] for one in report.result["quotations"]]


async def test_without_a_model_the_nearest_words_are_quoted_with_their_day() -> None:
    answer, quotations = await _ask(_kit(), "where did I move to?")

    assert quotations == ["I moved to Krakow in March"]
    assert answer.endswith('- "I moved to Krakow in March" (you, 2026-01-01)')


async def test_an_item_is_quoted_with_its_category() -> None:
    """The value alone would not say whether it is liked."""
    assert (await _ask(_kit(), "do I like sushi?"))[1][0] == "food likes: Sushi"


async def test_an_item_is_quoted_with_whom_it_is_about_and_until_when() -> None:
    """Nuts that a daughter may not eat are hers, and what is past is said to be."""
    held = documents(
        food__likes=[
            item("nuts", subject="Mia"),
            item("sushi", until="2025-11-20"),
        ]
    )
    kit = AgentKit(agent, conversation=SAID, documents=held)

    assert (await _ask(kit, "who likes nuts?"))[1][0] == "food likes of Mia: nuts"
    assert (await _ask(kit, "do I like sushi?"))[1][0] == (
        "food likes: sushi (until 2025-11-20)"
    )


@pytest.mark.parametrize("question", ["how old is my grandmother?", "I went to Krakow"])
async def test_what_nothing_is_said_about_is_not_answered(question: str) -> None:
    assert await _ask(_kit(), question) == (NOTHING_SAID, [])


def test_memories_without_a_word_of_the_question_are_not_quoted() -> None:
    """However near a search found them: without a model nobody says that they answer it."""
    found = [
        Memory(source="turn", text=text, reference=text, at=None, score=score)
        for text, score in (
            ("The cat sleeps", 0.9),
            ("We had soup", 0.8),
            ("I moved to Krakow", 0.1),
        )
    ]
    assert _nearest("where did I move to?", found[:2]) == ()
    assert [one.text for one in _nearest("where did I move to?", found)] == [
        "I moved to Krakow"
    ]


async def test_a_model_answers_in_words_with_quotations() -> None:
    """It is shown notes and turns, and its quotations carry their days."""
    kit = _kit(_worded("You moved to Krakow in March.", "moved to Krakow"))

    answer, quotations = await _ask(kit, "where do I live now?")

    assert (
        answer == 'You moved to Krakow in March.\n- "moved to Krakow" (you, 2026-01-01)'
    )
    assert quotations == ["moved to Krakow"]


@pytest.mark.parametrize(
    "ungrounded",
    [
        _worded("You moved to Warsaw.", "I moved to Warsaw"),
        _worded("You moved 17 days ago.", "I moved to Krakow"),
        _worded("You moved to Krakow."),
        _worded("", "I moved to Krakow"),
    ],
)
async def test_what_a_model_makes_up_is_refused_and_the_words_themselves_are_quoted(
    ungrounded: Worded,
) -> None:
    kit = _kit(ungrounded, ungrounded)

    assert (await _ask(kit, "did I move to Krakow?"))[1] == [
        "I moved to Krakow in March"
    ]
    assert len(kit.asked) == 2
    assert "refused before" in kit.asked[1].user


async def test_a_model_may_mend_what_was_refused() -> None:
    """The second answer counts."""
    kit = _kit(
        _worded("Krakow.", "I live in Krakow"), _worded("Krakow.", "I moved to Krakow")
    )

    assert (await _ask(kit, "where do I live?"))[1] == ["I moved to Krakow"]


async def test_a_model_says_that_nothing_was_said_and_a_silent_one_leaves_it_to_the_search() -> (
    None
):
    """The one is an answer, the other none."""
    assert await _ask(
        _kit(_worded("", is_answered=False)), "did I move to Krakow?"
    ) == (NOTHING_SAID, [])
    assert (await _ask(_kit(LlmUnavailable("away")), "did I move to Krakow?"))[1] == [
        "I moved to Krakow in March"
    ]


async def test_what_is_known_is_told_by_category() -> None:
    """All that holds, and nothing of anybody who is not known."""
    kit = _kit()
    report = await kit.run("about_me", {}, user_id=USER)
    assert report.result == {
        "food likes": ["Sushi", "Pasta"],
        "said": ["I moved to Krakow in March", "I'm allergic to peanuts"],
    }

    refused = await kit.run("about_me", {})
    assert refused.error is not None
    assert "user_id is required" in refused.error.message
