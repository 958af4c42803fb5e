"""Somebody who has pipelines run, over the wire, and waits for how they end."""

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts.messages import PipelineReply, PipelineRequest
from tasklore.contracts.pipelines import Pipeline
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.runtime.servers import valkey
from tests.acceptance.system import System

#: Seconds for whatever is waited for: far above what it takes on a busy machine.
PATIENCE_S = 90.0
#: Seconds between looks at whether a run has ended.
_LOOK_S = 0.02


class Asker:
    """Asks the supervisors of one id; `runs` and `cache` are for looking at what there is afterwards."""

    def __init__(self, client: Client, redis: Redis, folder: Path) -> None:
        self.runs = PipelineRuns(redis, deadline_s=PATIENCE_S)
        self.cache = SessionCache(redis, deadline_s=PATIENCE_S)
        self._client = client
        self._folder = folder

    async def ask(self, action: str, session_id: str, **wish: Any) -> PipelineReply:
        """Return the answer to *action*, once a supervisor is there that knows the agent."""
        request = PipelineRequest.model_validate(
            {"action": action, "session_id": session_id, **wish}
        )
        body = request.model_dump_json(exclude_none=True).encode()
        gives_up_at = time.monotonic() + PATIENCE_S
        reply = None
        # Its card is still on its way to the supervisor, which may not be there yet.
        while reply is None or any(
            "is not known" in problem for problem in reply.problems
        ):
            assert time.monotonic() < gives_up_at, reply
            await asyncio.sleep(_LOOK_S)
            with contextlib.suppress(nats.errors.NoRespondersError):
                answer = await self._client.request(
                    "pipelines.SupervisorAgent", body, timeout=PATIENCE_S
                )
                reply = PipelineReply.model_validate_json(answer.data)
        return reply

    async def run(
        self, session_id: str, pipeline: Pipeline, *, keep: bool = True, **inputs: Any
    ) -> dict[str, Any]:
        """Have *pipeline* run to its end and return its outcome."""
        declared = pipeline.model_dump(mode="json")
        reply = await self.ask(
            "run", session_id, pipeline=declared, inputs=inputs, keep=keep
        )
        assert reply.kind == "accepted", reply
        return await self.outcome(session_id)

    async def resume(
        self, session_id: str, **wish: Any
    ) -> tuple[PipelineReply, dict[str, Any]]:
        """Have the run go on to its end; return what was said at first, and its outcome."""
        reply = await self.ask("resume", session_id, **wish)
        assert reply.kind == "accepted", reply
        return reply, await self.outcome(session_id)

    async def outcome(self, session_id: str) -> dict[str, Any]:
        """Return how the run ended, once it has."""
        async with asyncio.timeout(PATIENCE_S):
            while (found := await self.runs.outcome(session_id)) is None:  # noqa: ASYNC110 - in another process
                await asyncio.sleep(_LOOK_S)
        told: dict[str, Any] = json.loads(found)
        return told

    def ran(self, label: str) -> Counter[str]:
        """Return how often each phase ran in the run that its parameters call *label*."""
        path = self._folder / "runs" / label
        return Counter(path.read_text().split()) if path.exists() else Counter()


@contextlib.asynccontextmanager
async def asker_in(system: System) -> AsyncIterator[Asker]:
    """Connect to the servers of *system*."""
    client = await nats.connect(system.servers.nats_url)
    try:
        async with valkey.connect(
            system.servers.redis_url, deadline_s=PATIENCE_S
        ) as redis:
            yield Asker(client, redis, system.folder)
    finally:
        await client.close()
