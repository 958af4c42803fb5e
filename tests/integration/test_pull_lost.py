"""A pull engine whose stream or consumer is taken away, or whose connection broke: it finds its way again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from contracts.errors import ConfigurationError
from runtime.messaging.streams import declare_consumer
from runtime.servers.embedded import EmbeddedServers
from tests.integration.pulling import PATIENCE_S, Bench, Book, bench_on


@pytest.fixture
async def bench(servers: EmbeddedServers) -> AsyncIterator[Bench]:
    """Make a stream, its consumer and a connection."""
    async with bench_on(servers) as made:
        yield made


async def lose_stream(bench: Bench) -> None:
    """Delete the stream, make it anew, and return once the engine has noticed."""
    await bench.api(f"STREAM.DELETE.{bench.source.stream}")
    await bench.heal()
    await bench.eventually_counted("tasklore_orphaned_deliveries_total", 1)


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
        await bench.eventually_counted("tasklore_consumer_missing_total", 2)
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
            await bench.eventually_counted("tasklore_orphaned_deliveries_total", 1)
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


@pytest.mark.parametrize("stops_first", [False, True])
async def test_words_held_back_by_a_reconnect_are_said_before_the_end(bench: Bench, stops_first: bool) -> None:
    """Finished work is taken out and what had not begun is offered again, whether the end or the doubt came first."""
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


async def test_a_task_of_a_lost_stream_keeps_its_slot_until_it_ends(bench: Bench) -> None:
    """It is still at work: whoever took another one in its place would have more at work than there are slots."""
    desk = Book(lasts=True)
    await bench.publish()
    async with bench.running(desk, slots=1) as engine:
        await desk.until(lambda: len(desk.deliveries) == 1)
        await lose_stream(bench)
        await bench.publish()
        await bench.eventually_consumer((0, 1))
        info = await bench.api(f"CONSUMER.INFO.{bench.source.stream}.{bench.source.durable}")
        assert (info["num_waiting"], info["num_ack_pending"], info["num_pending"]) == (0, 0, 1)
        assert (engine.held, engine.vital_sign()[0]) == (1, True)
        desk.released.set()
        await desk.until(lambda: len(desk.deliveries) == 2)
        engine.settle(desk.deliveries[1])
        await bench.eventually_consumer((0, 0))


async def test_of_several_tasks_of_a_lost_stream_each_frees_its_own_slot(bench: Bench) -> None:
    """However it ends, and although nothing is said on it to the server, whose numbers mean others by now."""
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


async def test_an_engine_is_not_emptied_before_tasks_of_a_lost_stream_end(bench: Bench) -> None:
    """Whoever leaves waits for them too: their results are worth as much as those of others."""
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
