"""Clients without a known key: limited by address, so that they cost the others nothing.

A known key is admitted whatever else comes from its address. Where no keys are required there are no unknown clients.
"""

import ipaddress
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tasklore.runtime.networks import Network
from tasklore.supervisor.http.admission.limits import Rates

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
#: The other end of a connection: its host and port.
Peer = tuple[str, int]

#: Requests a second without a known key from one address: a person who reads the page, or a program with a revoked key.
RATE = 5.0
#: Addresses with a bucket of their own; all others share one while none of these has been silent for long enough.
ADDRESSES = 10_000
#: Addresses of an X-Forwarded-For header that are read: no deployment has more proxies in a row.
_MOST_HOPS = 20
#: Bits of an IPv6 address that one subscriber has at least and cannot choose.
_IPV6_PREFIX = 64


class Origins:
    """Resolves the address that a request comes from; X-Forwarded-For counts on connections from *proxies* alone."""

    def __init__(self, proxies: Sequence[Network] = ()) -> None:
        self._proxies = tuple(proxies)

    def of(self, host: str, forwarded: Sequence[str] = ()) -> str:
        """Return the nearest address that is no trusted proxy, from *host* on through the lines *forwarded*.

        A client can write anything before that into the header. An IPv6 address stands for its network of 64 bits.
        """
        found = _parse_address(host)
        hops = [word.strip() for line in forwarded for word in line.split(",")]
        for word in reversed(hops[-_MOST_HOPS:]):
            before = _parse_address(word) if self._is_trusted(found) else None
            if before is None:
                break
            found = before
        if isinstance(found, ipaddress.IPv6Address):
            return str(ipaddress.ip_network((int(found), _IPV6_PREFIX), strict=False))
        return str(found) if found is not None else host

    def is_proxy(self, host: str) -> bool:
        """Return whether *host*, the other end of a connection, is a trusted proxy."""
        return self._is_trusted(_parse_address(host))

    def _is_trusted(self, address: Address | None) -> bool:
        return address is not None and any(
            address in network for network in self._proxies
        )


def _parse_address(text: str) -> Address | None:
    """Return the address in *text*, with or without a port or brackets; None for anything else."""
    word = text.partition("]")[0].removeprefix("[") if text.startswith("[") else text
    if word.count(":") == 1:
        word = word.partition(":")[0]
    try:
        found = ipaddress.ip_address(word.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


class UnknownClients:
    """Counts requests and connections without a known key.

    *rate* is in requests a second of one address; *burst*, ten times as many by default, may follow a pause.
    """

    def __init__(
        self,
        origins: Origins | None = None,
        *,
        rate: float = RATE,
        burst: int | None = None,
        addresses: int = ADDRESSES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._origins = origins or Origins()
        self._rates = Rates(
            rate, burst or max(1, round(10 * rate)), monotonic, most=addresses
        )
        #: How to close each open connection that has shown no known key yet, the oldest first.
        self._open: dict[Peer, Callable[[], None]] = {}

    def take(self, peer: Peer | None, forwarded: Sequence[str] = ()) -> int:
        """Count one request of *peer* and return 0, or return the seconds after which there is room for it.

        *forwarded* are its lines of X-Forwarded-For.
        """
        return self._rates.take(
            self._origins.of(peer[0] if peer is not None else "", forwarded)
        )

    def connect(self, peer: Peer | None, close: Callable[[], None]) -> None:
        """Count a connection until `settle`; *close* ends it. A trusted proxy's are many people's and do not count."""
        if peer is not None and not self._origins.is_proxy(peer[0]):
            self._open[peer] = close

    def is_unknown(self, peer: Peer | None) -> bool:
        """Return whether the connection from *peer* counts, as it has shown no known key yet."""
        return peer in self._open

    def settle(self, peer: Peer | None) -> None:
        """Count the connection from *peer* no more: it has shown a known key, or is closed."""
        if peer is not None:
            self._open.pop(peer, None)

    def make_room(self) -> bool:
        """Close the oldest connection that has shown no known key; return False when there is none."""
        if (peer := next(iter(self._open), None)) is None:
            return False
        self._open.pop(peer)()
        return True
