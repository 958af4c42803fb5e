"""Runs that ended with a word which the ledger could not be told: it is told later, or they would pass for crashes."""

import structlog

from contracts.errors import MemoryUnavailable
from memory.ledger.ledger import Ledger
from memory.ledger.runs import Ended

log = structlog.get_logger(__name__)

#: Words kept for a ledger that is away; one that is forgotten makes its task run alone.
_MOST_KEPT = 10_000


class Releases:
    """The words of one process; kept in the event loop, and told again from the thread of leases too."""

    def __init__(self) -> None:
        self._kept: dict[str, Ended] = {}

    async def release(self, run: Ended, ledger: Ledger) -> None:
        """Tell *ledger* that *run* ended; when it is away, later."""
        try:
            await ledger.release([run])
        except MemoryUnavailable:
            self.keep(run)

    def keep(self, run: Ended) -> None:
        """Tell of *run* when the ledger is back."""
        self._kept[run.token] = run
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    async def tell(self, ledger: Ledger) -> None:
        """Tell *ledger* what is kept.

        Raises:
            MemoryUnavailable: it is still away; everything is kept.
        """
        kept = list(self._kept.items())
        if not kept:
            return
        await ledger.release([run for _, run in kept])
        for token, _ in kept:
            self._kept.pop(token, None)
        log.info("runs_released_late", runs=len(kept))
