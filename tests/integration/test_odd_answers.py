"""Answers of models in odd shapes, behind the real client: no worker is told what the person did not say of it."""

import pytest

from supervisor.catalogue import Catalogue
from supervisor.understanding import Interpretation, RuleInterpreter, Understood, make_interpreter
from supervisor.understanding.outcome import Several
from tests.hostile_readings import ANN, CATALOGUE, SCENES, Recalling, Scene, harm, turns_of
from tests.integration.test_hostile_answers import llm_at
from tests.llm_double import ScriptedLlm
from tests.odd_answers import PAIRED, PAIRS, SHAPES, claims_of

STAGED: list[tuple[Scene, Catalogue]] = [
    *((scene, CATALOGUE) for scene in SCENES.values()),
    *((scene, PAIRS) for scene in PAIRED.values()),
]


@pytest.mark.parametrize("shape", SHAPES)
async def test_no_odd_answer_reaches_a_worker(shape: str) -> None:
    """In any scene; a value in another form than it was said in is the same value, or none."""
    wrong: list[tuple[str, list[str]]] = []
    async with ScriptedLlm() as server, llm_at(server) as llm:
        for scene, catalogue in STAGED:
            if not claims_of(scene):
                continue
            server.respond = lambda _asked, scene=scene: SHAPES[shape](scene)  # type: ignore[misc]
            interpreter = make_interpreter(llm, Recalling(scene) if scene.memory else None)
            found = await interpreter.interpret(scene.text, catalogue=catalogue, previous=turns_of(scene), user_id=ANN)
            if problems := harm(scene, found):
                wrong.append((scene.text, problems))
        assert server.requests
    assert wrong == []


@pytest.mark.parametrize("name", PAIRED)
def test_the_rules_start_none_of_the_paired_sentences(name: str) -> None:
    """What comes of an answer to them is the model's doing."""
    scene = PAIRED[name]
    found: Interpretation = RuleInterpreter().understand(scene.text, catalogue=PAIRS, previous=turns_of(scene))
    assert not isinstance(found, Understood | Several)
