"""A Redis or Valkey client of which every call ends in time, whatever the server does.

The deadline covers a whole call: waiting for a connection, connecting, sending, reading and the one retry. The socket
timeouts of redis-py cover one read each, so that a call against a frozen server lasts several of them, and they cost a
third of a pipeline's time because every reply arms a timer.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.maint_notifications import MaintNotificationsConfig

from tasklore.contracts.errors import (
    ConfigurationError,
    Forbidden,
    UnknownCredentials,
    Unreachable,
)
from tasklore.runtime.access import access_of
from tasklore.runtime.servers.endpoints import REDIS_VARIABLE, masked_url

#: Seconds a call may last in all: the time the ledger is waited for; what is worth less brings a deadline of its own.
DEADLINE_S = 1.0
#: Seconds for a first answer: it takes a connection, and a packet of that which is lost is sent again after a second.
_FIRST_ANSWER_S = 3.0
#: Connections of one process: one pipeline serves many tasks, so that more would only be idle.
MAX_CONNECTIONS = 32


class _TimedPipeline(Pipeline):
    """A pipeline that is sent and answered within `deadline_s`, or not at all."""

    deadline_s: float
    turns: asyncio.Semaphore

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send the queued commands and return the replies; raises redis' TimeoutError past the deadline."""
        try:
            async with asyncio.timeout(self.deadline_s), self.turns:
                return await super().execute(raise_on_error)
        except TimeoutError as error:
            raise _too_late(self.deadline_s) from error

    async def immediate_execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command that cannot wait for the others (WATCH and reads after it), within the deadline."""
        try:
            # No turn is taken: `execute` comes here too, while it has one.
            async with asyncio.timeout(self.deadline_s):
                return await super().immediate_execute_command(*args, **options)  # type: ignore[no-untyped-call]  # theirs
        except TimeoutError as error:
            raise _too_late(self.deadline_s) from error


class Valkey(Redis):
    """A client whose commands and pipelines raise redis' TimeoutError past `deadline_s` and leave no broken connection.

    Subscriptions (`pubsub`) are not covered. A blocking command that may rightly last longer needs a client of its own
    with a longer deadline.
    """

    #: Seconds a call may last in all.
    deadline_s = DEADLINE_S
    #: Where it connects, without password.
    address = ""

    def __init__(self, *, max_calls: int = MAX_CONNECTIONS, **options: Any) -> None:
        super().__init__(**options)
        # Cheaper than the pool that blocks, which takes a lock twice for each call (8 of 75 us).
        self._turns = asyncio.Semaphore(max_calls)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send one command and return its reply."""
        try:
            async with asyncio.timeout(self.deadline_s), self._turns:
                return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]  # theirs
        except TimeoutError as error:
            raise _too_late(self.deadline_s) from error

    def pipeline(
        self, transaction: bool = True, shard_hint: str | None = None
    ) -> _TimedPipeline:
        """Return a pipeline that keeps the same deadline."""
        pipeline = _TimedPipeline(
            self.connection_pool, self.response_callbacks, transaction, shard_hint
        )
        pipeline.deadline_s = self.deadline_s
        pipeline.turns = self._turns
        return pipeline

    def client(self) -> "Valkey":
        """Return a client of one connection, for commands that must follow another on it (WAITAOF)."""
        single = Valkey(
            max_calls=1,
            connection_pool=self.connection_pool,
            single_connection_client=True,
        )
        single.deadline_s = self.deadline_s
        single.address = self.address
        return single

    async def check(self, deadline_s: float = _FIRST_ANSWER_S) -> None:
        """Return when the server answers a PING.

        Raises:
            UnknownCredentials: it does not know us.
            Forbidden: it does not let us ask.
            Unreachable: it does not within *deadline_s*; the message names address and cure.
        """
        try:
            async with asyncio.timeout(deadline_s):
                await self.execute_command("PING")
        except (AuthenticationError, NoPermissionError) as error:
            msg = f"{self.address} refuses the user or password in {REDIS_VARIABLE}; correct them there"
            is_known = isinstance(error, NoPermissionError)
            raise (Forbidden if is_known else UnknownCredentials)(msg) from error
        except (RedisError, OSError) as error:
            msg = f"no Redis or Valkey answers at {self.address}; start it or correct {REDIS_VARIABLE}"
            raise Unreachable(msg) from error


