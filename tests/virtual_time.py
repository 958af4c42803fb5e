"""Virtual time: a loop whose seconds take none, for code that waits on the loop alone and not on threads or sockets."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any


class _Leaping(selectors.DefaultSelector):
    """A selector that never waits: it tells how long it would have."""

    leapt_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout:
            self.leapt_s += timeout
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock leaps to whatever comes next."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.leapt_s


def virtually(doing: Coroutine[Any, Any, None]) -> None:
    """Run *doing* on a loop of its own, in virtual time."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        runner.run(doing)


def in_virtual_time(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Let the seconds of *test* take none; after hours of them it hangs."""

    @wraps(test)
    def run(*words: Any, **named: Any) -> None:
        async def timed() -> None:
            async with asyncio.timeout(10_000):
                await test(*words, **named)

        virtually(timed())

    return run


def elapsed_s() -> float:
    """Return the seconds that the running test has taken, in virtual time."""
    return asyncio.get_running_loop().time()
