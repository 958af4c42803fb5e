"""Strangers: whoever shows no key that is known, limited by where they come from so that they cost others nothing.

A known key is let in whatever else comes from its address. Where no keys are demanded there are no strangers.
"""

import time
from collections.abc import Callable, Sequence

from supervisor.http.admission.addresses import Origins
from supervisor.http.admission.limits import Rates

#: Requests a second without a known key from one address: a person who reads the page, or a program whose key was
#: taken back and that asks again.
RATE = 5.0
#: Connections of one address that have shown no key yet, a quarter of all that there may be: the oldest makes room.
CONNECTIONS = 500
#: Addresses that are told apart; all others are one, as long as none of these has been silent for long enough.
ADDRESSES = 10_000

#: The other end of a connection: its host and port.
Peer = tuple[str, int]


class Strangers:
    """Counts what comes without a key that is known, by the addresses that *origins* tells.

    *rate* is in requests a second; *burst*, ten times as many unless given, is how many more come after a pause.
    """

    def __init__(
        self,
        origins: Origins | None = None,
        *,
        rate: float = RATE,
        burst: int | None = None,
        connections: int = CONNECTIONS,
        addresses: int = ADDRESSES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._origins = origins or Origins()
        self._most = connections
        self._rates = Rates(rate, burst or max(1, round(10 * rate)), monotonic, most=addresses)
        self._unproven: dict[Peer, str] = {}
        self._open: dict[str, dict[Peer, Callable[[], None]]] = {}

    def take(self, peer: Peer | None, forwarded: Sequence[str] = ()) -> int:
        """Return 0 and count one request without a known key, or the whole seconds after which there is room for it.

        *forwarded* are the lines of X-Forwarded-For that came with it.
        """
        host = peer[0] if peer is not None else ""
        return self._rates.take(self._origins.of(host, forwarded))

    def connect(self, peer: Peer | None, leave: Callable[[], None]) -> None:
        """Count a connection until it is known or closed; *leave* ends it when others of its address need the room.

        The oldest leaves: whoever has a key shows it at once, also where many connect that have none. Connections of a
        proxy that is believed are many people's, and are not counted.
        """
        if peer is None or self._origins.is_proxy(peer[0]):
            return
        address = self._origins.of(peer[0])
        if len(self._open.get(address, ())) >= self._most:
            self._dismiss(next(iter(self._open[address])))
        self._unproven[peer] = address
        self._open.setdefault(address, {})[peer] = leave

    def make_room(self) -> bool:
        """End the oldest connection that has shown no known key, of whatever address; False when there is none."""
        oldest = next(iter(self._unproven), None)
        if oldest is None:
            return False
        self._dismiss(oldest)
        return True

    def is_one(self, peer: Peer | None) -> bool:
        """Tell whether the connection from *peer* has shown no known key yet, and is no believed proxy's."""
        return peer in self._unproven

    def settle(self, peer: Peer | None) -> None:
        """Count a connection no more: it has shown a known key, or is closed."""
        if peer is None or (address := self._unproven.pop(peer, None)) is None:
            return
        del self._open[address][peer]
        if not self._open[address]:
            del self._open[address]

    def _dismiss(self, peer: Peer) -> None:
        leave = self._open[self._unproven[peer]][peer]
        self.settle(peer)
        leave()
