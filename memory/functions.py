"""Every function of this version, and how a server is given them.

`LIBRARIES` is filled by the modules that load Lua, as they are imported: all of them are imported here, so that a
process which calls few functions still offers every one of them.
"""

import contextlib

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError, ResponseError

from tasklore.contracts.errors import Forbidden, MemoryUnavailable, Unreachable
from tasklore.memory.budgets import scripts as _budgets  # noqa: F401 - registers its functions, as all below
from tasklore.memory.command_batch import demand_loaded
from tasklore.memory.conversations import scripts as _conversations  # noqa: F401
from tasklore.memory.documents.storage import scripts as _documents  # noqa: F401
from tasklore.memory.episodes import store as _episodes  # noqa: F401
from tasklore.memory.episodes import vectors as _vectors  # noqa: F401
from tasklore.memory.holdings import scripts as _holdings  # noqa: F401
from tasklore.memory.ledger import scripts as _ledger  # noqa: F401
from tasklore.memory.long_term import scripts as _long_term  # noqa: F401
from tasklore.memory.places import scripts as _places  # noqa: F401
from tasklore.memory.projects import scripts as _projects  # noqa: F401
from tasklore.memory.queues import scripts as _queues  # noqa: F401
from tasklore.memory.schedules import scripts as _schedules  # noqa: F401
from tasklore.memory.scripts import LIBRARIES
from tasklore.memory.sessions import pipeline_scripts as _pipelines  # noqa: F401
from tasklore.memory.sessions import scripts as _sessions  # noqa: F401
from tasklore.memory.stories import scripts as _stories  # noqa: F401
from tasklore.memory.webhooks import scripts as _webhooks  # noqa: F401

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
