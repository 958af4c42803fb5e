"""The limits of a file (TASKLORE_LIMITS_FILE), applied when a supervisor starts."""

import asyncio
from pathlib import Path

import structlog
from redis.asyncio import Redis

from contracts.errors import ConfigurationError, InvalidInput, MemoryUnavailable
from memory.budgets.store import Budgets, read_limits_file

log = structlog.get_logger(__name__)

#: Seconds until a store that was away is tried again.
_AGAIN_S = 5.0


class LimitsFile:
    """The limits of the file at *path*, read once.

    Raises:
        ConfigurationError: it cannot be read, or a field does not fit; the message names it.
    """

    def __init__(self, redis: Redis, path: Path) -> None:
        self._budgets = Budgets(redis)
        self._name = path.name
        try:
            self._limits = read_limits_file(path)
        except InvalidInput as error:
            raise ConfigurationError(f"TASKLORE_LIMITS_FILE: {error}") from error

    async def apply(self) -> bool:
        """Apply the limits unless the last ones of a file are equal; return False while the store is away."""
        try:
            version = await self._budgets.apply_file(self._limits, self._name)
        except MemoryUnavailable as error:
            log.warning("limits_not_applied", file=self._name, error=str(error))
            return False
        if version is not None:
            log.info("limits_applied", file=self._name, version=version)
        return True

    async def run(self) -> None:
        """Apply the limits once the store is back."""
        while not await self.apply():  # noqa: ASYNC110  # a server is waited for
            await asyncio.sleep(_AGAIN_S)
