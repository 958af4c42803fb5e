"""The desk of admission: it moves waiting tasks into TASKS, as many as there is room for, by turns.

One supervisor does so at a time, under a lease; while the store of leases is away, each does. That harms nothing: a
task is moved under its message id, which TASKS takes once, and removed from WAITING behind that. A desk that dies in
between leaves messages that the next one moves again.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import structlog
from nats.aio.msg import Msg
from redis.asyncio import Redis
from redis.exceptions import RedisError

from contracts import subjects
from contracts.admission.limits import Shares
from contracts.errors import MemoryUnavailable, MessageTooLarge, TaskloreError
from contracts.identifiers import tenant_token
from memory import keys
from runtime.messaging.direct import DirectReads, Stored, open_direct_reads
from runtime.messaging.jetstream import ask_jetstream, ask_or_none
from runtime.messaging.link import Link
from runtime.messaging.outbox import Outbox
from supervisor.admission.gate import NOTICE_S
from supervisor.admission.lanes import PRIORITIES, Lane, Tenant
from supervisor.admission.room import Room

log = structlog.get_logger(__name__)

#: The key of the lease.
_LEASE = keys.budget("admission")
#: Milliseconds after which another desk goes on for one that fell silent; seconds between renewals.
_LEASE_MS, _RENEW_S = 2_000, 0.5
#: Seconds between looks while tasks wait and while none does, and after an error.
_PACE_S, _IDLE_S, _PAUSE_S = 0.005, 1.0, 0.5
#: Pages of new messages read in one turn, and tasks moved at once.
_PAGES, _MOVED_AT_ONCE = 16, 256
#: Messages that a desk reads one after another when it begins; of more it only asks who waits.
_READ_WHOLE = 20_000
#: Of this many places one is for a lower priority that has waited for too long.
_ONE_IN = 4

Lanes = dict[str, Lane]


class AdmissionDesk:
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
        self._redis = redis
        self._outbox = outbox
        self._room = room
        self._holder = holder.encode()
        self._read_shares = read_shares
        self._weights: dict[str, float] = {}
        self._longest_wait_s = dict(PRIORITIES)
        self._leads = self._stopped = False
        self._wake = asyncio.Event()
        self._agents: dict[str, Lanes] = {}
        self._cursor = 0
        self._noticed_at: dict[str, float] = defaultdict(float)
        self._rounds = 0

    async def run(self) -> None:
        """Serve until `drain`."""

        async def hear(_notice: Msg) -> None:
            self._wake.set()

        listening = await self._link.client.subscribe(subjects.WAITS_ANY, cb=hear)
        leading = asyncio.create_task(self._keep_lease())
        try:
            while not self._stopped:
                if not self._leads:
                    await asyncio.sleep(_RENEW_S)
                    continue
                try:
                    async with open_direct_reads(self._link, subjects.WAITING) as reads:
                        await self._drive(reads)
                except TaskloreError as error:
                    log.warning("admission_interrupted", error=str(error))
                    await asyncio.sleep(_PAUSE_S)
        finally:
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
            if not self._link.client.is_closed:
                await listening.unsubscribe()

    async def drain(self) -> None:
        """Move no more, and let another desk begin at once."""
        self._stopped = True
        self._wake.set()
        if self._leads:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                async with asyncio.timeout(_RENEW_S):
                    if await self._redis.get(_LEASE) == self._holder:
                        await self._redis.delete(_LEASE)

    def look_soon(self) -> None:
        """Look now."""
        self._wake.set()

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _keep_lease(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_RENEW_S):
                    self._leads = await self._claim()
                shares = await self._read_shares()
                self._weights = {tenant_token(name): weight for name, weight in shares.weights.items()}
                self._longest_wait_s = PRIORITIES | dict(shares.longest_wait_s)
            except (RedisError, OSError, TimeoutError, MemoryUnavailable):
                # Nobody can say who leads: then all do.
                self._leads = True
            await asyncio.sleep(_RENEW_S)

    async def _claim(self) -> bool:
        if await self._redis.set(_LEASE, self._holder, nx=True, px=_LEASE_MS):
            return True
        return bool(await self._redis.get(_LEASE) == self._holder and await self._redis.pexpire(_LEASE, _LEASE_MS))

    async def _drive(self, reads: DirectReads) -> None:
        """Move tasks for as long as this desk leads."""
        await self._find_waiting()
        while self._leads and not self._stopped:
            self._wake.clear()
            await self._read_new(reads)
            await asyncio.gather(*(self._serve(reads, agent_id) for agent_id in list(self._agents)))
            await self._rest(_PACE_S if self._agents else _IDLE_S)

    async def _find_waiting(self) -> None:
        """Learn from the stream who waits: what comes later is read behind the last message of now.

        Where not much lies there, all of it is read.
        """
        self._agents.clear()
        client, call = self._link.client, f"STREAM.INFO.{subjects.WAITING}"
        state = (await ask_jetstream(client, call))["state"]
        if int(state["messages"]) <= _READ_WHOLE:
            self._cursor = max(1, int(state["first_seq"]))
            return
        self._cursor = int(state["last_seq"]) + 1
        offset = 0
        while True:
            question = {"subjects_filter": subjects.WAITING_ALL, "offset": offset}
            info = await ask_jetstream(client, call, question)
            found = info["state"].get("subjects") or {}
            for subject in found:
                await self._note(subject, None)
            offset += len(found)
            if not found or offset >= int(info.get("total", 0)):
                return

    async def _read_new(self, reads: DirectReads) -> None:
        for _ in range(_PAGES):
            page = await reads.page(seq=self._cursor, next_by_subj=subjects.WAITING_ALL)
            for message in page.found:
                await self._note(message.subject, message)
                self._cursor = message.sequence + 1
            if not page.following:
                return

    async def _note(self, subject: str, message: Stored | None) -> None:
        parts = subject.split(".")
        if len(parts) != 5 or parts[2] not in PRIORITIES:
            # The filler of a stream that is turned over, or of another program.
            log.info("not_a_waiting_task", subject=subject)
            return
        _, agent_id, priority, token, _ = parts
        lanes = self._agents.setdefault(agent_id, {})
        if priority not in lanes:
            lanes[priority] = Lane(agent_id, priority)
        lanes[priority].arrive(token, message)

    async def _serve(self, reads: DirectReads, agent_id: str) -> None:
        """Move as many tasks of *agent_id* as there is room for."""
        lanes, loop = self._agents[agent_id], asyncio.get_running_loop()
        if not any(lanes.values()):
            del self._agents[agent_id]
            return
        if loop.time() - self._noticed_at[agent_id] >= NOTICE_S:
            self._noticed_at[agent_id] = loop.time()
            await self._link.client.publish(subjects.waits(agent_id))
        room = min(_MOVED_AT_ONCE, await self._room.ask(agent_id))
        if room <= 0:
            return
        present = [lanes[priority] for priority in PRIORITIES if lanes.get(priority)]
        for lane in present:
            tenants, batch = lane.missing(room)
            await asyncio.gather(*(self._fill(reads, lane, tenant, batch) for tenant in tenants))
        await asyncio.gather(*(self._move(agent_id, message) for message in self._choose(present, room)))
        removals = [removal for lane in present for removal in lane.removals(self._cursor)]
        await asyncio.gather(*(self._remove(subject, sequence) for subject, sequence in removals))

    def _choose(self, lanes: list[Lane], room: int) -> list[Stored]:
        """Take at most *room* messages: by priority, but for those that have waited for too long."""
        self._rounds += 1
        found: list[Stored] = []
        late = room // _ONE_IN or int(self._rounds % _ONE_IN == 0)
        for lane in reversed(lanes[1:]):
            while (
                len(found) < late and self._is_late(lane) and (message := lane.take_oldest(self._weights)) is not None
            ):
                found.append(message)
        for lane in lanes:
            while len(found) < room and (message := lane.take(self._weights)) is not None:
                found.append(message)
            if len(lane):
                # More of it is read first.
                break
        return found

    def _is_late(self, lane: Lane) -> bool:
        stored_at = lane.oldest_at()
        if stored_at is None:
            return False
        waited_s = (datetime.now(UTC) - datetime.fromisoformat(stored_at)).total_seconds()
        return waited_s > self._longest_wait_s[lane.priority]

    async def _fill(self, reads: DirectReads, lane: Lane, tenant: Tenant, batch: int) -> None:
        request = {"seq": tenant.after + 1, "next_by_subj": tenant.subject}
        page = await reads.page(**request, batch=batch)
        if not page.found:
            # A copy that lags behind has nothing either: only the leader knows.
            if await ask_or_none(self._link.client, f"STREAM.MSG.GET.{subjects.WAITING}", request) is not None:
                return
            tenant.seen = 0
        lane.fill(tenant, page.found, has_more=page.following > 0)

    async def _move(self, agent_id: str, message: Stored) -> None:
        headers = {name: value for name, value in message.headers.items() if not name.startswith("Nats-")}
        message_id = message.headers.get(subjects.MESSAGE_ID_HEADER, f"waiting:{message.sequence}")
        subject = subjects.task(agent_id, message.subject.rpartition(".")[2])
        try:
            await self._outbox.put(subject, message.body, message_id, headers=headers, waits_when_full=True)
        except MessageTooLarge as error:
            log.warning("not_admitted", subject=subject, message_id=message_id, error=str(error))

    async def _remove(self, subject: str, sequence: int) -> None:
        await ask_jetstream(self._link.client, f"STREAM.PURGE.{subjects.WAITING}", {"filter": subject, "seq": sequence})
