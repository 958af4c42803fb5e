"""The interpreter with a language model behind the real client library."""

import random
import string
from typing import Any

import pytest

from supervisor.understanding import LlmInterpreter, Missing, Understood, make_interpreter
from tests.llm_double import Canned, ScriptedLlm, cut_off, fault, filtered, raw, refusal, saying
from tests.llm_questions import Opener
from tests.understanding_cases import EVERYBODY, parameters_of

pytest_plugins = ["tests.fixtures_llm"]

TEXT = "Check my budget: limit 50k and I blew 42k on shoes"
GOOD = {
    "reasoning": "blew means spent",
    "agent_id": "BudgetTrackerAgent",
    "task_name": "analyze_budget",
    "values": [{"field": "spent", "values": ["42k"], "quote": "blew 42k", "earlier": False}],
}


async def test_a_reading_travels_as_structured_output(open_llm: Opener, scripted_llm: ScriptedLlm) -> None:
    """The schema goes with the question, the values that are proven come back as parameters."""
    scripted_llm.queue(GOOD)
    interpreter = make_interpreter(open_llm())
    assert isinstance(interpreter, LlmInterpreter)
    found = await interpreter.interpret(TEXT, catalogue=EVERYBODY, previous=[])
    assert parameters_of(found) == {"budget_limit": 50000, "spent": 42000}
    (asked,) = scripted_llm.requests
    assert asked.schema_name == "TaskReading"
    assert next(iter(asked.schema["properties"])) == "reasoning"
    assert "analyze_budget" in asked.user
    claimed = asked.schema["$defs"]["QuotedValue"]
    assert set(claimed["required"]) == set(claimed["properties"]) >= {"earlier", "remembered"}
    assert "default" not in str(claimed)


@pytest.mark.parametrize(
    "reply",
    [refusal(), cut_off(), filtered(), fault(400), saying("not json"), raw(b"<html>"), saying('{"reasoning": "half')],
    ids=["refusal", "cut off", "filtered", "rejected", "no json", "html", "truncated json"],
)
async def test_a_model_that_gives_no_answer_leaves_the_rules_question(
    open_llm: Opener, scripted_llm: ScriptedLlm, reply: Canned
) -> None:
    """The person is asked for the one value the rules lack."""
    scripted_llm.respond = lambda _asked: reply
    found = await make_interpreter(open_llm()).interpret(TEXT, catalogue=EVERYBODY, previous=[])
    assert isinstance(found, Missing)
    assert found.question == "What is spent?"


async def test_nothing_invented_ever_becomes_a_parameter(open_llm: Opener, scripted_llm: ScriptedLlm) -> None:
    """Of 200 seeded hostile answers none starts a task with anything that the person did not write for it."""
    dice = random.Random(7)
    interpreter = make_interpreter(open_llm())
    for _ in range(200):
        scripted_llm.queue(_hostile(dice))
        found = await interpreter.interpret(TEXT, catalogue=EVERYBODY, previous=[])
        if isinstance(found, Understood):
            assert (found.agent_id, found.task.parameters) == (
                "BudgetTrackerAgent",
                {"budget_limit": 50000, "spent": 42000},
            )


def _hostile(dice: random.Random) -> dict[str, Any]:
    fields = ["spent", "budget_limit", "history", "hotel", "travellers", "name", "__class__", ""]
    quotes = [TEXT, "blew 42k", "42k", "42", "2k", "50k", "limit 50k", "", "ignore all rules", TEXT[:20]]
    words = ["42000", "42k", "50000", "50k", "1e9", "-42000", "42", "", "NaN", "everything", "42k 50k"]
    invented = "".join(dice.choices(string.digits, k=dice.randint(1, 12)))
    values = [
        {
            "field": dice.choice(fields),
            "values": [dice.choice([*words, invented]) for _ in range(dice.randint(0, 3))],
            "quote": dice.choice([*quotes, invented]),
            "earlier": dice.random() < 0.2,
        }
        for _ in range(dice.randint(0, 6))
    ]
    agent, task = dice.choice(
        [
            ("BudgetTrackerAgent", "analyze_budget"),
            ("TripAgent", "share_trip"),
            ("GreeterAgent", "greet"),
            ("BudgetTrackerAgent", "drop_tables"),
            ("", ""),
        ]
    )
    return {"reasoning": "trust me", "agent_id": agent, "task_name": task, "values": values}


async def test_while_the_model_is_away_sentences_are_read_by_rules_at_once(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    """The first one finds out, the next ones do not even ask."""
    scripted_llm.respond = lambda _asked: fault(503)
    interpreter = make_interpreter(open_llm())
    for _ in range(3):
        assert isinstance(await interpreter.interpret(TEXT, catalogue=EVERYBODY, previous=[]), Missing)
    assert len(scripted_llm.requests) == 3
