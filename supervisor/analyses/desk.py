"""The desk of analyses: begins what is requested, and goes on with analyses that no process drives."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakValueDictionary

import structlog

from contracts.errors import ConfigurationError, MemoryUnavailable, TaskloreError
from runtime.lease_loop import LeaseLoop
from supervisor.analyses.coordinator import Coordinator, Moved
from supervisor.analyses.parts import Parts
from supervisor.analyses.wishes import Wish

log = structlog.get_logger(__name__)

#: Analyses that are driven at once when they are found; each mostly waits for reports.
_AT_ONCE = 1000
#: Analyses taken up at one look: the store leases each with the look.
_LOOKED_UP = 100

Key = tuple[str, int]


class AnalysisDesk(LeaseLoop[Key, Coordinator]):
    """Drives the analyses of one supervisor id, in this process; `run` until `drain`. Keys are story and response.

    Args:
        parts: What they are worked on with.
        lease_s: Seconds after which another process goes on with the analyses of one that fell silent.
    """

    # Another version may know how to go on.
    mistake_s: ClassVar[float] = 60.0

    def __init__(self, parts: Parts, *, lease_s: float) -> None:
        super().__init__("analysis", at_once=_AT_ONCE, lease_s=lease_s, slack_s=lease_s)
        self._parts = parts
        self._live: dict[Key, Coordinator] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def wish(self, story_id: str, number: int, wish: Wish) -> None:
        """Have *wish* for a response fulfilled.

        Raises:
            ConfigurationError: this desk does not work yet, or not any more.
        """
        key = story_id, number
        live = self._live.get(key)
        if live is None or live.is_closed:
            if self._group is None or self._stopping:
                raise ConfigurationError("this supervisor takes up no analyses now; ask again")
            live = self._take_up(key, is_known=False)
            self.serve(key)
        live.wish(wish)

    async def due(self, limit: int) -> Sequence[Key]:
        """Return analyses that no process drives, leased from then on."""
        return await self._parts.analyses.due(self._parts.supervisor_id, self._lease_ms, min(limit, _LOOKED_UP))

    async def claim(self, key: Key) -> Coordinator:
        """Return the driver of an analysis."""
        live = self._live.get(key)
        if live is None or live.is_closed:
            log.info("analysis_taken_up", story=key[0], number=key[1])
            live = self._take_up(key, is_known=True)
        return live

    async def work(self, key: Key, lease: Coordinator) -> float:
        """Drive an analysis to its end, and answer every request that waits for it."""
        gone: TaskloreError = ConfigurationError("the supervisor ends; ask again")
        try:
            await lease.run()
        except (MemoryUnavailable, Moved) as error:
            gone = error
            log.info("analysis_waits_for_store", story=key[0], number=key[1], error=str(error))
        except TaskloreError as error:
            gone = error
            log.info("analysis_ended", story=key[0], number=key[1], error=str(error))
            with contextlib.suppress(MemoryUnavailable):
                await lease.end()
        except Exception:
            lease.rest_ms = int(self.mistake_s * 1000)
            gone = TaskloreError("something went wrong here, not with what you asked; the supervisor's log says why")
            raise
        finally:
            lease.forgo(gone)
            if self._live.get(key) is lease:
                del self._live[key]
        return 0.0

    async def renew(self, lease: Coordinator) -> bool:
        """Renew the lease of an analysis that is stored; two processes that drive one do no harm."""
        if lease.is_known:
            with contextlib.suppress(MemoryUnavailable):
                await self._parts.analyses.renew(self._parts.supervisor_id, *lease.key, self._lease_ms)
        return True

    async def give_back(self, lease: Coordinator) -> None:
        """Let another process go on with an analysis that has not ended."""
        if lease.is_known:
            await self._parts.analyses.renew(self._parts.supervisor_id, *lease.key, lease.rest_ms)

    def _take_up(self, key: Key, *, is_known: bool) -> Coordinator:
        turn = self._turns.setdefault(key[0], asyncio.Lock())
        live = Coordinator(self._parts, *key, turn, lease_ms=self._lease_ms, is_known=is_known)
        self._live[key] = live
        return live
