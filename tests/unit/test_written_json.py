"""JSON that a person says: what it starts has its values to the letter, or nothing is started."""

import json
from typing import Any

import pytest

from contracts.messages import TaskCall
from supervisor.understanding.outcome import Missing, Unfitting
from supervisor.interpretation.written_json import HOW_TO_SEND, is_json
from tests.interpretation_cases import budget_turn, parameters_of, said, understand

TWO = {"budget_limit": 50_000, "spent": 42_000}


def request(agent: str = "BudgetTrackerAgent", **parameters: Any) -> dict[str, Any]:
    """Return a task as a program sends it."""
    return {"agent": agent, "task": "analyze_budget", "parameters": parameters}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (TWO, TWO),
        ({"limit": 5e4, "spent": "42000"}, TWO),
        (TWO | {"history": [1, 2]}, TWO | {"history": [1, 2]}),
        (request(**TWO), TWO),
        (request(spent=50_000, budget_limit=42_000), {"budget_limit": 42_000, "spent": 50_000}),
        ([request(**TWO)], TWO),
        ({"agent_id": "BudgetTrackerAgent", "task_name": "analyze_budget", "arguments": TWO, "memory": "use"}, TWO),
    ],
)
def test_json_whose_every_value_is_read_starts_its_task(said: Any, expected: dict[str, Any]) -> None:
    """In a fence as well."""
    text = json.dumps(said)
    assert parameters_of(understand(text)) == expected
    assert parameters_of(understand(f"```json\n{text}\n```")) == expected


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"agent": "GreeterAgent", "task": "greet", "parameters": {"name": 'Ada "x" and Bob, 7'}}),
        json.dumps({"agent": "GreeterAgent", "task": "greet", "parameters": {"name": "Ada\n(the first)"}}),
        json.dumps(request("HouseAgent", **TWO)),
        json.dumps(request(**TWO) | {"task": "sell_house"}),
        json.dumps(request(**TWO, currency="EUR")),
        json.dumps(request(**TWO, history=[[1], [2]])),
        json.dumps(request(**TWO, note="spent 7")),
        json.dumps([request(**TWO), request(**TWO)]),
        json.dumps({"tasks": [request(**TWO)]}),
        json.dumps({"parameters": [1, 2]} | TWO),
        json.dumps({"budget": TWO}),
        '{"agent": "BudgetTrackerAgent", "parameters": {"budget_limit": 50000, "spent": 42000',
        "{'agent': 'BudgetTrackerAgent', 'parameters': {'budget_limit': 50000, 'spent': 42000}}",
        "{agent: BudgetTrackerAgent, parameters: {budget_limit: 50000, spent: 42000}}",
        f"please run {json.dumps(request(**TWO))} for me",
    ],
)
def test_json_that_would_start_anything_else_starts_nothing(text: str) -> None:
    """Who wrote it is told how a program sends a task."""
    found = understand(text)
    assert isinstance(found, Unfitting), found
    assert found.text == HOW_TO_SEND or "I cannot tell" in found.text


def test_what_json_leaves_out_is_asked_for() -> None:
    """With what it says as known."""
    found = understand(json.dumps(request(budget_limit=50_000)))
    assert isinstance(found, Missing)
    assert (found.known, found.missing) == ({"budget_limit": 50_000}, ("spent",))


def test_json_may_answer_a_question() -> None:
    """What was said before stays as it was."""
    asked = said("assistant", "What is spent?", TaskCall(name="analyze_budget", parameters={"budget_limit": 50_000}),
                 "BudgetTrackerAgent")  # fmt: skip
    assert parameters_of(understand('{"spent": 42000}', [asked])) == TWO
    assert isinstance(understand('{"spent": 42000, "of": 7}', [asked]), Unfitting)


@pytest.mark.parametrize(
    "text", ["limit {50k}, spent 42k", "my budget {see the note}: limit 50k, spent 42k", "limit 50k, spent 42k [or so]"]
)
def test_braces_alone_are_no_json(text: str) -> None:
    """People write them."""
    assert not is_json(text)
    assert parameters_of(understand(text)) == TWO


@pytest.mark.parametrize("text", ["{" * 20_000, '{"a":' * 4_000, "[" * 20_000 + "{", "{," * 10_000, "{" + " " * 19_000])
def test_what_only_begins_like_json_ends_soon(text: str) -> None:
    """Nobody's turn is held up, and nothing is started."""
    assert isinstance(understand(text, budget_turn(**TWO)), Unfitting)
