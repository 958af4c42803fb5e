"""Without a model, values that stand among words which say something else of them are shown for a yes, or asked for."""

from collections.abc import Sequence
from typing import Any

import pytest

from tasklore.contracts.messages import ChatTurn
from tasklore.supervisor.understanding import Clarification, Several, Understood
from tasklore.supervisor.understanding.outcome import Interpretation
from tasklore.supervisor.understanding.rules import RuleInterpreter
from tests.understanding.agents import EVERYDAY, NOW, Cast
from tests.understanding.strangers import STRANGERS


def read(cast: Cast, *says: str) -> Interpretation:
    """Return what the last of *says*, a conversation, comes to."""
    previous: list[ChatTurn] = []
    for text in says[:-1]:
        found = _understand(cast, text, previous)
        assert isinstance(found, Understood | Clarification), found
        if isinstance(found, Clarification):
            reply, call = found.question, found.call
        else:
            reply, call = "Done.", found.task
        turn = {"conversation_id": "c", "at": NOW}
        previous += [
            ChatTurn(turn_id="p", speaker="person", text=text, **turn),
            ChatTurn(
                turn_id="a",
                speaker="assistant",
                text=reply,
                agent_id=found.agent_id,
                task=call,
                **turn,
            ),
        ]
    return _understand(cast, says[-1], previous)


def _understand(cast: Cast, text: str, previous: Sequence[ChatTurn]) -> Interpretation:
    return RuleInterpreter().understand(
        text, catalogue=cast.catalogue, previous=previous, now=NOW
    )


def question(cast: Cast, *says: str) -> str:
    found = read(cast, *says)
    assert isinstance(found, Clarification), found
    return found.question


def started(cast: Cast, *says: str) -> dict[str, Any]:
    found = read(cast, *says)
    assert isinstance(found, Understood), found
    return dict(found.task.parameters)


@pytest.mark.parametrize(
    ("say", "left"),
    [
        ("quote for 2 pallets, 250 kg apiece, from Ghent to Lyon", "apiece"),
        ("quote for 4 pallets from Ghent to Lyon, each 300 kg", "each"),
        ("quote for 5 pallets at 200 kg per pallet from Ghent to Lyon", "per pallet"),
        ("a table for 4 people each Friday at 19:00", "each Friday"),
    ],
)
def test_a_number_of_each_of_several_is_not_the_number_of_all(
    say: str, left: str
) -> None:
    assert question(STRANGERS, say).endswith(f"I cannot take '{left}' into account.")


def test_the_same_holds_for_an_answer_and_for_what_goes_on() -> None:
    first = "quote for 4 pallets from Ghent to Lyon"
    assert "'apiece'" in question(STRANGERS, first, "300 kg apiece")
    assert "'each'" in question(
        STRANGERS, f"{first}, 900 kg", "the same with 300 kg each"
    )


def test_each_month_announces_the_value_that_it_stands_beside() -> None:
    found = started(EVERYDAY, "save 3000 euros, I can put away 120 each month")
    assert (found["goal"], found["monthly"]) == (3000, 120)


@pytest.mark.parametrize(
    ("say", "left"),
    [
        ("creatinine 1.4, age 62, I'm on dialysis", "I'm on dialysis"),
        ("creatinine 2.0, age 55, although I take dialysis", "I take dialysis"),
        ("creatinine 1.4, age 62, he's pregnant", "he's pregnant"),
        ("a table for 2 tomorrow at 19:00, except outdoors", "outdoors"),
    ],
)
def test_a_statement_behind_the_values_is_not_dropped(say: str, left: str) -> None:
    assert question(STRANGERS, say).endswith(f"I cannot take '{left}' into account.")


@pytest.mark.parametrize(
    "say",
    [
        "creatinine 1.4, I'm 62",
        "creatinine 1.4, but I'm only 62",
        "I'm 62, creatinine 1.4, please, it's the lab",
    ],
)
def test_a_clause_with_a_value_or_without_news_is_no_statement(say: str) -> None:
    assert started(STRANGERS, say) == {"creatinine": 1.4, "age": 62}


