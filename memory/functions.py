"""Every function of this version, and how a server is given them."""

import contextlib

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError, ResponseError

from contracts.errors import Forbidden, MemoryUnavailable, Unreachable
from memory.command_batch import demand_loaded

# Each registers its own.
from memory.scripts import LIBRARIES


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
        raise MemoryUnavailable(f"Redis took no functions: {error or type(error).__name__}") from error


async def offer_functions(client: Redis) -> None:
    """Load functions if the server is there and lets us; `CommandBatch` loads missing ones when they are called."""
    with contextlib.suppress(Unreachable):
        await load_functions(client)
