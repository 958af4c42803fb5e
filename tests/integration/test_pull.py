"""The pull engine on a real stream: never more than its slots, and everything once."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from runtime.messaging.leases import Leases
from runtime.metrics import Metrics
from runtime.servers.embedded import EmbeddedServers
from tests.integration.pulling import PATIENCE_S, Bench, Book, bench_on


@pytest.fixture
async def bench(servers: EmbeddedServers) -> AsyncIterator[Bench]:
    """Make a stream, its consumer and a connection."""
    async with bench_on(servers) as made:
        yield made


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


async def test_what_is_kept_longer_than_its_lease_is_not_offered_again(servers: EmbeddedServers) -> None:
    """Two leases long the server hears of it, so that one delivery stays one."""
    desk = Book(keeps=True)
    async with bench_on(servers, lease_s=3.0) as bench:
        await bench.publish()
        async with bench.running(desk) as engine:
            await desk.until(lambda: len(desk.deliveries) == 1)
            await asyncio.sleep(6.5)  # the behaviour is what does not happen in this time
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
        async with asyncio.timeout(PATIENCE_S):
            assert "broken meter" in str(await told)
