"""Sentences that ask for several tasks."""

from typing import Any

import pytest

from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import (
    Clarification,
    Interpretation,
    Several,
    Single,
    Understood,
    Unfitting,
)
from tests.understanding_cases import (
    EVERYBODY,
    budget_turn,
    card_for,
    parameters_of,
    understand,
)


class Weather(Parameters):
    """One text with a cue."""

    place: str = Field(cues=("in",))


class Nothing(Parameters):
    """No values at all."""


WEATHER = card_for(
    "WeatherAgent",
    "tell_weather",
    Weather,
    "Tell the weather of a place.",
    ("weather",),
)
JOKER = card_for("JokeAgent", "tell_joke", Nothing, "Tell a joke.", ("joke",))
ALL = Catalogue([*EVERYBODY.cards.values(), WEATHER, JOKER])

#: A part as it is expected: the agent, its parameters when it is understood, else the type of what it comes to.
Part = tuple[str | None, dict[str, Any] | type]


def parts_of(found: Interpretation) -> list[Part]:
    assert isinstance(found, Several), found
    return [part_of(part) for part in found.parts]


def part_of(part: Single) -> Part:
    if isinstance(part, Understood):
        return part.agent_id, part.task.parameters
    return (None if isinstance(part, Unfitting) else part.agent_id), type(part)


FOOD = {"budget_limit": 900, "spent": 350}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("check my budget of 900 with 350 spent and what is the weather in Lima",
         [("BudgetTrackerAgent", FOOD), ("WeatherAgent", {"place": "Lima"})]),
        ("Can you check my budget (limit 900, spent 350) as well as tell me a joke?",
         [("BudgetTrackerAgent", FOOD), ("JokeAgent", {})]),
        ("Check my budget, limit 900, and book a taxi ride",
         [("BudgetTrackerAgent", Clarification), ("RideAgent", Clarification)]),
    ],
)  # fmt: skip
def test_each_part_with_a_task_becomes_one(text: str, expected: list[Part]) -> None:
    assert parts_of(understand(text, catalogue=ALL)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("limit is 900 and I have spent 350", FOOD),
        ("limit is nine hundred and fifty and spent is 350", {"budget_limit": 950, "spent": 350}),
        ('Ride, distance 12 km, saying "check my budget and greet Bob"',
         {"distance": 12, "note": "check my budget and greet Bob"}),
    ],
)  # fmt: skip
def test_a_sentence_about_one_task_is_not_cut(
    text: str, expected: dict[str, Any]
) -> None:
    assert parameters_of(understand(text, catalogue=ALL)) == expected


class Nap(Parameters):
    """One number, which a verb and a noun announce."""

    minutes: int = Field(cues=("nap of", "nap"))


class Transfer(Parameters):
    """A verb that is also a cue."""

    amount: Amount = Field(unit="EUR", cues=("send",))
    to: str = Field(cues=("to",))


LISTED = Catalogue(
    [
        *ALL.cards.values(),
        card_for("NapAgent", "take_nap", Nap, "Take a nap.", ("nap",)),
        card_for(
            "MoneyAgent", "send_money", Transfer, "Send money.", ("send", "money")
        ),
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        "limit is 800, spent 350. Sorry, limit is 900",
        "greet Marks and Spencer",
        "Analyze my budget: limit 900, spent 350; then for travel 5k and 4.5k",
    ],
)
def test_one_task_or_two_is_asked_about(text: str) -> None:
    found = understand(text, catalogue=LISTED)
    parts = found.parts if isinstance(found, Several) else (found,)
    assert any(isinstance(part, Clarification) for part in parts)


def test_every_span_points_into_the_whole_sentence() -> None:
    text = "check my budget of 900 with 350 spent and what is the weather in Lima"
    found = understand(text, catalogue=ALL)
    assert isinstance(found, Several)
    spans = [
        span
        for part in found.parts
        if isinstance(part, Understood)
        for span in part.spans
    ]
    assert [span.text for span in spans] == ["900", "350", "Lima"]
    assert all(text[span.start : span.end] == span.text for span in spans)


def test_too_many_tasks_at_once_start_nothing() -> None:
    found = understand(" and ".join(["greet Ada"] * 9))
    assert isinstance(found, Unfitting)
    assert "9 tasks" in found.text
    assert "8 in one sentence" in found.text
    assert len(parts_of(understand(" and ".join(["greet Ada"] * 8)))) == 8
    assert isinstance(
        understand("greet Ada. book a ride, drive 3 km. " * 100), Unfitting
    )


@pytest.mark.parametrize(
    "text",
    [
        "don't check my budget",
        "I don't want you to book a ride, distance 12 km",
        "don't do that again",
    ],
)
def test_a_negated_task_does_not_start(text: str) -> None:
    found = understand(text, budget_turn(budget_limit=1, spent=2), ALL)
    assert isinstance(found, Unfitting)
    assert found.text.startswith("OK, I will not start it.")


@pytest.mark.parametrize(
    "text",
    [
        "Don't check my budget. Book a ride, drive 12 km",
        "Don't check my budget, book a ride instead, drive 12 km",
        "don't greet Ada but book a ride, drive 12 km",
    ],
)
def test_one_part_is_left_out_and_the_other_starts(text: str) -> None:
    found = understand(text)
    assert isinstance(found, Several)
    left, done = found.parts
    assert isinstance(left, Unfitting)
    assert isinstance(done, Understood)
    assert (done.agent_id, [text[span.start : span.end] for span in done.spans]) == (
        "RideAgent",
        ["12 km"],
    )


def test_a_repeat_and_a_new_task_in_one_sentence() -> None:
    found = understand(
        "again with 450 spent and greet Bob",
        budget_turn(budget_limit=900, spent=350),
        ALL,
    )
    repeated = {"budget_limit": 900, "spent": 450}
    assert parts_of(found) == [
        ("BudgetTrackerAgent", repeated),
        ("GreeterAgent", {"name": "Bob"}),
    ]
    doubtful = understand(
        "again with 450 and greet Bob", budget_turn(budget_limit=900, spent=350), ALL
    )
    assert parts_of(doubtful) == [
        ("BudgetTrackerAgent", Clarification),
        ("GreeterAgent", {"name": "Bob"}),
    ]