@pytest.mark.parametrize(
    "problem",
    [
        "the lamp in hall 2 flickers, urgent, sorry, normal",
        "my mouse is broken - low, I mean urgent",
        "the scanner is stuck, wait, the printer is stuck",
        "the door is open, no, closed",
    ],
)
def test_a_text_that_corrects_itself_is_shown(problem: str) -> None:
    assert question(STRANGERS, f"ticket: {problem}").startswith(
        f"Shall I open a ticket (problem: {problem})?"
    )


@pytest.mark.parametrize(
    "problem",
    ["no sound in calls, no internet", "wifi is broken, sorry", "they wait for me"],
)
def test_a_text_with_words_of_a_correction_starts(problem: str) -> None:
    assert started(STRANGERS, f"ticket: {problem}")["problem"] == problem


@pytest.mark.parametrize(
    ("who", "beside"),
    [
        ("my kids and us three", "'three' and 'my kids'"),
        ("our guests plus 4", "'4' and 'our guests'"),
        ("her sister and the 2 of them", "'2' and 'her sister'"),
    ],
)
def test_people_beside_a_number_are_asked_to_be_counted(who: str, beside: str) -> None:
    asked = question(STRANGERS, f"a table for {who} on Friday at 19:00")
    assert asked == f"How many people in all? You wrote {beside}."
    assert (
        started(STRANGERS, f"a table for {who} on Friday at 19:00", "6")["people"] == 6
    )


@pytest.mark.parametrize(
    ("when", "written"),
    [
        ("on Monday from 9 to 10:30", "9 to 10:30"),
        ("tomorrow between 14 and 15:30", "14 and 15:30"),
        ("on 26 November 14-15:30", "14-15:30"),
        ("on Tuesday, 10 until 11:15", "10 until 11:15"),
    ],
)
def test_the_hour_that_begins_a_range_is_no_number_of_people(
    when: str, written: str
) -> None:
    asked = question(EVERYDAY, f"book Cedar {when}")
    assert asked.endswith(f"When is the start? You wrote {written!r}.")
    found = started(EVERYDAY, f"book Cedar {when}", "at 9:15")
    assert found["start"] == "09:15:00"
    assert "attendees" not in found


@pytest.mark.parametrize(
    "say", ["a table on Friday for 2 - 19:00", "a table on Friday for 2 and 19:00"]
)
def test_a_number_beside_a_time_begins_no_range(say: str) -> None:
    found = started(STRANGERS, say)
    assert (found["people"], found["start"]) == (2, "19:00:00")


def test_a_second_time_is_not_dropped_with_its_day() -> None:
    asked = question(EVERYDAY, "book a room from 14:00 to 16:30 on 26 November")
    assert asked == "Is the start 14:00 or 16:30?"
    say = "book a room from 14:00 to 16:30 on 26 November"
    found = started(EVERYDAY, say, "14:00")
    assert (found["day"], found["start"]) == ("2026-11-26", "14:00:00")


@pytest.mark.parametrize("age", ["I am 50", "age 50"])
def test_a_value_that_may_be_for_both_tasks_is_shown_for_the_first(age: str) -> None:
    found = read(STRANGERS, f"ferritin 40 and creatinine 0.9, {age}")
    assert isinstance(found, Several)
    iron, kidney = found.parts
    assert isinstance(iron, Clarification)
    assert iron.question == "Shall I judge the store of iron (ferritin: 40; age: 50)?"
    assert isinstance(kidney, Understood)
    assert kidney.task.parameters == {"creatinine": 0.9, "age": 50}


def test_a_value_that_each_task_has_is_its_own() -> None:
    found = read(STRANGERS, "ferritin 40, age 30 and creatinine 0.9, I am 50")
    assert isinstance(found, Several)
    assert all(isinstance(one, Understood) for one in found.parts)


def test_a_part_of_a_number_is_asked_for_with_that_number() -> None:
    asked = question(STRANGERS, "how much is half of 90 GBP in JPY")
    assert asked.startswith("What is the amount in all? You wrote 'half of 90 GBP'.")
    asked = question(
        STRANGERS, "quote for 3 quarters of a pallet, 200 kg, from Ghent to Nice"
    )
    assert "You wrote '3 quarters', a fraction of something that is not known." in asked
