"""The gate: a task goes straight to TASKS where nothing waits, and into WAITING while its agent is busy."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from nats.aio.msg import Msg

from tasklore.contracts import subjects
from tasklore.contracts.errors import TaskloreError
from tasklore.runtime.messaging.link import Link
from tasklore.supervisor.admission.room import Room

log = structlog.get_logger(__name__)

#: Seconds for which tasks wait behind one that waited a moment ago: longer than notices are apart.
_BEHIND_S = 0.6
#: Seconds between notices of one agent.
NOTICE_S = 0.2


@dataclass(slots=True)
class _Way:
    """The way to an agent: shut until then; `room` is how many more tasks may go straight."""

    shut_until: float = 0.0
    room: int = 0
    noticed_at: float = 0.0
    asking: "asyncio.Task[None] | None" = None


class Gate:
    """Says of each task whether it goes straight, and of each agent with a task that does not that it waits."""

    def __init__(
        self, link: Link, room: Room, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.room = room
        self._link = link
        self._now = now
        self._ways: dict[str, _Way] = {}

    async def hear(self, notice: Msg) -> None:
        """Heed a notice that tasks of an agent wait, of any supervisor."""
        self._way(notice.subject.partition(".")[2]).shut_until = self._now() + _BEHIND_S

    async def is_open(self, agent_id: str) -> bool:
        """Return whether a task of *agent_id* may go straight to TASKS now; it is taken to do so."""
        way = self._way(agent_id)
        if way.room <= 0 and self._now() >= way.shut_until:
            # All that wait share one answer; those that find it used up ask no more, as their agent is busy.
            way.asking = way.asking or asyncio.create_task(self._ask(agent_id, way))
            try:
                await asyncio.shield(way.asking)
            except TaskloreError as error:
                log.info("room_unknown", agent=agent_id, error=str(error))
                return True
        if way.room <= 0 or self._now() < way.shut_until:
            return False
        way.room -= 1
        return True

    async def _ask(self, agent_id: str, way: _Way) -> None:
        try:
            way.room = await self.room.ask(agent_id)
        finally:
            way.asking = None

    async def note_waiting(self, agent_id: str) -> None:
        """Let later tasks of *agent_id* wait behind one that was put into WAITING, and have it moved."""
        way = self._way(agent_id)
        now = self._now()
        way.shut_until = now + _BEHIND_S
        way.room = 0
        if now - way.noticed_at >= NOTICE_S / 10:
            way.noticed_at = now
            await self._link.client.publish(subjects.waits(agent_id))

    def _way(self, agent_id: str) -> _Way:
        return self._ways.setdefault(agent_id, _Way())


async def open_gate(link: Link, room: Room) -> Gate:
    """Return a gate that hears for which agents tasks of any supervisor wait."""
    gate = Gate(link, room)
    await link.client.subscribe(subjects.WAITS_ANY, cb=gate.hear)
    return gate
