"""The pull engine on a real stream: its slots, its leases, and streams, consumers and connections that are lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.messaging import lent_slots
from tasklore.runtime.messaging.leases import Leases
from tasklore.runtime.messaging.streams import declare_consumer
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.pulling import PATIENCE_S, Bench, Book, bench_on


@pytest.fixture
async def bench(servers: EmbeddedServers) -> AsyncIterator[Bench]:
    async with bench_on(servers) as made:
        yield made


async def test_everything_is_delivered_once_and_taken_out(bench: Bench) -> None:
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


async def test_a_delivery_kept_longer_than_its_lease_is_not_offered_again(
    servers: EmbeddedServers,
) -> None:
    desk = Book(keeps=True)
    async with bench_on(servers, lease_s=1.5) as bench:
        await bench.publish()
        async with bench.running(desk) as engine:
            await desk.until(lambda: len(desk.deliveries) == 1)
            await asyncio.sleep(
                3.2
            )  # the behaviour is what does not happen in this time
            assert [delivery.deliveries for delivery in desk.deliveries] == [1]
            engine.settle(desk.deliveries[0])
            await bench.eventually_consumer((0, 0))
        assert bench.counted('tasklore_lease_heartbeats_total{result="sent"}') >= 3


async def test_a_delivery_is_leased_until_its_end_and_no_longer(bench: Bench) -> None:
    """However it ends: what is renewed afterwards would be renewed for as long as the process lives."""
    desk = Book(keeps=True)
    await bench.publish(3)
    async with bench.running(desk) as engine:
        await desk.until(lambda: len(desk.deliveries) == 3)
        held = {one.reply for one in desk.deliveries}
        assert bench.leases._held.keys() == held
        settled, handed_back, forgotten = desk.deliveries
        for end, one in (
            (engine.settle, settled),
            (engine.forget, forgotten),
        ):
            end(one)
            held.remove(one.reply)
            assert bench.leases._held.keys() == held
        engine.hand_back(handed_back, 60.0)
        assert not bench.leases._held


async def test_a_delivery_that_is_handed_back_comes_again_after_its_delay(
    bench: Bench,
) -> None:
    """As does one whose desk fails; a second word on a delivery is not sent."""
    desk = Book(keeps=True)
    desk.broken = 1
    await bench.publish()
    async with bench.running(desk) as engine:
        await desk.until(lambda: len(desk.deliveries) == 2)
        failed, first = desk.deliveries
        engine.hand_back(first, 0.5)
        engine.settle(first)
        await desk.until(lambda: len(desk.deliveries) == 3)
        second = desk.deliveries[2]
        engine.settle(second)
        await bench.eventually_consumer((0, 0))
    assert [one.deliveries for one in (failed, first, second)] == [1, 2, 3]
    assert second.sequence == first.sequence
    assert second.arrived_at - first.arrived_at >= 0.45


async def test_a_stopping_engine_leaves_nothing_to_its_lease(bench: Bench) -> None:
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


async def test_a_paused_engine_takes_nothing_and_hands_back_what_still_comes(
    bench: Bench,
) -> None:
    paused = Book()
    other = Book()
    async with bench.running(paused, slots=2) as engine:
        await bench.publish()
        await paused.until(lambda: len(paused.deliveries) == 1)
        engine.pause(is_paused=True)
        async with bench.running(other, slots=2):
            await bench.publish(6)
            await other.until(
                lambda: len({delivery.sequence for delivery in other.deliveries}) == 6
            )
            assert len(paused.deliveries) == 1
            assert engine.vital_sign()[0]
        engine.pause(is_paused=False)
        await bench.publish()
        await paused.until(lambda: len(paused.deliveries) == 2)


async def test_two_engines_on_one_consumer_share_the_messages(bench: Bench) -> None:
    one = Book(keeps=True)
    two = Book(keeps=True)
    async with (
        bench.running(one, slots=5) as first,
        bench.running(two, slots=5) as second,
    ):
        await bench.publish(10)
        await one.until(lambda: len(one.deliveries) == 5)
        await two.until(lambda: len(two.deliveries) == 5)
        for engine, desk in ((first, one), (second, two)):
            for delivery in desk.deliveries:
                engine.settle(delivery)
        await bench.eventually_consumer((0, 0))
    assert (
        len({delivery.sequence for delivery in one.deliveries + two.deliveries}) == 10
    )


async def test_a_lease_thread_that_fails_is_reported(servers: EmbeddedServers) -> None:
    """Without it every lease would run out unseen."""
    failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    class Broken(Metrics):
        """A meter that fails at the first heartbeat."""

        def count_lease_heartbeat(self, *, delivered: bool) -> None:
            raise RuntimeError("broken meter")

    async with Leases(
        url=servers.nats_url, ack_wait_s=0.3, meter=Broken(), failed=failure.set_result
    ) as leases:
        leases.hold("nobody.listens")
        async with asyncio.timeout(PATIENCE_S):
            assert "broken meter" in str(await failure)


async def lose_stream(bench: Bench) -> None:
    """Delete the stream, make it anew, and return once the engine has noticed."""
    await bench.api(f"STREAM.DELETE.{bench.source.stream}")
    await bench.heal()
    await bench.eventually_counted("tasklore_orphaned_deliveries_total", 1)


async def test_a_deleted_consumer_is_made_again_while_the_engine_runs(
    bench: Bench,
) -> None:
    desk = Book()
    async with bench.running(desk) as engine:
        await bench.publish()
        await desk.until(lambda: len(desk.deliveries) == 1)
        await bench.api(f"CONSUMER.DELETE.{bench.source.stream}.{bench.source.durable}")
        await bench.publish()
        # The word on the first may have come too late for the old consumer: then it is offered again.
        await desk.until(
            lambda: {delivery.sequence for delivery in desk.deliveries} == {1, 2}
        )
        assert engine.ready
    assert bench.counted("tasklore_consumer_missing_total") >= 1


async def test_a_deleted_stream_is_made_again_while_the_engine_runs(
    bench: Bench,
) -> None:
    desk = Book()
    async with bench.running(desk) as engine:
        await bench.publish()
        await desk.until(lambda: len(desk.deliveries) == 1)
        await bench.api(f"STREAM.DELETE.{bench.source.stream}")
        async with asyncio.timeout(PATIENCE_S):
            while len(desk.deliveries) < 2:
                with contextlib.suppress(Exception):
                    await bench.link.client.request(
                        f"{bench.source.stream}.x", b"{}", timeout=0.2
                    )
        assert engine.ready
    assert bench.counted("tasklore_consumer_missing_total") >= 1


async def test_an_engine_without_the_right_to_create_waits_for_its_consumer(
    bench: Bench,
) -> None:
    desk = Book()
    await bench.api(f"CONSUMER.DELETE.{bench.source.stream}.{bench.source.durable}")
    bench.may_create = False
    async with bench.running(desk) as engine:
        await bench.eventually_counted("tasklore_consumer_missing_total", 2)
        assert not engine.ready
        assert engine.vital_sign()[0]
        with pytest.raises(ConfigurationError, match="TASKLORE_PROVISION=never"):
            await declare_consumer(bench.link.client, bench.source, may_create=False)
        await declare_consumer(bench.link.client, bench.source)
        await bench.publish()
        await desk.until(lambda: len(desk.deliveries) == 1)
        assert engine.ready
    assert bench.counted("tasklore_consumer_missing_total") < 50


async def test_an_acknowledgement_of_a_lost_stream_takes_nothing_out_of_the_new_one(
    bench: Bench,
) -> None:
    old = Book(keeps=True)
    new = Book(keeps=True)
    await bench.publish(body=b"old")
    async with bench.running(old, slots=1) as engine:
        await old.until(lambda: len(old.deliveries) == 1)
        await bench.api(f"STREAM.DELETE.{bench.source.stream}")
        await bench.heal()
        await bench.publish(body=b"new")
        async with bench.running(new, slots=1) as other:
            await bench.eventually_counted("tasklore_orphaned_deliveries_total", 1)
            async with asyncio.timeout(PATIENCE_S):
                while not old.deliveries[1:] and not new.deliveries:  # noqa: ASYNC110 - either of two desks
                    await asyncio.sleep(0.01)
            engine.settle(old.deliveries[0])
            await bench.link.client.flush()
            assert (
                old.deliveries[0].sequence
                == [*old.deliveries[1:], *new.deliveries][0].sequence
            )
            assert await bench.consumer() == (1, 0)
            for delivery in old.deliveries[1:]:
                engine.settle(delivery)
            for delivery in new.deliveries:
                other.settle(delivery)
            await bench.eventually_consumer((0, 0))


@pytest.mark.parametrize("stops_first", [False, True])
async def test_acknowledgements_held_back_by_a_reconnect_are_sent_before_the_end(
    bench: Bench, stops_first: bool
) -> None:
    await bench.publish(2)
    desk = Book(keeps=True)
    other = Book()
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
    assert [delivery.sequence for delivery in other.deliveries] == [
        desk.deliveries[1].sequence
    ]


async def test_a_run_that_ends_in_doubt_sends_its_acknowledgements_itself(
    bench: Bench,
) -> None:
    await bench.publish()
    desk = Book(keeps=True)
    async with bench.running(desk) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        engine.reconnected()
        engine.settle(desk.deliveries[0])
    await bench.eventually_consumer((0, 0))


async def test_an_engine_that_cannot_find_its_consumer_ends_all_the_same(
    bench: Bench,
) -> None:
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


async def test_a_task_of_a_lost_stream_keeps_its_slot_until_it_ends(
    bench: Bench,
) -> None:
    desk = Book(lasts=True)
    await bench.publish()
    async with bench.running(desk, slots=1) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        await lose_stream(bench)
        await bench.publish()
        await bench.eventually_consumer((0, 1))
        info = await bench.api(
            f"CONSUMER.INFO.{bench.source.stream}.{bench.source.durable}"
        )
        assert (info["num_waiting"], info["num_ack_pending"], info["num_pending"]) == (
            0,
            0,
            1,
        )
        assert (engine.held, engine.vital_sign()[0]) == (1, True)
        desk.released.set()
        await desk.until(lambda: len(desk.deliveries) == 2)
        engine.settle(desk.deliveries[1])
        await bench.eventually_consumer((0, 0))


async def test_of_several_tasks_of_a_lost_stream_each_frees_its_own_slot(
    bench: Bench,
) -> None:
    desk = Book(lasts=True)
    await bench.publish(3)
    async with bench.running(desk, slots=3) as engine:
        await desk.until(lambda: len(desk.deliveries) == 3)
        await lose_stream(bench)
        await bench.publish(3)
        old = desk.deliveries[:3]
        for ends in (engine.settle, engine.hand_back, engine.forget):
            ends(old.pop())
            await desk.until(lambda: len(desk.deliveries) == 6 - len(old))
            assert engine.held == 3
        await bench.eventually_consumer((3, 0))
        for delivery in desk.deliveries[3:]:
            engine.settle(delivery)
        await bench.eventually_consumer((0, 0))
        desk.released.set()


async def test_an_engine_is_not_emptied_before_tasks_of_a_lost_stream_end(
    bench: Bench,
) -> None:
    desk = Book(lasts=True)
    await bench.publish()
    async with bench.running(desk) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        await lose_stream(bench)
        engine.stop()
        emptied = asyncio.create_task(engine.emptied())
        # Turns of the loop in which it would end.
        for _ in range(5):
            await asyncio.sleep(0)
        assert not emptied.done()
        desk.released.set()
        async with asyncio.timeout(PATIENCE_S):
            await emptied
        assert engine.held == 0


async def test_a_lent_slot_is_had_again_before_anything_new_is_taken(
    bench: Bench,
) -> None:
    desk = Book(keeps=True)
    await bench.publish(4)
    async with bench.running(desk, slots=1) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        first = desk.deliveries[0]
        assert engine.lend(first)
        await desk.until(lambda: len(desk.deliveries) == 2)
        second = desk.deliveries[1]
        returning = asyncio.ensure_future(engine.reclaim(first))
        await asyncio.sleep(0.05)
        assert not returning.done()
        engine.settle(second)
        await returning
        await asyncio.sleep(0.1)
        assert (len(desk.deliveries), engine.held, engine.open) == (2, 1, 1)
        engine.settle(first)
        await desk.until(lambda: len(desk.deliveries) == 3)


async def test_a_lent_slot_of_a_run_that_ended_is_free(bench: Bench) -> None:
    desk = Book(keeps=True)
    await bench.publish(3)
    async with bench.running(desk, slots=1) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        engine.lend(desk.deliveries[0])
        engine.settle(desk.deliveries[0])
        await desk.until(lambda: len(desk.deliveries) == 2)
        assert (engine.held, engine.open) == (1, 1)
        engine.settle(desk.deliveries[1])
        await desk.until(lambda: len(desk.deliveries) == 3)


async def test_no_more_slots_are_lent_than_may_be(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lent_slots, "MOST_LENT", 1)
    desk = Book(keeps=True)
    await bench.publish(2)
    async with bench.running(desk, slots=2) as engine:
        await desk.until(lambda: len(desk.deliveries) == 2)
        assert [engine.lend(delivery) for delivery in desk.deliveries] == [True, False]
        for delivery in desk.deliveries:
            engine.settle(delivery)
