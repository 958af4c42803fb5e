"""What tests of the pull engine share: an engine on a stream of its own, and a desk that does as it is told."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.leases import Leases
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.runtime.messaging.streams import CLEARED_S, PullSource, declare_consumer
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.servers.embedded import EmbeddedServers

#: Seconds that any wait here may take on a busy machine; no test waits for it to pass.
PATIENCE_S = 60.0
#: Seconds of a lease: longer than any wait, so that what comes again was handed back, and nothing is saved by its end.
LEASE_S = 600.0


class Book:
    """A desk that settles what it is given; or *keeps* it until told; or *lasts*: is at work on it until `released`."""

    def __init__(self, *, keeps: bool = False, lasts: bool = False) -> None:
        self.keeps = keeps or lasts
        self.lasts = lasts
        self.released = asyncio.Event()
        self.batches: list[list[Delivery]] = []
        self.broken = 0
        self._news = asyncio.Event()

    @property
    def deliveries(self) -> list[Delivery]:
        """Everything that arrived, in order."""
        return [delivery for batch in self.batches for delivery in batch]

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Take one batch."""
        self.batches.append(batch)
        self._news.set()
        if self.broken:
            self.broken -= 1
            raise ValueError("the desk is broken")
        if self.lasts:
            await self.released.wait()
        if not self.keeps:
            for delivery in batch:
                line.settle(delivery)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return once *condition* holds, looked at after each batch."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._news.clear()
                await self._news.wait()


def _must_not_fail(error: BaseException) -> None:
    """Take the failure of a lease thread for the test's own."""
    raise AssertionError(f"the leases ended: {error!r}")


@dataclass
class Bench:
    """An engine on a stream of its own."""

    link: Link
    source: PullSource
    leases: Leases
    metrics: Metrics = field(default_factory=lambda: Metrics("test"))
    may_create: bool = True

    async def publish(self, count: int = 1, body: bytes = b"{}") -> None:
        """Put *count* messages into the stream."""
        for _ in range(count):
            await self.link.client.request(
                f"{self.source.stream}.x", body, timeout=PATIENCE_S
            )

    async def make_stream(self) -> None:
        """Create the stream, as often as it is asked for."""
        wanted = {
            "name": self.source.stream,
            "subjects": [f"{self.source.stream}.>"],
            "retention": "workqueue",
        }
        await ask_jetstream(
            self.link.client, f"STREAM.CREATE.{self.source.stream}", wanted
        )

    async def heal(self) -> str:
        """Recreate what is missing, where that is allowed; return when the consumer was made."""
        if self.may_create:
            # As the house does: what is made while the server still deletes takes nothing.
            await asyncio.sleep(CLEARED_S)
            await self.make_stream()
        return await declare_consumer(
            self.link.client, self.source, may_create=self.may_create
        )

    async def api(self, call: str) -> dict[str, int]:
        """Return JetStream's answer about this consumer or stream."""
        return await ask_jetstream(self.link.client, call)

    async def consumer(self) -> tuple[int, int]:
        """Return how many messages are handed out and how many wait."""
        info = await self.api(
            f"CONSUMER.INFO.{self.source.stream}.{self.source.durable}"
        )
        return info["num_ack_pending"], info["num_pending"]

    async def eventually_consumer(self, wanted: tuple[int, int]) -> None:
        """Return once the consumer has handed out, and keeps, what is *wanted*."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.consumer() != wanted:  # noqa: ASYNC110 - a server's state makes no event here
                await asyncio.sleep(0.02)

    def counted(self, name: str) -> float:
        """Return the sum of the series that begin with *name*."""
        lines = [
            line
            for line in self.metrics.render().decode().splitlines()
            if line.startswith(name)
        ]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    async def eventually_counted(self, name: str, least: float) -> None:
        """Return once the series that begin with *name* add up to *least*."""
        async with asyncio.timeout(PATIENCE_S):
            while self.counted(name) < least:  # noqa: ASYNC110 - a counter makes no event
                await asyncio.sleep(0.01)

    @contextlib.asynccontextmanager
    async def running(self, desk: Book, slots: int = 4) -> AsyncIterator[PullEngine]:
        """Run an engine for *desk* until the block ends; what is still open is left to its lease."""
        engine = PullEngine(
            link=self.link,
            source=self.source,
            slots=slots,
            handler=desk,
            leases=self.leases,
            meter=self.metrics,
            heal=self.heal,
        )
        running = asyncio.create_task(engine.run())
        try:
            yield engine
        finally:
            engine.stop()
            async with asyncio.timeout(PATIENCE_S):
                await running


@contextlib.asynccontextmanager
async def bench_on(
    servers: EmbeddedServers, lease_s: float = LEASE_S
) -> AsyncIterator[Bench]:
    """Make a stream, its consumer and a connection."""
    name = f"T{uuid.uuid4().hex}"
    metrics = Metrics("test")
    async with (
        connected(servers.nats_url, name) as client,
        Leases(
            url=servers.nats_url,
            ack_wait_s=lease_s,
            meter=metrics,
            failed=_must_not_fail,
        ) as leases,
    ):
        bench = Bench(
            Link(client),
            PullSource(
                stream=name,
                durable="reader",
                filter_subject=f"{name}.>",
                ack_wait_s=lease_s,
            ),
            leases,
            metrics,
        )
        await bench.heal()
        yield bench
        with contextlib.suppress(Exception):
            await bench.api(f"STREAM.DELETE.{name}")
