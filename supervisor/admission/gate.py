"""The gate: a task goes straight to TASKS where nothing waits, and into WAITING while its agent is busy.

A notice `waits.{agent}` shuts it at every supervisor, and wakes the queue mover that moves what waits; the queue mover
opens it again with the same notice that says `OVER`, once it has moved all. Then the room in TASKS decides.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import nats.errors
import structlog
from nats.aio.msg import Msg

from tasklore.contracts import subjects
from tasklore.contracts.errors import TaskloreError
from tasklore.runtime.messaging.link import Link
from tasklore.supervisor.admission.room import Room

log = structlog.get_logger(__name__)

#: Seconds for which tasks wait behind one of which nothing more is heard, as when its queue mover died: longer than
#: notices are apart.
_BEHIND_S = 0.6
#: What a notice says when none waits any more. Processes of 0.2 take it for another notice, and let tasks wait longer.
OVER = b"over"
#: Seconds between two notices of one supervisor that a task of an agent waits.
_APART_S = 0.02
#: Seconds between notices of the queue mover on one agent.
NOTICE_S = 0.2


@dataclass(slots=True)
class _Way:
    """The way to an agent: shut until then; `room` is how many more tasks may go straight."""

    shut_until: float = 0.0
    room: int = 0
    noticed_at: float = 0.0
    asking: "asyncio.Task[None] | None" = None
    noticing: "asyncio.Task[None] | None" = None


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
        """Heed a notice that tasks of an agent wait, or that none does any more, of any supervisor."""
        way = self._way(notice.subject.partition(".")[2])
        if notice.data != OVER:
            way.shut_until = self._now() + _BEHIND_S
        elif way.noticing is None:
            # Otherwise a task of ours waits of which the queue mover has not been told: it says so again after that.
            way.shut_until = 0.0

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
        if now - way.noticed_at >= _APART_S:
            await self._notice(agent_id, way)
        elif way.noticing is None:
            # The queue mover may have looked since, and rests where it found nothing.
            way.noticing = asyncio.create_task(self._notice_later(agent_id, way))

    async def _notice_later(self, agent_id: str, way: _Way) -> None:
        await asyncio.sleep(_APART_S)
        way.noticing = None
        try:
            await self._notice(agent_id, way)
        except nats.errors.Error as error:
            log.info("notice_not_given", agent=agent_id, error=str(error))

    async def _notice(self, agent_id: str, way: _Way) -> None:
        way.noticed_at = self._now()
        await self._link.client.publish(subjects.waits(agent_id))

    def _way(self, agent_id: str) -> _Way:
        return self._ways.setdefault(agent_id, _Way())


async def open_gate(link: Link, room: Room) -> Gate:
    """Return a gate that hears for which agents tasks of any supervisor wait."""
    gate = Gate(link, room)
    await link.client.subscribe(subjects.WAITS_ANY, cb=gate.hear)
    return gate
