"""A connection to NATS that never gives up reconnecting, and says so when it is closed for good."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import nats.errors
import structlog
from nats.aio.client import Client

from tasklore.contracts.errors import Forbidden, UnknownCredentials, Unreachable
from tasklore.runtime.access import access_of
from tasklore.runtime.messaging.refusals import Connection, Refusals, ServerRefusal
from tasklore.runtime.servers.endpoints import addresses_in, masked_url

log = structlog.get_logger(__name__)

#: Seconds for the first connection: long enough for a server that is just starting, short enough for a person.
CONNECT_S = 5.0
#: Seconds between attempts to reconnect: an outage heals within the promised five seconds, and the three connections
#: of a process together ask fewer than five times a second meanwhile.
RECONNECT_WAIT_S = 0.75
#: Seconds between pings; two unanswered ones mean that the server is gone although the socket is not.
PING_S = 5.0
#: Seconds to hand over what is buffered when a connection is closed.
DRAIN_S = 5.0
#: What the errors say when one side does not take the other for who it should be.
_NOT_KNOWN = ("authorization", "authentication")
_NOT_US = (*_NOT_KNOWN, "certificate")
#: Bytes that may wait for the socket during an outage; what does not fit is published again by the outbox.
PENDING_BYTES = 16 * 1024 * 1024


def _ignore() -> None:
    """Do nothing."""


def _ignore_refusal(_refusal: ServerRefusal) -> None:
    """Do nothing: the refusal is in the log, and its waiting request fails."""


@dataclass(frozen=True, slots=True)
class ConnectionCallbacks:
    """Callbacks of a connection: each is called in the event loop, and must not raise.

    `closed` is called only for an end that this process did not ask for, `refused` for permission violations.
    """

    disconnected: Callable[[], None] = _ignore
    reconnected: Callable[[], None] = _ignore
    closed: Callable[[], None] = _ignore
    refused: Callable[[ServerRefusal], None] = _ignore_refusal


@asynccontextmanager
async def connected(
    url: str, name: str, listener: ConnectionCallbacks | None = None
) -> AsyncIterator[Client]:
    """Open a connection called *name* to *url*; on leaving, flush its buffer and close it.

    Credentials come from the environment, see `tasklore.runtime.access`. A refusal of the server ends a request at
    once.

    Raises:
        ConfigurationError: a file of ours cannot be read.
        UnknownCredentials: a server answers and does not know us.
        Forbidden: it refuses us otherwise.
        Unreachable: no answer within `CONNECT_S`.
    """
    closing: list[bool] = []
    client = await _connect(url, name, listener or ConnectionCallbacks(), closing)
    try:
        yield client
    finally:
        closing.append(True)
        await _close(client)


async def _connect(
    url: str, name: str, listener: ConnectionCallbacks, closing: list[bool]
) -> Client:
    async def on_disconnected() -> None:
        if not closing:
            log.warning(
                "nats_lost",
                connection=name,
                cure="it is tried again until NATS answers; what waits is kept there",
            )
        listener.disconnected()

    async def on_reconnected() -> None:
        log.info("nats_reconnected", connection=name)
        listener.reconnected()

    async def on_closed() -> None:
        if not closing:
            listener.closed()

    access = access_of()
    options = access.nats_options()
    client = Connection(Refusals(access.role, options.get("inbox_prefix", "_INBOX")))
    client.refusals.listen(listener.refused)
    strangeness: list[str] = []
    try:
        async with asyncio.timeout(CONNECT_S):
            await client.connect(
                addresses_in(url),
                disconnected_cb=on_disconnected,
                reconnected_cb=on_reconnected,
                closed_cb=on_closed,
                error_cb=_errors_of(name, client, strangeness),
                **_settled(name),
                **options,
            )
            return client
    except (TimeoutError, OSError, nats.errors.Error) as error:
        if strangeness:
            msg = (
                f"the NATS server at {masked_url(url)} refuses us ({strangeness[-1]}); "
                "correct TASKLORE_NATS_URL, or the credentials "
                "(TASKLORE_NATS_SEED_FILE, TASKLORE_NATS_CA_FILE)"
            )
            is_known = not any(word in strangeness[-1].lower() for word in _NOT_KNOWN)
            raise (Forbidden if is_known else UnknownCredentials)(msg) from error
        msg = f"no NATS server answers at {masked_url(url)}; start it or correct TASKLORE_NATS_URL"
        raise Unreachable(msg) from error


def _errors_of(
    name: str, client: Connection, strangeness: list[str]
) -> Callable[[Exception], Awaitable[None]]:
    """Return a listener to errors, which notes in *strangeness* those of two sides that do not know each other."""

    async def hear(error: Exception) -> None:
        words = str(error) or type(error).__name__
        if client.refusals.hear(error):
            return
        if any(word in words.lower() for word in _NOT_US):
            strangeness.append(words)
            if client.is_connecting:
                # Whoever connects is told by the error.
                return
        if (
            not isinstance(error, nats.errors.UnexpectedEOF | OSError)
            and strangeness.count(words) < 2
        ):
            log.warning("nats_error", connection=name, error=words)

    return hear


def _is_news(record: logging.LogRecord) -> bool:
    """Tell whether asyncio's *record* is any: nats-py upgrades its streams to TLS, and each end is warned about."""
    return "eof_received() has no effect when using ssl" not in record.getMessage()


logging.getLogger("asyncio").addFilter(_is_news)


def _settled(name: str) -> dict[str, Any]:
    """Return the options of every connection; the library's types want whole seconds, it takes others."""
    return {
        "name": name,
        "connect_timeout": 2,
        "reconnect_time_wait": RECONNECT_WAIT_S,
        "max_reconnect_attempts": -1,
        "ping_interval": PING_S,
        "max_outstanding_pings": 2,
        "pending_size": PENDING_BYTES,
        "drain_timeout": DRAIN_S,
        "skip_subject_validation": True,  # tasklore.contracts.subjects has checked every part
    }


async def _close(client: Client) -> None:
    if client.is_closed:
        return
    try:
        async with asyncio.timeout(DRAIN_S):
            if client.is_connected:
                await client.flush()
            await client.close()
    except (TimeoutError, OSError, RuntimeError, nats.errors.Error) as error:
        # A RuntimeError is uvloop's word for a socket that is gone.
        log.warning("nats_close_incomplete", error=str(error) or type(error).__name__)
