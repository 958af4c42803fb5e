"""Invalid and unusual schemas on cards."""

import re
from typing import Any

import pytest
from pydantic import BaseModel

from tasklore.contracts.errors import LlmRefused
from tasklore.contracts.messages import AgentCard, TaskCall, TaskCard
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import (
    Clarification,
    LlmInterpreter,
    RuleInterpreter,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.routing import problem_of
from tasklore.supervisor.understanding.schema import task_schema as shape_of
from tasklore.supervisor.understanding.texts import fits
from tests.understanding_cases import BUDGET, EVERYBODY, parameters_of, said, understand

CHECK = "Check my budget: limit 50k, spent 42k"
EXPECTED = {"budget_limit": 50000, "spent": 42000}


def nested(depth: int) -> Any:
    schema: Any = {"type": "number"}
    for _ in range(depth):
        schema = {"anyOf": [schema]}
    return schema


def odd_card(parameters: Any, agent_id: str = "OddAgent") -> AgentCard:
    """Return a card that asks for the budget's words with *parameters*."""
    task = TaskCard(
        name="analyze_budget",
        description=BUDGET.tasks[0].description,
        parameters=parameters,
    )
    return AgentCard(
        agent_id=agent_id, keywords=("budget", "limit"), tasks=(task,), digest="0"
    )


def of_field(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


#: What JSON Schema forbids, or nobody can be asked for, and a word of the reason.
ODD = [
    ({"properties": {}, "required": 5}, "parameters.required must be a list, not 5"),
    ({"required": [[1]]}, r"required\[0\] must be a text, not \[1\]"),
    ({"properties": "x"}, "parameters.properties must be an object"),
    ({"$defs": []}, r"parameters.\$defs must be an object"),
    (of_field(**{"$ref": ["x"]}), "must be a text"),
    (of_field(anyOf="x"), "x.anyOf must be a list"),
    (of_field(enum=5), "x.enum must be a list"),
    (of_field(enum=[10**5000]), "cannot be written as JSON"),
    (of_field(cues=["limit"] * 1000), "1001 names, aliases and cues; keep to 100"),
    (of_field(type="number", unit="\x00"), "is not a valid unit"),
    (
        {"properties": {f"f{number}": {} for number in range(201)}},
        "201 fields; keep to 200",
    ),
    (of_field(description="x" * 70_000), "characters; keep to 65,536"),
]

#: What is strange and allowed.
STRANGE = [
    {"required": None, "properties": None, "$defs": None},
    {"properties": {"": {}, "\x00": {}, "limit": False}},
    of_field(**{"$ref": "#"}),
    of_field(**{"$ref": "#/$defs/A"})
    | {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}] * 20}}},
    of_field(**nested(80)),
    of_field(type=["number", {}]),
    of_field(enum=[{}, [], None, [1], "limit", 1.5]),
]


@pytest.mark.parametrize(("parameters", "words"), ODD, ids=[words for _, words in ODD])
def test_an_invalid_schema_is_reported_with_its_place(
    parameters: Any, words: str
) -> None:
    problem = problem_of(odd_card(parameters))
    assert problem is not None
    assert problem.startswith("task 'analyze_budget': ")
    assert re.search(words, problem)


@pytest.mark.parametrize("parameters", STRANGE, ids=str)
def test_an_unusual_schema_is_accepted(parameters: Any) -> None:
    assert problem_of(odd_card(parameters)) is None
    assert shape_of(odd_card(parameters).tasks[0]) is not None


