"""The ten agents over one response, in the order in which an analysis asks them, each beside what those before left."""

from collections.abc import Mapping
from typing import Any

from tasklore import Context
from tasklore.contracts.analysis.pieces import Section
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS, model_of
from tasklore.contracts.analysis.stories import (
    SeatSettings,
    StoryBase,
    StoryChange,
    StoryResponse,
)
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.memory.stories.settlement import settle_section
from tasklore.memory.stories.view import standing
from tasklore.workers.loading import load_agents
from tasklore.workers.testing import NOW, KitServices, KitStory

_AGENTS = {
    agent.agent_id: agent for agent in load_agents("tasklore.workers.agents.story")
}
#: What each response changed, by its number and the section that found it.
Changed = dict[int, dict[str, StoryChange]]


class Telling:
    """A story that is told response by response; what agents find in one is known to the next."""

    def __init__(self, base: StoryBase, calls: str = "ten") -> None:
        agents = {**base.settings.agents, "contradiction": SeatSettings(enabled=True)}
        self.base = base.model_copy(
            update={"settings": base.settings.model_copy(update={"agents": agents})}
        )
        self._calls = calls
        self._earlier: list[StoryResponse] = []
        self._changes: Changed = {}

    async def tell(self, response: StoryResponse, llm: Any) -> Mapping[str, Section]:
        """Return every section of *response* as agents find it with *llm*."""
        found: dict[str, Section] = {}
        own: dict[str, StoryChange] = {}
        services = KitServices(llm, NOW, story_calls=self._calls)
        # Whoever waits for others comes after them in the roster.
        for seat in SECTION_AGENTS:
            sections = {
                name: one.model_dump(mode="json") for name, one in found.items()
            }
            told = KitStory(
                self.base,
                response,
                tuple(self._earlier),
                {**self._changes, response.number: own},
                sections,
            )
            await told.put_into(services)
            agent = _AGENTS[seat.agent_id]
            assignment = TaskAssignment(
                task_id=f"{seat.section}-{response.number}",
                agent_id=agent.agent_id,
                supervisor_id="reading",
                task=TaskCall(name=seat.task),
                created_at=NOW,
                request_id="reading",
                **told.fields,
            )
            task = agent.tasks[seat.task]
            section = await task.handler.function(
                task.parameters(), Context(task, assignment, services)
            )
            model = model_of(seat.section)
            assert model is not None
            before = standing(self.base, self._changes, response.number)
            found[seat.section], change = settle_section(
                seat.section, response.number, response.chapter, section, before
            )
            if change is not None:
                own[seat.section] = change
        self._changes[response.number] = own
        self._earlier.append(response)
        return found
