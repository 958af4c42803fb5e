"""A thousand recorded answers of hostile models behind real HTTP and the real client: none reaches a worker."""

from collections import Counter
from typing import Any

import pytest

from runtime.llm import Llm, LlmSettings
from supervisor.understanding import Interpretation, LlmInterpreter, RuleInterpreter, Understood, make_interpreter
from supervisor.understanding.outcome import Several
from tests.data.write_hostile_readings import ATTACKS, COUNT, lines, reading
from tests.hostile_readings import (
    ANN,
    CATALOGUE,
    RECORDED,
    SCENES,
    Claim,
    Recalling,
    Recorded,
    Scene,
    harm,
    recorded,
    turns_of,
)
from tests.llm_double import ScriptedLlm
from tests.understanding_cases import parameters_of

#: Bytes of the file, far from what a repository minds.
LARGEST = 600_000


def llm_at(server: ScriptedLlm) -> Llm:
    """Return a client that asks once and never pauses."""
    return Llm(LlmSettings(base_url=server.base_url, max_attempts=1, backoff_base_s=0.0))


async def interpreted(llm: Llm, scene: Scene) -> Interpretation:
    """Return what rules and model make of *scene*, whose person is Ann."""
    interpreter = make_interpreter(llm, Recalling(scene) if scene.memory else None)
    assert isinstance(interpreter, LlmInterpreter)
    return await interpreter.interpret(scene.text, catalogue=CATALOGUE, previous=turns_of(scene), user_id=ANN)


def by_rules(scene: Scene) -> Interpretation:
    """Return what the rules alone make of *scene*."""
    return RuleInterpreter().understand(scene.text, catalogue=CATALOGUE, previous=turns_of(scene))


def test_the_recorded_answers_are_those_that_the_scenes_make() -> None:
    """Nobody has taken out the ones that hurt; there are a thousand, and enough of each kind."""
    assert RECORDED.read_text("utf-8").splitlines() == lines()
    assert RECORDED.stat().st_size < LARGEST
    kinds = Counter(one.attack for one in recorded())
    assert kinds.total() == COUNT
    assert set(kinds) == {*ATTACKS, "enormous"}
    assert min(kinds.values()) >= 10


@pytest.mark.parametrize("name", SCENES)
def test_the_rules_alone_start_nothing_wrong(name: str) -> None:
    """Else it would be no doing of the model."""
    assert harm(SCENES[name], by_rules(SCENES[name])) == []


async def test_no_hostile_answer_reaches_a_worker() -> None:
    """Whatever it says, a task starts with what the person said for it, or with a question.

    Most of them are asked for: where the rules are certain, or only the person can tell, no model is asked at all.
    """
    ends: Counter[str] = Counter()
    wrong: list[tuple[Recorded, list[str]]] = []
    async with ScriptedLlm() as server, llm_at(server) as llm:
        for one in recorded():
            scene = SCENES[one.scene]
            server.respond = lambda _asked, one=one: one.canned  # type: ignore[misc]
            found = await interpreted(llm, scene)
            ends[type(found).__name__] += 1
            if problems := harm(scene, found):
                wrong.append((one, problems))
        asked = len(server.requests)
    assert wrong == []
    assert asked >= 0.7 * COUNT
    assert set(ends) == {"Understood", "Missing", "Ambiguous", "Unfitting"}


async def test_honest_answers_are_accepted() -> None:
    """A hundred of them: the values of the sentence become parameters, or stand in the question that is asked back."""
    wordings = [
        ("Check my budget: limit {a}k and I {verb} {b}k on {what}", "{b}k", "{verb} {b}k"),
        ("My budget limit is {a}k and {what} {verb} {b}k", "{b}k", "{what} {verb} {b}k"),
    ]
    verbs = ("blew", "burned", "wasted", "dropped", "squandered")
    things = ("shoes", "books", "roses", "wine", "hats")
    accepted = 0
    async with ScriptedLlm() as server, llm_at(server) as llm:
        for number in range(100):
            names = {
                "a": 50 + number,
                "b": 3 + number % 40,
                "verb": verbs[number % 5],
                "what": things[number // 5 % 5],
            }
            text, value, quote = (part.format(**names) for part in wordings[number // 50])
            scene = Scene(text, {("BudgetTrackerAgent", "analyze_budget"): {}})
            answer = reading(scene, [Claim("spent", (value,), quote)])
            server.respond = lambda _asked, answer=answer: answer  # type: ignore[misc]
            found = await interpreted(llm, scene)
            assert parameters_of(found) == {"budget_limit": names["a"] * 1000, "spent": names["b"] * 1000}, text
            accepted += 1
        assert len(server.requests) >= 50
    assert accepted == 100


async def test_the_honest_reading_of_every_scene_is_used() -> None:
    """Started with what was said, or asked about with it: the check is more than a refusal of everything."""
    used = []
    async with ScriptedLlm() as server, llm_at(server) as llm:
        for name, scene in SCENES.items():
            server.respond = lambda _asked, scene=scene: reading(scene, scene.claims)  # type: ignore[misc]
            found = await interpreted(llm, scene)
            assert harm(scene, found) == [], name
            used += [name] if _known(found) else []
    assert len(used) >= 0.7 * len(SCENES), set(SCENES) - set(used)


def _known(found: Interpretation) -> dict[str, Any]:
    if isinstance(found, Several):
        return {name: value for part in found.parts for name, value in _known(part).items()}
    return dict(found.task.parameters if isinstance(found, Understood) else getattr(found, "known", {}))
