"""What tests of sessions share: a cache of each kind, and what a pipeline would do to its session."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.sessions.entries import State
from tasklore.memory.sessions.pipeline_records import PhaseState
from tasklore.memory.sessions.session import SessionCache
from tests.fakes.sessions import FakeSessions

SESSION = "s1"
KEY = "analysis:map"
#: Long over for whoever asks next, and long enough for nothing.
BLINK = timedelta(milliseconds=1)


class StoreStage:
    """A cache on a server, and a pipeline's hand on its sessions."""

    def __init__(
        self, client: Redis, *, max_value_bytes: int = 16 * 1024 * 1024
    ) -> None:
        self.client = client
        self.cache = SessionCache(
            client, max_value_bytes=max_value_bytes, deadline_s=60.0
        )

    async def count_stored(self, session_id: str = SESSION) -> int:
        """Return how many entries lie there, those that have expired among them: each has a head and a body."""
        return await self.client.hlen(keys.session(session_id).entries) // 2

    async def put_state(self, state: State, session_id: str = SESSION) -> None:
        """Let the pipeline of a session be in *state*; its next update renews its time to live, or takes it."""
        of = keys.session(session_id)
        await self.client.hset(of.root, mapping={"state": state, "pipeline": "{}"})
        if state == "running":
            for key in of:
                await self.client.persist(key)

    async def put_task(
        self, phase: str, task_id: str, session_id: str = SESSION
    ) -> None:
        """Let nobody but a task write for *phase*."""
        await self.client.hset(keys.session(session_id).tasks, phase, task_id)

    async def put_correction(
        self, phase: str, by: str, session_id: str = SESSION
    ) -> None:
        """Hide *phase* behind the phase *by*."""
        await self.client.hset(keys.session(session_id).corrected, phase, by)

    async def put_time(
        self, phase: str, took_ms: int, session_id: str = SESSION
    ) -> None:
        """Note how long *phase* took."""
        state = json.dumps({"status": "done", "took_ms": took_ms})
        await self.client.hset(keys.session(session_id).phases, phase, state)


class FakeStage:
    """The same without a server."""

    def __init__(self, *, max_value_bytes: int = 16 * 1024 * 1024) -> None:
        self.cache = FakeSessions(max_value_bytes=max_value_bytes)

    async def count_stored(self, session_id: str = SESSION) -> int:
        """Return how many entries lie there, those that have expired among them: each has a head and a body."""
        return await self.client.hlen(keys.session(session_id).entries) // 2

    async def put_state(self, state: State, session_id: str = SESSION) -> None:
        """Let the pipeline of a session be in *state*."""
        self.cache.put_state(session_id, state)

    async def put_task(
        self, phase: str, task_id: str, session_id: str = SESSION
    ) -> None:
        """Let nobody but a task write for *phase*."""
        self.cache.put_task(session_id, phase, task_id)

    async def put_correction(
        self, phase: str, by: str, session_id: str = SESSION
    ) -> None:
        """Hide *phase* behind the phase *by*."""
        self.cache.put_correction(session_id, phase, by)

    async def put_time(
        self, phase: str, took_ms: int, session_id: str = SESSION
    ) -> None:
        """Note how long *phase* took."""
        self.cache.put_phase(session_id, phase, PhaseState("done", took_ms=took_ms))


Stage = StoreStage | FakeStage


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Return once *is_so*, as when a time to live is over."""
    async with asyncio.timeout(60):
        while True:
            if await is_so():
                return
            await asyncio.sleep(0)


async def until_gone(
    cache: SessionCache, key: str = KEY, session_id: str = SESSION
) -> None:
    """Return once an entry is past its time to live."""

    async def is_gone() -> bool:
        return await cache.peek(session_id, [key]) == [None]

    await until(is_gone)


async def until_over(cache: SessionCache, session_id: str = SESSION) -> None:
    """Return once a session is past its time to live."""

    async def is_over() -> bool:
        return await cache.root(session_id) is None

    await until(is_over)


async def values(
    cache: SessionCache, *wanted: str, session_id: str = SESSION
) -> list[object]:
    """Return the values of entries, "-" where there is none; no use is counted."""
    return [
        "-" if one is None else one.value
        for one in await cache.peek(session_id, wanted)
    ]
