"""Requests that wait for an analysis, and their answers."""

import asyncio
from dataclasses import dataclass, field

from tasklore.contracts.analysis.stories import AnalysisGroup
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import ConfigurationError, TaskloreError


@dataclass(eq=False, slots=True)
class PendingAnalysis:
    """A request that waits for an analysis; made where an event loop runs.

    `group` is the group it waits for, None for all. `text` is the text that was meant, None: the one stored. `caller`
    is who asks. `answer` is whether the analysis was served without asking an agent, once its group is there. `begun`
    is set once the analysis is stored, so that another process goes on with it, or there is an answer.
    """

    group: AnalysisGroup | None = None
    refresh: bool = False
    text: str | None = None
    caller: Caller | None = None
    answer: asyncio.Future[bool] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def settle(self, answer: bool | TaskloreError) -> None:
        """Answer, unless that was done."""
        self.begun.set()
        if self.answer.done():
            return
        if isinstance(answer, TaskloreError):
            self.answer.set_exception(answer)
            # It may be that nothing waits any more.
            self.answer.exception()
        else:
            self.answer.set_result(answer)

    async def wait(self, within_s: float) -> bool | None:
        """Return the answer, None when that takes longer than *within_s* seconds.

        Raises:
            TaskloreError: it cannot be analysed.
        """
        try:
            async with asyncio.timeout(within_s):
                # The end of the time is not that of the answer.
                return await asyncio.shield(self.answer)
        except TimeoutError:
            return None

    async def demand_begun(self, within_s: float) -> bool | None:
        """Return the answer once the analysis is stored, None while there is none.

        Raises:
            ConfigurationError: it is not within *within_s* seconds; whether it will be is not known.
            TaskloreError: it cannot be analysed.
        """
        try:
            async with asyncio.timeout(within_s):
                await self.begun.wait()
        except TimeoutError as error:
            raise ConfigurationError(
                "whether the analysis has begun is not known; ask again"
            ) from error
        return await self.answer if self.answer.done() else None
