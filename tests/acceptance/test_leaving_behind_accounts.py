"""With accounts and several NATS servers a worker that leaves keeps no task to itself that comes at its end."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from nats.aio.client import Client
from nats.aio.transport import TcpTransport

from deploy.privileges.roles import Cast
from tasklore.contracts import subjects
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.leases import Leases
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.runtime.messaging.streams import (
    StreamSizes,
    declare_consumer,
    declare_streams,
    find_consumer,
    task_sources,
)
from tasklore.runtime.metrics import Metrics
from tests.acceptance.guarded import GuardedCluster, guarded_cluster
from tests.servers import PATIENCE_S

AGENT = "FirstAgent"
CAST = Cast(workers={"first": (AGENT,)})
#: As it is shipped, and much longer than anything here takes: nothing comes back by it.
ACK_WAIT_S = 30.0
SLOTS = 16
SOURCE = task_sources(AGENT, ACK_WAIT_S)[0]
#: Seconds for which a worker that was killed may take tasks to its grave.
DEAD_S = 2.0
#: Graceful ends while ten tasks a second come.
ENDS = 3


@pytest.fixture(scope="module", params=[1, 3], ids=["one server", "three servers"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedCluster]:
    folder = tmp_path_factory.mktemp("leaving")
    with guarded_cluster(folder, CAST, nodes=request.param) as cluster:
        yield cluster


class Desk:
    """Notes what was taken, how late, and whether it had come back."""

    def __init__(self) -> None:
        self.taken: dict[bytes, float] = {}

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        for delivery in batch:
            self.taken[bytes(delivery.body)] = time.monotonic()
            line.settle(delivery)


class Workers:
    """Engines of one role, each with connections of its own to one of the servers."""

    def __init__(self, cluster: GuardedCluster) -> None:
        self.desk = Desk()
        self._cluster = cluster
        self._started = 0

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[PullEngine]:
        """Run an engine until the block ends: it leaves as a worker does."""
        url = self._cluster.nats_urls[self._started % len(self._cluster.nats_urls)]
        self._started += 1
        metrics = Metrics("test")

        def fail(error: BaseException) -> None:
            raise AssertionError from error

        async with (
            connected(url, "leaves") as client,
            Leases(
                url=url, ack_wait_s=ACK_WAIT_S, meter=metrics, failed=fail
            ) as leases,
        ):
            engine = PullEngine(
                link=Link(client),
                source=SOURCE,
                slots=SLOTS,
                handler=self.desk,
                leases=leases,
                meter=metrics,
                heal=lambda: find_consumer(
                    client, SOURCE, StreamSizes(), may_create=False
                ),
            )
            running = asyncio.create_task(engine.run())
            async with asyncio.timeout(PATIENCE_S):
                while not engine.ready or not engine._wanted:  # noqa: ASYNC110 - it asks when it has found it
                    await asyncio.sleep(0.01)
            yield engine
            engine.stop()
            async with asyncio.timeout(PATIENCE_S):
                await engine.emptied()
                await running


@pytest.fixture
async def boss(
    cluster: GuardedCluster, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Client]:
    """Make everything, and go on as a worker; what is returned may say and see what workers may not."""
    async with contextlib.AsyncExitStack() as stack:
        for variable, value in cluster.environment("bootstrap").items():
            monkeypatch.setenv(variable, value)
        maker = await stack.enter_async_context(
            connected(cluster.nats_urls[0], "maker")
        )
        async with asyncio.timeout(PATIENCE_S):
            await declare_streams(maker, StreamSizes(replicas=len(cluster.nodes)))
            await declare_consumer(maker, SOURCE)
        for variable, value in cluster.environment("supervisor").items():
            monkeypatch.setenv(variable, value)
        client = await stack.enter_async_context(connected(cluster.nats_urls[-1], "b"))
        for variable, value in cluster.environment("worker-first").items():
            monkeypatch.setenv(variable, value)
        yield client


async def pending(client: Client) -> tuple[int, int]:
    """Return how many tasks are with a worker, and how many wait for one."""
    told = await ask_jetstream(
        client, f"CONSUMER.INFO.{SOURCE.stream}.{SOURCE.durable}"
    )
    return told["num_ack_pending"], told["num_pending"]


async def until_known(client: Client, number: int) -> tuple[int, int]:
    """Return `pending` once the consumer's leader counts *number* in all: it follows the stream a moment later."""
    async with asyncio.timeout(ACK_WAIT_S / 2):
        while sum(found := await pending(client)) != number:  # noqa: ASYNC110 - another server is asked
            await asyncio.sleep(0.01)
    return found


