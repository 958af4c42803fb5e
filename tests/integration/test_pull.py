"""The pull engine on a real stream: never more than its slots, never lost when what it reads from is taken away."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

import pytest

from contracts.errors import ConfigurationError
from runtime.connection import connected
from runtime.embedded import EmbeddedServers
from runtime.jetstream import ask_jetstream
from runtime.leases import Leases
from runtime.link import Link
from runtime.metrics import Metrics
from runtime.pull import Delivery, PullEngine
from runtime.streams import Source, declare_consumer

PATIENCE_S = 20.0


class Book:
    """A desk that settles what it is given, or keeps it until told."""

    def __init__(self, *, keeps: bool = False) -> None:
        self.keeps = keeps
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
    source: Source
    leases: Leases
    metrics: Metrics = field(default_factory=lambda: Metrics("test"))
    may_create: bool = True

    async def publish(self, count: int = 1, body: bytes = b"{}") -> None:
        """Put *count* messages into the stream."""
        for _ in range(count):
            await self.link.client.request(f"{self.source.stream}.x", body, timeout=PATIENCE_S)

    async def make_stream(self) -> None:
        """Create the stream, as often as it is asked for."""
        wanted = {"name": self.source.stream, "subjects": [f"{self.source.stream}.>"], "retention": "workqueue"}
        await ask_jetstream(self.link.client, f"STREAM.CREATE.{self.source.stream}", wanted)

    async def heal(self) -> str:
        """Recreate what is missing, where that is allowed; return when the consumer was made."""
        if self.may_create:
            await self.make_stream()
        return await declare_consumer(self.link.client, self.source, may_create=self.may_create)

    async def api(self, call: str) -> dict[str, int]:
        """Return JetStream's answer about this consumer or stream."""
        return await ask_jetstream(self.link.client, call)

    async def consumer(self) -> tuple[int, int]:
        """Return how many messages are handed out and how many wait."""
        info = await self.api(f"CONSUMER.INFO.{self.source.stream}.{self.source.durable}")
        return info["num_ack_pending"], info["num_pending"]

    async def eventually_consumer(self, wanted: tuple[int, int]) -> None:
        """Return once the consumer has handed out, and keeps, what is *wanted*."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.consumer() != wanted:  # noqa: ASYNC110 - a server's state makes no event here
                await asyncio.sleep(0.02)

    def counted(self, name: str) -> float:
        """Return the sum of the series that begin with *name*."""
        lines = [line for line in self.metrics.render().decode().splitlines() if line.startswith(name)]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    @contextlib.asynccontextmanager
    async def running(self, desk: Book, slots: int = 4) -> AsyncIterator[PullEngine]:
        """Run an engine for *desk* until the block ends; what is still open is left to its lease."""
        engine = PullEngine(self.link, self.source, slots, desk, self.leases, self.metrics, self.heal)
        running = asyncio.create_task(engine.run())
        try:
            yield engine
        finally:
            engine.stop()
            async with asyncio.timeout(PATIENCE_S):
                await running


@pytest.fixture
async def bench(servers: EmbeddedServers) -> AsyncIterator[Bench]:
    """Make a stream, its consumer and a connection."""
    name = f"T{uuid.uuid4().hex}"
    metrics = Metrics("test")
    async with (
        connected(servers.nats_url, name) as client,
        Leases(servers.nats_url, 1.0, metrics, failed=_must_not_fail) as leases,
    ):
        bench = Bench(Link(client), Source(name, "reader", f"{name}.>", 1.0), leases, metrics)
        await bench.heal()
        yield bench
        with contextlib.suppress(Exception):
            await bench.api(f"STREAM.DELETE.{name}")


async def test_everything_is_delivered_once_and_taken_out(bench: Bench) -> None:
    """Five hundred messages leave nothing behind, and arrive many to a read."""
    desk = Book()
    await asyncio.gather(*(bench.publish(50, b"%d" % number) for number in range(10)))
    async with bench.running(desk, slots=64) as engine:
        await desk.until(lambda: len(desk.deliveries) == 500)
        await bench.eventually_consumer((0, 0))
        assert engine.held == 0
    assert len({delivery.sequence for delivery in desk.deliveries}) == 500
    assert max(map(len, desk.batches)) > 5
    assert bench.counted('tasklore_deliveries_total{redelivered="false"}') == 500


async def test_no_more_is_taken_than_there_are_slots(bench: Bench) -> None:
    """While the desk keeps four, the other six wait at the server; one settled makes room for one."""
    desk = Book(keeps=True)
    await bench.publish(10)
    async with bench.running(desk, slots=4) as engine:
        await desk.until(lambda: len(desk.deliveries) == 4)
        assert (await bench.consumer(), engine.held) == ((4, 6), 4)
        for index in range(6):
            engine.settle(desk.deliveries[index])
            await desk.until(lambda: len(desk.deliveries) == index + 5)  # noqa: B023 - awaited within the turn
            assert engine.held == 4
        await bench.eventually_consumer((4, 0))
        for delivery in desk.deliveries[6:]:
            engine.settle(delivery)


async def test_what_is_kept_longer_than_its_lease_is_not_offered_again(bench: Bench) -> None:
    """Three leases long the server hears of it, so that one delivery stays one."""
    desk = Book(keeps=True)
    await bench.publish()
    async with bench.running(desk) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        await asyncio.sleep(3.2)  # the behaviour is what does not happen in this time
        assert [delivery.deliveries for delivery in desk.deliveries] == [1]
        engine.settle(desk.deliveries[0])
        await bench.eventually_consumer((0, 0))
    assert bench.counted('tasklore_lease_heartbeats_total{result="sent"}') >= 3


async def test_what_is_handed_back_comes_again_after_its_delay(bench: Bench) -> None:
    """The second delivery counts two, and is no sooner than asked for."""
    desk = Book(keeps=True)
    await bench.publish()
    async with bench.running(desk) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        engine.hand_back(desk.deliveries[0], 0.5)
        await desk.until(lambda: len(desk.deliveries) == 2)
        first, second = desk.deliveries
        engine.settle(second)
    assert (second.sequence, second.deliveries) == (first.sequence, 2)
    assert second.arrived_at - first.arrived_at >= 0.45


async def test_a_second_word_on_a_delivery_is_not_sent(bench: Bench) -> None:
    """What was handed back cannot be settled by a straggler any more."""
    desk = Book(keeps=True)
    await bench.publish()
    async with bench.running(desk) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        engine.hand_back(desk.deliveries[0])
        engine.settle(desk.deliveries[0])
        await desk.until(lambda: len(desk.deliveries) == 2)
        engine.settle(desk.deliveries[1])


async def test_a_desk_that_fails_loses_nothing(bench: Bench) -> None:
    """Its batch is offered again, and the engine goes on."""
    desk = Book()
    desk.broken = 1
    await bench.publish()
    async with bench.running(desk):
        await desk.until(lambda: len(desk.deliveries) == 2)
        await bench.eventually_consumer((0, 0))


async def test_when_it_stops_nothing_is_left_to_its_lease(bench: Bench) -> None:
    """What is open may finish; what the server still sends goes back at once."""
    desk = Book(keeps=True)
    await bench.publish(6)
    async with bench.running(desk, slots=2) as engine:
        await desk.until(lambda: len(desk.deliveries) == 2)
        engine.stop()
        emptied = asyncio.create_task(engine.emptied())
        for delivery in desk.deliveries:
            engine.settle(delivery)
        async with asyncio.timeout(PATIENCE_S):
            await emptied
        await bench.eventually_consumer((0, 4))
    assert len(desk.deliveries) == 2


async def test_a_deleted_consumer_is_made_again_while_the_engine_runs(bench: Bench) -> None:
    """It is counted as missing, healed, and the next message arrives."""
    desk = Book()
    async with bench.running(desk) as engine:
        await bench.publish()
        await desk.until(lambda: len(desk.deliveries) == 1)
        await bench.api(f"CONSUMER.DELETE.{bench.source.stream}.{bench.source.durable}")
        await bench.publish()
        # The word on the first may have come too late for the old consumer: then it is offered again.
        await desk.until(lambda: {delivery.sequence for delivery in desk.deliveries} == {1, 2})
        assert engine.ready
    assert bench.counted("tasklore_consumer_missing_total") >= 1


async def test_a_deleted_stream_is_made_again_while_the_engine_runs(bench: Bench) -> None:
    """Stream and consumer come back, and the engine reads on."""
    desk = Book()
    async with bench.running(desk) as engine:
        await bench.publish()
        await desk.until(lambda: len(desk.deliveries) == 1)
        await bench.api(f"STREAM.DELETE.{bench.source.stream}")
        async with asyncio.timeout(PATIENCE_S):
            while len(desk.deliveries) < 2:
                with contextlib.suppress(Exception):
                    await bench.link.client.request(f"{bench.source.stream}.x", b"{}", timeout=0.2)
        assert engine.ready
    assert bench.counted("tasklore_consumer_missing_total") >= 1


async def test_where_it_may_not_create_it_is_not_ready_and_counts_until_others_do(bench: Bench) -> None:
    """With provision=never the engine waits for whoever has the rights, without a hot loop."""
    desk = Book()
    await bench.api(f"CONSUMER.DELETE.{bench.source.stream}.{bench.source.durable}")
    bench.may_create = False
    async with bench.running(desk) as engine:
        async with asyncio.timeout(PATIENCE_S):
            while bench.counted("tasklore_consumer_missing_total") < 2:  # noqa: ASYNC110 - a counter makes no event
                await asyncio.sleep(0.02)
        was_ready = engine.ready
        assert not was_ready
        assert engine.vital_sign()[0]
        with pytest.raises(ConfigurationError, match="TASKLORE_PROVISION=never"):
            await declare_consumer(bench.link.client, bench.source, may_create=False)
        await declare_consumer(bench.link.client, bench.source)
        await bench.publish()
        await desk.until(lambda: len(desk.deliveries) == 1)
        assert engine.ready
    assert bench.counted("tasklore_consumer_missing_total") < 50


async def test_a_word_on_a_message_of_a_lost_stream_takes_nothing_out_of_the_new_one(bench: Bench) -> None:
    """The new stream counts from one again, so that an old acknowledgement would name another message."""
    old, new = Book(keeps=True), Book(keeps=True)
    await bench.publish(body=b"old")
    async with bench.running(old, slots=1) as engine:
        await old.until(lambda: len(old.deliveries) == 1)
        await bench.api(f"STREAM.DELETE.{bench.source.stream}")
        await bench.heal()
        await bench.publish(body=b"new")
        async with bench.running(new, slots=1) as other:
            async with asyncio.timeout(PATIENCE_S):
                while bench.counted("tasklore_orphaned_deliveries_total") < 1:  # noqa: ASYNC110 - a counter
                    await asyncio.sleep(0.01)
            await asyncio.wait(
                [
                    asyncio.ensure_future(desk.until(lambda: old.deliveries[1:] or new.deliveries))
                    for desk in (old, new)
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
            engine.settle(old.deliveries[0])
            await bench.link.client.flush()
            assert old.deliveries[0].sequence == [*old.deliveries[1:], *new.deliveries][0].sequence
            assert await bench.consumer() == (1, 0)
            for delivery in old.deliveries[1:]:
                engine.settle(delivery)
            for delivery in new.deliveries:
                other.settle(delivery)
            await bench.eventually_consumer((0, 0))


async def test_a_paused_engine_takes_nothing_and_hands_back_what_still_comes(bench: Bench) -> None:
    """Somebody else has it at once; afterwards it takes again."""
    paused, other = Book(), Book()
    async with bench.running(paused, slots=2) as engine:
        await bench.publish()
        await paused.until(lambda: len(paused.deliveries) == 1)
        engine.pause(is_paused=True)
        async with bench.running(other, slots=2):
            await bench.publish(6)
            await other.until(lambda: len({delivery.sequence for delivery in other.deliveries}) == 6)
            assert len(paused.deliveries) == 1
            assert engine.vital_sign()[0]
        engine.pause(is_paused=False)
        await bench.publish()
        await paused.until(lambda: len(paused.deliveries) == 2)


async def test_two_engines_on_one_consumer_share_what_there_is(bench: Bench) -> None:
    """Neither gets what the other has, and an idle one is fed although the other stands in line too."""
    one, two = Book(keeps=True), Book(keeps=True)
    async with bench.running(one, slots=5) as first, bench.running(two, slots=5) as second:
        await bench.publish(10)
        await one.until(lambda: len(one.deliveries) == 5)
        await two.until(lambda: len(two.deliveries) == 5)
        for engine, desk in ((first, one), (second, two)):
            for delivery in desk.deliveries:
                engine.settle(delivery)
        await bench.eventually_consumer((0, 0))
    assert len({delivery.sequence for delivery in one.deliveries + two.deliveries}) == 10


async def test_a_lease_thread_that_ends_too_early_is_told(servers: EmbeddedServers) -> None:
    """Without it every lease would run out unseen."""
    told: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    class Broken(Metrics):
        """A meter that fails once somebody counts."""

        def count_lease_heartbeat(self, *, delivered: bool) -> None:
            """Fail."""
            raise RuntimeError("broken meter")

    async with Leases(servers.nats_url, 0.3, Broken(), failed=told.set_result) as leases:
        leases.hold("nobody.listens")
        async with asyncio.timeout(5):
            assert "broken meter" in str(await told)


@pytest.mark.parametrize("stops_first", [False, True])
async def test_words_held_back_by_a_reconnect_are_said_before_the_end(bench: Bench, stops_first: bool) -> None:
    """Finished work is taken out and what had not begun is offered again, whether the end or the doubt came first."""
    # Far longer than this test: what comes again was handed back, and did not wait for its lease.
    bench.source = replace(bench.source, ack_wait_s=600.0)
    await bench.heal()
    await bench.publish(2)
    desk, other = Book(keeps=True), Book()
    async with bench.running(desk) as engine:
        await desk.until(lambda: len(desk.deliveries) == 2)
        if stops_first:
            engine.stop()
            # Turns of the loop in which the engine sees it.
            for _ in range(5):
                await asyncio.sleep(0)
        engine.reconnected()
        engine.stop()
        engine.settle(desk.deliveries[0])
        engine.hand_back(desk.deliveries[1])
        async with asyncio.timeout(PATIENCE_S):
            await engine.emptied()
    async with bench.running(other):
        await other.until(lambda: bool(other.deliveries))
        await bench.eventually_consumer((0, 0))
    assert [delivery.sequence for delivery in other.deliveries] == [desk.deliveries[1].sequence]


async def test_words_of_an_engine_that_stopped_in_doubt_are_said_by_its_run_alone(bench: Bench) -> None:
    """Nobody has to wait until it is emptied."""
    bench.source = replace(bench.source, ack_wait_s=600.0)
    await bench.heal()
    await bench.publish()
    desk = Book(keeps=True)
    async with bench.running(desk) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        engine.reconnected()
        engine.settle(desk.deliveries[0])
    await bench.eventually_consumer((0, 0))


async def test_an_engine_that_cannot_find_its_consumer_ends_all_the_same(bench: Bench) -> None:
    """What is left unsaid comes again."""
    await bench.publish()
    desk = Book(keeps=True)
    async with bench.running(desk) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        bench.may_create = False
        await bench.api(f"CONSUMER.DELETE.{bench.source.stream}.{bench.source.durable}")
        engine.reconnected()
        engine.stop()
        engine.settle(desk.deliveries[0])
        async with asyncio.timeout(PATIENCE_S):
            await engine.emptied()
    assert bench.counted("tasklore_consumer_missing_total") >= 1
