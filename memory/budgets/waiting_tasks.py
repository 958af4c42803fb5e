"""Tasks that wait for room under a limit, woken as soon as there is some: by a change, a refund or another day."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

from redis.asyncio import Redis

from tasklore.contracts.admission.limits import Limits, window_of
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.zones import read_zone
from tasklore.memory import keys
from tasklore.memory.budgets import scripts
from tasklore.memory.budgets.governor import renewal
from tasklore.memory.budgets.store import WAITING, WAKING, kind_of, read_stored
from tasklore.memory.command_batch import Command, CommandBatch

_DEADLINE_S = 1.0
#: Scripts in one look, of which each looks at a bounded number of accounts and of tasks.
_PAGES = 4


class WaitingTasks:
    """Says which tasks may ask a model now that found no room before; methods may raise MemoryUnavailable.

    Of many processes one is told of them, until it has not asked for three seconds. *now* is the clock that says which
    day it is, in UTC.
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
        self._process = secrets.token_hex(8)
        self._version: bytes | None = None
        self._limits = Limits()
        #: The account behind which the next look goes on.
        self._behind = b""
        #: Whether there was more to look at than the last `wake` did, and whether this process is the one that looks.
        self.has_more = False
        self.leads = False

    async def is_idle(self) -> bool:
        """Return whether there are no limits, or another process wakes those that wait for room under them."""
        if self.leads:
            return False
        are_there = await self._batch.run(
            [("EXISTS", keys.budget(one)) for one in ("limits", WAKING[-1])]
        )
        return are_there != [1, 0]

    async def wake(self, most: int) -> list[str]:
        """Return up to *most* tasks, "id:generation", as many as there is room for, in the order of their turns.

        Whoever is returned is not so again for ten seconds, in which it is to ask. One that does so without finding
        room waits on.
        """
        tasks: list[str] = []
        pages = 0
        while pages < _PAGES and len(tasks) < most:
            # Whoever wakes looks after calls of processes that died: what they reserved is room.
            dead = [renewal("", ())] if self.leads and not pages else []
            *_, found = await self._batch.run([*dead, self._command(most - len(tasks))])
            if found is None:
                self._version, self._limits = await read_stored(self._batch)
                continue
            pages += 1
            self._behind, has_more, *woken = found
            self.has_more = has_more == 1
            self.leads = has_more >= 0
            for waiter in woken:
                if (task := _task_in(waiter)) is None:
                    await self._settle_wake(waiter, "forget")
                else:
                    tasks.append(task)
            if not self.has_more:
                break
        return tasks

    async def await_note(self, task: str) -> None:
        """Let *task* be woken again at once when its worker may be about to note that it waits."""
        await self._settle_wake(task, "noting")

    async def wake_again(self, task: str, after_s: float) -> None:
        """Let *task* be woken again after *after_s* seconds: its wake-up was not stored."""
        await self._settle_wake(task, int(after_s * 1000))

    async def forget(self, task: str) -> None:
        """Wake *task* no more: it runs no more."""
        await self._settle_wake(task, "forget")

    async def _settle_wake(
        self, waiter: str | bytes, wish: int | Literal["noting", "forget"]
    ) -> None:
        waiters, looks, _, freed = (keys.budget(one) for one in WAITING)
        places = waiters, looks, freed
        await self._batch.run(
            [("FCALL", scripts.SETTLE_WAKE, len(places), *places, "", waiter, wish)]
        )

    def _command(self, most: int) -> Command:
        now = self._now()
        zone = read_zone(self._limits.time_zone)
        rows: list[str | int] = []
        for limit in self._limits.limits:
            if limit.at_most is None:
                window, _ = window_of(limit.every, now, zone)
                rows += limit.name, kind_of(limit), limit.amount, window
        places = [keys.budget(one) for one in ("limits", *WAITING, *WAKING)]
        version = (self._version or b"0").decode()
        return (
            "FCALL",
            scripts.WAKE,
            len(places),
            *places,
            "",
            version,
            most,
            self._process,
            self._behind,
            *rows,
        )


def _task_in(waiter: bytes) -> str | None:
    """Return *waiter* as "id:generation", None when it is something else: workers write them."""
    try:
        task_id, _, generation = (task := waiter.decode()).rpartition(":")
        keys.task(task_id)
    except (UnicodeDecodeError, InvalidInput):
        return None
    is_number = generation.isascii() and generation.isdecimal() and len(generation) < 16
    return task if is_number else None
