"""The queue mover: it moves waiting tasks into TASKS, as many as there is room for, by turns.

One supervisor does so at a time, under a lease; while the store of leases is away, each does. That harms nothing: a
task is moved under its message id, which TASKS takes once, and removed from WAITING behind that. A queue mover that
dies in between leaves messages that the next one moves again.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import structlog
from nats.aio.msg import Msg
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.admission.limits import Shares
from tasklore.contracts.cadence import until_look
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    MessageTooLarge,
    TaskloreError,
)
from tasklore.contracts.identifiers import tenant_token
from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch
from tasklore.runtime.messaging.direct import Stored, open_direct_reads
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.supervisor.admission.gate import NOTICE_S, OVER
from tasklore.supervisor.admission.lanes import PRIORITIES, Lane
from tasklore.supervisor.admission.room import MovedTasks, Room
from tasklore.supervisor.admission.waiting_messages import WaitingMessages

log = structlog.get_logger(__name__)

#: The key of the lease.
_LEASE = keys.budget("admission")
#: Milliseconds after which another queue mover goes on for one that fell silent; seconds between renewals, and between
#: looks of the others at whether it still leads: one of them begins within three seconds of its end.
_LEASE_MS = 2_000
_RENEW_S = 0.5
_ASK_S = 1.0
#: Seconds between looks while tasks wait and while none does, and after an error.
_PACE_S = 0.005
_IDLE_S = 1.0
_PAUSE_S = 0.5
#: The most seconds between questions for room where there is none, and how much longer each pause is than the last.
_FULL_S = 0.25
_SLOWER = 1.2
#: Pages of new messages read in one turn, and tasks moved at once.
_PAGES = 16
_MOVED_AT_ONCE = 256
#: Of this many places one is for a lower priority that has waited for this part of its longest time.
_ONE_IN = 4
_LATE_FROM = 0.8

Lanes = dict[str, Lane]


class WaitingQueueMover:
    """Moves what waits; `run` until `drain`.

    Args:
        link: The connection to NATS.
        redis: The store of the lease.
        outbox: Where tasks are published.
        room: How many more tasks of an agent TASKS may take.
        holder: A name of this process that no other has.
        read_shares: Reads the shares of tenants.
    """

    def __init__(
        self,
        link: Link,
        redis: Redis,
        outbox: Outbox,
        room: Room,
        *,
        holder: str,
        read_shares: Callable[[], Awaitable[Shares]],
    ) -> None:
        self._link = link
        self._batch = CommandBatch(redis, _RENEW_S)
        self._outbox = outbox
        self._room = room
        self._holder = holder.encode()
        self._read_shares = read_shares
        self._weights: dict[str, float] = {}
        self._longest_wait_s = dict(PRIORITIES)
        self._stopped = False
        self._leading = asyncio.Event()
        self._wake = asyncio.Event()
        self._agents: dict[str, Lanes] = {}
        self._noticed_at: dict[str, float] = defaultdict(float)
        self._moved: dict[str, MovedTasks] = defaultdict(MovedTasks)
        #: By agent: how often in a row there was no room, and until when it is not asked again.
        self._full: dict[str, tuple[int, float]] = {}
        self._rounds = 0

    async def run(self) -> None:
        """Serve until `drain`."""

        async def hear(notice: Msg) -> None:
            if notice.data != OVER:
                self._wake.set()

        listening = await self._link.client.subscribe(subjects.WAITS_ANY, cb=hear)
        leading = asyncio.create_task(self._keep_lease())
        try:
            while not self._stopped:
                await self._leading.wait()
                try:
                    async with open_direct_reads(self._link, subjects.WAITING) as reads:
                        await self._drive(WaitingMessages(self._link, reads))
                except TaskloreError as error:
                    log.warning("admission_interrupted", error=str(error))
                    await asyncio.sleep(_PAUSE_S)
        finally:
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
            if not self._link.client.is_closed:
                await listening.unsubscribe()

    async def drain(self) -> None:
        """Move no more, and let another queue mover begin at once."""
        self._stopped = True
        self._wake.set()
        if self._leading.is_set():
            with contextlib.suppress(MemoryUnavailable):
                if (await self._batch.run([("GET", _LEASE)]))[0] == self._holder:
                    await self._batch.run([("DEL", _LEASE)])
        # Whoever waits for the lease has nothing to wait for.
        self._leading.set()

    def look_soon(self) -> None:
        """Look now."""
        self._wake.set()

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _keep_lease(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stopped:
            try:
                is_leading = await self._claim()
                if is_leading:
                    shares = await self._read_shares()
                    self._weights = {
                        tenant_token(name): weight
                        for name, weight in shares.weights.items()
                    }
                    self._longest_wait_s = PRIORITIES | dict(shares.longest_wait_s)
            except MemoryUnavailable:
                # Nobody can say who leads: then all do.
                is_leading = True
            if is_leading:
                self._leading.set()
                await asyncio.sleep(_RENEW_S)
            else:
                self._leading.clear()
                await asyncio.sleep(until_look(loop.time(), _ASK_S))

    async def _claim(self) -> bool:
        claim = ("SET", _LEASE, self._holder, "NX", "GET", "PX", _LEASE_MS)
        holder = (await self._batch.run([claim]))[0]
        if holder == self._holder:
            await self._batch.run([("PEXPIRE", _LEASE, _LEASE_MS)])
        return holder in (None, self._holder)

    async def _drive(self, messages: WaitingMessages) -> None:
        """Move tasks for as long as this queue mover leads."""
        self._agents.clear()
        while self._leading.is_set() and not self._stopped:
            self._wake.clear()
            if not self._agents:
                await messages.find_stream()
            async for message in messages.read_new(_PAGES):
                self._note(message)
            await asyncio.gather(
                *(self._serve(messages, agent_id) for agent_id in list(self._agents))
            )
            await self._rest(_PACE_S if self._agents else _IDLE_S)

    def _note(self, message: Stored) -> None:
        try:
            agent_id, priority, token, _ = subjects.read_waiting(message.subject)
        except InvalidInput:
            priority = ""
        if priority not in PRIORITIES:
            # The filler of a stream that is turned over, or a message of another program, which stays there.
            log.debug("not_a_waiting_task", subject=message.subject)
            return
        lanes = self._agents.setdefault(agent_id, {})
        if priority not in lanes:
            lanes[priority] = Lane(agent_id, priority)
        lanes[priority].arrive(
            token,
            message.sequence,
            datetime.fromisoformat(message.stored_at).timestamp(),
        )

    async def _serve(self, messages: WaitingMessages, agent_id: str) -> None:
        """Move as many tasks of *agent_id* as there is room for."""
        lanes = self._agents[agent_id]
        loop = asyncio.get_running_loop()
        if not any(lanes.values()):
            del self._agents[agent_id]
            await self._link.client.publish(subjects.waits(agent_id), OVER)
            return
        if loop.time() - self._noticed_at[agent_id] >= NOTICE_S:
            self._noticed_at[agent_id] = loop.time()
            await self._link.client.publish(subjects.waits(agent_id))
        times, until = self._full.get(agent_id, (0, 0.0))
        if loop.time() < until:
            return
        room = min(
            _MOVED_AT_ONCE, await self._room.ask(agent_id, self._moved[agent_id])
        )
        if room <= 0:
            self._full[agent_id] = (
                min(times + 1, 100),
                loop.time() + min(_FULL_S, _PACE_S * _SLOWER**times),
            )
            return
        self._full.pop(agent_id, None)
        present = [lanes[priority] for priority in PRIORITIES if lanes.get(priority)]
        chosen = await messages.fetch(self._choose(present, room))
        await asyncio.gather(*(self._move(message) for message in chosen))
        noted = self._room.note(self._moved[agent_id], len(chosen))
        removals = [
            removal for lane in present for removal in lane.removals(messages.cursor)
        ]
        await asyncio.gather(
            noted, *(self._remove(subject, sequence) for subject, sequence in removals)
        )

    def _choose(self, lanes: list[Lane], room: int) -> list[int]:
        """Take at most *room* tasks: by priority, but for those that have waited for too long."""
        self._rounds += 1
        found: list[int] = []
        late = room // _ONE_IN or int(self._rounds % _ONE_IN == 0)
        now = datetime.now(UTC).timestamp()
        for lane in reversed(lanes[1:]):
            late_s = _LATE_FROM * self._longest_wait_s[lane.priority]
            while (
                len(found) < late
                and (since := lane.waits_since()) is not None
                and now - since > late_s
            ):
                found += filter(None, [lane.take_oldest(self._weights)])
        for lane in lanes:
            while (
                len(found) < room and (sequence := lane.take(self._weights)) is not None
            ):
                found.append(sequence)
        return found

    async def _move(self, message: Stored) -> None:
        agent_id, _, _, task_name = subjects.read_waiting(message.subject)
        headers = {
            name: value
            for name, value in message.headers.items()
            if not name.startswith("Nats-")
        }
        message_id = message.headers.get(
            subjects.MESSAGE_ID_HEADER, f"waiting:{message.sequence}"
        )
        subject = subjects.task(agent_id, task_name)
        try:
            await self._outbox.put(
                subject, message.body, message_id, headers=headers, waits_when_full=True
            )
        except MessageTooLarge as error:
            log.warning(
                "not_admitted", subject=subject, message_id=message_id, error=str(error)
            )

    async def _remove(self, subject: str, sequence: int) -> None:
        await ask_jetstream(
            self._link.client,
            f"STREAM.PURGE.{subjects.WAITING}",
            {"filter": subject, "seq": sequence},
        )
