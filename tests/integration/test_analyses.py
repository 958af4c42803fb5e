"""Two supervisors that analyse one story on a real store."""

import asyncio
from dataclasses import replace
from typing import Any

from redis.asyncio import Redis
from tests.unit.supervisor.pipelines.analysis.house import STORY, TEXT, House

from contracts.analysis.stories import StoryBase, StorySettings
from contracts.messages import TaskAssignment
from memory.stories.analyses import AnalysisStore
from memory.stories.store import StoryStore
from supervisor.pipelines.analysis.run import AnalysisParts
from tests.servers import PATIENCE_S

RESPONSES = range(1, 9)


class RealHouse(House):
    """A house of analyses whose stores are real."""

    def __init__(self, redis: Redis, works: Any = None) -> None:
        super().__init__(works)
        self.story_store = StoryStore(redis, deadline_s=PATIENCE_S)
        self.analysis_store = AnalysisStore(redis, deadline_s=PATIENCE_S)

    def parts(self) -> AnalysisParts:
        """Return what a supervisor works with."""
        return replace(super().parts(), stories=self.story_store, analyses=self.analysis_store)


def _thread(assignment: TaskAssignment) -> dict[str, Any]:
    return {"new": [{"id": "?", "title": f"Thread of {assignment.response_number}"}]}


def _points(_assignment: TaskAssignment) -> dict[str, Any]:
    return {"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]}


async def test_two_supervisors_lose_no_update_of_each_other(redis: Redis) -> None:
    """Each of eight responses is asked of both: every thread has its own number, every point counts once."""
    house = RealHouse(redis, {"StoryThreadAgent": _thread, "StoryRelationshipAgent": _points})
    await house.story_store.load(StoryBase(settings=StorySettings(story_id=STORY)))
    async with house.supervisor() as one, house.supervisor() as other:
        asked = [who.ask(number, text=f"{TEXT} {number}") for number in RESPONSES for who in (one, other)]
        replies = await asyncio.gather(*asked)

    standing = await house.story_store.standing(STORY, 9)
    assert {reply.kind for reply in replies} == {"done"}, replies
    assert sorted(state.thread.id for state in standing.threads) == [f"THREAD-{number:03}" for number in RESPONSES]
    assert standing.scores == {"Mara|Tom": 5 * len(RESPONSES)}
    assert set(house.office.ran.values()) == {len(RESPONSES)}
