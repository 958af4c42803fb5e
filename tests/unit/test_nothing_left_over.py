"""Nothing that a sentence says is dropped in silence: it is a task of its own, a question, or told as left out."""

from typing import Any

import pytest

from contracts.messages import ChatTurn
from supervisor.catalogue import Catalogue
from supervisor.understanding import Ambiguous, Interpretation, Missing, Several, Understood, Unfitting
from tests.understanding_cases import AT, BUDGET, TRIP, parameters_of, said, understand

BOTH = Catalogue([BUDGET, TRIP])
FIRST, SECOND = {"budget_limit": 10_000, "spent": 2_000}, {"budget_limit": 20_000, "spent": 5_000}
SHARED = {"hotel": 900, "travellers": 3}


def parts_of(found: Interpretation) -> list[Any]:
    """Return the parameters of each understood part of *found*, and the type of any other."""
    parts = found.parts if isinstance(found, Several) else (found,)
    return [part.task.parameters if isinstance(part, Understood) else type(part) for part in parts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Budget of 10k with 2k spent, budget of 20k with 5k spent, and a trip: hotel 900, 3 travellers",
         [FIRST, SECOND, SHARED]),
        ("Budget of 10k with 2k spent, budget of 20k with 5k spent, and a trip: hotel 900, 3 people",
         [FIRST, SECOND, SHARED]),
        ("Budget of 10k with 2k spent and the budget of 20k with 5k spent", [FIRST, SECOND]),
        ("Budget of 10k with 2k spent, trip: hotel 900, 3 people", [FIRST, SHARED]),
        ("trip with a hotel of 900 for the 3 of us", [SHARED]),
        ("my budget with limit 10k and a trip with a hotel of 400", [Missing, Missing]),
        ("limit 10k and 2k spent, and then also with 3k?", [FIRST, Ambiguous]),
    ],
)  # fmt: skip
def test_each_wish_of_a_sentence_is_one_whatever_joins_them(text: str, expected: list[Any]) -> None:
    """A second set of values, another keyword in front, or another amount begins a wish of its own."""
    assert parts_of(understand(text, catalogue=BOTH)) == expected


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("limit 10k, spent 2k of which hotel 900", '"900"'),
        ("limit 10k, 2k spent with a 400 hotel", '"400"'),
        ("limit 10k and 2k spent and with 3k", '"3k"'),
        ("my budget is 10k, spent 2k, my salary is 90k", '"90k"'),
    ],
)
def test_an_amount_that_nobody_has_a_use_for_is_told(text: str, left: str) -> None:
    """The task runs without it, and the answer says so."""
    found = understand(text, catalogue=BOTH)
    assert isinstance(found, Several), found
    assert parts_of(found) == [FIRST, Unfitting]
    assert left in getattr(found.parts[1], "text", "")


@pytest.mark.parametrize(
    "text",
    [
        "limit 10k, spent 2k for hotel and food",
        "my trip budget is 10k and 2k spent",
        "limit 10k and spent 2k in 2026",
        "limit 9k, sorry, 10k, spent 2k",
        "limit 9k, spent 2k, sorry, the limit is 10k",
        "limit 10k, spent 2k, so the limit is 10k",
    ],
)
def test_of_what_is_used_or_taken_back_nothing_is_told(text: str) -> None:
    """A year, a word of another agent without an amount, a correction, and what is said twice."""
    assert parameters_of(understand(text, catalogue=BOTH)) == FIRST


def test_one_answer_completes_both_wishes_that_lacked_a_value() -> None:
    """Each value goes to the question that it answers."""
    text = "my budget with limit 10k and a trip with a hotel of 900"
    asked = understand(text, catalogue=BOTH)
    assert isinstance(asked, Several)
    turns = [said("person", text)]
    for place, part in enumerate(asked.parts):
        assert isinstance(part, Missing)
        turns.append(
            ChatTurn(
                turn_id=f"turn-{place}",
                conversation_id="c",
                speaker="assistant",
                text=part.question,
                at=AT,
                request_id="one",
                agent_id=part.agent_id,
                task=part.call,
            )
        )
    assert parts_of(understand("2k spent, and 3 travellers", turns, BOTH)) == [FIRST, SHARED]
