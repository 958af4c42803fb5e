"""Agents that share a question: one is asked for all of them, and each takes its part as if it had asked alone."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tasklore import Context
from tasklore.contracts.analysis.pieces import UNJUDGED
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import SeatSettings
from tasklore.contracts.errors import LlmError, LlmRefused
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.runtime.models.llm import Expense, LlmRole, Reply
from tasklore.workers.agents.story.question import sharers
from tasklore.workers.testing import NOW, KitServices, KitStory, ScriptedLlm
from tests.unit.workers.agents.story.right_answers import RIGHT
from tests.unit.workers.agents.story.sample_story import BASE, story
from tests.unit.workers.agents.story.test_sections import AGENTS, TIERS

ON = BASE.model_copy(
    update={
        "settings": BASE.settings.model_copy(
            update={"agents": {"contradiction": SeatSettings(enabled=True)}}
        )
    }
)


class Oracle(ScriptedLlm):
    """A model that is right about the response of the stage, however many sections it is asked for."""

    def __init__(self, error: LlmError | None = None) -> None:
        super().__init__()
        self.configured = True
        self.calls: list[tuple[str, str, str]] = []
        self._error = error

    def role(self, name: str) -> LlmRole:
        """Return a model of that name."""
        return LlmRole(model=f"model of {name}", temperature=None)

    async def ask(
        self, role: str, answer: Any, *, system: str, user: str, **_: Any
    ) -> Reply[Any]:
        """Answer for each part."""
        self.calls.append((role, system, user))
        await asyncio.sleep(0)
        if self._error is not None:
            raise self._error
        parts = {name: RIGHT[name] for name in answer.model_fields if name in RIGHT}
        value = answer(reasoning="so", **parts) if parts else RIGHT[role]
        return Reply(value, Expense(), role, 1, 0.0)


async def sections(
    calls: str, llm: Oracle, told: KitStory | None = None, request_id: str | None = "r"
) -> dict[str, dict[str, Any]]:
    """Return what each agent leaves that runs beside the others."""
    kit_story = told or story(base=ON, sections=TIERS)
    services = KitServices(llm, NOW, story_calls=calls)
    await kit_story.put_into(services)

    async def run(section: str) -> dict[str, Any]:
        agent = AGENTS[section]
        assignment = TaskAssignment(
            task_id=f"task-{section}",
            agent_id=agent.agent_id,
            supervisor_id="kit",
            task=TaskCall(name="analyse"),
            created_at=NOW,
            request_id=request_id,
            **kit_story.fields,
        )
        task = agent.tasks["analyse"]
        found = await task.handler.function(
            task.parameters(), Context(task, assignment, services)
        )
        return dict(found.model_dump(mode="json"))

    found = await asyncio.gather(*(run(seat.section) for seat in SECTION_AGENTS))
    return {seat.section: one for seat, one in zip(SECTION_AGENTS, found, strict=True)}


@pytest.mark.parametrize(("calls", "count"), [("ten", 10), ("grouped", 2), ("one", 1)])
async def test_each_way_asks_as_often_as_it_says_and_finds_the_same(
    calls: str, count: int
) -> None:
    llm = Oracle()
    alone = Oracle()

    found = await sections(calls, llm)
    expected = await sections("ten", alone)

    assert len(llm.calls) == count
    assert {name: {**one, "by": ""} for name, one in found.items()} == {
        name: {**one, "by": ""} for name, one in expected.items()
    }
    assert all(one["by"].startswith("model of ") for one in found.values())


async def test_a_shared_question_shows_the_response_once_and_all_prompts() -> None:
    """Each under the name of its section, and smaller than the ten together."""
    one = Oracle()
    ten = Oracle()
    await sections("one", one)
    await sections("ten", ten)

    [(role, system, user)] = one.calls
    assert role == "shared"
    assert [f"## {section}" in system for section in RIGHT] == [True] * 10
    assert user.count("<response>") == 1
    assert len(system + user) < sum(len(told + shown) for _, told, shown in ten.calls)


@pytest.mark.parametrize("calls", ["grouped", "one"])
async def test_a_shared_question_without_an_answer_is_asked_once(calls: str) -> None:
    """Everybody goes by names and counts then."""
    llm = Oracle(LlmRefused("no"))

    found = await sections(calls, llm)

    assert len(llm.calls) == (1 if calls == "one" else 2)
    assert {one["by"] for one in found.values()} == {"rules"}
    [note] = {one["note"] for one in found.values()}
    assert note.startswith(f"{UNJUDGED}; model of ")
    assert note.endswith("did not answer: LlmRefused")


def test_who_shares_with_whom() -> None:
    """The enabled ones of a group, or all; not one that a story switches off or gives to an agent of its own."""
    own = {
        "knowledge": SeatSettings(agent="OwnAgent", task="look"),
        "relationship": SeatSettings(enabled=False),
    }
    settings = BASE.settings.model_copy(update={"agents": own})

    immediate = ["entity_analysis", "fact_extract", "memory_extract", "thread_extract"]
    background = ["resp_analyzer", "memory_create", "plot_threads"]
    assert sharers("fact_extract", settings, "grouped") == immediate
    assert sharers("plot_threads", settings, "grouped") == background
    assert sharers("plot_threads", settings, "one") == background + immediate
    assert sharers("plot_threads", settings, "ten") == ["plot_threads"]
    assert sharers("contradiction", settings, "one") == ["contradiction"]


async def test_what_cannot_be_judged_is_not_asked_for() -> None:
    """A story without threads, memories and files has four parts in its question."""
    bare = ON.model_copy(
        update={"entities": (), "memories": (), "threads": (), "knowledge": ()}
    )
    llm = Oracle()

    await sections("one", llm, replace(story(base=bare), changes={}))

    # What the right answer says of those who are not there any more goes back once.
    system = llm.calls[0][1]
    assert "## knowledge" in system
    assert "## thread_extract" not in system
    assert "## contradiction" not in system
