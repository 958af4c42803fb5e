"""A connection to NATS that never gives up reconnecting, and says so when it is closed for good."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import nats
import nats.errors
import structlog
from nats.aio.client import Client

from contracts.errors import Unreachable
from runtime.endpoints import addresses_in, masked_url

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
#: Bytes that may wait for the socket during an outage; what does not fit is published again by the outbox.
PENDING_BYTES = 16 * 1024 * 1024


def _ignore() -> None:
    """Do nothing, for a listener nobody needs."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Whom to tell about a connection: each is called without arguments, in the event loop.

    `closed` is told only of an end that nobody here asked for.
    """

    disconnected: Callable[[], None] = _ignore
    reconnected: Callable[[], None] = _ignore
    closed: Callable[[], None] = _ignore


@asynccontextmanager
async def connected(url: str, name: str, listener: Listener | None = None) -> AsyncIterator[Client]:
    """Open a connection called *name* to *url*; on leaving, what is buffered is flushed and it is closed.

    Raises:
        Unreachable: nobody answers within `CONNECT_S`.
    """
    closing: list[bool] = []
    client = await _connect(url, name, listener or Listener(), closing)
    try:
        yield client
    finally:
        closing.append(True)
        await _close(client)


async def _connect(url: str, name: str, listener: Listener, closing: list[bool]) -> Client:
    async def on_disconnected() -> None:
        listener.disconnected()

    async def on_reconnected() -> None:
        log.info("nats_reconnected", connection=name)
        listener.reconnected()

    async def on_closed() -> None:
        if not closing:
            listener.closed()

    refusals: list[str] = []

    async def on_error(error: Exception) -> None:
        words = str(error) or type(error).__name__
        if "authorization" in words.lower():
            refusals.append(words)
        if not isinstance(error, nats.errors.UnexpectedEOF | OSError) and refusals.count(words) < 2:
            log.warning("nats_error", connection=name, error=words)

    try:
        async with asyncio.timeout(CONNECT_S):
            return await nats.connect(
                addresses_in(url),
                name=name,
                connect_timeout=2,
                reconnect_time_wait=RECONNECT_WAIT_S,
                max_reconnect_attempts=-1,
                ping_interval=PING_S,
                max_outstanding_pings=2,
                pending_size=PENDING_BYTES,
                drain_timeout=DRAIN_S,
                skip_subject_validation=True,  # contracts.subjects has checked every part
                disconnected_cb=on_disconnected,
                reconnected_cb=on_reconnected,
                closed_cb=on_closed,
                error_cb=on_error,
            )
    except (TimeoutError, OSError, nats.errors.Error) as error:
        if refusals:
            msg = f"the NATS server at {masked_url(url)} refuses us ({refusals[-1]}); correct TASKLORE_NATS_URL"
            raise Unreachable(msg) from error
        msg = f"no NATS server answers at {masked_url(url)}; start it or correct TASKLORE_NATS_URL"
        raise Unreachable(msg) from error


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
