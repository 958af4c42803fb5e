"""Several questions open at once: what one sentence answers of them, and that the others are not lost."""

from collections.abc import Sequence
from typing import Any

import pytest

from contracts.messages import ChatTurn
from contracts.parameters.model import Field, Parameters
from supervisor.catalogue import Catalogue
from supervisor.understanding import Interpretation, Understood
from supervisor.understanding.outcome import Clarification, Several, Single
from tests.understanding_cases import EVERYBODY, card_for, said, understand


class Weather(Parameters):
    """One text."""

    place: str = Field(cues=("in",))


class Events(Parameters):
    """The same text for somebody else."""

    place: str = Field(cues=("in",))


WEATHER = card_for("WeatherAgent", "tell_weather", Weather, "Tell the weather of a place.", ("weather",))
EVENTS = card_for("EventsAgent", "list_events", Events, "List the concerts of a place.", ("concerts",))
ALL = Catalogue([*EVERYBODY.cards.values(), WEATHER, EVENTS])
NUMBERS = "check my budget, limit 70k; and share a trip, hotel 500"
PLACES = "what is the weather and which concerts are there?"
MIXED = "check my budget, limit 70k, and tell me the weather"
ASKED = "asked"

#: An agent with the value it was asked for, or `ASKED`.
Parts = list[tuple[str, Any]]


def answers(first: str, *later: str) -> Interpretation:
    """Return what the last of *later* comes to, each said after the answer to the one before."""
    previous: list[ChatTurn] = []
    found = understand(first, previous, ALL)
    for number, text in enumerate(later):
        previous += [said("person", first), *turns_of(found, f"r{number}")]
        found = understand(text, previous, ALL)
    return found


def turns_of(found: Interpretation, request_id: str) -> list[ChatTurn]:
    """Return the turns that answer *found*, as the service keeps them: what asks back last."""
    turns: list[ChatTurn] = []
    for part in sorted(parts_of(found), key=lambda part: isinstance(part, Clarification)):
        text = part.question if isinstance(part, Clarification) else "Done."
        call = part.task if isinstance(part, Understood) else getattr(part, "call", None)
        turn = said("assistant", text, call, getattr(part, "agent_id", None))
        turns.append(turn.model_copy(update={"request_id": request_id, "turn_id": f"{request_id}-{len(turns)}"}))
    return turns


def parts_of(found: Interpretation) -> Sequence[Single]:
    """Return the one or more that *found* is."""
    return found.parts if isinstance(found, Several) else (found,)


def told(found: Interpretation) -> Parts:
    """Return of each part the agent and the value that was open, the last of its parameters."""
    return [
        (str(getattr(part, "agent_id", None)), [*part.task.parameters.values()][-1])
        if isinstance(part, Understood)
        else (str(getattr(part, "agent_id", None)), ASKED)
        for part in parts_of(found)
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "50k and 4",
        "50k\n4",
        "4 travellers, 50k",
    ],
)
def test_one_answer_completes_every_question_that_it_fits(answer: str) -> None:
    """By the words of each, or in the order in which they were asked."""
    assert told(answers(NUMBERS, answer)) == [("BudgetTrackerAgent", 50_000), ("TripAgent", 4)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("spent 50k", [("BudgetTrackerAgent", 50_000), ("TripAgent", ASKED)]),
        ("4 travellers", [("BudgetTrackerAgent", ASKED), ("TripAgent", 4)]),
        ("limit 90k, spent 20k", [("BudgetTrackerAgent", 20_000), ("TripAgent", ASKED)]),
    ],
)
def test_what_an_answer_leaves_open_is_asked_again(answer: str, expected: Parts) -> None:
    """In the same words, and with what was said for it; the next answer is for that alone."""
    found = answers(NUMBERS, answer)
    assert told(found) == expected
    [again] = [part for part in parts_of(found) if isinstance(part, Clarification)]
    before = {part.agent_id: part for part in parts_of(answers(NUMBERS)) if isinstance(part, Clarification)}
    assert (again.question, again.known, again.missing) == (
        before[again.agent_id].question,
        before[again.agent_id].known,
        before[again.agent_id].missing,
    )
    assert told(answers(NUMBERS, answer, "7")) == [(again.agent_id, 7)]


