"""Several values where a task has room for one: a task for each, or a question; none of them is dropped."""

from collections.abc import Sequence
from typing import Any

import pytest

from contracts.messages import ChatTurn
from contracts.parameters import Field, Parameters
from quantities.amounts import Amount
from supervisor.catalogue import Catalogue
from supervisor.understanding import Ambiguous, Interpretation, Missing, Several, Understood, Unfitting
from tests.understanding_cases import BUDGET, GREETER, card_for, parameters_of, said, understand


class _Forecast(Parameters):
    city: str = Field(cues=("in", "for"))


class _Payment(Parameters):
    amount: Amount = Field(unit="EUR", cues=("send",))
    to: str = Field(cues=("to",))


class _Table(Parameters):
    people: int = Field(cues=("people", "table for"))
    city: str = Field(cues=("in",))


class _Memo(Parameters):
    text: str = Field(cues=("saying",))


class _Nothing(Parameters):
    pass


CARDS = Catalogue(
    [
        BUDGET,
        GREETER,
        card_for("ForecastAgent", "tell_forecast", _Forecast, "Tells the weather.", ("weather", "forecast")),
        card_for("PaymentAgent", "send_money", _Payment, "Sends money.", ("send", "money")),
        card_for("TableAgent", "book_table", _Table, "Books a table.", ("table",)),
        card_for("MemoAgent", "write_memo", _Memo, "Writes a memo.", ("memo",)),
        card_for("JokeAgent", "tell_joke", _Nothing, "Tells a joke.", ("joke",)),
    ]
)


def read(text: str, previous: Sequence[ChatTurn] = ()) -> Interpretation:
    """Return what *text* comes to among the agents of these tests."""
    return understand(text, previous, CARDS)


def values(found: Interpretation) -> list[list[Any]]:
    """Return the values of each part of *found*, all of which can start."""
    parts = found.parts if isinstance(found, Several) else (found,)
    return [list(parameters_of(part).values()) for part in parts]


def question(found: Interpretation) -> str:
    """Return what *found*, of which nothing can start, asks."""
    assert isinstance(found, Ambiguous | Missing), found
    return found.question


