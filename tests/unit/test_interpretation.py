"""Plain sentences into exact parameters, by the rules alone."""

from typing import Any

import pytest

from supervisor.catalogue import Catalogue
from supervisor.understanding import Ambiguous, Missing, RuleInterpreter, Understood, Unfitting
from tests.understanding_cases import BUDGET, EVERYBODY, budget_turn, parameters_of, understand
from workers.agents.budget import agent as shipped_budget
from workers.card import card_of

FOUR = [5000, 7000, 8000, 6000]

#: Every sentence of the document this product comes from, by where it stands there.
SEED = {
    "step by step": ("Check my budget, I have 50000 limit and spent 42000", {"budget_limit": 50000, "spent": 42000}),
    "first query": (
        "Analyze my budget: limit 50000, spent 42000, history [5000, 7000, 8000, 6000]",
        {"budget_limit": 50000, "spent": 42000, "history": FOUR},
    ),
    "second query": (
        "Check my budget again: 50000 limit, 42000 spent, same history",
        {"budget_limit": 50000, "spent": 42000, "history": FOUR},
    ),
    "extraction": ("I have a budget of 50000 and spent 42000", {"budget_limit": 50000, "spent": 42000}),
    "complete flow 1": ("Check budget: limit 50000, spent 42000", {"budget_limit": 50000, "spent": 42000}),
    "complete flow 2": (
        "What's my budget status? 50000 limit, 42000 spent",
        {"budget_limit": 50000, "spent": 42000},
    ),
    "complete flow 3": ("Budget: 50000 limit, 45000 spent", {"budget_limit": 50000, "spent": 45000}),
}


@pytest.mark.parametrize("catalogue", [EVERYBODY, Catalogue([card_of(shipped_budget)])], ids=["declared", "shipped"])
@pytest.mark.parametrize("where", SEED)
def test_the_seven_sentences_of_the_seed_are_understood(where: str, catalogue: Catalogue) -> None:
    """Each gives exactly its parameters, numbers as plain integers, and nothing else."""
    text, expected = SEED[where]
    previous = budget_turn(budget_limit=50000, spent=42000, history=FOUR) if where == "second query" else []
    found = understand(text, previous, catalogue)
    assert parameters_of(found) == expected
    assert isinstance(found, Understood)
    assert found.is_certain
    assert all(type(value) is int for value in (found.task.parameters["budget_limit"], found.task.parameters["spent"]))