def test_what_may_be_for_either_is_asked_about_and_starts_nothing() -> None:
    """However often it is said."""
    found = answers(NUMBERS, "50k")
    assert told(found) == told(answers(NUMBERS, "50k", "50k")) == [("BudgetTrackerAgent", ASKED), ("TripAgent", ASKED)]
    first = parts_of(answers(NUMBERS, "50k", "50k"))[0]
    assert isinstance(first, Clarification)
    assert first.question == "What is spent? (I cannot tell which of these questions that answers.)"
    assert told(answers(NUMBERS, "50k", "50k and 4")) == [("BudgetTrackerAgent", 50_000), ("TripAgent", 4)]


def test_an_answer_to_several_may_come_with_another_wish() -> None:
    """Which is begun; what nothing places is asked again."""
    found = answers(NUMBERS, "spent 50k; greet Bob")
    assert told(found) == [("BudgetTrackerAgent", 50_000), ("TripAgent", ASKED), ("GreeterAgent", "Bob")]
    unplaced = answers(NUMBERS, "50k; greet Bob")
    assert told(unplaced) == [("BudgetTrackerAgent", ASKED), ("TripAgent", ASKED), ("GreeterAgent", "Bob")]


@pytest.mark.parametrize("answer", ["greet Bob", "never mind", "tell me the weather in Lima"])
def test_whoever_speaks_of_something_else_is_not_asked_again(answer: str) -> None:
    """A question that nobody answers lapses, as a single one does."""
    assert ASKED not in [value for agent_id, value in told(answers(NUMBERS, answer)) if agent_id != "None"]


@pytest.mark.parametrize(
    "answer",
    ["cancel both", "never mind both of them", "forget it, thanks", "No, leave them please.", "neither", "no thanks"],
)
@pytest.mark.parametrize("questions", [NUMBERS, PLACES, MIXED, "check my budget, limit 70k"])
def test_all_questions_are_left_in_many_words(questions: str, answer: str) -> None:
    """None of these is a place."""
    assert told(answers(questions, answer)) == [("None", ASKED)]


@pytest.mark.parametrize(
    "answer",
    ["forget the first", "skip the second, 50k for the first", "4 travellers, forget the budget", "drop the second"],
)
def test_leaving_one_of_several_questions_asks_all_again(answer: str) -> None:
    """What shall be left is no value, and nothing starts."""
    assert told(answers(NUMBERS, answer)) == [("BudgetTrackerAgent", ASKED), ("TripAgent", ASKED)]
    assert ASKED in [value for _, value in told(answers(PLACES, "forget the first"))]


@pytest.mark.parametrize("questions", [NUMBERS, PLACES, "check my budget, limit 70k"])
@pytest.mark.parametrize("answer", ["never mind, greet Bob", "Never mind. Please greet Bob"])
def test_what_is_wished_instead_is_begun(questions: str, answer: str) -> None:
    """What was asked is left, and nothing of it is asked again."""
    assert told(answers(questions, answer)) == [("GreeterAgent", "Bob")]


@pytest.mark.parametrize("answer", ["between 40k and 50k", "50k or 60k", "50.000 und 4 Personen"])
@pytest.mark.parametrize("questions", [NUMBERS, MIXED])
def test_no_text_takes_what_another_question_asked_for(questions: str, answer: str) -> None:
    """A place can be called anything, so that it is no sign of one that something can be taken for it."""
    assert [value for _, value in told(answers(questions, answer))] == [ASKED, ASKED]


@pytest.mark.parametrize(
    "answer",
    [
        "50k and 4 and 9",
        "the third is 4",
        "x" * 5000,
    ],
)
def test_an_answer_that_says_not_which_is_which_starts_nothing(answer: str) -> None:
    """All of it stays open."""
    assert not [part for part in parts_of(answers(NUMBERS, answer)) if isinstance(part, Understood)]


def test_every_span_points_into_the_answer() -> None:
    """Each value at its place in the whole of it."""
    text = "well, 4 travellers and I spent 50k"
    for part in parts_of(answers(NUMBERS, text)):
        assert isinstance(part, Understood)
        own = [span for span in part.spans if span.turn_id is None]
        assert own
        assert all(text[span.start : span.end] == span.text for span in own)
