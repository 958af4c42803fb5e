"""The limits of a file (TASKLORE_LIMITS_FILE), applied when a supervisor starts."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import structlog
from redis.asyncio import Redis

from tasklore.contracts.errors import (
    ConfigurationError,
    InvalidInput,
    MemoryUnavailable,
)
from tasklore.memory.budgets.store import Budgets, read_limits_file

log = structlog.get_logger(__name__)

#: Seconds until a store that was away is tried again.
_AGAIN_S = 5.0


async def apply_limits_file(
    redis: Redis, path: Path | None, spawn: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    """Apply the limits of the file at *path* unless the last ones of a file are equal; None applies none.

    While the store is away that is left to a task that *spawn* starts.

    Raises:
        ConfigurationError: it cannot be read, or a field does not fit; the message names it.
    """
    if path is None:
        return
    try:
        limits = read_limits_file(path)
    except InvalidInput as error:
        raise ConfigurationError(f"TASKLORE_LIMITS_FILE: {error}") from error
    budgets = Budgets(redis)

    async def apply() -> bool:
        try:
            version = await budgets.apply_file(limits, path.name)
        except MemoryUnavailable as error:
            log.warning("limits_not_applied", file=path.name, error=str(error))
            return False
        if version is not None:
            log.info("limits_applied", file=path.name, version=version)
        return True

    async def apply_later() -> None:
        while not await apply():  # noqa: ASYNC110  # a server is waited for
            await asyncio.sleep(_AGAIN_S)

    if not await apply():
        spawn(apply_later())
