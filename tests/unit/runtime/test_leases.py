"""The leases on deliveries, without a server: which are renewed, and which no more."""

from typing import Any, cast

from nats.aio.client import Client

from runtime.messaging.leases import Leases
from runtime.metrics import Metrics


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


async def test_a_delivery_that_is_settled_while_it_is_renewed_is_renewed_no_more() -> None:
    """The event loop and the thread of leases work side by side."""
    failures: list[BaseException] = []
    leases = Leases("nats://127.0.0.1:1", 0.0, Metrics(), failures.append)
    leases.hold("one")
    connection: Any = Settling(leases)
    for _ in range(3):
        await leases._renew(cast("Client", connection))
    assert connection.renewed == ["one"]
    assert failures == []
