"""Running one coroutine to its end, or until somebody wants it to stop: then it is cancelled and cleans up."""

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

from tasklore.exits import Interrupted

T = TypeVar("T")

#: Ctrl-C, a polite end, and the terminal going away.
_WISHES = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of *work*; a signal cancels it, a second one cancels what it does to clean up.

    Only errors are logged meanwhile, as a person reads what is printed; *work* that serves says itself what to log.
    """
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    return asyncio.run(_watched(work))


async def _watched(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    wishes: list[int] = []

    def stop(wish: int) -> None:
        wishes.append(wish)
        task.cancel()

    loop = asyncio.get_running_loop()
    for wish in _WISHES:
        # A terminal that goes away was chosen to be ignored by nohup; a shell ignores Ctrl-C for what it starts with &,
        # where a signal that still arrives was sent on purpose.
        if wish != signal.SIGHUP or signal.getsignal(wish) != signal.SIG_IGN:
            loop.add_signal_handler(wish, stop, wish)
    try:
        return await task
    except asyncio.CancelledError:
        if wishes:
            raise Interrupted(wishes[0]) from None
        raise
