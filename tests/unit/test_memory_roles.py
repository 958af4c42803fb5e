"""The two models of the memory worker: their roles, their prompts, and an operator's own over them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import ConfigurationError
from runtime.settings import Settings
from tests.memory_bench import batch, context_over, documents, fact
from workers.agent_files import files_of, llm_settings_of
from workers.agents.memory_worker import agent
from workers.agents.memory_worker.runner import edit

#: A fact that no pattern reads.
ODD = "User's idea of a good morning is an omelette"


async def test_an_operators_prompt_and_model_take_the_place_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read at the start, where a slip in them shows."""
    editor = tmp_path / "memory_worker" / "editor"
    (editor / "prompts").mkdir(parents=True)
    (editor / "prompts" / "system.j2").write_text("Edit as the fact says.")
    (editor / "config.yaml").write_text("model: house-model\n")
    monkeypatch.setenv("TASKLORE_LLM_FINDER_MODEL", "operators-choice")

    def script(role: str, _user: str) -> Mapping[str, Any]:
        if role == "finder":
            return {"reasoning": "looked", "locations": [], "suggested_insert_path": ["food.likes"]}
        edits = [{"operation": "insert", "path": "food.likes", "display": "An omelette"}]
        return {"reasoning": "as the fact says", "decision": "proceed", "edits": edits}

    context = context_over(documents(), script, agent_files=tmp_path)
    context.model.settings = llm_settings_of(Settings.load(), files_of(agent, tmp_path))

    (ruling,) = await edit(batch(fact(ODD)), context)

    assert [(role, system) for role, system, _ in context.model.asked if role == "editor"] == [
        ("editor", "Edit as the fact says.")
    ]
    assert ruling.plan is not None
    assert ruling.plan.origin.by == "house-model"
    told = json.dumps(ruling.plan.origin.finder)
    assert '"model": "operators-choice"' in told


def test_a_role_that_an_operator_misspelled_is_told_of(tmp_path: Path) -> None:
    """Else nobody would ever read it."""
    (tmp_path / "memory_worker" / "fnder").mkdir(parents=True)

    with pytest.raises(ConfigurationError, match="did you mean 'finder'"):
        files_of(agent, tmp_path)


def test_the_agent_listens_to_facts_and_has_two_roles() -> None:
    """Its card has no task: nobody can ask it for anything."""
    assert list(agent.listeners) == ["facts"]
    assert [(files.role, files.model, files.temperature) for files in files_of(agent)] == [
        ("editor", "gpt-6.1-terra", 0.2),
        ("finder", "gpt-6-luna", 0.1),
    ]
