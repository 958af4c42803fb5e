"""The example story told to all ten agents on fakes: how much each would ask a model, as the story goes on."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tasklore
from contracts.analysis_roster import ROSTER, model_of
from contracts.errors import LlmRefused
from contracts.stories import StoryBase, StoryChange, StoryResponse
from memory.rendering.tokens import counter
from memory.stories.settling import settled
from memory.stories.view import standing
from runtime.llm_client import _response_format
from tasklore.story_files import read_response, read_story, responses_in
from tests.unit.story.stage import analysed
from workers.loading import load_agents
from workers.testing import Asked, KitStory

FOLDER = Path(tasklore.__file__).parent / "example_story"
AGENTS = {agent.agent_id: agent for agent in load_agents("workers.agents.story")}
#: Tokens of a whole question.
MOST_TOKENS = 4_000
#: Responses that follow each other in the story here: enough for each agent to have something of the others.
FIRST = 8

Changed = dict[int, dict[str, StoryChange]]


@cache
def base() -> StoryBase:
    """Return where the example begins."""
    return read_story(FOLDER)


async def test_no_agent_asks_more_as_the_story_goes_on() -> None:
    """The first responses, with all that was made of those before: each question within 4,000 tokens."""
    responses = [read_response(path) for path in responses_in(FOLDER)]
    changes: Changed = {}
    sizes: dict[str, list[int]] = {seat.section: [] for seat in ROSTER}
    for number, response in enumerate(responses[:FIRST]):
        for section, asked in (await _read(response, responses[:number], changes)).items():
            sizes[section] += [_tokens_of(one) for one in asked]
    assert {section: max(found) for section, found in sizes.items() if max(found) > MOST_TOKENS} == {}
    assert min(map(len, sizes.values())) >= FIRST - 1, "nearly every agent has something to ask each time"


async def _read(
    response: StoryResponse, earlier: list[StoryResponse], changes: Changed
) -> Mapping[str, tuple[Asked, ...]]:
    """Return what each agent asked about *response*; what rules find in it becomes part of *changes*."""
    sections: dict[str, Any] = {}
    asked: dict[str, tuple[Asked, ...]] = {}
    own: dict[str, StoryChange] = {}
    for seat in ROSTER:
        told = KitStory(base(), response, tuple(earlier), {**changes, response.number: own}, sections)
        found, kit = await analysed(AGENTS[seat.agent_id], LlmRefused("no"), told=told)
        asked[seat.section] = tuple(kit.asked)
        model = model_of(seat.section)
        assert model is not None
        section, change = settled(
            seat.section,
            response.number,
            response.chapter,
            model.model_validate(found),
            standing(base(), changes, response.number),
        )
        sections[seat.section] = section.model_dump(mode="json")
        if change is not None:
            own[seat.section] = change
    changes[response.number] = own
    return asked


def _tokens_of(asked: Asked) -> int:
    """Return the tokens of a question as it is sent, with the schema of its answer."""
    count = counter()
    return count(asked.system) + count(json.dumps(_response_format(asked.answer))) + count(asked.user)