async def test_what_comes_after_its_end_waits_for_others(
    cluster: GuardedCluster, boss: Client
) -> None:
    """None is given to a request that nobody hears any more; the next worker has all of them."""
    workers = Workers(cluster)
    async with workers.one():
        pass
    bodies = {b"after %d" % number for number in range(SLOTS)}
    for body in bodies:
        await boss.request(f"tasks.{AGENT}.x", body, timeout=PATIENCE_S)
    assert await until_known(boss, SLOTS) == (0, SLOTS)
    async with workers.one(), asyncio.timeout(ACK_WAIT_S / 2):
        while not bodies <= workers.desk.taken.keys():  # noqa: ASYNC110 - it is taken by another task
            await asyncio.sleep(0.01)


async def test_requests_of_one_that_was_killed_take_nothing_after_two_seconds(
    cluster: GuardedCluster, boss: Client
) -> None:
    """What they take waits for its lease, and behind accounts nobody sees that they are nobody's any more."""
    workers = Workers(cluster)
    bodies = {b"killed %d" % number for number in range(SLOTS)}
    async with workers.one() as engine:
        client = engine._link.client
        client.options["allow_reconnect"] = False
        assert isinstance(client._transport, TcpTransport)
        assert client._transport._io_writer is not None
        client._transport._io_writer.transport.abort()
        await asyncio.sleep(DEAD_S)
        for body in bodies:
            await boss.request(f"tasks.{AGENT}.x", body, timeout=PATIENCE_S)
        assert await until_known(boss, SLOTS) == (0, SLOTS)
    async with workers.one(), asyncio.timeout(ACK_WAIT_S / 2):
        while not bodies <= workers.desk.taken.keys():  # noqa: ASYNC110 - it is taken by another task
            await asyncio.sleep(0.01)


async def test_ends_under_load_keep_no_task(
    cluster: GuardedCluster, boss: Client
) -> None:
    """Ten tasks a second while workers leave one after another: each is taken long before any lease is over."""
    workers = Workers(cluster)
    sent: dict[bytes, float] = {}
    is_over = asyncio.Event()

    async def send() -> None:
        while not is_over.is_set():
            body = b"load %d" % len(sent)
            sent[body] = time.monotonic()
            await boss.request(f"tasks.{AGENT}.x", body, timeout=PATIENCE_S)
            await asyncio.sleep(0.1)

    async with workers.one():
        sending = asyncio.create_task(send())
        for _ in range(ENDS):
            async with workers.one():
                await asyncio.sleep(1.0)
        is_over.set()
        await sending
        async with asyncio.timeout(ACK_WAIT_S / 2):
            while sent.keys() - workers.desk.taken.keys():  # noqa: ASYNC110 - taken by another task
                await asyncio.sleep(0.01)
    late = sorted(workers.desk.taken[body] - at for body, at in sent.items())
    told = f"{len(late)} tasks, {ENDS} ends: median {late[len(late) // 2] * 1e3:.0f} ms, latest {late[-1] * 1e3:.0f} ms"
    print(told)  # noqa: T201 - the figures
    assert await until_known(boss, 0) == (0, 0), subjects.TASKS
