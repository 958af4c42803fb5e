"""Which runs may overlap in this process: tasks that may have killed a worker run in small groups, or alone."""

import asyncio
from collections import deque
from collections.abc import Callable

from tasklore.contracts.errors import TaskloreError

#: Suspects that run at once in a group: of 40, this few groups and members run until the one to blame is alone.
GROUP = 6


class StillBusy(TaskloreError):
    """Another run here takes too long to be waited for; leave the task to another worker, or try again later."""


class CrashIsolation:
    """Lets runs in side by side, or one alone; those that want to be alone go first, so that no newcomer delays them.

    A run waits at most *patience_s* seconds to be alone, and after such a wait in vain none waits for ten times as
    long: another worker may be idle, and a task of an hour must not stop a whole worker.

    *changed* is called with True when the first run wants to be alone, and with False when the last has been: nothing
    new should be taken meanwhile, since it could only wait.
    """

    def __init__(
        self,
        changed: Callable[[bool], None] = lambda _is_wanted: None,
        *,
        patience_s: float = 30.0,
    ) -> None:
        self._changed = changed
        self._patience_s = patience_s
        self._busy_until = 0.0
        self._beside = 0
        self._wanting = 0
        self._is_alone = False
        self._group = asyncio.Semaphore(GROUP)
        self._waiting: deque[asyncio.Future[None]] = deque()

    def enter_at_once(self) -> bool:
        """Return whether a run may begin beside others without waiting; `leave` when it has."""
        if self._wanting:
            return False
        self._beside += 1
        return True

    async def enter(self, *, alone: bool, grouped: bool = False) -> None:
        """Return once a run may begin: beside others, or after all others have ended; `leave` when it has.

        *grouped* ones are no more than GROUP at once, beside whatever else there is.

        Raises:
            StillBusy: others ran for too long to be alone here.
        """
        if grouped:
            await self._group.acquire()
            try:
                await self.enter(alone=False)
            except BaseException:
                self._group.release()
                raise
            return
        if not alone:
            while not self.enter_at_once():
                await self._change()
            return
        loop = asyncio.get_running_loop()
        if self._beside and loop.time() < self._busy_until:
            raise StillBusy("something here runs for long")
        self._want(1)
        try:
            async with asyncio.timeout(self._patience_s if self._beside else None):
                while self._beside or self._is_alone:
                    await self._change()
        except TimeoutError:
            self._want(-1)
            self._busy_until = loop.time() + 10 * self._patience_s
            raise StillBusy(
                f"something here ran for more than {self._patience_s:g} s"
            ) from None
        except BaseException:
            self._want(-1)
            raise
        self._is_alone = True

    def leave(self, *, alone: bool, grouped: bool = False) -> None:
        """Note that a run has ended."""
        if grouped:
            self._group.release()
        if alone:
            self._is_alone = False
            self._want(-1)
        else:
            self._beside -= 1
            self._wake()

    def _want(self, step: int) -> None:
        was_wanted = self._wanting > 0
        self._wanting = self._wanting + step
        if was_wanted != (self._wanting > 0):
            self._changed(self._wanting > 0)
        if step < 0:
            self._wake()

    async def _change(self) -> None:
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(news)
        await news

    def _wake(self) -> None:
        while self._waiting:
            news = self._waiting.popleft()
            if not news.done():
                news.set_result(None)
