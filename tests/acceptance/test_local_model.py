"""The whole way of a sentence with a real model, a very small one: it proves transport and refusals, and no quality."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasklore.commands.doctor.model_checks import ask_models
from tasklore.memory.documents.guard import check_document
from tasklore.memory.episodes.words import words_of
from tasklore.runtime.models.settings import SMALL_MODEL
from tasklore.runtime.settings import Settings
from tests.acceptance.conversation import FOOD, Remembering, remembering, talk_in

RISOTTO = "Mushroom risotto"
EGGS = "Scrambled eggs with lox"
OLIVES = "Olives"
GIVEN = (RISOTTO, EGGS, OLIVES)
#: One sentence that rules read, of which only a model can tell what it takes back, and one that they do not read.
SAID = "I no longer like eggs. Somehow cheese and my stomach are no friends."

#: Seconds for one answer, and for all that is asked: on two busy cores the model says a few words a second.
ANSWER_S = 240
PATIENCE_S = 1_200
#: Tokens of one answer: a model this small may never come to an end, and is cut off there.
MOST_TOKENS = 400

#: Who asks, and the model that it would ask elsewhere.
ROLES = (("switchboard", SMALL_MODEL), ("finder", SMALL_MODEL))


@pytest.fixture
def model_url() -> Iterator[str]:
    """Run the model."""
    script = [sys.executable, str(Path(__file__).with_name("local_model.py"))]
    with subprocess.Popen(
        script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            assert url, "no model was served; `make local-model` installs what it needs"
            yield url
        finally:
            server.kill()


@pytest.fixture
def patient(tmp_path: Path, model_url: str) -> Iterator[Remembering]:
    """Run a worker that asks the model once for each answer, and waits for it."""
    limits = {
        "llm_attempt_deadline_s": ANSWER_S,
        "llm_max_attempts": 1,
        "llm_max_output_tokens": MOST_TOKENS,
    }
    with remembering(tmp_path, llm_base_url=model_url, **limits) as running:
        yield running


@pytest.mark.local_model
async def test_a_sentence_goes_past_a_real_model(patient: Remembering) -> None:
    """The switchboard asks it over HTTP; whatever it proposes, documents hold words that were said alone."""
    async with talk_in(patient.system) as talk:
        await talk.given(
            "ann", FOOD, food__likes=[RISOTTO, EGGS], food__dislikes=[OLIVES]
        )

        facts = await talk.tell("ann", SAID, PATIENCE_S)

        asked = [
            role
            for role, model in ROLES
            if patient.worker.metric(answers_of(role, model)) >= 1
        ]
        assert asked[0] == "switchboard"
        assert {fact.state for fact in facts} <= {
            "done",
            "rejected",
            "conflict",
            "needs_model",
        }
        kept = [
            entry for entries in (await talk.kept("ann")).values() for entry in entries
        ]
        assert RISOTTO in kept
        assert not [
            entry
            for entry in kept
            if entry not in GIVEN and not set(words_of(entry)) & set(words_of(SAID))
        ]
        for document in (await talk.reader.snapshot("ann")).documents.values():
            check_document(document.body)
    assert patient.worker.get("/healthz")[0] == 200
    assert "Traceback" not in patient.worker.log()


def answers_of(role: str, model: str) -> str:
    """Return how the series begins that counts the answers of *role*."""
    return f'tasklore_llm_request_duration_seconds_count{{model="{model}",role="{role}"'


@pytest.mark.local_model
@pytest.mark.timeout(PATIENCE_S)
async def test_a_real_model_answers_the_doctors_question_as_one_of_its_roles(
    model_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server takes a schema; what it writes need make no sense."""
    monkeypatch.setenv("TASKLORE_LLM_BASE_URL", model_url)
    monkeypatch.setenv("TASKLORE_LLM_MODEL", "smollm2")
    monkeypatch.setenv("TASKLORE_LLM_ATTEMPT_DEADLINE_S", str(ANSWER_S))
    monkeypatch.setenv("TASKLORE_LLM_MAX_OUTPUT_TOKENS", str(MOST_TOKENS))
    [found] = [one async for one in ask_models(Settings.load())]
    assert found.mark == "ok"
    for name in ("supervisor", "finder", "switchboard", "second_look", "knowledge"):
        assert name in found.found
    assert " with json_schema" in found.found