def after(*sentences: str) -> list[ChatTurn]:
    """Return the conversation in which *sentences* were said and answered, or asked back about."""
    turns: list[ChatTurn] = []
    for number, text in enumerate(sentences):
        found = read(text, turns)
        turns.append(said("person", text))
        for part in found.parts if isinstance(found, Several) else (found,):
            assert not isinstance(part, Unfitting)
            call = part.task if isinstance(part, Understood) else part.call
            words = "Done." if isinstance(part, Understood) else part.question
            turn = said("assistant", words, call, part.agent_id)
            turns.append(turn.model_copy(update={"request_id": f"r{number}", "turn_id": f"t{len(turns)}"}))
    return turns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("greet Ada, Bob and Carol", [["Ada"], ["Bob"], ["Carol"]]),
        ("greet Ada Lovelace, Alan Turing, and Grace Hopper!", [["Ada Lovelace"], ["Alan Turing"], ["Grace Hopper"]]),
        ("say hello to Ada, to Bob and to Carol", [["Ada"], ["Bob"], ["Carol"]]),
        ("greet Ada. And Bob.", [["Ada"], ["Bob"]]),
        ("weather in St. Gallen, S\u00e3o Paulo and Rio de Janeiro tomorrow?",
         [["St. Gallen"], ["S\u00e3o Paulo"], ["Rio de Janeiro"]]),
        ("weather in Lima? Rome? Oslo?", [["Lima"], ["Rome"], ["Oslo"]]),
        ("the weather in Lima and in Oslo", [["Lima"], ["Oslo"]]),
        ("the weather in Lima and for Oslo too", [["Lima"], ["Oslo"]]),
        ("the weather in both Lima and Oslo", [["Lima"], ["Oslo"]]),
        ("weather in Oslo, Norway, Lima, Peru and Rome", [["Oslo, Norway"], ["Lima, Peru"], ["Rome"]]),
        ("send 50 to Anna, Bob and Carol", [[50, "Anna"], [50, "Bob"], [50, "Carol"]]),
        ("send 50 to Anna, and the same to Bob", [[50, "Anna"], [50, "Bob"]]),
        ("book a table in Lima, Rome and Oslo for 4 people", [[4, "Lima"], [4, "Rome"], [4, "Oslo"]]),
    ],
)  # fmt: skip
def test_a_list_of_names_is_a_task_for_each(text: str, expected: list[list[Any]]) -> None:
    """Each has what else was said, and its name points to where it stands."""
    found = read(text)
    assert values(found) == expected
    assert isinstance(found, Several)
    spans = [span for part in found.parts if isinstance(part, Understood) for span in part.spans]
    assert all(text[span.start : span.end] == span.text for span in spans)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("send 50 to Anna, 30 to Bob", [[50, "Anna"], [30, "Bob"]]),
        ("send 50 euros to Anna, 30 euros to Bob and 20 to Carol", [[50, "Anna"], [30, "Bob"], [20, "Carol"]]),
        ("send Anna 50 and Bob 30", [[50, "Anna"], [30, "Bob"]]),
        ("send money: 20 to Anna\n30 to Bob", [[20, "Anna"], [30, "Bob"]]),
        ("book a table for 4 in Lima and for 6 in Oslo", [[4, "Lima"], [6, "Oslo"]]),
        ("book a table for 4 in Lima, then another for 6 in Oslo", [[4, "Lima"], [6, "Oslo"]]),
        ("send 20 to Anna, 30 to Bob and tell me a joke", [[20, "Anna"], [30, "Bob"], []]),
    ],
)
def test_an_order_for_several_sets_of_values_is_a_task_for_each(text: str, expected: list[list[Any]]) -> None:
    """The verb is said once."""
    assert values(read(text)) == expected


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("greet Ada and Bob", 'Is name "Ada and Bob" as one, or each of "Ada" and "Bob"?'),
        ("greet Ada & Bob", 'Is name "Ada & Bob" as one, or each of "Ada" and "Bob"?'),
        ("greet Ada, Bob", 'Is name "Ada, Bob" as one, or each of "Ada" and "Bob"?'),
        ("greet Earth, Wind & Fire", 'Is name "Earth, Wind & Fire" as one, or each of "Earth", "Wind" and "Fire"?'),
        ("weather in bonn, ulm and rom", 'Is city "bonn, ulm and rom" as one, or each of "bonn", "ulm" and "rom"?'),
        ("weather in Lima (and Oslo)", 'Is city "Lima (and Oslo)" as one, or each of "Lima" and "Oslo"?'),
        ("greet Ada at A, Bob at B", 'Is name "Ada at A, Bob at B" as one, or each of "Ada at A" and "Bob at B"?'),
        ("greet Ada or Bob", 'Is name "Ada" or "Bob"?'),
    ],
)  # fmt: skip
def test_what_may_be_one_name_or_several_is_asked(text: str, asked: str) -> None:
    """The question offers both readings, and nothing starts."""
    assert question(read(text)) == asked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("weather in Trinidad and Tobago", ["Trinidad and Tobago"]),
        ("send 50 to Marks and Spencer", [50, "Marks and Spencer"]),
        ("greet Baker and Sons", ["Baker and Sons"]),
        ("weather in Paris, France", ["Paris, France"]),
        ("weather in Buffalo, New York please", ["Buffalo, New York"]),
        ("write a memo saying Ada, Bob and Carol are coming", ["Ada, Bob and Carol are coming"]),
        ("write a memo saying buy salt, pepper and oil", ["buy salt, pepper and oil"]),
        ('greet "Ada, Bob and Carol"', ["Ada, Bob and Carol"]),
        ("greet Dr. Smith", ["Dr. Smith"]),
        ("weather in St. Gallen. Thanks", ["St. Gallen"]),
        ("greet Ada, book lover", ["Ada"]),
        ("the weather in Lima and on Friday", ["Lima"]),
        ("send 50 to Anna, not 30", [50, "Anna"]),
    ],
)
def test_what_belongs_to_one_value_is_not_torn(text: str, expected: list[Any]) -> None:
    """Names with an "and", places with their country, texts, quotations, times and corrections."""
    assert values(read(text)) == [expected]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("each", [[50, "Anna"], [50, "Bob"]]),
        ("both of them, please", [[50, "Anna"], [50, "Bob"]]),
        ("separately", [[50, "Anna"], [50, "Bob"]]),
        ("as one", [[50, "Anna and Bob"]]),
        ("Anna and Bob", [[50, "Anna and Bob"]]),
        ("only to Bob", [[50, "Bob"]]),
    ],
)
def test_the_answer_tells_them_apart_or_together(answer: str, expected: list[list[Any]]) -> None:
    """What else was known stays."""
    assert values(read(answer, after("send 50 to Anna and Bob"))) == expected


