"""Sentences that rules read whole, and those that they read in part: the latter are a model's, where there is one."""

from collections.abc import Sequence

import pytest

from tasklore.contracts.messages import ChatTurn, TaskCall
from tasklore.supervisor.understanding import (
    Interpretation,
    LlmInterpreter,
    RuleInterpreter,
    Understood,
)
from tasklore.supervisor.understanding.utterance import ReadUtterance
from tasklore.supervisor.understanding.wholeness import unexplained_words
from tests.understanding.agents import EVERYDAY, NOW
from tests.understanding_cases import EVERYBODY, budget_turn, said, understand
from tests.unit.supervisor.understanding.test_model_reading import Answers, reading

CAKE = "lemon cake for 12 people, ready on Friday"
ASKED = said(
    "assistant",
    "What is spent?",
    TaskCall(name="analyze_budget", parameters={"budget_limit": 50000}),
    "BudgetTrackerAgent",
)


async def asked(
    text: str, previous: Sequence[ChatTurn] = (), cast: str = "everybody"
) -> tuple[int, Interpretation]:
    """Return how often a model that finds nothing was asked about *text*, and what came of it."""
    model = Answers(reading())
    found = await LlmInterpreter(model).interpret(
        text,
        catalogue=EVERYDAY.catalogue if cast == "everyday" else EVERYBODY,
        previous=previous,
        now=NOW,
    )
    return len(model.users), found


@pytest.mark.parametrize(
    "text",
    [
        "limit 50k, spent 42k",
        "Hi, my budget limit is 50k and I have spent 42k so far, please",
        "analyze a budget: limit 50k, 42,000 spent",
    ],
)
async def test_a_sentence_of_known_words_needs_no_model(text: str) -> None:
    times, found = await asked(text)
    assert (times, type(found)) == (0, Understood)


@pytest.mark.parametrize(
    "text",
    [
        "limit 50k, spent over 42k",
        "if my limit is 50k, 42k spent",
        "limit 50k, spent 42k each",
        "he has spent 42k of his limit of 50k",
        "limit 50k, spent 42k in rome",
        "only 42k spent, limit 50k",
        "limit 50k, 42k spent by others",
    ],
)
async def test_a_word_that_changes_the_request_is_for_a_model(text: str) -> None:
    """Rules start it, as long as nobody else can read it."""
    assert isinstance(understand(text), Understood)
    assert (await asked(text))[0] == 1


@pytest.mark.parametrize(
    ("text", "times"),
    [(CAKE, 0), (f"{CAKE}, like last time", 1), (f"every week a {CAKE}", 1)],
)
async def test_the_examples_of_a_card_explain_words(text: str, times: int) -> None:
    assert (await asked(text, cast="everyday"))[0] == times


async def test_a_denial_with_a_wish_behind_it_is_for_a_model() -> None:
    """A plain one leaves it at that, and so do the rules alone."""
    assert (await asked("don't book a taxi yet, the fare is what I want"))[0] == 1
    assert (await asked("never mind", [said("person", "greet"), ASKED]))[0] == 0


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("the same with spent 45k", 0),
        ("and again with a limit of 60k", 0),
        ("the same with spent 45k among colleagues", 1),
    ],
)
async def test_words_that_go_on_with_a_task_are_known(text: str, times: int) -> None:
    """Whatever else is said beside them is not."""
    before = budget_turn(budget_limit=50000, spent=42000)
    assert isinstance(understand(text, before), Understood)
    assert (await asked(text, before))[0] == times


@pytest.mark.parametrize(
    ("text", "times"), [("42k", 0), ("it's 42k, sorry", 0), ("42k per head", 1)]
)
async def test_an_answer_is_read_whole_or_by_a_model(text: str, times: int) -> None:
    previous = [said("person", "limit 50k"), ASKED]
    assert isinstance(understand(text, previous), Understood)
    assert (await asked(text, previous))[0] == times


def test_unexplained_words_are_told_by_name() -> None:
    text = "limit 50k, spent 42k of petty cash in rome"
    found = understand(text)
    assert isinstance(found, Understood)
    assert found.is_loose
    [task] = [
        one
        for one in RuleInterpreter().router(EVERYBODY).tasks
        if one.key[0] == found.agent_id
    ]
    words = unexplained_words(ReadUtterance(text), task, found.spans)
    assert [one.text for one in words] == ["petty", "cash", "rome"]
