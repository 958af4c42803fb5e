"""The example story on real processes: servers, a supervisor and two workers with its ten agents, and a reader of it.

Nobody here has a model unless a test names one, whatever the environment says.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.commands.stories.example import FOLDER
from tasklore.commands.stories.files import read_response, read_story, responses_in
from tasklore.contracts import subjects
from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import (
    SeatSettings,
    StoryBase,
    StoryResponse,
)
from tasklore.contracts.messages import AnalysisReply, AnalysisRequest
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tests.acceptance.analyses import PATIENCE_S, ask_for_analysis, clients_of
from tests.acceptance.system import Served, System, running_system

AGENTS = "tasklore.workers.agents.story"
STORY = "lighthouse"
_NO_MODEL = {"llm_base_url": "", "llm_api_key": ""}


@cache
def example() -> StoryBase:
    """Return where the example story begins."""
    return read_story(FOLDER)


@cache
def responses() -> tuple[StoryResponse, ...]:
    """Return its thirty responses, in order."""
    return tuple(read_response(path) for path in responses_in(FOLDER))


class Stage:
    """A system with a supervisor and two workers."""

    def __init__(
        self, system: System, supervisor: Served, workers: tuple[Served, ...]
    ) -> None:
        self.system = system
        self.supervisor = supervisor
        self.workers = workers


@contextlib.contextmanager
def story_stage(folder: Path, **settings: Any) -> Iterator[Stage]:
    """Run servers with nothing in them, a supervisor, and two workers; *settings* are those of the workers."""
    with running_system(folder) as system:
        supervisor = system.supervisor()
        workers = tuple(
            system.worker(AGENTS, **{**_NO_MODEL, **settings}) for _ in range(2)
        )
        yield Stage(
            system, supervisor.ready(), tuple(worker.ready() for worker in workers)
        )


class Reader:
    """Has responses analysed over the wire, and reads what is kept of them."""

    def __init__(self, client: Client, redis: Redis) -> None:
        self.stories = StoryStore(redis, deadline_s=PATIENCE_S)
        self.analyses = AnalysisStore(redis, deadline_s=PATIENCE_S)
        self._client = client

    async def load(self, story_id: str = STORY) -> None:
        """Make the example begin, as the story *story_id*.

        Its agents have as long as a busy machine needs: after the seconds that are shipped
        a model is given up for the rules, and what a section waits for is done without.
        """
        said = example().settings.agents
        patient = {"deadline_s": PATIENCE_S}
        agents = {
            seat.section: said.get(seat.section, SeatSettings()).model_copy(
                update=patient
            )
            for seat in SECTION_AGENTS
        }
        changes = {
            "story_id": story_id,
            "agents": said | agents,
            "patience_s": PATIENCE_S,
        }
        settings = example().settings.model_copy(update=changes)
        await self.stories.load(example().model_copy(update={"settings": settings}))

    async def ask(
        self, response: StoryResponse, *, story_id: str = STORY, **wish: Any
    ) -> AnalysisReply:
        """Return what is answered to the wish for the analysis of *response*, once the agents are known."""
        request = AnalysisRequest(
            story_id=story_id,
            response_number=response.number,
            chapter=response.chapter,
            text=response.text,
            **{"wait_ms": 60_000, **wish},
        )
        return await ask_for_analysis(self._client, request)

    async def analysed(
        self, response: StoryResponse, *, story_id: str = STORY, **wish: Any
    ) -> AnalysisDocument:
        """Return the analysis of *response*, after every agent has ended."""
        reply = await self.ask(response, story_id=story_id, **wish)
        assert reply.kind == "done", reply
        assert reply.document is not None
        return read_document(reply.document)

    async def stored(self, number: int, *, story_id: str = STORY) -> bytes:
        """Return an analysis as it is stored, byte by byte."""
        raw = await self.analyses.raw(story_id, number)
        assert raw is not None
        return raw

    async def counts(self) -> tuple[int, int]:
        """Return how many tasks were ever sent, and how many reports."""
        stream = self._client.jetstream()
        infos = [
            await stream.stream_info(name)
            for name in (subjects.TASKS, subjects.REPORTS)
        ]
        return infos[0].state.last_seq, infos[1].state.last_seq


@contextlib.asynccontextmanager
async def reader(stage: Stage) -> AsyncIterator[Reader]:
    """Connect somebody to *stage*."""
    async with clients_of(stage.system) as (client, redis):
        yield Reader(client, redis)


def findings(document: AnalysisDocument) -> dict[str, Any]:
    """Return what a document says, without what a clock says: durations, and when it was written."""
    body: dict[str, Any] = document.body()
    groups = {
        group: {name: {**section, "dur": None} for name, section in body[group].items()}
        for group in ("background", "immediate")
    }
    stats = {
        name: value
        for name, value in body["stats"].items()
        if not name.endswith("_dur")
    }
    return {**body, **groups, "meta": {**body["meta"], "updated": None}, "stats": stats}


def sections(document: AnalysisDocument) -> Mapping[str, dict[str, Any]]:
    """Return what each agent left, by its section."""
    return {
        name: section
        for name, section in document.sections()
        if isinstance(section, dict)
    }
