"""Watch a run until it is over: an event wakes the watch, and the run is then read from Valkey.

So a lost event costs at most a second, and the supervisor that drives the run may die.
"""

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from pydantic import ValidationError

from tasklore.commands.pipeline.client import absent_agents
from tasklore.commands.pipeline.steps import Reused, steps_of
from tasklore.commands.pipeline.stores import Look, Stores
from tasklore.commands.render.board import board
from tasklore.commands.render.screen import printable, say
from tasklore.contracts import subjects
from tasklore.contracts.errors import MemoryUnavailable, UnknownSession, Unreachable
from tasklore.contracts.messages import Progress

#: Seconds between two reads without an event.
LOOK_S = 1.0
#: Seconds without a supervisor, or without Valkey, after which a line says so, and after which the watch gives up.
SAY_AFTER_S = 8.0
GIVE_UP_S = 60.0
#: Seconds between two reads of live workers: a new one is found soon, and the bucket is not read at each event.
_WORKERS_S = 2.0

#: Called at each read with the run and the progress of its running phases, by phase.
OnLook = Callable[[Look, Mapping[str, str]], None]


class Watch:
    """One run, from before it is asked for; `open` first, then ask, then `until_over`."""

    def __init__(
        self, client: Client, stores: Stores, session_id: str, supervisor_id: str
    ) -> None:
        self._client = client
        self._stores = stores
        self._session_id = session_id
        self._supervisor_id = supervisor_id
        self._event = asyncio.Event()
        self._progress: dict[str, str] = {}
        #: Agents without a live worker, of those asked for, and until when that holds.
        self._away: tuple[frozenset[str], frozenset[str], float] = (
            frozenset(),
            frozenset(),
            0.0,
        )
        #: The phase and the subscription of each task whose progress is followed.
        self._followed: dict[str, tuple[str, Subscription]] = {}
        self._lacking_since: float | None = None
        self._has_said_lacking = False

    async def open(self) -> None:
        """Begin to listen; later events are not missed."""

        async def wake(_message: Msg) -> None:
            self._event.set()

        await self._client.subscribe(subjects.run_events(self._session_id), cb=wake)
        await self._client.flush()

    async def show(self, *, is_silent: bool, reused: Reused | None = None) -> Look:
        """Return the run once it is over, and show it on stderr until then.

        Raises:
            UnknownSession, Unreachable: as `until_over`.
        """
        with board(is_silent=is_silent) as show:
            return await self.until_over(
                lambda look, progress: show(steps_of(look, progress, reused))
            )

    async def until_over(self, on_look: OnLook) -> Look:
        """Return the run once it is over.

        Raises:
            UnknownSession: it is gone, and its outcome has expired.
            Unreachable: no supervisor drives it, or Valkey is away, for `GIVE_UP_S`.
        """
        while True:
            self._event.clear()
            look = await self._look()
            if look is not None:
                if look.state == "gone":
                    raise UnknownSession(
                        f"session {self._session_id!r} has expired, and so has the record of how it ended"
                    )
                await self._follow_progress(look)
                on_look(
                    dataclasses.replace(look, away=await self._absent_agents(look)),
                    self._progress,
                )
                if look.is_over:
                    return look
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._event.wait()

    async def _look(self) -> Look | None:
        try:
            look = await self._stores.look(self._session_id)
        except MemoryUnavailable as error:
            self._note_lacking("Valkey", str(error))
            return None
        if (
            look.record is not None
            and look.state == "running"
            and look.record.holder is None
        ):
            self._note_lacking(
                "a supervisor",
                "no supervisor is running this pipeline; it continues as soon as one is started",
            )
        else:
            self._lacking_since = None
            self._has_said_lacking = False
        return look

    def _note_lacking(self, what: str, why: str) -> None:
        """Say once that the run lacks *what*, and give up after a while."""
        now = time.monotonic()
        self._lacking_since = (
            self._lacking_since if self._lacking_since is not None else now
        )
        if now - self._lacking_since > GIVE_UP_S:
            raise Unreachable(
                f"{what} was away for {GIVE_UP_S:.0f} s; the run is kept and goes on with the next `tasklore up` or "
                f"`tasklore supervisor`, `tasklore pipeline status {self._session_id} --follow` looks at it"
            )
        if now - self._lacking_since > SAY_AFTER_S and not self._has_said_lacking:
            self._has_said_lacking = True
            say(why)

    async def _absent_agents(self, look: Look) -> frozenset[str]:
        """Return the agents of running phases that have no live worker; none while the bucket does not answer."""
        agents = look.running_agents
        now = time.monotonic()
        away, asked, until = self._away
        if agents and (agents != asked or now >= until):
            try:
                away = frozenset(await absent_agents(self._client, agents))
            except Unreachable:
                away = frozenset()
            self._away = (away, agents, now + _WORKERS_S)
        return away & agents

    async def _follow_progress(self, look: Look) -> None:
        """Subscribe to the progress of running tasks, and to no other."""
        phases = look.record.phases if look.record is not None else {}
        running = {
            state.task_id: name
            for name, state in phases.items()
            if state.status == "running" and state.task_id
        }
        for task_id in self._followed.keys() - running.keys():
            phase, subscription = self._followed.pop(task_id)
            self._progress.pop(phase, None)
            await subscription.unsubscribe()
        for task_id in running.keys() - self._followed.keys():
            subject = subjects.progress(self._supervisor_id, task_id)
            self._followed[task_id] = (
                running[task_id],
                await self._client.subscribe(subject, cb=self._take_progress),
            )

    async def _take_progress(self, message: Msg) -> None:
        with contextlib.suppress(ValidationError):
            progress = Progress.model_validate_json(message.data)
            if (followed := self._followed.get(progress.task_id)) is not None:
                share = "" if progress.fraction is None else f"{progress.fraction:.0%} "
                self._progress[followed[0]] = printable(
                    f"{share}{progress.text}".strip()
                )
                self._event.set()


@contextlib.contextmanager
def hint_when_stopped(session_id: str) -> Iterator[None]:
    """Print how to follow and to cancel a run when the command is stopped while the run goes on."""
    try:
        yield
    except asyncio.CancelledError:
        say(
            f"the run goes on; `tasklore pipeline status {session_id} --follow` looks at it"
        )
        say(f"`tasklore pipeline cancel {session_id}` ends it")
        raise
