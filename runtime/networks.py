"""Networks as settings name them."""

import ipaddress
from typing import TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Bits of an IPv6 address before the IPv4 address that it spells.
_MAPPED_BITS = 96
#: Where IPv6 addresses of the internet lie.
_GLOBAL = ipaddress.ip_network("2000::/3")
#: Networks that older Pythons take for public: of protocols and of metadata services (192.0.0.192, 168.63.129.16), and
#: ways to IPv4 addresses (Teredo and the like, 6to4 and its relays).
_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",
            "168.63.129.16/32",
            "192.88.99.0/24",
            "2001::/23",
            "2002::/16",
            "3fff::/20",
        ),
    )
)


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
            raise ValueError(
                f"{word!r} is not an address or network; write one such as 10.0.0.0/8"
            ) from error
    return tuple(found)


def _plain(network: Network) -> Network:
    """Return the IPv4 network that an IPv6 one such as `::ffff:10.0.0.0/104` spells, and any other as it is."""
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is None or network.prefixlen < _MAPPED_BITS:
        return network
    return ipaddress.IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))


def plain_address(text: str) -> Address:
    """Return the address in *text*, an IPv4 one where an IPv6 one such as `::ffff:127.0.0.1` spells it.

    Raises:
        ValueError: it is none.
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def is_public(address: Address) -> bool:
    """Return whether *address* is one of the internet, of a single host, and no way to another one."""
    if (
        not address.is_global
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    ):
        return False
    return not any(address in network for network in _NOT_PUBLIC) and (
        address.version == 4 or address in _GLOBAL
    )
