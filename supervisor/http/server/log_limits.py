"""What the HTTP library says in the log of requests that it cannot use: a line a period, however many there are.

Whoever sends bytes that are no HTTP, or asks for another protocol, would else fill the log as fast as they can connect.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

log = structlog.get_logger(__name__)

#: Seconds between two lines about one thing.
EVERY_S = 60.0
#: Things that are told apart: the library has a handful, each a fixed sentence.
_MOST = 50
_SPEAKER = "uvicorn.error"


#: Calls a function with a word after so many seconds, as an event loop does.
Later = Callable[[float, Callable[[str], None], str], asyncio.TimerHandle]


class _Seldom(logging.Filter):
    """Lets the first warning of a kind through, and tells after *every_s* seconds how many there were since."""

    def __init__(self, every_s: float, later: Later) -> None:
        super().__init__()
        self._every_s = every_s
        self._later = later
        self._more: dict[str, int] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether *record* is to be logged; what is worse than a warning always is."""
        said = str(record.msg)
        if record.levelno != logging.WARNING:
            return True
        if said in self._timers:
            self._more[said] += 1
            return False
        if len(self._timers) >= _MOST:
            return False
        self._wait(said)
        return True

    def close(self) -> None:
        """Tell at once what is left to tell."""
        for said, timer in self._timers.items():
            timer.cancel()
            self._tell(said)
        self._timers.clear()

    def _wait(self, said: str) -> None:
        self._more[said] = 0
        self._timers[said] = self._later(self._every_s, self._end, said)

    def _end(self, said: str) -> None:
        """End a period; one in which more came is followed by another, so that a flood is a line a period."""
        del self._timers[said]
        if self._tell(said):
            self._wait(said)

    def _tell(self, said: str) -> bool:
        if more := self._more.pop(said):
            log.warning("http_warning_repeated", warning=said, times=more, within_s=self._every_s)
        return more > 0


@contextmanager
def seldom(every_s: float = EVERY_S, later: Later | None = None) -> Iterator[None]:
    """Let the HTTP library warn of one thing no more often than every *every_s* seconds within the block.

    *later* is what waits until then: the running loop, unless told otherwise.
    """
    filtering = _Seldom(every_s, later or asyncio.get_running_loop().call_later)
    speaker = logging.getLogger(_SPEAKER)
    speaker.addFilter(filtering)
    try:
        yield
    finally:
        speaker.removeFilter(filtering)
        filtering.close()
