"""Every function of this version, and how a server is given them.

`LIBRARIES` is filled by the modules that load Lua, as they are imported: the list of stores imports all of them, so
that a process which calls few functions still offers every one of them.
"""

import contextlib

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError, ResponseError

from tasklore.contracts.errors import Forbidden, MemoryUnavailable, Unreachable
from tasklore.memory import stores as _stores  # noqa: F401 - imports every module that loads Lua
from tasklore.memory.command_batch import demand_loaded
from tasklore.memory.scripts import LIBRARIES

__all__ = ["LIBRARIES", "load_functions", "offer_functions"]


async def load_functions(client: Redis) -> None:
    """Give the server every function that it lacks; those of other versions stay.

    Raises:
        Forbidden: this user may not load functions.
        MemoryUnavailable: the server did not answer in time, or has no room for them.
    """
    try:
        for library in LIBRARIES.values():
            try:
                await client.function_load(library)
            except ResponseError as error:
                demand_loaded(error)
    except NoPermissionError as error:
        raise Forbidden(f"Redis refuses: {error}") from error
    except (OSError, RedisError) as error:
        raise MemoryUnavailable(
            f"Redis took no functions: {str(error) or type(error).__name__}"
        ) from error


async def offer_functions(client: Redis) -> None:
    """Load functions if the server is there and lets us; `CommandBatch` loads missing ones when they are called."""
    with contextlib.suppress(Unreachable):
        await load_functions(client)
