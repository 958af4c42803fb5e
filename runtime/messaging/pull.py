"""The pull engine: takes from a durable consumer exactly what there are free slots for, and never loses its way.

It knows a stream, a durable and slots; what a message means is the business of the handler it is given.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import nats.errors
import structlog
from nats.aio.subscription import Subscription

from tasklore.contracts import subjects
from tasklore.contracts.errors import TaskloreError
from tasklore.runtime.access import access_of
from tasklore.runtime.messaging.delivery import Delivery, delivery_of
from tasklore.runtime.messaging.leases import Leases
from tasklore.runtime.messaging.lent_slots import LentSlots
from tasklore.runtime.messaging.link import Arrival, Link, read_headers
from tasklore.runtime.messaging.streams import PullSource

if TYPE_CHECKING:
    from tasklore.runtime.metrics import Metrics

__all__ = ["Delivery", "DeliveryHandler", "PullEngine"]

log = structlog.get_logger(__name__)

#: Seconds a pull request stands at the server, whose sign of life its end is. It costs two small messages each time;
#: where the server does not see that nobody listens any more, whoever leaves waits for it, and the requests of one that
#: was killed take for so long what then waits for `ack_wait`.
STANDING_S = 1.5
#: Seconds beyond that after which a request is taken for gone though nothing was heard of it.
_LATE_S = 1.0
#: Seconds without any sign after which a request is taken for lost: two ends and a half, and healed within five.
LOST_S = 3.75
#: Seconds without a turn of the loop, or a word of the server, after which the engine counts as stuck.
STUCK_S = 8.0
#: Seconds at the end in which it is found out whether the words that were held back may still be said.
_LAST_LOOK_S = 2.0
#: Seconds between attempts to find a consumer that is missing: first, and at most.
_PAUSE_S = 0.1
_PAUSE_CAP_S = 2.0

_ACK = b"+ACK"
_NAK = b"-NAK"
#: Acknowledges and asks for more in one message: the server books the first before it looks at the second.
_NEXT = b"+NXT "
_ACK_SUBJECT = "$JS.ACK."
_GONE = {"409", "503", "400"}


class DeliveryHandler(Protocol):
    """Where deliveries are worked on; each one ends in `settle` or `hand_back` of its engine."""

    async def work(self, batch: list[Delivery], line: "PullEngine") -> None:
        """Take *batch*, what one read of the socket brought to *line*; returns when its last message is dealt with."""


class PullEngine:
    """Reads one source into at most *slots* open deliveries; `run` until `stop`.

    *heal* returns when the consumer was made, having recreated it or its stream where that is allowed, and raises
    otherwise. A delivery of an earlier consumer is never acknowledged: in a stream that was made anew its number may
    be that of another message, which the acknowledgement would remove.
    """

    def __init__(
        self,
        *,
        link: Link,
        source: PullSource,
        slots: int,
        handler: DeliveryHandler,
        leases: Leases,
        meter: "Metrics",
        heal: Callable[[], Awaitable[str]],
    ) -> None:
        self._link = link
        self._source = source
        self._slots = slots
        self._handler = handler
        self._leases = leases
        self._meter = meter
        self._heal = heal
        self._loop = asyncio.get_running_loop()
        self._inbox = link.new_inbox()
        self._request = f"$JS.API.CONSUMER.MSG.NEXT.{source.stream}.{source.durable}"
        self._held: dict[str, Delivery] = {}
        self._orphans: set[Delivery] = set()
        self._lent = LentSlots(lambda: self.held < self._slots)
        self._arrived: list[Delivery] = []
        self._words: list[tuple[str, bytes]] = []
        self._made_at: str | None = None
        self._is_unsure = True
        self._is_paused = False
        self._wanted = 0
        # Behind the service import of an account, which a role comes with, the server does not see lost interest.
        self._is_outlived = access_of().role is not None
        self._stands_until = self._doubted_until = 0.0
        self._failures = 0
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._stopping = False
        self._missing = False
        self._heard_at = self._turned_at = self._loop.time()
        self._group: asyncio.TaskGroup | None = None

    @property
    def held(self) -> int:
        """Deliveries that take a slot: open ones, but for those that lend theirs."""
        return self.open - len(self._lent)

    @property
    def open(self) -> int:
        """Deliveries under lease that are neither settled nor handed back, and orphaned ones at work."""
        return len(self._held) + len(self._orphans)

    @property
    def ready(self) -> bool:
        """Whether the consumer is there and the connection stands."""
        return not self._missing and self._link.is_connected

    def vital_sign(self) -> tuple[bool, str]:
        """Return whether the loop makes progress or is provably idle, and a word on it."""
        now = self._loop.time()
        if self._stopping:
            return True, "draining"
        if not self._link.is_connected:
            return True, "reconnecting"
        if now - self._turned_at > STUCK_S:
            return False, f"the pull loop last turned {now - self._turned_at:.1f} s ago"
        silent_s = now - self._heard_at
        is_waiting = self._is_unsure or self._is_paused or self.held >= self._slots
        return is_waiting or silent_s < STUCK_S, f"last heard {silent_s:.1f} s ago"

    async def run(self) -> None:
        """Pull until `stop`; returns when the last open delivery is dealt with."""
        stream = self._source.stream
        durable = self._source.durable
        listening = [
            await self._link.listen(f"{self._inbox}.*", self._hear),
            await self._link.listen(
                subjects.stream_deleted(stream), self._hear_deleted
            ),
            await self._link.listen(
                subjects.consumer_deleted(stream, durable), self._hear_deleted
            ),
        ]
        async with asyncio.TaskGroup() as group:
            self._group = group
            while not self._stopping:
                self._turned_at = self._loop.time()
                timer = self._loop.call_later(await self._ask(), self._wake.set)
                await self._wake.wait()
                timer.cancel()
                self._wake.clear()
            await self._look_last()
            await self._outlast_requests()
            await self._silence(listening)

    def stop(self) -> None:
        """Take nothing more; hand back waiting deliveries, let running ones finish."""
        self._stopping = True
        self._wake.set()

    def pause(self, *, is_paused: bool) -> None:
        """Take nothing, hand back what still arrives, until called again with False."""
        self._is_paused = is_paused
        self._wake.set()

    async def emptied(self) -> None:
        """Return when no delivery takes a slot, the last words are said, as far as may be, and nothing comes any more.

        After `stop`, which keeps new ones out.
        """
        while self.open:
            self._settled.clear()
            await self._settled.wait()
        if self._words:
            await self._look_last()
        await self._outlast_requests()

    async def _outlast_requests(self) -> None:
        """Hand back what still comes until no request stands, where requests outlive who hears their answers.

        The server would give a message to one of them, and offer it to others only after `ack_wait`.
        """
        if not self._is_outlived:
            return
        try:
            async with asyncio.timeout_at(self._stands_until):
                while self._requests_stand and self._link.is_connected:
                    self._settled.clear()
                    await self._settled.wait()
        except TimeoutError:
            log.info("pull_requests_not_ended", durable=self._source.durable)

    @property
    def _requests_stand(self) -> bool:
        return self._wanted > 0 or self._loop.time() < self._doubted_until

    def reconnected(self) -> None:
        """Forget requests of the old connection, which the server has forgotten too; it may have lost its data."""
        self._heard_at = self._loop.time()
        self._doubt()

    def settle(self, delivery: Delivery) -> None:
        """Tell the server that *delivery* is dealt with for good."""
        self._close(delivery, _ACK)

    def hand_back(self, delivery: Delivery, delay_s: float = 0.0) -> None:
        """Give *delivery* back, to be offered again after *delay_s* seconds."""
        delivery.span.note({"tasklore.word": "handed_back"})
        word = _NAK if delay_s <= 0 else b'-NAK {"delay": %d}' % int(delay_s * 1e9)
        self._close(delivery, word)

    def forget(self, delivery: Delivery) -> None:
        """Acknowledge *delivery* no more: another worker has it by now."""
        delivery.span.note({"tasklore.word": "taken_over"})
        if self._release(delivery):
            self._wake.set()

    def lend(self, delivery: Delivery, *, anyway: bool = False) -> bool:
        """Give the slot of *delivery* to other tasks until `reclaim`; False when too many do, unless it is *anyway*."""
        is_open = delivery in self._orphans or delivery.reply in self._held
        if is_open and not self._lent.add(delivery, anyway=anyway):
            return False
        self._lent.give_back()
        self._wake_to_ask()
        return True

    async def reclaim(self, delivery: Delivery) -> None:
        """Return once *delivery* has a slot again, before any task that is not taken yet."""
        await self._lent.reclaim(delivery)

    def reclaim_now(self, delivery: Delivery) -> None:
        """Count the slot of *delivery* again, whether one is free or not: its run is about to end."""
        self._lent.discard(delivery)

    def _release(self, delivery: Delivery) -> bool:
        """Free the slot of *delivery*; return whether a word may be said on it: none on an orphan."""
        delivery.span.end()
        if delivery in self._orphans:
            self._free_orphans([delivery])
            return False
        self._leases.drop(delivery.reply)
        was_held = self._held.pop(delivery.reply, None) is not None
        self._lent.discard(delivery)
        self._note_freed()
        return was_held

    def _free_orphans(self, dealt_with: list[Delivery]) -> None:
        """Free the slots of the orphans among *dealt_with*."""
        self._orphans.difference_update(dealt_with)
        for delivery in dealt_with:
            self._lent.discard(delivery)
        self._wake.set()
        self._note_freed()

    def _note_freed(self) -> None:
        self._lent.give_back()
        if not self.open:
            self._settled.set()

    def _close(self, delivery: Delivery, word: bytes) -> None:
        if not self._release(delivery):
            return
        if not self._words:
            self._loop.call_soon(self._speak)
        self._words.append((delivery.reply, word))

    def _speak(self) -> None:
        """Send the acknowledgements of this turn of the loop; the last one requests as many as they made free."""
        if self._is_unsure:
            return
        words = self._words
        self._words = []
        # A word lost with the connection means another offer after ack_wait; the ledger knows what became of it.
        for reply, word in words:
            if word is not _ACK:
                self._link.send(reply, word)
        acknowledged = [reply for reply, word in words if word is _ACK]
        for reply in acknowledged[:-1]:
            self._link.send(reply, _ACK)
        if acknowledged:
            more = self._askable()
            if more:
                self._link.send(
                    acknowledged[-1], _NEXT + self._order(more), f"{self._inbox}.s"
                )
            else:
                self._link.send(acknowledged[-1], _ACK)
        self._wake_to_ask()

    async def _ask(self) -> float:
        """Ask for what fits into the free slots; return seconds until the next look."""
        now = self._loop.time()
        if self._wanted and now - self._heard_at > LOST_S and self._link.is_connected:
            log.warning("pull_request_lost", durable=self._source.durable)
            self._doubt()
        if self._is_unsure and self._link.is_connected:
            await self._find_again()
        if not self._words and (more := self._askable()):
            self._link.send(self._request, self._order(more), f"{self._inbox}.s")
        return STANDING_S if self._link.is_connected else STUCK_S / 2

    def _askable(self) -> int:
        """Return how many messages to request now: none while half of the slots are requested already."""
        if (
            self._stopping
            or self._is_paused
            or self._is_unsure
            or not self._link.is_connected
        ):
            return 0
        free = self._slots - self.held - self._wanted - self._lent.wanting
        return (
            free if free > 0 and (not self._wanted or free >= self._slots // 2) else 0
        )

    def _wake_to_ask(self) -> None:
        """Turn the loop when there is something to request: a turn for nothing costs as much as a task's way here."""
        if self._askable():
            self._wake.set()

    def _order(self, batch: int) -> bytes:
        """Return the body of a pull request for *batch* messages, and count them as wanted."""
        if not self._wanted:
            self._heard_at = self._loop.time()
        self._wanted += batch
        self._stands_until = self._loop.time() + STANDING_S + _LATE_S
        order = {"batch": batch, "expires": int(STANDING_S * 1e9)}
        return json.dumps(order).encode()

    def _doubt(self) -> None:
        """Say and ask nothing more until it is known that the consumer is still the one whose messages are held."""
        # They may stand all the same.
        self._doubted_until = self._stands_until
        self._wanted = 0
        self._is_unsure = True
        self._wake.set()

    async def _find_again(self) -> None:
        """Find or heal the consumer, with a jittered pause that grows while it cannot be found."""
        try:
            made_at = await self._heal()
        except TaskloreError as error:
            self._meter.count_consumer_missing()
            self._turned_at = self._loop.time()
            pause_s = random.uniform(0.5, 1.0) * min(  # noqa: S311 - jitter
                _PAUSE_CAP_S, _PAUSE_S * 2**self._failures
            )
            tell = log.info if self._missing else log.warning
            tell(
                "consumer_missing",
                durable=self._source.durable,
                error=str(error),
                pause_s=round(pause_s, 2),
            )
            self._missing = True
            self._failures = min(self._failures + 1, 10)
            await asyncio.sleep(pause_s)
            self._wake.set()
            return
        if self._made_at not in (None, made_at):
            log.warning(
                "consumer_made_anew",
                durable=self._source.durable,
                orphaned=len(self._held),
            )
            self._orphan()
        self._made_at = made_at
        self._failures = 0
        self._missing = self._is_unsure = False
        if self._words:
            self._speak()

    async def _look_last(self) -> None:
        """Find the consumer when the end comes in a time of doubt: words that are held back now are never said."""
        try:
            async with asyncio.timeout(_LAST_LOOK_S):
                while self._is_unsure and self._link.is_connected:
                    await self._find_again()
        except TimeoutError:
            log.warning(
                "consumer_not_found_at_end",
                durable=self._source.durable,
                words=len(self._words),
            )

    def _orphan(self) -> None:
        """Orphan held deliveries: each runs to its end in its slot and is reported, but can be acknowledged no more."""
        self._meter.count_orphaned(len(self._held) + len(self._words))
        self._words.clear()
        for reply in self._held:
            self._leases.drop(reply)
        self._orphans.update(self._held.values())
        self._held.clear()

    def _hear(self, arrival: Arrival) -> None:
        self._heard_at = self._loop.time()
        headers = read_headers(arrival.headers)
        if (
            headers
            and "Status" in headers
            and not arrival.reply.startswith(_ACK_SUBJECT)
        ):
            self._hear_status(headers)
            return
        self._wanted = max(0, self._wanted - 1)
        self._missing = False
        delivery = delivery_of(arrival, headers, self._heard_at)
        if self._stopping or self._is_paused or self.held >= self._slots:
            self._link.send(delivery.reply, _NAK)
            self._settled.set()
            return
        self._held[delivery.reply] = delivery
        self._leases.hold(delivery.reply)
        if not self._arrived:
            self._loop.call_soon(self._deal)
        self._arrived.append(delivery)

    def _hear_status(self, headers: dict[str, str]) -> None:
        status = headers["Status"]
        left = int(headers.get("Nats-Pending-Messages", self._wanted))
        self._wanted = max(0, self._wanted - left)
        self._settled.set()
        if status in _GONE and headers.get("Description", "") not in (
            "Exceeded MaxWaiting",
            "Server Shutdown",
        ):
            self._meter.count_consumer_missing()
            self._doubt()
        self._wake.set()

    def _hear_deleted(self, _advisory: Arrival) -> None:
        """Note that the consumer or its stream was deleted: with all slots full no request is there to be refused."""
        self._meter.count_consumer_missing()
        self._doubt()

    def _deal(self) -> None:
        batch = self._arrived
        self._arrived = []
        self._meter.count_deliveries(
            len(batch), redelivered=len([one for one in batch if one.deliveries > 1])
        )
        if self._group is not None and batch:
            self._group.create_task(self._work(batch))
        self._wake_to_ask()

    async def _work(self, batch: list[Delivery]) -> None:
        try:
            await self._handler.work(batch, self)
        except Exception:
            log.exception("desk_failed", durable=self._source.durable)
            for delivery in batch:
                self.hand_back(delivery, 1.0)
        finally:
            if self._orphans:
                self._free_orphans(batch)

    async def _silence(self, listening: list[Subscription]) -> None:
        for subscription in listening if self._link.is_connected else ():
            try:
                await subscription.unsubscribe()
            except (nats.errors.Error, OSError) as error:
                log.info("unsubscribe_failed", error=str(error) or type(error).__name__)
