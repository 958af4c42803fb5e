"""Tasks that wait for room under a limit, woken as soon as there is some: by a change, a refund or another day."""

from collections.abc import Callable
from datetime import UTC, datetime

from redis.asyncio import Redis

from tasklore.contracts.admission.limits import Limits, window_of
from tasklore.contracts.zones import zone_of
from tasklore.memory import keys
from tasklore.memory.budgets import scripts
from tasklore.memory.budgets.store import WAITING, kind_of, read_stored
from tasklore.memory.command_batch import Command, CommandBatch

_DEADLINE_S = 1.0


class WaitingTasks:
    """Says which tasks may ask a model now that found no room before; methods may raise MemoryUnavailable.

    *now* is the clock that says which day it is, in UTC.
    """

    def __init__(
        self,
        client: Redis,
        *,
        deadline_s: float = _DEADLINE_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._batch = CommandBatch(client, deadline_s)
        self._now = now
        self._version: bytes | None = None
        self._limits = Limits()

    async def wake(self, most: int) -> list[str]:
        """Return up to *most* tasks, "id:generation", as many as there is room for, in the order of their turns.

        Whoever is returned is not so again for ten seconds, in which it is to ask. One that does so without finding
        room waits on.
        """
        while True:
            woken = (await self._batch.run([self._command(most)]))[0]
            if woken is not None:
                return [one.decode() for one in woken]
            self._version, self._limits = await read_stored(self._batch)

    async def wake_again(self, task: str) -> None:
        """Let *task* be woken again at once: its wake-up did not reach it."""
        await self._settle_wake(task, 0)

    async def forget(self, task: str) -> None:
        """Wake *task* no more: it runs no more."""
        await self._settle_wake(task, 1)

    async def _settle_wake(self, task: str, is_over: int) -> None:
        waiters, looks, _, freed = (keys.budget(one) for one in WAITING)
        places = waiters, looks, freed
        await self._batch.run(
            [("FCALL", scripts.SETTLE_WAKE, len(places), *places, "", task, is_over)]
        )

    def _command(self, most: int) -> Command:
        now = self._now()
        zone = zone_of(self._limits.time_zone)
        rows: list[str | int] = []
        for limit in self._limits.limits:
            if limit.at_most is None:
                window, _ = window_of(limit.every, now, zone)
                rows += limit.name, kind_of(limit), limit.amount, window
        places = [keys.budget(one) for one in ("limits", *WAITING)]
        version = (self._version or b"0").decode()
        return (
            "FCALL",
            scripts.WAKE,
            len(places),
            *places,
            "",
            version,
            most,
            *rows,
        )
