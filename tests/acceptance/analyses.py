"""Somebody who has responses of a story analysed, over the wire, and looks at what there is afterwards."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.analysis.stories import (
    Bond,
    Changes,
    Relations,
    SeatSettings,
    StoryBase,
    StorySettings,
)
from tasklore.contracts.messages import AnalysisReply, AnalysisRequest
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tasklore.memory.stories.view import CHANGING
from tests.acceptance.system import AGENTS, System

TELLERS = str(AGENTS / "storytellers.py")
STORY = "harbour"
#: Seconds for whatever is waited for: far above what it takes on a busy machine.
PATIENCE_S = 90.0
#: Seconds between looks at what another process writes.
_LOOK_S = 0.02


class Editor:
    """Asks the supervisors of one id, and reads the stores."""

    def __init__(self, client: Client, redis: Redis, folder: Path) -> None:
        self.stories = StoryStore(redis, deadline_s=PATIENCE_S)
        self.analyses = AnalysisStore(redis, deadline_s=PATIENCE_S)
        self._client = client
        self._folder = folder

    async def load(
        self, agents: Mapping[str, SeatSettings] | None = None, **settings: Any
    ) -> None:
        """Make the story begin."""
        told = StorySettings(story_id=STORY, agents=dict(agents or {}), **settings)
        bonds = (Bond(characters=("Mara", "Tom"), score=18),)
        await self.stories.load(
            StoryBase(settings=told, relations=Relations(bonds=bonds))
        )

    async def ask(self, number: int, text: str | None, **wish: Any) -> AnalysisReply:
        """Return the answer for a response, once a supervisor is there that knows the agents."""
        wish = {"story_id": STORY, "wait_ms": 60_000} | wish
        return await ask_for_analysis(
            self._client, AnalysisRequest(response_number=number, text=text, **wish)
        )

    async def ended(self, number: int) -> dict[str, Any]:
        """Return the document of a response once nobody is asked any more."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                document = await self.analyses.read(STORY, number)
                if document is not None and document.meta.agents_run == 10:
                    return document.body()
                await asyncio.sleep(_LOOK_S)

    async def changes(self) -> Changes:
        """Return what every response changed."""
        return await self.stories.changes(STORY, CHANGING)

    def ran(self, section: str) -> Counter[str]:
        """Return how often each response was looked at for a section."""
        return Counter(line.partition(":")[0] for line in self._lines(section))

    def tasks(self, section: str) -> list[str]:
        """Return the tasks by which a section was looked for, each once, in their order."""
        return list(
            dict.fromkeys(line.partition(":")[2] for line in self._lines(section))
        )

    async def begun(self, section: str, number: int) -> None:
        """Return once an agent looks at a response."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.ran(section)[str(number)]:  # noqa: ASYNC110 - in another process
                await asyncio.sleep(_LOOK_S)

    def _lines(self, section: str) -> list[str]:
        path = self._folder / "runs" / section
        return path.read_text().split() if path.exists() else []


async def demand_each_once(desk: Editor, document: dict[str, Any]) -> None:
    """Check that every agent came through once for the first response, by one task, and changed the story once."""
    meta = document["meta"]
    assert (meta["agents_run"], meta["agents_ok"], meta["status"]) == (
        10,
        10,
        "fresh",
    ), document
    changes = await desk.changes()
    standing = await desk.stories.standing(STORY, 2)
    assert sorted(changes[1]) == sorted(CHANGING)
    assert standing.scores == {"Mara|Tom": 23}
    assert [state.thread.id for state in standing.threads] == ["THREAD-001"]
    assert [memory.id for memory in standing.memories] == ["MEM-1-lamp"]
    assert [fact.source for fact in standing.knowledge] == ["Ch1-R1"]
    assert {section: len(desk.tasks(section)) for section in CHANGING} == dict.fromkeys(
        CHANGING, 1
    )


async def ask_for_analysis(client: Client, request: AnalysisRequest) -> AnalysisReply:
    """Return the answer to *request*, once a supervisor is there that knows the agents."""
    body = request.model_dump_json(exclude_none=True).encode()
    gives_up_at = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(nats.errors.NoRespondersError):
            answer = await client.request(
                subjects.analyses("SupervisorAgent"), body, timeout=PATIENCE_S
            )
            reply = AnalysisReply.model_validate_json(answer.data)
            # Cards are still on their way to the supervisor.
            if "is known" not in reply.text and b"UnknownAgent" not in answer.data:
                return reply
        assert time.monotonic() < gives_up_at
        await asyncio.sleep(_LOOK_S)


@contextlib.asynccontextmanager
async def clients_of(system: System) -> AsyncIterator[tuple[Client, Redis]]:
    """Connect to both servers of *system*."""
    client = await nats.connect(system.servers.nats_url)
    try:
        async with Redis.from_url(
            system.servers.redis_url, socket_timeout=None
        ) as redis:
            yield client, redis
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def editor(system: System) -> AsyncIterator[Editor]:
    """Connect somebody to *system*."""
    async with clients_of(system) as (client, redis):
        yield Editor(client, redis, system.folder)
