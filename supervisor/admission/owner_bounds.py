"""The bounds of owners: each request counts the bytes that it keeps to its owner, and is refused beyond their part.

Only a request at a door is refused, before anything of it is kept. Work that follows of one that was accepted (phases,
ticks) is counted and never refused, so that nothing accepted is lost. A store that does not answer refuses nobody.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from tasklore.contracts.callers import Caller, keeper_of
from tasklore.contracts.errors import MemoryUnavailable, OwnerFull
from tasklore.contracts.messages import CompletionReport, PersonRequest
from tasklore.memory.holdings.store import EndedTask, Holding, Holdings, NoRoom

log = structlog.get_logger(__name__)

_Told = TypeVar("_Told")

#: Seconds after which an owner that was refused may ask again.
RETRY_S = 30.0
#: Seconds between two looks at what is over although nobody noted so, and for which one is waited for.
SWEEP_S = 10.0
SWEPT_WITHIN_S = 2.0
_MIB = 1024**2
#: What bounds each store.
_SETTINGS = {
    "queue": "TASKLORE_TASKS_MAX_BYTES",
    "store": "TASKLORE_KEPT_MAX_BYTES (where it is not set, `maxmemory` of Valkey)",
}
#: What the memory had to do with a result that is remembered from now on.
_STORED = {"miss", "refreshed"}
#: Reports with their bytes.
ReportSizes = Sequence[tuple[CompletionReport, int]]


class OwnerBounds:
    """Counts the bytes that owners keep; without *holdings*, where there are no keys, nothing is counted.

    While `run` runs, what is over although nobody noted so is looked for before an owner is refused.
    """

    def __init__(
        self,
        holdings: Holdings | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._holdings = holdings
        self._now = now
        self._is_running = False
        self._swept_at = float("-inf")
        self._wanted = asyncio.Event()
        self._swept = asyncio.Event()

    async def run(self) -> None:
        """Sweep whenever an owner met its bound, one sweep at a time for all owners, until cancelled."""
        self._is_running = True
        try:
            while True:
                await self._wanted.wait()
                if self._holdings is not None:
                    await self._ask_store(self._holdings.sweep())
                self._swept_at = self._now()
                self._wanted.clear()
                self._swept.set()
                self._swept = asyncio.Event()
        finally:
            self._is_running = False
            self._wanted.clear()
            self._swept.set()

    def counts(self, caller: Caller | None, user_id: str | None) -> bool:
        """Return whether what *caller* keeps is counted; not what the deployment itself does."""
        return self._holdings is not None and bool(keeper_of(caller, user_id))

    async def demand(
        self, caller: Caller | None, user_id: str | None, *things: Holding
    ) -> None:
        """Count *things* to who asks.

        Raises:
            OwnerFull: they keep too much; nothing was counted.
        """
        owner = keeper_of(caller, user_id)
        no_room = await self._take(owner, things, may_refuse=True)
        if no_room is not None and await self._sweep():
            no_room = await self._take(owner, things, may_refuse=True)
        if no_room is not None:
            raise OwnerFull(describe_refusal(caller, user_id, no_room), RETRY_S)

    async def demand_words(self, request: PersonRequest) -> None:
        """Count the words of *request* to who asks, before anything of it is kept.

        Raises:
            OwnerFull: they keep too much.
        """
        size = len(request.text.encode())
        things = [Holding("words", size)]
        if request.user_id is not None:
            things.append(Holding("turns", size))
        await self.demand(request.asked_by, request.user_id, *things)

    async def count(
        self, caller: Caller | None, user_id: str | None, *things: Holding
    ) -> None:
        """Count *things*, which follow of what was accepted, to who asked for it."""
        await self._take(keeper_of(caller, user_id), things, may_refuse=False)

    async def note_reports(self, reports: ReportSizes) -> None:
        """Count the results of the tasks that *reports* end; each comes with its bytes."""
        if self._holdings is None:
            return
        ended = [
            EndedTask(report.task_id, size, report.memory.outcome in _STORED)
            for report, size in reports
        ]
        await self._ask_store(self._holdings.end_tasks(ended))

    async def _take(
        self, owner: str, things: Sequence[Holding], *, may_refuse: bool
    ) -> NoRoom | None:
        if self._holdings is None or not owner:
            return None
        return await self._ask_store(
            self._holdings.take(owner, things, may_refuse=may_refuse)
        )

    async def _sweep(self) -> bool:
        """Have ended things counted no longer; return whether they were looked at now."""
        if not self._wanted.is_set():
            if not self._is_running or self._now() - self._swept_at < SWEEP_S:
                return False
            self._wanted.set()
        swept = self._swept
        try:
            async with asyncio.timeout(SWEPT_WITHIN_S):
                await swept.wait()
        except TimeoutError:
            return False
        return True

    async def _ask_store(self, asked: Awaitable[_Told]) -> _Told | None:
        """Return the answer of the store; None without one, which is logged."""
        try:
            return await asked
        except MemoryUnavailable as error:
            log.info("holdings_away", error=str(error))
            return None


def describe_refusal(
    caller: Caller | None, user_id: str | None, no_room: NoRoom
) -> str:
    """Return the sentence that names the owner, its bytes by kind, and the cure."""
    whose = _name(caller, user_id)
    kinds = ", ".join(
        f"{size / _MIB:.1f} MiB of {name}"
        for name, size in sorted(no_room.kinds.items(), key=lambda one: -one[1])
    )
    setting = _SETTINGS[no_room.store]
    return (
        f"{whose} keeps {no_room.kept / _MIB:.1f} MiB and may keep {no_room.most / _MIB:.1f} now ({kinds}), so that "
        f"nothing of this was stored; send it again once some of that has ended, or raise {setting}"
    )


def _name(caller: Caller | None, user_id: str | None) -> str:
    tenant = None if caller is None else caller.tenant
    if caller is None or not caller.name:
        named = [f"user {user_id!r}"] if user_id is not None else []
        named += [f"tenant {tenant!r}"] if tenant is not None else []
        return " of ".join(named)
    if tenant is not None and not caller.named:
        return f"tenant {tenant!r}"
    return f"key {caller.name!r}"