@pytest.mark.parametrize(
    ("pattern", "text", "fits_it"),
    [
        (r"^[A-Z]{2}-?[0-9]{4}$", "AB-1234", True),
        (r"^[A-Z]{2}-?[0-9]{4}$", "AB-123", False),
        # An engine that goes back tries 2 ** 30 ways.
        ("1?" * 30 + "1{30}$", "1" * 29 + "x", False),
        (".?" * 30 + "x{30}", "1" * 60, False),
        # Of no use to anybody: not tried, so that it takes nothing away.
        (r"\pL{99}", "1", True),
        (r"\pL" * 40, "1", True),
        ("(a|1)+", "2", True),
        ("[", "2", True),
    ],
)
def test_a_pattern_of_a_card_is_tried_in_time_or_not_at_all(
    pattern: str, text: str, fits_it: bool
) -> None:
    task = odd_card(of_field(type="string", pattern=pattern)).tasks[0]
    schema = shape_of(task)
    assert schema is not None
    slot = next(one for one in schema.slots if one.pattern == pattern)
    assert fits(slot, text) is fits_it


@pytest.mark.parametrize(
    "said", [{"keywords": ("budget",) * 20_000}, {"description": "budget " * 20_000}]
)
def test_texts_of_an_agent_with_many_tasks_are_limited(said: dict[str, Any]) -> None:
    tasks = tuple(
        TaskCard(name=f"task_{n}", parameters={"type": "object"}) for n in range(20)
    )
    problem = problem_of(
        AgentCard(agent_id="OddAgent", tasks=tasks, digest="0", **said)
    )
    assert problem is not None
    assert "keep to 12,500" in problem
    assert (
        problem_of(AgentCard(agent_id="OddAgent", tasks=tasks[:1], digest="0", **said))
        is None
    )


@pytest.mark.parametrize(
    "parameters", [*(parameters for parameters, _ in ODD), *STRANGE], ids=lambda _: ""
)
def test_other_agents_are_understood_beside_an_odd_card(parameters: Any) -> None:
    catalogue = EVERYBODY.with_card(odd_card(parameters))
    understanding = RuleInterpreter()
    found = understanding.understand(
        f"BudgetTrackerAgent, {CHECK}", catalogue=catalogue
    )
    assert isinstance(found, Understood)
    assert (found.agent_id, parameters_of(found)) == ("BudgetTrackerAgent", EXPECTED)
    assert understanding.understand("Sing a song", catalogue=catalogue) is not None
    assert (
        understanding.understand("OddAgent: x 5, limit 7 km", catalogue=catalogue)
        is not None
    )


def test_an_unreadable_card_is_not_offered() -> None:
    catalogue = Catalogue([odd_card({"required": 5})])
    call = TaskCall(name="analyze_budget", parameters={"limit": 1})
    previous = [said("assistant", "What is limit?", call, "OddAgent")]
    found = RuleInterpreter().understand(
        "limit 5", catalogue=catalogue, previous=previous
    )
    assert isinstance(found, Unfitting)
    assert "No agent has reported yet" in found.text


class CuriousModel:
    """A language model that notes what it was shown, and reads nothing in it."""

    configured = True

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def ask(
        self,
        role: str,
        answer: type[BaseModel],
        *,
        system: str,
        user: str,
        deadline_s: float | None = None,
    ) -> Any:
        self.shown.append(user)
        raise LlmRefused("nothing fits")


async def test_a_model_is_not_shown_an_unreadable_card() -> None:
    catalogue = EVERYBODY.with_card(odd_card(of_field(enum=[10**5000])))
    model = CuriousModel()
    rules = RuleInterpreter()
    router = rules.router(catalogue)
    await LlmInterpreter(model, rules=rules).interpret(
        "Sing a song", catalogue=catalogue, previous=()
    )
    [shown] = model.shown
    assert "BudgetTrackerAgent" in shown
    assert "OddAgent" not in shown
    assert rules.router(catalogue) is router


def test_abilities_and_choices_are_limited() -> None:
    novel = BUDGET.tasks[0].model_copy(update={"description": "x" * 500_000})
    crowd = Catalogue(
        BUDGET.model_copy(update={"agent_id": f"Agent{number}", "tasks": (novel,)})
        for number in range(1000)
    )
    assert len(crowd.abilities()) < 4000
    found = understand(CHECK, catalogue=crowd)
    assert isinstance(found, Clarification)
    assert len(found.question) < 1000
    assert found.question.endswith("or another one?")
