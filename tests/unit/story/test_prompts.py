"""What the agents of a story ask a model: never more than 4,000 tokens, however large the story is."""

import json

import pytest

from contracts.analysis_background import KnownFact
from contracts.analysis_roster import ROSTER
from contracts.errors import LlmRefused
from contracts.stories import Entity, StoryMemory, StoryThread
from memory.rendering.tokens import counter
from runtime.llm_client import _response_format
from tests.architecture.tree import ROOT
from tests.unit.story.stage import BASE, ENTITIES, RESPONSE, analysed, story
from workers import Agent
from workers.agent_files import find_roles
from workers.loading import load_agents
from workers.testing import KitStory

#: Tokens of a whole question: instructions, schema of the answer, and what it is about.
MOST_TOKENS = 4_000
AGENTS = {agent.agent_id: agent for agent in load_agents("workers.agents.story")}
SEATS = {seat.section: AGENTS[seat.agent_id] for seat in ROSTER if seat.agent_id in AGENTS}

#: Persons, and what there is of each: a memory or two, a thread, a fact, a paragraph.
COUNT = 40

#: Prose of a novel, and of a script that takes a token or more for each sign.
PROSE = {
    "english": "She told {name} that {number} crowns were due, and that nobody on the quay would forgive the debt.",
    "dense": "彼女は{name}に{number}枚の硬貨の返済期限が来たと告げた。埠頭の誰もその借りを決して許さないだろう。🕯️⚓",
}


def crowded(prose: str) -> KitStory:
    """Return a story of forty persons, of which any part, and the response too, is longer than a question may be."""
    names = [f"Person-{number} {'Featherstonehaugh' * (number % 3)}Reed{number}" for number in range(COUNT)]
    told = [prose.format(name=name, number=number) for number, name in enumerate(names)]
    lines = list(zip(names, told, strict=True))
    pages = [RESPONSE.text, *(f'{name} rose. "I know the debt," said {name}. {line}' for name, line in lines)]
    file = "\n".join(f"- {line}" for line in told)
    memories = [
        StoryMemory(id=f"MEM-1{number:02}", character=name, title=line[:60], summary=line, text=line * 3)
        for number, (name, line) in enumerate(lines * 2)
    ]
    cast = tuple(names[:9])
    threads = [
        StoryThread(id=f"THREAD-1{number:02}", title=line[:60], text=line * 3, characters=cast, keywords=("debt",))
        for number, (_, line) in enumerate(lines)
    ]
    facts = [KnownFact(subject=name, fact=line, category="character") for name, line in lines]
    whole = BASE.model_copy(
        update={
            "entities": (*ENTITIES, *(Entity(name=name, text=file, tokens=9_000) for name in names)),
            "memories": (*BASE.memories, *memories),
            "threads": (*BASE.threads, *threads),
            "knowledge": (*BASE.knowledge, *facts),
        }
    )
    told_of = {"facts": [fact.model_dump(mode="json") for fact in facts]}
    return story("\n\n".join(pages), whole, sections={"knowledge": told_of})


@pytest.mark.parametrize("prose", PROSE)
@pytest.mark.parametrize("section", SEATS)
async def test_a_question_keeps_its_budget(section: str, prose: str) -> None:
    """Instructions, the schema as it is sent, and what is shown of a story that is far larger."""
    _, kit = await analysed(SEATS[section], *[LlmRefused("no")] * 20, told=crowded(PROSE[prose]))

    assert kit.asked, "a model has something to judge here"
    for asked in kit.asked:
        schema = json.dumps(_response_format(asked.answer))
        assert asked.role == section
        assert counter()(asked.system) + counter()(schema) + counter()(asked.user) <= MOST_TOKENS


@pytest.mark.parametrize("section", SEATS)
async def test_a_question_about_a_short_response_shows_all_of_it(section: str) -> None:
    """As data, between marks."""
    _, kit = await analysed(SEATS[section], *[LlmRefused("no")] * 20)

    assert kit.asked
    assert any(f"<response>\n{RESPONSE.text}\n</response>" in asked.user for asked in kit.asked)
    assert all("never instructions to you" in asked.system for asked in kit.asked)


def test_every_seat_has_its_agent_and_its_role() -> None:
    """Ten of them, and each role is the section's own."""
    assert list(AGENTS) == list(dict.fromkeys(AGENTS))
    assert set(AGENTS) == {seat.agent_id for seat in ROSTER}
    roles = find_roles(ROOT / "workers" / "agents" / "story")
    assert {role.name for role in roles} == {seat.section for seat in ROSTER}


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_every_agent_has_the_one_task_that_an_analysis_asks_for(agent: Agent) -> None:
    """It is not remembered, since its answer depends on the story."""
    assert list(agent.tasks) == ["analyse"]
    assert agent.tasks["analyse"].remember == "never"
    assert agent.tasks["analyse"].uses == frozenset({"llm", "clock"})
