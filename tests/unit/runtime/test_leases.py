"""The leases on deliveries, without a server: which are renewed, and which no more."""

import gc
from typing import Any, cast

from nats.aio.client import Client

from tasklore.runtime.messaging.leases import Leases
from tasklore.runtime.metrics import Metrics


class Settling:
    """A connection; while it renews a delivery the event loop settles that."""

    is_connected = True

    def __init__(self, leases: Leases) -> None:
        self.renewed: list[str] = []
        self._leases = leases

    async def publish(self, reply: str, _word: bytes) -> None:
        """Note the renewal, and settle."""
        self.renewed.append(reply)
        self._leases.drop(reply)


async def test_a_delivery_that_is_settled_while_it_is_renewed_is_renewed_no_more() -> (
    None
):
    """The event loop and the thread of leases work side by side."""
    failures: list[BaseException] = []
    leases = Leases(
        url="nats://127.0.0.1:1",
        ack_wait_s=0.0,
        meter=Metrics(),
        failed=failures.append,
    )
    leases.hold("one")
    connection: Any = Settling(leases)
    for _ in range(3):
        await leases._renew(cast("Client", connection))
    assert connection.renewed == ["one"]
    assert failures == []


async def test_deliveries_that_arrive_while_leases_are_looked_through_end_no_worker() -> (
    None
):
    """The garbage collector may let the event loop in at each object that the thread makes."""
    leases = Leases(
        url="nats://127.0.0.1:1",
        ack_wait_s=0.0,
        meter=Metrics(),
        failed=lambda _error: None,
    )
    for number in range(3_000):
        leases.hold(f"early {number}")
    connection: Any = Settling(leases)

    def arrive(phase: str, _info: Any) -> None:
        leases.hold(f"late {phase} {len(leases._held)}")

    before = gc.get_threshold()
    gc.callbacks.append(arrive)
    try:
        gc.set_threshold(1)
        await leases._renew(cast("Client", connection))
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(arrive)
    assert {f"early {number}" for number in range(3_000)} <= set(connection.renewed)
