"""Requests that wait for an analysis, and their answers."""

import asyncio
from dataclasses import dataclass, field

from tasklore.contracts.analysis.stories import AnalysisGroup
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import TaskloreError


@dataclass(eq=False, slots=True)
class PendingRequest:
    """A request that waits for an analysis; made where an event loop runs.

    `group` is the group it waits for, None for all. `text` is the text that was meant, None: the one stored. `caller`
    is who asks. `answer` is whether the analysis was served without asking an agent, once its group is there.
    """

    group: AnalysisGroup | None = None
    refresh: bool = False
    text: str | None = None
    caller: Caller | None = None
    answer: asyncio.Future[bool] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def settle(self, answer: bool | TaskloreError) -> None:
        """Answer, unless that was done."""
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
                return await self.answer
        except TimeoutError:
            return None
