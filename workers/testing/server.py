"""The Valkey of testing kits: one a process, started by the first kit that stores anything, and a database a kit.

It writes nothing to disk and ends with its process, however that ends (`runtime.servers.child`).
"""

import asyncio
import atexit
import gc
import os
import shutil
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import redis
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection

from tasklore.runtime.servers.embedded import ValkeyServer
from tasklore.runtime.servers.valkey import Valkey, connection_options
from tasklore.workers.testing.stores import PATIENCE_S

#: Databases of the server, which cost nothing while they are empty: kits that may be there at a time.
_DATABASES = 10_000

#: Databases after which kits that nobody has any more are looked for: they are part of cycles, and hold a connection.
_GARBAGE_EVERY = 100


class KitValkey(ValkeyServer):
    """A valkey-server that keeps nothing on disk."""

    cure = (
        "a testing kit keeps what tasks store in one of its own: install `tasklore[embedded]`, "
        "or put valkey-server or redis-server 7 or newer on the PATH"
    )

    def command(self, port: int) -> list[str]:
        """Return the settings as arguments."""
        own = ["--appendonly", "no", "--databases", str(_DATABASES)]
        return [*super().command(port), *own]


class KitServer:
    """The server of one process and its databases; safe to use from several threads, each with an event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._valkey: KitValkey | None = None
        self._free: deque[int] = deque()
        self._taken = 0
        self._pools: dict[asyncio.AbstractEventLoop, dict[int, KitPool]] = {}

    def take(self) -> int:
        """Return the number of an empty database; the first time it starts the server, which takes some 50 ms.

        Raises:
            ConfigurationError: no server can run here; the message says what to install.
            Unreachable: it does not answer.
        """
        with self._lock:
            if self._valkey is None:
                self._start()
            # Given back by a finalizer, which may run at any moment: it takes no lock.
            if not self._free and self._taken % _GARBAGE_EVERY == 0:
                gc.collect()
            if not self._free:
                self._taken += 1
                return self._taken - 1
            number = self._free.popleft()
            self._empty(number)
            return number

    def give_back(self, number: int) -> None:
        """Let another kit have the database *number*."""
        self._free.append(number)

    def pool(self, number: int) -> "KitPool":
        """Return the connections of the running loop to the database *number*."""
        loop = asyncio.get_running_loop()
        pools = self._pools.setdefault(loop, {})
        if number not in pools:
            for ended in [one for one in list(self._pools) if one.is_closed()]:
                self._pools.pop(ended, None)
            options = connection_options("kit", deadline_s=PATIENCE_S)
            # No credentials from the environment: they are those of other servers.
            pools[number] = KitPool.from_url(f"{self._url}/{number}", **options)
            pools[number].at_end = lambda: self._pools.pop(loop, None)
        return pools[number]

    @property
    def _url(self) -> str:
        assert self._valkey is not None  # noqa: S101 - whoever has a number has started it
        return self._valkey.url

    def _start(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="tasklore-kit-"))
        valkey = KitValkey(folder)
        try:
            _wait_for(valkey)
        finally:
            # Nothing is written from now on; without a folder nothing is left when we are killed.
            shutil.rmtree(folder, ignore_errors=True)
        atexit.register(self._end, os.getpid())
        self._valkey = valkey

    def _end(self, pid: int) -> None:
        # A forked child has our atexit handlers, and no server.
        if self._valkey is not None and os.getpid() == pid:
            self._valkey.discard()

    def _empty(self, number: int) -> None:
        with redis.Redis.from_url(
            f"{self._url}/{number}", socket_timeout=PATIENCE_S
        ) as client:
            client.flushdb()


class KitPool(ConnectionPool):
    """Connections of one event loop to one database, closed when the loop shuts its asynchronous generators down."""

    at_end: Callable[[], object]
    _closing: AsyncGenerator[None, None] | None = None

    async def get_connection(self, *words: Any, **options: Any) -> AbstractConnection:
        """Return a connection, as the library does."""
        if self._closing is None:
            # `asyncio.run`, and all that runs tests in its way, ends generators that were begun on the loop.
            self._closing = self._until_the_loop_ends()
            await anext(self._closing)
        connection: AbstractConnection = await super().get_connection(*words, **options)  # type: ignore[no-untyped-call]  # theirs
        return connection

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self.at_end()
            await self.disconnect()


class KitDatabase:
    """An empty database, for this object alone for as long as it lives."""

    def __init__(self) -> None:
        self._server = _servers.setdefault(os.getpid(), KitServer())
        self._number = self._server.take()
        giving_back = weakref.finalize(self, self._server.give_back, self._number)
        giving_back.atexit = False

    def client(self) -> Valkey:
        """Return a client for the running event loop; what another loop stored is there."""
        client = Valkey(connection_pool=self._server.pool(self._number))
        client.deadline_s = PATIENCE_S
        return client


#: The server of each process, by its id: a child that was forked starts one of its own.
_servers: dict[int, KitServer] = {}


def _wait_for(valkey: KitValkey) -> None:
    """Start *valkey* whatever loop runs in this thread."""
    failed: list[BaseException] = []

    def start() -> None:
        try:
            asyncio.run(valkey.start())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            failed.append(error)

    thread = threading.Thread(target=start, name="kit-server")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
