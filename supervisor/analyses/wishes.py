"""What somebody waits for: an analysis as far as the next response needs it, or all of it."""

import asyncio
from dataclasses import dataclass, field

from contracts.analysis.stories import AnalysisGroup
from contracts.errors import TaskloreError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was waited for is there; `served` says that no agent was asked for it."""

    served: bool = False


@dataclass(eq=False, slots=True)
class Wish:
    """The wish to have a response analysed; *text* is the one that was meant, None: whichever is stored.

    `group` is whom to wait for, None for all. It is made where an event loop runs.
    """

    group: AnalysisGroup | None = None
    refresh: bool = False
    text: str | None = None
    _outcome: asyncio.Future[Outcome] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def is_settled(self) -> bool:
        """Whether nobody waits any more."""
        return self._outcome.done()

    def settle(self, outcome: Outcome | TaskloreError) -> None:
        """Tell whoever waits; only the first word counts."""
        if self._outcome.done():
            return
        if isinstance(outcome, Outcome):
            self._outcome.set_result(outcome)
        else:
            self._outcome.set_exception(outcome)
            # Nobody may be waiting any more.
            self._outcome.exception()

    async def outcome(self, within_s: float) -> Outcome | None:
        """Return what came of it, None when that takes longer than *within_s* seconds.

        Raises:
            TaskloreError: it cannot be.
        """
        try:
            async with asyncio.timeout(within_s):
                return await self._outcome
        except TimeoutError:
            return None