#: What names of connections end with, so that processes of before are told from those that know layout 2.
_READS_LAYOUTS = "@ledger-2"


def _ignore() -> None:
    """Do nothing."""


@contextlib.asynccontextmanager
async def connect(
    url: str,
    *,
    name: str = "tasklore",
    max_connections: int = MAX_CONNECTIONS,
    deadline_s: float = DEADLINE_S,
    reconnected: Callable[[], None] = _ignore,
) -> AsyncIterator[Valkey]:
    """Open a client called *name* on the server that answers in bytes, and close its connections at the end.

    Credentials come from the address, else from the environment, see `tasklore.runtime.access`.

    Nothing is connected before the first command, so that a process may start while the server is away (see `check`).
    A call that finds *max_connections* others under way waits for its turn, within its deadline. *reconnected* is told
    of every connection that was lost, or given up by us past a deadline, and stands again.

    Raises:
        ConfigurationError: *url* is no address of a Redis server, or a file of ours cannot be read.
    """
    access = access_of()
    options = connection_options(
        name, max_connections=max_connections, deadline_s=deadline_s
    )
    options |= access.redis_options(url)
    try:
        pool = ConnectionPool.from_url(url, **options)
    except (ValueError, TypeError) as error:
        msg = (
            f"{masked_url(url)!r} is not a Redis URL; set {REDIS_VARIABLE} to "
            "something like redis://127.0.0.1:6379/0"
        )
        raise ConfigurationError(msg) from error
    pool.connection_class = _telling_loss(
        pool.connection_class, access.redis_tls(url), reconnected
    )
    client = Valkey(max_calls=max_connections, connection_pool=pool)
    client.deadline_s = deadline_s
    client.address = masked_url(url)
    try:
        yield client
    finally:
        # Nothing is lost with a connection that cannot be closed in good order.
        with contextlib.suppress(RedisError, OSError):
            async with asyncio.timeout(deadline_s):
                await pool.disconnect()


def client_name(name: str) -> str:
    """Return what the server calls connections of *name*: it also says that they read both layouts of the ledger."""
    return name + _READS_LAYOUTS


def is_older(connection: str) -> bool:
    """Return whether the server calls a *connection* by a name that no process gives which reads both layouts.

    Connections without a name are none of ours, or have only just been opened.
    """
    return bool(connection) and not connection.endswith(_READS_LAYOUTS)


def connection_options(
    name: str,
    *,
    max_connections: int = MAX_CONNECTIONS,
    deadline_s: float = DEADLINE_S,
) -> dict[str, Any]:
    """Return how a pool of redis-py connects, without credentials; arguments as in `connect`."""
    return {
        # As many again for single connections and for pipelines that WATCH, which take no turns.
        "max_connections": 2 * max_connections,
        "client_name": client_name(name),
        # Both protocols cost the same; this one saves a round trip when connecting.
        "protocol": 2,
        # A server that was restarted is found with the first attempt, and answers the second.
        "retry": Retry(NoBackoff(), 1),
        "socket_connect_timeout": deadline_s,
        # The deadline is that of the whole call.
        "socket_timeout": None,
        # A feature of one vendor's cloud, and a courtesy of three commands a connection.
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
        "driver_info": None,
    }


def _telling_loss(
    kind: type[AbstractConnection],
    tls: ssl.SSLContext | None,
    reconnected: Callable[[], None],
) -> type[AbstractConnection]:
    """Return *kind* of connection with the library's own error for a transport that is closed, and *tls* for all.

    uvloop has a RuntimeError for it, which callers of Redis do not expect. The library reads the authorities of the
    system anew for each connection, in which it trusts beside ours: 40 ms of the event loop, most of a memory's budget.
    """

    class Telling(kind):  # type: ignore[misc, valid-type]  # the class is known when the address is
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._has_stood = False
            if tls is not None:
                self.ssl_context.context = tls

        async def on_connect_check_health(self, check_health: bool = True) -> None:
            await super().on_connect_check_health(check_health)
            if self._has_stood:
                reconnected()
            self._has_stood = True

        async def send_packed_command(
            self, command: Any, check_health: bool = True
        ) -> None:
            try:
                await super().send_packed_command(command, check_health)
            except RuntimeError as error:
                raise LostConnection(f"the connection was closed: {error}") from error

    return Telling


def _too_late(deadline_s: float) -> RedisTimeoutError:
    return RedisTimeoutError(f"no answer within {deadline_s:g} s")
