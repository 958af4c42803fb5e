"""Addresses of receivers: which are taken, and which IP address a name may lead to."""

import asyncio
import contextlib
import re
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import user_token
from tasklore.memory.webhooks.outbox import Callback
from tasklore.runtime.networks import Address, Network, is_public, plain_address

#: Characters of an address.
_LONGEST = 2_000
#: Names that are looked up at once.
_LOOK_UPS = 32
#: Only what every reader takes alike: no user, no fragment, no backslash, nothing outside ASCII.
_URL = re.compile(
    r"(https?)://([A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?((?:[/?][!-~]*)?)"
)


class NotAllowed(InvalidInput):
    """An address that is not sent to; its message names no other address than the receiver's own."""


class Receiver(NamedTuple):
    """The parts of an address: *host* as it was written, *target* is its path and query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def place(self) -> str:
        """The host and its port."""
        return f"{self.host}:{self.port}"

    @property
    def named(self) -> str:
        """The host, and its port where that is not the usual one."""
        return (
            self.host
            if self.port == (443 if self.scheme == "https" else 80)
            else self.place
        )


class Addresses:
    """Reads addresses and looks them up; *private* are networks that are allowed although they are not public.

    There alone plain `http` is allowed.
    """

    def __init__(self, private: Sequence[Network] = ()) -> None:
        self._private = private
        # Names of strangers may take long: these threads are of nobody else.
        self._threads = ThreadPoolExecutor(_LOOK_UPS, "webhook-look-up")

    def read(self, url: str) -> Receiver:
        """Return the parts of *url*.

        Raises:
            NotAllowed: it is no address of a receiver; says the cure.
        """
        found = (
            _URL.fullmatch(url)
            if len(url) <= _LONGEST and "\\" not in url and "#" not in url
            else None
        )
        if found is None or not 0 < int(found[3] or 443) < 65_536:
            raise NotAllowed(
                "is not a valid URL such as https://example.com/hooks of at most "
                f"{_LONGEST:,} characters, in ASCII, without a user, a password or a "
                "fragment"
            )
        scheme = found[1]
        host = found[2].lower()
        target = found[4]
        if scheme == "http" and not self._private:
            raise NotAllowed(
                "begins with http:; write https:, as other people can read the rest on its way"
            )
        receiver = Receiver(
            scheme, host, int(found[3] or (443 if scheme == "https" else 80)), target
        )
        # A name is looked up when it is sent to.
        with contextlib.suppress(ValueError):
            self._demand(receiver, plain_address(host.strip("[]")))
        return receiver._replace(
            target=target if target.startswith("/") else f"/{target}"
        )

    def make_callback(
        self, url: str, user_id: str | None = None, caller: Caller | None = None
    ) -> Callback:
        """Return *url*, which *caller* names, as an address that is to hear of something which concerns a user.

        Raises:
            NotAllowed: it is no address of a receiver; says the cure.
        """
        return Callback(
            url=url,
            host=self.read(url).place,
            owner=user_token(user_id) if user_id else "",
            caller=caller,
        )

    async def look_up(self, receiver: Receiver) -> str:
        """Return the IP address to connect to, the first one; each of *receiver* is allowed.

        Raises:
            NotAllowed: one of them is not.
            OSError: the name has none.
        """
        name = receiver.host.strip("[]")
        loop = asyncio.get_running_loop()
        ask = partial(
            socket.getaddrinfo,
            name,
            receiver.port,
            type=socket.SOCK_STREAM,
            proto=socket.IPPROTO_TCP,
        )
        found = await loop.run_in_executor(self._threads, ask)
        addresses = [str(place[0]) for _, _, _, _, place in found]
        for address in addresses:
            self._demand(receiver, plain_address(address))
        return addresses[0]

    def _demand(self, receiver: Receiver, address: Address) -> None:
        is_private = any(address in network for network in self._private)
        if not is_private and not is_public(address):
            raise NotAllowed(
                "leads to an address that is not public; TASKLORE_WEBHOOK_NETWORKS allows some"
            )
        if not is_private and receiver.scheme != "https":
            raise NotAllowed(
                "begins with http:; write https:, as other people can read the rest on its way"
            )