LIMIT_AND_SPENT = {"budget_limit": 50000, "spent": 42000}
THREE = {**LIMIT_AND_SPENT, "history": [5000, 7000, 8000]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50000 limit, 42000 spent", LIMIT_AND_SPENT),
        ("50000 limit 42000 spent", LIMIT_AND_SPENT),
        ("limit 50000 spent 42000", LIMIT_AND_SPENT),
        ("42000 spent, limit 50000", LIMIT_AND_SPENT),
        ("How am I doing against my 50k budget after spending 42k?", LIMIT_AND_SPENT),
        ("I spent 42,000 of my 50,000 budget", LIMIT_AND_SPENT),
        ("Is 42000 spent ok with limit 50000?", LIMIT_AND_SPENT),
        ("my limit is fifty thousand dollars and I've spent 42 grand so far this month", LIMIT_AND_SPENT),
        ("analyze_budget budget_limit=50000 spent=42000", LIMIT_AND_SPENT),
        ("my budget for 3 months: limit 50000, spent 42000", LIMIT_AND_SPENT),
        ("in March 2026 I spent 42000, the limit was 50000", LIMIT_AND_SPENT),
        ("I have a budget of 50000, spent not 45000 but 42000", LIMIT_AND_SPENT),
        ("limit is 60k, sorry, 50k, spent 42k", LIMIT_AND_SPENT),
        ("limit is 50k, spent 42k, history 5k, 7k and 8k", THREE),
        ("history 5k, 7k and 8k, 42k spent, limit 50k", THREE),
        ("history of 5k, 7k and 8k with a limit of 50k and 42k spent", THREE),
        ("50k limit. 42k spent. History: 5k 7k 8k", THREE),
        ("limit 50000, spent 42000, [5000, 7000, 8000]", THREE),
        ("Limit: $50k; spent: $42k; past: $5k, $7k, $8k.", THREE),
        ('{"budget_limit": 50000, "spent": 42000, "history": [5000, 7000, 8000]}', THREE),
        ("My past spending was 5k, 7k and 8k, limit 50k and I've spent 42k", THREE),
        ("limit 50k spent 42k history 5k 7k 8k limit 50k", THREE),
        ("50k limit 42k spent 5k 7k 8k history", THREE),
        ("limit 50k, spent 42k, no history", {**LIMIT_AND_SPENT, "history": []}),
        ("limit 50k, spent 42k, without any past history", {**LIMIT_AND_SPENT, "history": []}),
        ("limit 50k, spent 42k, history []", {**LIMIT_AND_SPENT, "history": []}),
        ("limit 50k, spent 42k, history: none", {**LIMIT_AND_SPENT, "history": []}),
        ("limit 50000.25, spent -42000", {"budget_limit": 50000.25, "spent": -42000}),
        ("limit 50k, spent 3 dollars and 50 cents", {"budget_limit": 50000, "spent": 3.5}),
        ("limit 123456789012345678, spent 0.1234567890123456789", {
            "budget_limit": "123456789012345678",
            "spent": "0.1234567890123456789",
        }),
    ],
)  # fmt: skip
def test_an_amount_goes_to_the_field_that_is_spoken_of_beside_it(text: str, expected: dict[str, Any]) -> None:
    """Before or after its cue, in any order, in a list or alone; years, durations and what was taken back stay out."""
    assert parameters_of(understand(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Share the trip: hotel 1200, 4 travellers", {"hotel": 1200, "travellers": 4}),
        ("Trip: hotel 300 among 4", {"hotel": 300, "travellers": 4}),
        ("trip for 4 travellers, the hotel is $1,200, no tickets", {"hotel": 1200, "travellers": 4, "tickets": []}),
        ("hotel 1200, travellers 4, tickets 100 and 250", {"hotel": 1200, "travellers": 4, "tickets": [100, 250]}),
    ],
)
def test_an_agent_that_declares_nothing_but_types_is_served_too(text: str, expected: dict[str, Any]) -> None:
    """Names of fields are cues of their own."""
    assert parameters_of(understand(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Book a ride, drive 12 km", {"distance": 12}),
        ("Taxi ride, distance 12", {"distance": 12}),
        ("Taxi: drive 12 km, it costs 550 cents", {"distance": 12, "fare": 5.5}),
        ("First class taxi ride, distance 12 km", {"distance": 12, "comfort": "first class"}),
        ("Quiet ride on 2026-12-24, distance 12 km", {"distance": 12, "day": "2026-12-24", "quiet": True}),
        ("A ride, not quiet, distance 12 km", {"distance": 12, "quiet": False}),
        ('Ride, distance 12 km, saying "bring 3 bags"', {"distance": 12, "note": "bring 3 bags"}),
        ("Ride, distance 12 km, without fare", {"distance": 12, "fare": None}),
        ("Greet Ada Lovelace, please", {"name": "Ada Lovelace"}),
        ("Say hello to Ada", {"name": "Ada"}),
    ],
)
def test_units_choices_dates_switches_and_text_are_read(text: str, expected: dict[str, Any]) -> None:
    """Whatever the schema declares, and nothing that it does not."""
    assert parameters_of(understand(text)) == expected


def test_every_value_points_to_its_characters() -> None:
    """A list has a span for each item."""
    text = "limit 50k, spent 42k, history [5k, 7k]"
    found = understand(text)
    assert isinstance(found, Understood)
    assert [(span.field, span.text) for span in found.spans] == [
        ("budget_limit", "50k"),
        ("spent", "42k"),
        ("history", "5k"),
        ("history", "7k"),
    ]
    assert all(text[span.start : span.end] == span.text for span in found.spans)


