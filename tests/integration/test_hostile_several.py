"""The recorded hostile answers in the shape of several calls, to sentences that ask for several tasks: none gets in."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from contracts.errors import LlmMalformed
from supervisor.understanding import Interpretation, LlmInterpreter, Understood
from supervisor.understanding.outcome import Ambiguous, Missing, Several, Single, Unfitting
from tests.hostile_readings import ANN, CATALOGUE, SCENES, Recalling, Scene, harm, recorded, turns_of

BUDGET, RIDE = ("BudgetTrackerAgent", "analyze_budget"), ("RideAgent", "book_ride")
#: What is asked for beside a scene: known whole, or lacking a value that the scene's own amounts must not become.
BESIDE = {
    "whole": {BUDGET: "book a taxi ride, drive 3 km", RIDE: "check my budget, limit 900, spent 350"},
    "open": {BUDGET: "book a taxi ride", RIDE: "check my budget, limit 900"},
}
SAID: dict[str, dict[tuple[str, str], dict[str, Any]]] = {
    "whole": {RIDE: {"distance": (3, "km")}, BUDGET: {"budget_limit": 900, "spent": 350}},
    "open": {RIDE: {}, BUDGET: {"budget_limit": 900}},
}

Calls = Callable[[dict[str, Any]], list[dict[str, Any]]]
SHAPES: dict[str, Calls] = {
    "alone": lambda call: [call],
    "twice": lambda call: [call, call],
    "for everybody": lambda call: [call | {"agent_id": agent, "task_name": task} for agent, task in (BUDGET, RIDE)],
    "too many": lambda call: [call | {"agent_id": "BankAgent"}] * 7 + [call] * 20,
    "beside nobody": lambda call: [call | {"agent_id": "BankAgent", "task_name": "pay"}, call],
}


class Malformed(LlmMalformed):
    """What the client raises for what is no such answer."""


@dataclass
class Answering:
    """A model that says *calls*, whatever it is asked."""

    calls: Any
    configured: bool = True
    asked: list[str] = field(default_factory=list)

    async def ask(self, role: str, answer: type[BaseModel], **said: Any) -> Any:
        """Say it in the shape that is asked for, where it fits that."""
        self.asked.append(answer.__name__)
        try:
            return _Answer(answer.model_validate({"reasoning": "as asked", "calls": self.calls}))
        except ValidationError as error:
            raise Malformed("no such answer") from error


@dataclass
class _Answer:
    value: BaseModel


def joint(scene: Scene, beside: str) -> Scene:
    """Return *scene* in one sentence with another task."""
    other = RIDE if scene.named == BUDGET else BUDGET
    text = BESIDE[beside][BUDGET if other == RIDE else RIDE]
    return replace(scene, text=f"{scene.text}; {text}", allowed=dict(scene.allowed) | {other: SAID[beside][other]})


def call_in(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the call that a recorded *answer* makes, None when it makes none that can be read."""
    try:
        said = json.loads(str(answer.get("content", "")).replace("<padding>", "x"))
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


async def interpreted(scene: Scene, model: Answering) -> Interpretation:
    """Return what rules and model make of *scene*, whose person is Ann."""
    interpreter = LlmInterpreter(model, recalling=Recalling(scene) if scene.memory else None)
    return await interpreter.interpret(scene.text, catalogue=CATALOGUE, previous=turns_of(scene), user_id=ANN)


@pytest.mark.parametrize("beside", BESIDE)
async def test_no_hostile_call_among_several_reaches_a_worker(beside: str) -> None:
    """A third of the recorded answers, in five shapes, to the sentences that the rules cut in two."""
    ends: Counter[str] = Counter()
    wrong, shown = [], 0
    scenes = {name: joint(scene, beside) for name, scene in SCENES.items()}
    cut = {name for name, scene in scenes.items() if isinstance(await interpreted(scene, Answering(None)), Several)}
    answers = [(one, call) for one in recorded() if one.scene in cut and (call := call_in(one.answer)) is not None]
    for number, (one, call) in enumerate(answers[list(BESIDE).index(beside) :: 3]):
        shape = list(SHAPES)[number % len(SHAPES)]
        scene, model = scenes[one.scene], Answering(SHAPES[shape](call))
        found = await interpreted(scene, model)
        shown += bool(model.asked)
        ends.update(type(part).__name__ for part in (found.parts if isinstance(found, Several) else [found]))
        if problems := harm(scene, found):
            wrong.append((shape, one, problems))
    assert wrong == []
    assert len(cut) >= 10
    assert shown >= 150
    assert {"Understood", "Missing"} <= set(ends)


def claim(name: str, value: str, quote: str) -> dict[str, Any]:
    """Return one value as a model claims it."""
    return {"field": name, "values": [value], "quote": quote, "earlier": False}


def call(of: tuple[str, str], *values: dict[str, Any]) -> dict[str, Any]:
    """Return a call as a model makes it."""
    return {"agent_id": of[0], "task_name": of[1], "values": list(values)}


async def parts_of(text: str, *calls: dict[str, Any]) -> tuple[Single, ...]:
    """Return what rules and model make of *text*, which asks for several tasks."""
    found = await interpreted(Scene(text, {}), Answering(list(calls)))
    assert isinstance(found, Several), found
    return found.parts


async def test_a_value_that_the_rules_left_open_is_asked_about_beside_another_task() -> None:
    """That it stands in the text is proven; whose it is only the model says."""
    blown = "Check my budget: limit 50k and I blew 42k on shoes; book a taxi ride, drive 3 km"
    budget, ride = await parts_of(blown, call(BUDGET, claim("spent", "42k", "blew 42k")))
    assert isinstance(ride, Understood)
    assert isinstance(budget, Ambiguous)
    assert budget.question == "Do you mean analyze budget with budget limit 50000, spent 42000?"


async def test_an_amount_of_another_task_is_no_value() -> None:
    """Each serves once in the whole sentence."""
    taken = claim("budget_limit", "500", "hotel 500"), claim("spent", "4", "4 travellers")
    budget, trip = await parts_of("check my budget; share a trip, hotel 500, 4 travellers", call(BUDGET, *taken))
    assert isinstance(budget, Missing)
    assert (budget.known, isinstance(trip, Understood)) == ({}, True)


async def test_what_the_rules_cannot_place_may_be_put_as_a_question() -> None:
    """With what the model says it is for; an agent that nobody is changes nothing."""
    text = "check my budget, limit 900, spent 350; give Ada a warm welcome; book a taxi ride, drive 3 km"
    greeting = call(("GreeterAgent", "greet"), claim("name", "Ada", "give Ada"))
    asked = await parts_of(text, greeting, call(("BankAgent", "pay")))
    nobody = await parts_of(text, call(("BankAgent", "pay"), claim("name", "Ada", "give Ada")))
    assert [type(part) for part in nobody] == [Understood, Unfitting, Understood]
    assert isinstance(asked[1], Ambiguous)
    assert (asked[1].question, asked[1].agent_id) == ("Do you mean greet with name Ada?", "GreeterAgent")
    assert asked[::2] == nobody[::2]


async def test_no_model_is_asked_where_every_part_is_certain_or_the_persons_own_to_settle() -> None:
    """Nothing could be added."""
    for text in ("book a taxi ride, drive 3 km; check my budget, limit 900, spent 350",
                 "book a taxi ride, drive 3 km; check my budget, limit 1.500, spent 350"):  # fmt: skip
        model = Answering([])
        assert isinstance(await interpreted(Scene(text, {}), model), Several)
        assert model.asked == []
