"""`tasklore doctor --models`: each model is asked once, as one role, and the others that name it are told."""

import pytest

from tasklore.commands.doctor.examination import print_examination
from tests.llm_double import ScriptedLlm
from tests.llm_servers import KINDS, Kind, ModelServer

HEARD = {"reasoning": "as asked", "word": "lantern"}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_model_that_answers_is_named_with_its_roles_and_form(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ModelServer(kind, ("own",), answers=lambda _asked: HEARD)
    async with ScriptedLlm(server) as model:
        monkeypatch.setenv("TASKLORE_LLM_BASE_URL", model.base_url)
        monkeypatch.setenv("TASKLORE_LLM_MODEL", "own")
        code = await print_examination(
            None, strict=False, asks_models=True, as_json=False
        )
    said = " ".join(capsys.readouterr().out.split())
    assert code == 0
    assert "own answers (asked as contradiction with" in said
    for role in ("supervisor", "finder", "second_look", "knowledge", "summary"):
        assert role in said
    form = {"json_schema": "json_schema", "json_object": "json_object, max_tokens"}
    assert f"with {form.get(kind, 'text')}" in said
    assert "; also the model of decision, default, " in said
    assert len(model.requests) == 1 + len(server.refused)


async def test_a_model_that_does_not_answer_is_a_problem_in_its_servers_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another one that is named for a role is asked beside it."""
    server = ModelServer("json_schema", ("own",), answers=lambda _asked: HEARD)
    async with ScriptedLlm(server) as model:
        monkeypatch.setenv("TASKLORE_LLM_BASE_URL", model.base_url)
        monkeypatch.setenv("TASKLORE_LLM_MODEL", "own")
        monkeypatch.setenv("TASKLORE_LLM_ROLES", "writer=openai:gone,poet=anthropic:x")
        code = await print_examination(
            None, strict=False, asks_models=True, as_json=False
        )
    said = " ".join(capsys.readouterr().out.split())
    assert code == 1
    assert "gone at" in said
    assert "does not answer (asked as writer): LlmRejected" in said
    assert "model 'gone' not found" in said
    assert "x of anthropic was not asked" in said
    assert len(model.requests) == 2


async def test_the_form_is_that_of_the_address_however_the_setting_spells_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ModelServer("json_object", ("own",), answers=lambda _asked: HEARD)
    async with ScriptedLlm(server) as model:
        spelled = model.base_url.replace("127.0.0.1", "LocalHost")
        monkeypatch.setenv("TASKLORE_LLM_BASE_URL", spelled)
        monkeypatch.setenv("TASKLORE_LLM_MODEL", "own")
        code = await print_examination(
            None, strict=False, asks_models=True, as_json=False
        )
    said = " ".join(capsys.readouterr().out.split())
    assert code == 0
    assert "with json_object, max_tokens" in said
