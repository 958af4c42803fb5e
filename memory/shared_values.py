"""Values that one of many processes reads for all: the others take its copy while that is fresh."""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError
from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory.command_batch import CommandBatch

_LEASE_MS = 3_000
#: Seconds between looks at whether another process has read it, which takes it a fraction of one.
_PAUSE_S = 0.2

Value = TypeVar("Value")


class AgedValue(NamedTuple, Generic[Value]):
    """A value that was read *age_s* seconds ago."""

    value: Value
    age_s: float


class SharedReading(Generic[Value]):
    """Reads for all processes what each would read for itself.

    Args:
        client: Where it is kept.
        keys: The key of what was read, and of the lease of the process that reads.
        keep_ms: Milliseconds for which a reading is that of all.
        kind: How it is kept; what does not fit is read again.
        deadline_s: Seconds for one step with the store.
    """

    def __init__(
        self,
        client: Redis,
        keys: tuple[str, str],
        *,
        keep_ms: int,
        kind: TypeAdapter[Value],
        deadline_s: float = 2.0,
    ) -> None:
        self._batch = CommandBatch(client, deadline_s)
        self._key, self._lease_key = keys
        self._keep_ms = keep_ms
        self._kind = kind

    async def take(self, read: Callable[[], Awaitable[Value]]) -> AgedValue[Value]:
        """Return what a process read within `keep_ms`; where none did, *read* and keep it.

        One process at a time reads; when it takes longer than its lease, or died, the next one does. One that fails
        lets the next one try at once. Whoever has waited for as long as a lease reads for itself.

        Raises:
            MemoryUnavailable: the store did not answer in time.
        """
        token = secrets.token_hex(8)
        lease = ("SET", self._lease_key, token, "NX", "PX", _LEASE_MS)
        loop = asyncio.get_running_loop()
        waits_until = loop.time() + _LEASE_MS / 1000
        while True:
            kept, left_ms = await self._batch.run(
                [("GET", self._key), ("PTTL", self._key)]
            )
            if kept is not None:
                try:
                    value = self._kind.validate_json(kept)
                except ValidationError:
                    # Whoever wrote it, it is read again.
                    pass
                else:
                    return AgedValue(value, max(0, self._keep_ms - left_ms) / 1000)
            if (await self._batch.run([lease]))[0] or loop.time() >= waits_until:
                break
            await asyncio.sleep(_PAUSE_S)
        try:
            value = await read()
        except Exception:
            await self._give_back(token)
            raise
        # The lease lapses by itself: it may be that of the next process by now, and what is kept stops the others.
        kept_value = self._kind.dump_json(value)
        await self._batch.run([("SET", self._key, kept_value, "PX", self._keep_ms)])
        return AgedValue(value, 0.0)

    async def _give_back(self, token: str) -> None:
        """Let the next process read, unless the lease is no longer that of *token*."""
        # It lapses soon by itself, and two that read side by side do no harm.
        with contextlib.suppress(MemoryUnavailable):
            holder = (await self._batch.run([("GET", self._lease_key)]))[0]
            if holder == token.encode():
                await self._batch.run([("DEL", self._lease_key)])
