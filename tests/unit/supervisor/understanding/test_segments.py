"""One sentence that asks for several tasks, and the many that only seem to."""

from typing import Any

import pytest

from contracts.messages import ChatTurn
from contracts.parameters.model import Field, Parameters
from quantities.amounts import Amount
from supervisor.catalogue import Catalogue
from supervisor.understanding import Clarification, Interpretation, Several, Single, Understood, Unfitting
from tests.understanding_cases import BUDGET, EVERYBODY, budget_turn, card_for, parameters_of, said, understand


class Weather(Parameters):
    """One text with a cue."""

    place: str = Field(cues=("in",))


class Nothing(Parameters):
    """No values at all."""


WEATHER = card_for("WeatherAgent", "tell_weather", Weather, "Tell the weather of a place.", ("weather",))
JOKER = card_for("JokeAgent", "tell_joke", Nothing, "Tell a joke.", ("joke",))
ALL = Catalogue([*EVERYBODY.cards.values(), WEATHER, JOKER])

#: A part as it is expected: the agent, its parameters when it is understood, else the type of what it comes to.
Part = tuple[str | None, dict[str, Any] | type]


def parts_of(found: Interpretation) -> list[Part]:
    """Return the parts of *found*, which has several."""
    assert isinstance(found, Several), found
    return [part_of(part) for part in found.parts]


def part_of(part: Single) -> Part:
    """Return *part* as it is expected."""
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
def test_each_part_that_chooses_a_task_of_its_own_becomes_one(text: str, expected: list[Part]) -> None:
    """In the order in which they were said, with the values that belong to each."""
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
def test_what_says_more_of_one_task_is_never_cut(text: str, expected: dict[str, Any]) -> None:
    """Values, lists, quotations, corrections and small talk belong to the one task there is."""
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
        card_for("MoneyAgent", "send_money", Transfer, "Send money.", ("send", "money")),
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
def test_what_may_be_one_task_or_two_is_asked_about(text: str) -> None:
    """No value is dropped, and none is chosen."""
    found = understand(text, catalogue=LISTED)
    parts = found.parts if isinstance(found, Several) else (found,)
    assert any(isinstance(part, Clarification) for part in parts)


def test_every_span_points_into_the_whole_sentence() -> None:
    """As if it had been read at once."""
    text = "check my budget of 900 with 350 spent and what is the weather in Lima"
    found = understand(text, catalogue=ALL)
    assert isinstance(found, Several)
    spans = [span for part in found.parts if isinstance(part, Understood) for span in part.spans]
    assert [span.text for span in spans] == ["900", "350", "Lima"]
    assert all(text[span.start : span.end] == span.text for span in spans)


def test_more_tasks_than_are_taken_at_once_start_nothing() -> None:
    """The reply says how many are."""
    found = understand(" and ".join(["greet Ada"] * 9))
    assert isinstance(found, Unfitting)
    assert "9 tasks" in found.text
    assert "8 in one sentence" in found.text
    assert len(parts_of(understand(" and ".join(["greet Ada"] * 8)))) == 8
    assert isinstance(understand("greet Ada. book a ride, drive 3 km. " * 100), Unfitting)


@pytest.mark.parametrize(
    "text",
    [
        "don't check my budget",
        "I don't want you to book a ride, distance 12 km",
        "don't do that again",
    ],
)
def test_what_shall_not_be_done_is_not(text: str) -> None:
    """Whatever else the sentence says."""
    found = understand(text, budget_turn(budget_limit=1, spent=2), ALL)
    assert isinstance(found, Unfitting)
    assert found.text.startswith("All right, I leave it.")


@pytest.mark.parametrize(
    "text",
    [
        "Don't check my budget. Book a ride, drive 12 km",
        "Don't check my budget, book a ride instead, drive 12 km",
        "don't greet Ada but book a ride, drive 12 km",
    ],
)
def test_one_part_is_left_out_and_the_other_done(text: str) -> None:
    """The places of its values stay those of the whole sentence."""
    found = understand(text)
    assert isinstance(found, Several)
    left, done = found.parts
    assert isinstance(left, Unfitting)
    assert isinstance(done, Understood)
    assert (done.agent_id, [text[span.start : span.end] for span in done.spans]) == ("RideAgent", ["12 km"])


def asked_of(found: Interpretation, request_id: str = "r1") -> list[ChatTurn]:
    """Return the turns that answer *found*, as the service keeps them: what asks back last."""
    assert isinstance(found, Several)
    turns = []
    for part in sorted(found.parts, key=lambda part: isinstance(part, Clarification)):
        call = part.task if isinstance(part, Understood) else None if isinstance(part, Unfitting) else part.call
        text = part.question if isinstance(part, Clarification) else "Done."
        agent = None if isinstance(part, Unfitting) else part.agent_id
        turns.append(said("assistant", text, call, agent).model_copy(update={"request_id": request_id}))
    return turns


def test_an_answer_completes_the_part_that_asked() -> None:
    """Of two open questions the one that the words are for; the other one is asked again."""
    previous = asked_of(understand("Check my budget, limit 900, and book a taxi ride"))
    still = ("BudgetTrackerAgent", Clarification), ("RideAgent", Clarification)
    assert parts_of(understand("drive 12 km", previous)) == [still[0], ("RideAgent", {"distance": 12})]
    assert parts_of(understand("spent 350", previous)) == [("BudgetTrackerAgent", FOOD), still[1]]


def test_what_the_conversation_explains_may_come_with_another_wish() -> None:
    """Neither is lost over the other."""
    found = understand("again with 450 spent and greet Bob", budget_turn(budget_limit=900, spent=350), ALL)
    repeated = {"budget_limit": 900, "spent": 450}
    assert parts_of(found) == [("BudgetTrackerAgent", repeated), ("GreeterAgent", {"name": "Bob"})]
    doubtful = understand("again with 450 and greet Bob", budget_turn(budget_limit=900, spent=350), ALL)
    assert parts_of(doubtful) == [("BudgetTrackerAgent", Clarification), ("GreeterAgent", {"name": "Bob"})]


HOUSEHOLD = BUDGET.model_copy(update={"agent_id": "HouseholdAgent"})
TWO = Catalogue([BUDGET, HOUSEHOLD, WEATHER])


@pytest.mark.parametrize(
    ("answer", "agent"),
    [
        ("the first", "BudgetTrackerAgent"),
        ("the household one", "HouseholdAgent"),
        ("I mean the tracker", "BudgetTrackerAgent"),
    ],
)
def test_one_of_two_likely_tasks_is_chosen_by_its_place_or_its_name(answer: str, agent: str) -> None:
    """The words that were said before are filled into it."""
    text = "limit 900, spent 350"
    asked = understand(text, catalogue=TWO)
    assert isinstance(asked, Clarification)
    found = understand(answer, [said("person", text), said("assistant", asked.question)], TWO)
    assert isinstance(found, Understood)
    assert (found.agent_id, found.task.parameters) == (agent, FOOD)
