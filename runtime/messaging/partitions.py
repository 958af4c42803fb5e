"""Ordered partitions of a stream: their messages are taken in one after the other, or set aside, and no more.

Work that holds a partition up has to be a matter of milliseconds. An acknowledgement leaves the
body in the stream's files until a user is forgotten, or the server begins new ones; who may not wait for that has
each message overwritten, at 5 to 20 ms of the server's disk.
"""

import functools
import random
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from pydantic_core import from_json

from tasklore.contracts import subjects
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    NotAccepted,
    TaskloreError,
)
from tasklore.contracts.identifiers import PARTITIONS, user_token
from tasklore.runtime.messaging.dead_letter import dead_letter
from tasklore.runtime.messaging.leases import Leases
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.runtime.messaging.signatures import Publishers, Unproven
from tasklore.runtime.messaging.streams import PullSource, declare_consumer

if TYPE_CHECKING:
    from tasklore.runtime.messaging.erasure import Eraser
    from tasklore.runtime.metrics import Metrics

log = structlog.get_logger(__name__)

#: Seconds until a message that a process took, and died over, goes to another; its partition waits for that.
ACK_WAIT_S = 10.0
#: Seconds after which a message is offered again that could not be taken in: about what a store needs to restart.
RETURN_S = 1.0
#: Offers of one message after which it is let go although the server did not erase it: it must not hold up the others.
MOST_ERASURES = 5

#: What is said in DEAD of a message that is none of ours, and of one that nobody proves to have published.
UNREADABLE = "unreadable"
_UNPROVEN = "unproven"
#: Characters of the longest user id that a header is made of.
_LONGEST_USER = 256

#: Takes one message in, as often as it comes; raises InvalidInput for what is none, and it is set aside, or
#: MemoryUnavailable or NotAccepted, and it is offered again.
Take = Callable[[Delivery], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Owner:
    """Names in dead letters: who set a message aside, for a listening agent or as a supervisor."""

    worker_id: str
    agent_id: str | None = None
    supervisor_id: str | None = None


async def set_aside(
    delivery: Delivery,
    error: InvalidInput,
    reason: str,
    whose: Owner,
    outbox: Outbox,
    meter: "Metrics",
) -> None:
    """Put the message of *delivery* into DEAD, with why.

    Raises:
        NotAccepted: DEAD does not take it.
    """
    letter = dead_letter(
        delivery,
        reason=reason,
        error=error,
        attempts=delivery.deliveries,
        generation=delivery.generation,
        agent_id=whose.agent_id,
        worker_id=whose.worker_id,
        supervisor_id=whose.supervisor_id,
    )
    where = subjects.dead(delivery.subject)
    # A stream made anew counts from one again: the body tells two messages of one number apart.
    message_id = f"dead:{where}:{delivery.sequence}:{zlib.crc32(delivery.body):08x}"
    await outbox.put(
        where, letter, message_id, headers=_user_in(delivery.body), waits_when_full=True
    )
    meter.count_dead_letter(reason)


class PartitionHandler:
    """Has each message of *stream* taken in by *take*; fits `tasklore.runtime.messaging.pull.DeliveryHandler`.

    *eraser* overwrites each message on the server's disk; None leaves that to forgetting a user. *publishers* are
    those whose messages are taken in; None takes everybody's.
    """

    def __init__(
        self,
        stream: str,
        take: Take,
        whose: Owner,
        *,
        outbox: Outbox,
        meter: "Metrics",
        eraser: "Eraser | None" = None,
        publishers: Publishers | None = None,
    ) -> None:
        self._stream = stream
        self._publishers = publishers
        self._take = take
        self._whose = whose
        self._outbox = outbox
        self._meter = meter
        self._eraser = eraser

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Take *batch* in, one message after the other."""
        for delivery in batch:
            try:
                await self._taken_or_buried(delivery)
            except (MemoryUnavailable, NotAccepted) as error:
                log.warning("not_taken_in", stream=self._stream, error=str(error))
                line.hand_back(delivery, RETURN_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
                continue
            if await self._erased(delivery):
                line.settle(delivery)
            else:
                line.hand_back(delivery, RETURN_S * random.uniform(0.5, 1.5))  # noqa: S311 - jitter

    async def _taken_or_buried(self, delivery: Delivery) -> None:
        try:
            if self._publishers is not None:
                self._publishers.check(
                    delivery.subject, delivery.headers, delivery.body
                )
            await self._take(delivery)
        except Unproven as error:
            log.warning("publisher_unproven", stream=self._stream, problem=str(error))
            await set_aside(
                delivery,
                error=error,
                reason=_UNPROVEN,
                whose=self._whose,
                outbox=self._outbox,
                meter=self._meter,
            )
        except InvalidInput as error:
            await set_aside(
                delivery,
                error=error,
                reason=UNREADABLE,
                whose=self._whose,
                outbox=self._outbox,
                meter=self._meter,
            )

    async def _erased(self, delivery: Delivery) -> bool:
        """Return whether the body is off the server's disk, as far as that is wanted, or was tried often enough."""
        if self._eraser is None:
            return True
        try:
            await self._eraser.erase(self._stream, delivery.sequence)
        except TaskloreError as error:
            lets_go = delivery.deliveries >= MOST_ERASURES
            log.warning(
                "not_erased",
                stream=self._stream,
                sequence=delivery.sequence,
                error=str(error),
                last=lets_go,
            )
            return lets_go
        return True


def ordered_sources(
    stream: str, name: str, ack_wait_s: float = ACK_WAIT_S
) -> list[PullSource]:
    """Return the partitions of *stream*, durables `{name}-{number}`: one message at a time in each."""
    return [
        PullSource(
            stream=stream,
            durable=f"{name}-{number}",
            filter_subject=subjects.partition_filter(stream, number),
            ack_wait_s=ack_wait_s,
            max_ack_pending=1,
        )
        for number in range(PARTITIONS)
    ]


async def open_partitions(
    link: Link,
    sources: Sequence[PullSource],
    handler: PartitionHandler,
    *,
    leases: Leases,
    meter: "Metrics",
    heal: Callable[[PullSource], Awaitable[str]],
    may_create: bool,
) -> list[PullEngine]:
    """Return an engine for each of *sources*, ready to run; their consumers are made first where *may_create* says so.

    Raises:
        DriftedConfiguration: a consumer reads something else.
        JetStreamRefused: the server does not make one.
        Unreachable: it does not answer.
    """
    engines = []
    for source in sources:
        if may_create:
            await declare_consumer(link.client, source)
        engines.append(
            PullEngine(
                link=link,
                source=source,
                slots=1,
                handler=handler,
                leases=leases,
                meter=meter,
                heal=functools.partial(heal, source),
            )
        )
    return engines


def _user_in(body: bytes) -> dict[str, str] | None:
    """Return the header by which forgetting finds a letter about *body*, of which it may keep the beginning alone."""
    try:
        user = from_json(body).get("user_id")
        is_one = isinstance(user, str) and 1 <= len(user) <= _LONGEST_USER
        return {subjects.USER_HEADER: user_token(user)} if is_one else None
    except (ValueError, AttributeError):
        return None
