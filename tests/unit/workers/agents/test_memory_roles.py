"""The model of the memory worker: its role, its prompt, and an operator's own over them."""

import json
from pathlib import Path

import pytest

from tasklore.contracts.errors import ConfigurationError
from tasklore.memory.documents.entries import entries_of
from tasklore.memory.rendering.tokens import estimate
from tasklore.runtime.settings import Settings
from tasklore.workers.agent_files import files_of, llm_settings_of
from tasklore.workers.agents.memory_worker import agent
from tasklore.workers.agents.memory_worker.finder import (
    PAGE_TOKENS,
    Found,
    FoundEntries,
    FoundPlace,
    pages_of,
    read_answer,
)
from tasklore.workers.agents.memory_worker.runner import edit
from tests.memory_bench import FOOD, KINDS, batch, context_over, documents, fact


async def test_an_operators_prompt_and_model_take_the_place_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read at the start, where a slip in them shows."""
    finder = tmp_path / "memory_worker" / "finder"
    (finder / "prompts").mkdir(parents=True)
    (finder / "prompts" / "system.j2").write_text("Find as the fact says.")
    (finder / "config.yaml").write_text("model: house-model\n")
    context = context_over(
        documents(food__likes=["Eel"]),
        lambda _role, _user: {"reasoning": "looked", "locations": []},
        agent_files=tmp_path,
    )
    context.model.settings = llm_settings_of(Settings.load(), files_of(agent, tmp_path))
    (ruling,) = await edit(
        batch(fact("You are vegan", category="food.diets", value="Vegan")), context
    )
    assert [(role, system) for role, system, _ in context.model.asked] == [
        ("finder", "Find as the fact says.")
    ]
    assert ruling.plan is not None
    assert '"model": "house-model"' in json.dumps(ruling.plan.origin.finder)

    monkeypatch.setenv("TASKLORE_LLM_FINDER_MODEL", "operators-choice")
    assert (
        llm_settings_of(Settings.load(), files_of(agent, tmp_path)).role("finder").model
        == "operators-choice"
    )


def test_no_page_of_a_question_is_longer_than_a_small_model_reads() -> None:
    """Each says anew what holds its first line, and every line is on one of them."""
    texts = [f"Dish {number}, with {number} cloves of garlic" for number in range(500)]
    bodies = documents(food__likes=texts, food__dislikes=texts)
    entries = [
        entry for name in bodies for entry in entries_of(name, bodies[name], KINDS)
    ]
    pages = list(pages_of(entries))
    assert len(pages) > 2
    assert [entry for page in pages for entry in page.shown.values()] == entries
    assert max(estimate(page.text) for page in pages) <= PAGE_TOKENS
    assert all(page.text.partition("\n")[0].startswith("resource_") for page in pages)


def test_a_place_that_is_of_no_fact_is_counted_and_left_out() -> None:
    """Facts are counted from one."""
    body = documents(food__likes=["Eel"])[FOOD]
    (page,) = pages_of(entries_of(FOOD, body, KINDS))
    answer = Found(
        reasoning="looked",
        locations=tuple(
            FoundPlace(fact=number, path=f"{FOOD}:food.likes[0]")
            for number in (0, 2, 3)
        ),
    )
    found = read_answer(answer, page, [FoundEntries()] * 2)
    assert [len(one.locations) for one in found] == [0, 1]
    assert [one.refused for one in found] == [2, 0]


def test_a_role_that_an_operator_misspelled_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "memory_worker" / "fnder").mkdir(parents=True)

    with pytest.raises(ConfigurationError, match="did you mean 'finder'"):
        files_of(agent, tmp_path)