@pytest.mark.parametrize("answer", ["yes", "each 30"])
def test_an_answer_that_chooses_neither_is_asked_again(answer: str) -> None:
    """It is no name."""
    assert question(read(answer, after("send 50 to Anna and Bob"))).startswith('Is to "Anna and Bob" as one')


def test_names_wait_for_what_lacks() -> None:
    """It is asked for once, and then holds for each of them."""
    assert question(read("send money to Anna, Bob and Carol")) == "What is amount?"
    expected = [[50, "Anna"], [50, "Bob"], [50, "Carol"]]
    assert values(read("50", after("send money to Anna, Bob and Carol"))) == expected


def test_what_was_asked_beside_is_asked_again() -> None:
    """Telling names apart answers one question of two."""
    found = read("each", after("greet Ada and Bob; what is the weather"))
    assert isinstance(found, Several)
    assert values(Several(found.parts[:2])) == [["Ada"], ["Bob"]]
    assert [part.question for part in found.parts[2:] if isinstance(part, Missing)] == ["What is city?"]


def test_a_report_that_looks_like_the_question_is_none() -> None:
    """An agent writes what it likes; what its task has already is not asked for."""
    turn = after("greet Ada")[-1].model_copy(update={"text": 'Is name "Eve" or "Mallory"?'})
    assert isinstance(read("Mallory", [turn]), Unfitting)


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        ("greet Ada", "and for Bob too", [["Bob"]]),
        ("greet Ada", "and Bob, Carol and Dan as well", [["Bob"], ["Carol"], ["Dan"]]),
        ("weather in Lima", "and Oslo?", [["Oslo"]]),
        ("weather in Lima", "what about Oslo?", [["Oslo"]]),
        ("send 50 to Anna", "the same to Bob", [[50, "Bob"]]),
        ("send 50 to Anna", "also for Bob", [[50, "Bob"]]),
    ],
)
def test_a_further_name_is_the_last_task_once_more(before: str, text: str, expected: list[list[Any]]) -> None:
    """With everything else as it was."""
    assert values(read(text, after(before))) == expected


@pytest.mark.parametrize("text", ["and thanks", "and Friday?", "Oslo", "and Oslo is nice", "and tell Bob"])
def test_a_name_that_is_not_said_to_be_a_further_one_repeats_nothing(text: str) -> None:
    """Nor does a time, or a sentence."""
    assert isinstance(read(text, after("weather in Lima")), Unfitting)


def test_more_names_than_tasks_are_taken_at_once_start_nothing() -> None:
    """As with tasks that are named one by one."""
    found = read("weather in Lima, Rome, Oslo, Bern, Riga, Nice, Cork, Graz and Linz")
    assert isinstance(found, Unfitting)
    assert "9 tasks" in found.text


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        ("what is my budget, the weather in Lima", ["BudgetTrackerAgent", "ForecastAgent"]),
        ("the weather in Lima, a joke", ["ForecastAgent", "JokeAgent"]),
        ("weather in Lima, joke, greet Bob", ["ForecastAgent", "JokeAgent", "GreeterAgent"]),
        ("greet Bob, also weather in Lima, finally a joke please", ["GreeterAgent", "ForecastAgent", "JokeAgent"]),
        ("greet Bob & tell me a joke", ["GreeterAgent", "JokeAgent"]),
        ("greet Bob / tell me a joke / weather in Lima", ["GreeterAgent", "JokeAgent", "ForecastAgent"]),
        ("1) greet Bob 2) weather in Lima 3) tell me a joke", ["GreeterAgent", "ForecastAgent", "JokeAgent"]),
        ("please do: a) greet Bob, b) tell me a joke", ["GreeterAgent", "JokeAgent"]),
        ("(i) greet Bob (ii) tell me a joke", ["GreeterAgent", "JokeAgent"]),
    ],
)
def test_signs_numbers_and_bare_names_of_tasks_join_wishes(text: str, agents: list[str]) -> None:
    """None of the tasks is taken for a part of the value before it."""
    found = read(text)
    assert isinstance(found, Several)
    assert [None if isinstance(part, Unfitting) else part.agent_id for part in found.parts] == agents
