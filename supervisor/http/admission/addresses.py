"""Where a request comes from: the other end of its connection, or what a proxy that is believed says of it."""

import ipaddress
from collections.abc import Sequence
from typing import TypeAlias

from runtime.networks import Network

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Addresses of a header that are looked at: more proxies than that stand before nobody.
_MOST_HOPS = 20
#: Bits of an IPv6 address that one subscriber has at least; the others they choose freely.
_IPV6_PREFIX = 64


class Origins:
    """Tells one sender from another; *proxies* are believed when they say whom a request is from."""

    def __init__(self, proxies: Sequence[Network] = ()) -> None:
        self._proxies = tuple(proxies)

    def is_proxy(self, host: str) -> bool:
        """Tell whether the other end *host* of a connection is believed to speak for others."""
        address = _address(host)
        return address is not None and self._is_believed(address)

    def of(self, host: str, forwarded: Sequence[str] = ()) -> str:
        """Return whom a request on a connection from *host* is from; *forwarded* are its lines of X-Forwarded-For.

        The nearest address that is no believed proxy: what stands before it in the header, anybody may have written.
        An IPv6 address stands for its network of 64 bits.
        """
        found = _address(host)
        hops = [word.strip() for line in forwarded for word in line.split(",")]
        for word in reversed(hops[-_MOST_HOPS:]):
            if found is None or not self._is_believed(found):
                break
            before = _address(word)
            if before is None:
                break
            found = before
        return _spelled(found) if found is not None else host

    def _is_believed(self, address: Address) -> bool:
        return any(address in network for network in self._proxies)


def _address(text: str) -> Address | None:
    """Return the address that *text* is, with or without a port or brackets, None for anything else."""
    word = text.partition("]")[0].removeprefix("[") if text.startswith("[") else text
    if word.count(":") == 1:
        word = word.partition(":")[0]
    try:
        found = ipaddress.ip_address(word.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _spelled(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((int(address), _IPV6_PREFIX), strict=False))
