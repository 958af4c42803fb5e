"""Networks as settings name them."""

import ipaddress
from typing import TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks_in(text: str) -> tuple[Network, ...]:
    """Return the networks that *text* lists with commas between them, such as `10.0.0.0/8,::1`.

    Raises:
        ValueError: one of them is none; says which.
    """
    found: list[Network] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.append(ipaddress.ip_network(word))
        except ValueError as error:
            raise ValueError(f"{word!r} is no address and no network; write one such as 10.0.0.0/8") from error
    return tuple(found)
