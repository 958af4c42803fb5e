"""A desk that takes in the partitions of a stream, on servers whose streams are empty."""

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from nats.js.api import RawStreamMsg
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.leases import Leases
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.partitions import PartitionHandler, open_partitions
from tasklore.runtime.messaging.streams import (
    PullSource,
    StreamSizes,
    declare_streams,
    find_consumer,
)
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.listening import Counts, eventually

#: Seconds: longer than any wait, so that nothing is saved by the end of a lease.
ACK_WAIT_S = 600.0


class MessageCounts(Counts):
    def count_message(self, outcome: str) -> None:
        self.seen[f"message:{outcome}"] += 1


@dataclass
class Partitions:
    link: Link
    redis: Redis
    leases: Leases
    counts: MessageCounts = field(default_factory=MessageCounts)

    @contextlib.asynccontextmanager
    async def taken_in(
        self, desk: PartitionHandler, sources: Sequence[PullSource], readers: int
    ) -> AsyncIterator[None]:
        """Have *desk* take in *sources*, with so many engines on each, as so many processes have."""
        metrics = Metrics("test")

        async def heal(source: PullSource) -> str:
            return await find_consumer(
                self.link.client, source, StreamSizes(), may_create=True
            )

        start = functools.partial(
            open_partitions,
            self.link,
            sources,
            desk,
            leases=self.leases,
            meter=metrics,
            heal=heal,
            may_create=True,
        )
        engines = [engine for _ in range(readers) for engine in await start()]
        async with asyncio.TaskGroup() as group:
            for engine in engines:
                group.create_task(engine.run())
            yield
            for engine in engines:
                engine.stop()

    async def publish(self, subject: str, body: bytes) -> None:
        """Store *body* as a program does that gives it no id."""
        answer = json.loads(
            (await self.link.client.request(subject, body, timeout=60)).data
        )
        assert "error" not in answer, answer

    async def stored(self, stream: str) -> int:
        return int(
            (await ask_jetstream(self.link.client, f"STREAM.INFO.{stream}"))["state"][
                "messages"
            ]
        )

    async def until_empty(self, stream: str) -> None:
        async def is_empty() -> bool:
            return await self.stored(stream) == 0

        await eventually(is_empty)

    async def dead_letters(self) -> list[RawStreamMsg]:
        stream = self.link.client.jetstream()
        return [
            await stream.get_msg(subjects.DEAD, 1 + n)
            for n in range(await self.stored(subjects.DEAD))
        ]


@contextlib.asynccontextmanager
async def partitions_on(servers: EmbeddedServers) -> AsyncIterator[Partitions]:
    def must_not_fail(error: BaseException) -> None:
        raise AssertionError(f"the leases ended: {error!r}")

    async with (
        connected(servers.nats_url, "partitions") as client,
        Leases(
            url=servers.nats_url,
            ack_wait_s=ACK_WAIT_S,
            meter=Metrics("test"),
            failed=must_not_fail,
        ) as leases,
        Redis.from_url(servers.redis_url, socket_timeout=None) as redis,
    ):
        await declare_streams(client, StreamSizes())
        yield Partitions(Link(client), redis, leases)
