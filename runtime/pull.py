"""The pull engine: takes from a durable consumer exactly what there are free slots for, and never loses its way.

It knows a stream, a durable and slots; what a message means is the business of the desk it is given.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import nats.errors
import structlog
from nats.aio.subscription import Subscription

from contracts.errors import TaskloreError
from runtime.leases import Leases
from runtime.link import Arrival, Link, read_headers
from runtime.streams import Source

log = structlog.get_logger(__name__)

#: Seconds a pull request stands at the server; it costs one small message each time it runs out.
STANDING_S = 30.0
#: Seconds between the server's signs of life on a standing request.
SIGN_OF_LIFE_S = 5.0
#: Seconds without any sign after which a request is taken for lost (two signs and a half).
LOST_S = 12.5
#: Seconds between attempts to find a consumer that is missing: first, and at most.
_PAUSE_S, _PAUSE_CAP_S = 0.1, 2.0

_ACK = b"+ACK"
_NAK = b"-NAK"
_ACK_SUBJECT = "$JS.ACK."
_GONE = {"409", "503", "400"}


@dataclass(slots=True, eq=False)
class Delivery:
    """One message under lease. `deliveries` counts from 1; `headers` is None when there are none."""

    subject: str
    body: bytes
    headers: dict[str, str] | None
    reply: str
    deliveries: int
    sequence: int
    arrived_at: float


class Desk(Protocol):
    """Where deliveries are worked on; each one ends in `settle` or `hand_back` of its engine."""

    async def work(self, batch: list[Delivery], line: "PullEngine") -> None:
        """Take *batch*, what one read of the socket brought to *line*; returns when its last message is dealt with."""


class PullMeter(Protocol):
    """What an engine counts."""

    def count_delivery(self, *, redelivered: bool) -> None:
        """Note that a message arrived, for the first time or again."""

    def count_consumer_missing(self) -> None:
        """Note that the consumer or its stream was not there."""


class PullEngine:
    """Reads one source into at most *slots* open deliveries; `run` until `stop`.

    *heal* recreates a missing consumer or stream where that is allowed, and raises otherwise.
    """

    def __init__(
        self,
        link: Link,
        source: Source,
        slots: int,
        desk: Desk,
        leases: Leases,
        meter: PullMeter,
        heal: Callable[[], Awaitable[None]],
    ) -> None:
        self._link = link
        self._source = source
        self._slots = slots
        self._desk = desk
        self._leases = leases
        self._meter = meter
        self._heal = heal
        self._loop = asyncio.get_running_loop()
        self._inbox = link.new_inbox()
        self._request = f"$JS.API.CONSUMER.MSG.NEXT.{source.stream}.{source.durable}"
        self._held: dict[str, Delivery] = {}
        self._arrived: list[Delivery] = []
        self._wanted = 0
        self._failures = 0
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._stopping = False
        self._missing = False
        self._heard_at = self._loop.time()
        self._group: asyncio.TaskGroup | None = None

    @property
    def held(self) -> int:
        """Deliveries that are open: under lease, neither settled nor handed back."""
        return len(self._held)

    @property
    def ready(self) -> bool:
        """Whether the consumer is there and the connection stands."""
        return not self._missing and self._link.is_connected

    def vital_sign(self) -> tuple[bool, str]:
        """Return whether the loop makes progress or is provably idle, and a word on it."""
        silent_s = self._loop.time() - self._heard_at
        if self._stopping:
            return True, "draining"
        if not self._link.is_connected:
            return True, "reconnecting"
        return silent_s < 2 * LOST_S or len(self._held) >= self._slots, f"last heard {silent_s:.1f} s ago"

    async def run(self) -> None:
        """Pull until `stop`; returns when the last open delivery is dealt with."""
        listening = await self._link.listen(f"{self._inbox}.*", self._hear)
        async with asyncio.TaskGroup() as group:
            self._group = group
            while not self._stopping:
                pause_s = await self._ask()
                try:
                    async with asyncio.timeout(pause_s):
                        await self._wake.wait()
                except TimeoutError:
                    continue
                finally:
                    self._wake.clear()
            await self._silence(listening)

    def stop(self) -> None:
        """Take nothing more; what has arrived is handed back, what runs may finish."""
        self._stopping = True
        self._wake.set()

    async def emptied(self) -> None:
        """Return when no delivery is open; after `stop` none is added."""
        while self._held:
            self._settled.clear()
            await self._settled.wait()

    def reconnected(self) -> None:
        """Forget requests of the old connection, which the server has forgotten too."""
        self._wanted = 0
        self._failures = 0
        self._heard_at = self._loop.time()
        self._wake.set()

    def settle(self, delivery: Delivery) -> None:
        """Tell the server that *delivery* is dealt with for good."""
        self._close(delivery, _ACK)

    def hand_back(self, delivery: Delivery, delay_s: float = 0.0) -> None:
        """Give *delivery* back, to be offered again after *delay_s* seconds."""
        word = _NAK if delay_s <= 0 else b'-NAK {"delay": %d}' % int(delay_s * 1e9)
        self._close(delivery, word)

    def _close(self, delivery: Delivery, word: bytes) -> None:
        self._leases.drop(delivery.reply)
        if self._held.pop(delivery.reply, None) is None:
            return
        self._wake.set()
        if not self._held:
            self._settled.set()
        # A word lost with the connection means another offer after ack_wait; the ledger knows what became of it.
        self._link.send(delivery.reply, word)

    async def _ask(self) -> float:
        """Ask for what fits into the free slots; return seconds until the next look."""
        now = self._loop.time()
        if self._wanted and now - self._heard_at > LOST_S and self._link.is_connected:
            log.warning("pull_request_lost", durable=self._source.durable)
            self._wanted = 0
            self._failures += 1
        if self._failures and not self._wanted and self._link.is_connected:
            await self._find_again()
        free = self._slots - len(self._held) - self._wanted
        if free > 0 and self._link.is_connected and (not self._wanted or free >= self._slots // 2):
            self._send_request(free)
        return SIGN_OF_LIFE_S

    def _send_request(self, batch: int) -> None:
        if not self._wanted:
            self._heard_at = self._loop.time()
        order = {"batch": batch, "expires": int(STANDING_S * 1e9), "idle_heartbeat": int(SIGN_OF_LIFE_S * 1e9)}
        self._link.send(self._request, json.dumps(order).encode(), f"{self._inbox}.s")
        self._wanted += batch

    async def _find_again(self) -> None:
        """Heal a missing consumer, with a jittered pause that grows while it cannot be healed."""
        try:
            await self._heal()
        except TaskloreError as error:
            self._missing = True
            pause_s = random.uniform(0.5, 1.0) * min(_PAUSE_CAP_S, _PAUSE_S * 2**self._failures)  # noqa: S311 - jitter
            log.warning("consumer_missing", durable=self._source.durable, error=str(error), pause_s=round(pause_s, 2))
            self._failures = min(self._failures + 1, 10)
            await asyncio.sleep(pause_s)
        else:
            self._failures = 0
            self._missing = False

    def _hear(self, arrival: Arrival) -> None:
        self._heard_at = self._loop.time()
        headers = read_headers(arrival.headers)
        if headers and "Status" in headers and not arrival.reply.startswith(_ACK_SUBJECT):
            self._hear_status(headers)
            return
        self._wanted = max(0, self._wanted - 1)
        self._missing = False
        delivery = _delivery_of(arrival, headers, self._heard_at)
        if self._stopping or len(self._held) >= self._slots:
            self._link.send(delivery.reply, _NAK)
            return
        self._held[delivery.reply] = delivery
        self._leases.hold(delivery.reply)
        self._meter.count_delivery(redelivered=delivery.deliveries > 1)
        if not self._arrived:
            self._loop.call_soon(self._deal)
        self._arrived.append(delivery)

    def _hear_status(self, headers: dict[str, str]) -> None:
        status = headers["Status"]
        if status == "100":
            self._missing = False
            return
        left = int(headers.get("Nats-Pending-Messages", self._wanted))
        self._wanted = max(0, self._wanted - left)
        if status in _GONE and headers.get("Description", "") not in ("Exceeded MaxWaiting", "Server Shutdown"):
            self._wanted = 0
            self._failures += 1
            self._meter.count_consumer_missing()
        self._wake.set()

    def _deal(self) -> None:
        batch, self._arrived = self._arrived, []
        if self._group is not None and batch:
            self._group.create_task(self._work(batch))
        self._wake.set()

    async def _work(self, batch: list[Delivery]) -> None:
        try:
            await self._desk.work(batch, self)
        except Exception:
            log.exception("desk_failed", durable=self._source.durable)
            for delivery in batch:
                self.hand_back(delivery, 1.0)

    async def _silence(self, listening: Subscription) -> None:
        if self._link.is_connected:
            try:
                await listening.unsubscribe()
            except (nats.errors.Error, OSError) as error:
                log.info("unsubscribe_failed", error=str(error) or type(error).__name__)


def _delivery_of(arrival: Arrival, headers: dict[str, str] | None, arrived_at: float) -> Delivery:
    """Return *arrival* with what its acknowledgement subject tells: attempts and sequence (JetStream's ack format)."""
    tokens = arrival.reply.split(".")
    # Newer servers put domain and account before the stream name.
    first = 6 if len(tokens) >= 11 else 4
    return Delivery(
        subject=arrival.subject,
        body=arrival.body,
        headers=headers,
        reply=arrival.reply,
        deliveries=int(tokens[first]),
        sequence=int(tokens[first + 1]),
        arrived_at=arrived_at,
    )
