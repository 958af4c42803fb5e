"""Networks as settings name them."""

import ipaddress
from typing import TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Bits of an IPv6 address before the IPv4 address that it spells.
_MAPPED_BITS = 96


def networks_in(text: str) -> tuple[Network, ...]:
    """Return the networks that *text* lists with commas between them, such as `10.0.0.0/8,::1`.

    Raises:
        ValueError: one of them is none; says which.
    """
    found: list[Network] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.append(_plain(ipaddress.ip_network(word)))
        except ValueError as error:
            raise ValueError(f"{word!r} is no address and no network; write one such as 10.0.0.0/8") from error
    return tuple(found)


def _plain(network: Network) -> Network:
    """Return the IPv4 network that an IPv6 one such as `::ffff:10.0.0.0/104` spells, and any other as it is."""
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is None or network.prefixlen < _MAPPED_BITS:
        return network
    return ipaddress.IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
