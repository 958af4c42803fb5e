"""Watching a run until it is over: events say at once that something happened, and what it was is then looked up.

So a lost event costs at most a second, and whoever drives the run may die: the truth lies in Valkey.
"""

import asyncio
import dataclasses
import time
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from pydantic import ValidationError

from contracts import subjects
from contracts.errors import MemoryUnavailable, UnknownSession, Unreachable
from contracts.messages import Progress
from tasklore.pipeline.check import away_of
from tasklore.pipeline.stores import Look, Stores
from tasklore.render.screen import printable, say

#: Seconds between two looks while nothing is heard.
LOOK_S = 1.0
#: Seconds without a supervisor, or without Valkey, after which it is said, and after which nobody should wait here.
SAY_AFTER_S, GIVE_UP_S = 8.0, 60.0

#: Seconds between two looks for live workers: one that starts is seen soon, and the bucket is not read at each event.
_WORKERS_S = 2.0

#: What is told of each look: the run, and what its running phases said of their progress, by phase.
Show = Callable[[Look, dict[str, str]], None]


class Watch:
    """One run, from before it is asked for; `open` first, then ask, then `until_over`."""

    def __init__(self, client: Client, stores: Stores, session_id: str, supervisor_id: str) -> None:
        self._client = client
        self._stores = stores
        self._session_id = session_id
        self._supervisor_id = supervisor_id
        self._stir = asyncio.Event()
        self._told: dict[str, str] = {}
        #: Agents without a live worker, of those asked for, and until when that is not asked again.
        self._away: tuple[frozenset[str], frozenset[str], float] = (frozenset(), frozenset(), 0.0)
        #: The phase of each task whose progress is listened to.
        self._heard: dict[str, tuple[str, Subscription]] = {}

    async def open(self) -> None:
        """Begin to listen; what happens from now on is not missed."""

        async def stir(_message: Msg) -> None:
            self._stir.set()

        await self._client.subscribe(subjects.run_events(self._session_id), cb=stir)
        await self._client.flush()

    async def until_over(self, show: Show) -> Look:
        """Return the run once it is over; *show* is told of each look.

        Raises:
            UnknownSession: it is gone, and nobody knows how it ended.
            Unreachable: nobody drives it any more, or Valkey is away, for longer than anybody should wait here.
        """
        patience = _Patience(self._session_id)
        while True:
            self._stir.clear()
            look = await self._look(patience)
            if look is not None:
                if look.state == "gone":
                    raise UnknownSession(f"session {self._session_id!r} is gone, and nothing tells how it ended")
                await self._listen(look)
                show(dataclasses.replace(look, away=await self._without_workers(look)), self._told)
                if look.is_over:
                    return look
            await self._stirred()

    async def _without_workers(self, look: Look) -> frozenset[str]:
        """Return the agents of running phases that have no live worker; none while the bucket does not answer."""
        agents, now = look.begun_agents, time.monotonic()
        away, asked, until = self._away
        if agents and (agents != asked or now >= until):
            try:
                away = frozenset(await away_of(self._client, agents))
            except Unreachable:
                away = frozenset()
            self._away = (away, agents, now + _WORKERS_S)
        return away & agents

    async def _look(self, patience: "_Patience") -> Look | None:
        try:
            look = await self._stores.look(self._session_id)
        except MemoryUnavailable as error:
            patience.lacks("Valkey", str(error))
            return None
        if look.record is not None and look.state == "running" and look.record.holder is None:
            patience.lacks("a supervisor", "nobody drives the run; it goes on once a supervisor is there")
        else:
            patience.lacks_nothing()
        return look

    async def _stirred(self) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await self._stir.wait()
        except TimeoutError:
            return

    async def _listen(self, look: Look) -> None:
        """Listen to the progress of what runs, and of nothing else."""
        phases = look.record.phases if look.record is not None else {}
        running = {state.task_id: name for name, state in phases.items() if state.status == "running" and state.task_id}
        for task_id in self._heard.keys() - running.keys():
            phase, subscription = self._heard.pop(task_id)
            self._told.pop(phase, None)
            await subscription.unsubscribe()
        for task_id in running.keys() - self._heard.keys():
            subject = subjects.progress(self._supervisor_id, task_id)
            self._heard[task_id] = (running[task_id], await self._client.subscribe(subject, cb=self._hear))

    async def _hear(self, message: Msg) -> None:
        try:
            progress = Progress.model_validate_json(message.data)
        except ValidationError:
            return
        if (heard := self._heard.get(progress.task_id)) is not None:
            self._told[heard[0]] = printable(progress_text(progress))
            self._stir.set()


class _Patience:
    """How long something has been missing that a run needs; it is said once, and not waited for without end."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._since: float | None = None
        self._has_said = False

    def lacks_nothing(self) -> None:
        self._since, self._has_said = None, False

    def lacks(self, what: str, why: str) -> None:
        now = time.monotonic()
        self._since = self._since if self._since is not None else now
        if now - self._since > GIVE_UP_S:
            raise Unreachable(
                f"{what} was away for {GIVE_UP_S:.0f} s; the run is kept and goes on with the next `tasklore up` or "
                f"`tasklore supervisor`, `tasklore pipeline status {self._session_id} --follow` looks at it"
            )
        if now - self._since > SAY_AFTER_S and not self._has_said:
            self._has_said = True
            say(why)


def progress_text(progress: Progress) -> str:
    """Return what a task said of its progress, for people."""
    share = "" if progress.fraction is None else f"{progress.fraction:.0%} "
    return f"{share}{progress.text}".strip()
