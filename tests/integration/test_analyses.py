"""Analyses on a real store: what supervisors write there side by side, and what the next one finds."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
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

    async def begin(self) -> None:
        """Make the story begin."""
        await self.story_store.load(StoryBase(settings=StorySettings(story_id=STORY)))


def _thread(assignment: TaskAssignment) -> dict[str, Any]:
    return {"new": [{"id": "?", "title": f"Thread of {assignment.response_number}"}]}


def _points(_assignment: TaskAssignment) -> dict[str, Any]:
    return {"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]}


@pytest.fixture
async def house(redis: Redis) -> RealHouse:
    """Make a house whose agents open threads and give points."""
    made = RealHouse(redis, {"StoryThreadAgent": _thread, "StoryRelationshipAgent": _points})
    await made.begin()
    return made


async def test_supervisors_lose_no_update_of_each_other(house: RealHouse) -> None:
    """Eight responses of one story, each asked of both: every thread has a number of its own, every point counts."""
    async with house.supervisor() as one, house.supervisor() as other:
        asked = [who.ask(number, text=f"{TEXT} {number}") for number in RESPONSES for who in (one, other)]
        replies = await asyncio.gather(*asked)

    standing = await house.story_store.standing(STORY, 9)
    assert {reply.kind for reply in replies} == {"done"}, replies
    assert sorted(state.thread.id for state in standing.threads) == [f"THREAD-{number:03}" for number in RESPONSES]
    assert standing.scores == {"Mara|Tom": 5 * len(RESPONSES)}
    assert set(house.office.ran.values()) == {len(RESPONSES)}


async def test_what_is_served_is_what_was_written_byte_for_byte(house: RealHouse) -> None:
    """And nothing is written for it."""
    async with house.supervisor() as supervisor:
        await supervisor.ask()
        before = await house.analysis_store.record(STORY, 1)
        reply = await supervisor.ask()
        after = await house.analysis_store.record(STORY, 1)

    assert reply.served
    assert after == before
    found = await house.analysis_store.read(STORY, 1)
    assert found is not None
    assert found.minified() == before[1]


async def test_the_next_supervisor_finishes_what_lies_there(house: RealHouse) -> None:
    """Once the lease has lapsed; nobody who had ended is asked again."""
    gate = asyncio.Event()

    async def wait(_assignment: TaskAssignment) -> dict[str, Any]:
        await gate.wait()
        return {"facts": [{"subj": "Lamp", "fact": "lit"}]}

    house.office.works["StoryKnowledgeAgent"] = wait
    async with house.supervisor(lease_s=0.5) as first:
        asking = asyncio.create_task(first.ask())
        while len(house.office.begun_at) < 9:  # noqa: ASYNC110 - the fake tells nobody
            await asyncio.sleep(0.01)
        first.die()
        asking.cancel()
        gate.set()
    async with house.supervisor(lease_s=0.5), asyncio.timeout(60):
        while (found := await house.analysis_store.read(STORY, 1)) is None or found.meta.agents_ok < 9:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    assert set(house.office.ran.values()) == {1}
    assert [fact.source for fact in (await house.story_store.standing(STORY, 2)).knowledge] == ["Ch1-R1"]


async def test_a_story_that_is_deleted_ends_its_analyses(house: RealHouse) -> None:
    """Nobody looks after them any more, and whoever waits is told."""
    gate = asyncio.Event()

    async def wait(_assignment: TaskAssignment) -> dict[str, Any]:
        await gate.wait()
        return {}

    house.office.works["StoryKnowledgeAgent"] = wait
    async with house.supervisor() as supervisor:
        asking = asyncio.create_task(supervisor.ask())
        while len(house.office.begun_at) < 9:  # noqa: ASYNC110 - the fake tells nobody
            await asyncio.sleep(0.01)
        await house.story_store.delete(STORY)
        gate.set()
        reply = await asking

    assert (reply.kind, "no story" in reply.text) == ("refused", True)
    assert await house.analysis_store.due("S", 1) == []
