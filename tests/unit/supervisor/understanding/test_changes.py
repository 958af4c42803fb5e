"""Values said by their difference from earlier ones."""

from typing import Any

import pytest

from tasklore.contracts.messages import ChatTurn, TaskCall
from tasklore.contracts.parameters.model import Parameters
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.replies.report_texts import report_reply
from tasklore.supervisor.understanding import Clarification, Understood
from tests.understanding_cases import (
    EVERYBODY,
    budget_turn,
    card_for,
    parameters_of,
    said,
    understand,
)
from tests.unit.supervisor.reports import report
from tests.unit.supervisor.test_replies import ASSIGNMENT

EARLIER = {"budget_limit": 800, "spent": 250, "history": [30, 40]}
BEFORE = budget_turn(**EARLIER)


class Stay(Parameters):
    """Two counts."""

    nights: int
    rooms: int = 1


STAY = card_for(
    "StayAgent", "book_stay", Stay, "Book a stay in an inn.", ("stay", "inn")
)
ALL = Catalogue([*EVERYBODY.cards.values(), STAY])


def after(agent: str, task: str, **parameters: Any) -> list[ChatTurn]:
    return [
        said("person", "x"),
        said("assistant", "Done.", TaskCall(name=task, parameters=parameters), agent),
    ]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("double the limit", {"budget_limit": 1600}),
        ("limit 10% higher", {"budget_limit": 880}),
        ("again, but with 300 spent", {"spent": 300}),
    ],
)
def test_a_difference_is_computed_and_other_values_stay(
    text: str, changed: dict[str, Any]
) -> None:
    assert parameters_of(understand(text, BEFORE)) == {**EARLIER, **changed}


def test_differences_are_exact() -> None:
    before = budget_turn(
        budget_limit="123456789012345678901", spent="0.1234567890123456789"
    )
    found = parameters_of(understand("double the limit and 10 % more spent", before))
    assert found == {
        "budget_limit": "246913578024691357802",
        "spent": "0.13580246791358024679",
    }


def test_a_computed_value_points_to_its_words_and_turn() -> None:
    found = understand("please double the limit", BEFORE)
    assert isinstance(found, Understood)
    [span] = [span for span in found.spans if span.field == "budget_limit"]
    assert (span.text, span.turn_id, dict(found.computed)) == (
        "double the limit",
        "turn-assistant",
        {"budget_limit": "double 800"},
    )


def test_the_reply_shows_the_computation() -> None:
    found = understand("double the limit", BEFORE)
    assert isinstance(found, Understood)
    assignment = ASSIGNMENT.model_copy(update={"task": found.task})
    reply = report_reply(
        report(),
        None,
        assignment=assignment,
        request_id="r",
        conversation_id="c",
        computed=found.computed,
    )
    assert "budget limit 1,600 (double 800); spent 250" in reply.text


def test_a_difference_without_a_name_is_asked_about() -> None:
    found = understand("10 % more", BEFORE)
    assert isinstance(found, Clarification)
    assert (
        found.question == "What is '10 % more': the budget limit or the spent amount?"
    )


def test_a_missing_earlier_value_is_asked_for() -> None:
    found = understand("double the limit")
    assert isinstance(found, Clarification)
    assert found.question.startswith("This conversation has no earlier budget limit.")
    other = understand(
        "double the limit", after("TripAgent", "share_trip", hotel=1200, travellers=4)
    )
    assert isinstance(other, Clarification)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (
            "three times the limit",
            "I cannot compute 'three times the limit' from the earlier 800.",
        ),
        ("limit 900, spent 250, double the limit", "Is the budget limit 900 or 1600?"),
        ("remove 40 from the history", "from the earlier [30, 40]."),
    ],
)
def test_a_difference_without_a_plain_value_is_asked_about(
    text: str, question: str
) -> None:
    previous = (
        after("StayAgent", "book_stay", nights=3, rooms=2)
        if "nights" in text
        else BEFORE
    )
    found = understand(text, previous, ALL)
    assert isinstance(found, Clarification)
    assert question in found.question


@pytest.mark.parametrize(
    "part",
    [
        "3 quarters of it",
        "two thirds of it",
        "1/2 of it",
        "2 thirds",
        "2 thirds of it",
        "half",
        "half of it",
        "half my limit",
        "½ of it",
        "0.75 of it",
        "a fifth of my limit",
        "two-thirds of the limit",
        "three fifths",
        "3/4 of that",
        "a quarter of it",
        "10 % of it",
    ],
)
def test_a_part_of_something_is_no_amount(part: str) -> None:
    found = understand(f"limit 50k, spent {part}")
    assert isinstance(found, Clarification), found
    assert "spent" in found.missing


@pytest.mark.parametrize(
    ("said_amount", "spent"),
    [
        ("half a million", 500_000),
        ("1/2", 0.5),
        ("0.5", 0.5),
        ("2 and a half thousand", 2_500),
        ("9 of it", 9),
    ],
)
def test_a_fraction_that_is_an_amount_is_one(said_amount: str, spent: float) -> None:
    parameters = parameters_of(understand(f"limit 50k, spent {said_amount}"))
    assert parameters == {"budget_limit": 50_000, "spent": spent}


class Forecast(Parameters):
    """How many quarters, and of what."""

    quarters: int


def test_quarters_are_counted_where_a_field_is_called_so() -> None:
    card = card_for(
        "ForecastAgent", "forecast", Forecast, "Forecast some quarters.", ("forecast",)
    )
    found = understand("forecast 3 quarters", catalogue=Catalogue([card]))
    assert parameters_of(found) == {"quarters": 3}
