"""The addresses of the servers of a command, and a cheap look at whether they listen.

asyncio and the names of pydantic are imported where they are used: a client of the API alone needs neither.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tasklore.contracts.errors import ConfigurationError, MemoryUnavailable, Unreachable
from tasklore.runtime.servers.endpoints import (
    DATA_DIR_VARIABLE,
    DEFAULT_DATA_DIR,
    NATS_VARIABLE,
    REDIS_VARIABLE,
    Endpoints,
    find_endpoints,
    masked_url,
    read_endpoints,
)

if TYPE_CHECKING:
    from tasklore.runtime.servers.valkey import Valkey

#: Seconds that a client waits for a system that is starting.
STARTS_WITHIN_S = 60.0
#: The file that holds the id of the process which starts a system, for as long as it does.
_STARTING = "starting"

#: Seconds in which a server accepts a connection; one that is up needs milliseconds.
_LISTENS_WITHIN_S = 2.0

_PORTS = {"nats": 4222, "tls": 4222, "redis": 6379, "rediss": 6379}


def current_endpoints() -> Endpoints:
    """Return the servers that the environment or `endpoints.json` names.

    Raises:
        Unreachable: neither does: nothing was started, or it is still starting.
        ConfigurationError: the file is there and cannot be read.
    """
    read_endpoints(endpoints_dir())
    try:
        return find_endpoints(os.environ)
    except ConfigurationError as error:
        if is_starting(endpoints_dir()):
            directory = str(endpoints_dir())
            raise Unreachable(
                f"the system in {directory!r} is starting; try again in a few seconds"
            ) from error
        raise Unreachable(str(error)) from error


@contextlib.contextmanager
def starting_in(directory: Path) -> Iterator[None]:
    """Let clients see for the length of the block that a system starts in *directory*."""
    mark = directory / _STARTING
    mark.write_text(f"{os.getpid()}\n")
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)


def is_starting(directory: Path) -> bool:
    """Return whether a live process is starting a system in *directory*."""
    try:
        os.kill(int((directory / _STARTING).read_text()), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True


def endpoints_dir() -> Path:
    """Return the directory in which `endpoints.json` is looked for."""
    return Path(os.environ.get(DATA_DIR_VARIABLE) or DEFAULT_DATA_DIR)


async def demand_listener(url: str) -> None:
    """Return when a server accepts connections at *url*; several addresses are left to the client library.

    Raises:
        Unreachable: none does; the message names the address and the cure.
    """
    import asyncio

    parts = urlsplit(url)
    if "," in url or parts.hostname is None or parts.scheme not in _PORTS:
        return
    what, variable = (
        ("NATS server", NATS_VARIABLE)
        if _PORTS[parts.scheme] == 4222
        else ("Redis", REDIS_VARIABLE)
    )
    try:
        async with asyncio.timeout(_LISTENS_WITHIN_S):
            _, writer = await asyncio.open_connection(
                parts.hostname, parts.port or _PORTS[parts.scheme]
            )
    except (OSError, TimeoutError, ValueError) as error:
        msg = f"no {what} answers at {masked_url(url)}; start the system with `tasklore up`, or correct {variable}"
        raise Unreachable(msg) from error
    writer.close()


@contextlib.asynccontextmanager
async def open_redis(name: str, deadline_s: float) -> "AsyncIterator[Valkey]":
    """Open a connection, as *name*, to the Redis of the system that runs here.

    Raises:
        Unreachable: no system runs here, its Redis does not answer, or a store in the block says so.
    """
    from tasklore.runtime.servers import valkey

    url = current_endpoints().redis_url
    await demand_listener(url)
    async with valkey.connect(url, name=name, deadline_s=deadline_s) as client:
        await client.check()
        try:
            yield client
        except MemoryUnavailable as error:
            raise Unreachable(str(error)) from error