@pytest.mark.parametrize(
    ("text", "missing", "question"),
    [
        ("Check my budget", ("budget_limit", "spent"), "What are budget limit and spent?"),
        ("Check my budget, limit 50k", ("spent",), "What is spent?"),
        ("in 2026 I spent 42k", ("budget_limit",), "What is budget limit?"),
        ("my budget for 3 months, spent 42000", ("budget_limit",), "What is budget limit?"),
        ("budget limit NaN, spent 5", ("budget_limit",), "What is budget limit?"),
        ("budget limit infinity, spent 5", ("budget_limit",), "What is budget limit?"),
        ("budget limit true, spent 5", ("budget_limit",), "What is budget limit?"),
    ],
)
def test_a_required_value_that_is_missing_is_asked_for_by_name(
    text: str, missing: tuple[str, ...], question: str
) -> None:
    """The optional history never is; a number that means something else is not taken for the value."""
    found = understand(text)
    assert isinstance(found, Missing)
    assert (found.missing, found.question) == (missing, question)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("limit 1.500, spent 200", ("1500", "1.5", "budget limit")),
        ("limit 50k, limit 60k, spent 10k", ("50k", "60k", "budget limit")),
        ("limit 50k, spent 42k, 7k and 8k", ("42k", "7k", "8k", "spent")),
        ("limit 50k, spent 10k on food and 5k on rent", ("10k", "5k", "spent")),
        ("limit 50k spent 42k history 5k limit 60k", ("50k", "60k", "budget limit")),
        ("limit between 40k and 50k, spent 10k", ("40k", "50k", "budget limit")),
        ("limit 50k, spent 20%", ("20%", "spent")),
        ("Ride, distance 12 miles", ("12 miles", "km", "distance")),
        ("Ride, distance 12 km, costs 50 EUR", ("50 EUR", "USD", "fare")),
        ("trip: hotel 100, 2.5 travellers", ("2.5", "whole", "travellers")),
    ],
)
def test_what_has_two_readings_or_another_unit_is_asked_about(text: str, named: tuple[str, ...]) -> None:
    """The question names the field and both readings, or both units; nothing is guessed or rounded."""
    found = understand(text)
    assert isinstance(found, Ambiguous)
    assert all(word in found.question for word in named), found.question
    assert not set(found.missing) & set(found.known)


@pytest.mark.parametrize("text", ["Tell me a joke", "", "?!", "what can you do?", "12", "\u0000\ud7ff" * 10])
def test_words_that_fit_nothing_are_answered_with_what_can_be_asked(text: str) -> None:
    """No agent is bothered."""
    found = understand(text)
    assert isinstance(found, Unfitting)
    assert "greet somebody by name" in found.text


def test_two_tasks_that_fit_alike_are_asked_about() -> None:
    """The person chooses, and their first words are then read for that task."""
    other = BUDGET.model_copy(update={"agent_id": "HouseholdAgent"})
    catalogue = Catalogue([BUDGET, other])
    text = "Check my budget: limit 50k, spent 42k"
    found = understand(text, catalogue=catalogue)
    assert isinstance(found, Ambiguous)
    assert "BudgetTrackerAgent" in found.question
    assert "HouseholdAgent" in found.question


def test_the_agent_named_outright_is_taken() -> None:
    """Its name in the sentence outweighs any word."""
    other = BUDGET.model_copy(update={"agent_id": "HouseholdAgent"})
    found = understand("HouseholdAgent, limit 50k, spent 42k", catalogue=Catalogue([BUDGET, other]))
    assert isinstance(found, Understood)
    assert found.agent_id == "HouseholdAgent"


def test_the_values_decide_between_tasks_that_share_their_words() -> None:
    """A task that all values fit goes before one that would need more."""
    tasks = (BUDGET.tasks[0], BUDGET.tasks[0].model_copy(update={"name": "rate", "parameters": {
        "type": "object", "properties": {"spent": {"type": "number"}, "weeks": {"type": "integer"}},
        "required": ["spent", "weeks"]}, "description": ""}))  # fmt: skip
    catalogue = Catalogue([BUDGET.model_copy(update={"tasks": tasks})])
    found = understand("budget: spent 42k over 6 weeks", catalogue=catalogue)
    assert parameters_of(found) == {"spent": 42000, "weeks": 6}


async def test_an_interpreter_reads_each_catalogue_it_is_given() -> None:
    """Its index never outlives the catalogue it was built for."""
    rules = RuleInterpreter()
    text = "Check budget: limit 50000, spent 42000"
    assert isinstance(await rules.interpret(text, catalogue=Catalogue(), previous=()), Unfitting)
    assert isinstance(await rules.interpret(text, catalogue=EVERYBODY, previous=()), Understood)
    assert isinstance(await rules.interpret(text, catalogue=EVERYBODY.without(BUDGET.agent_id), previous=()), Unfitting)


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("Check my budget: limit 100 EUR, spent 30 GBP", "EUR"),
        ("Check my budget: limit $50, spent 30 euros", "USD"),
    ],
)
def test_two_currencies_in_one_question_are_asked_about(text: str, currency: str) -> None:
    """A field without a unit drops a currency sign, never the difference between two of them."""
    found = understand(text)
    assert isinstance(found, Ambiguous)
    assert f"spent in {currency}" in found.question
    assert list(found.known) == ["budget_limit"]


def test_one_currency_throughout_is_dropped() -> None:
    """Where every amount is in euros, nothing has to be asked."""
    assert parameters_of(understand("Check my budget: limit 100 EUR, spent 30 euros")) == {
        "budget_limit": 100,
        "spent": 30,
    }
