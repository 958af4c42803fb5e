"""Running one coroutine to its end, or until a signal: then it is cancelled and cleans up."""

import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from tasklore.commands.exits import Interrupted
from tasklore.runtime import departure

T = TypeVar("T")

#: Ctrl-C, a polite end, and the terminal going away.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of *work*; a signal cancels it, a second one cancels its cleaning up.

    Only errors are logged meanwhile, as a person reads what is printed; *work* that serves configures its own log.

    Raises:
        Interrupted: a signal came; everything *work* had opened is closed.
    """
    # Imported here: the definitions of commands import this module, also for `--help`.
    import asyncio
    import logging

    import structlog

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )

    async def watch() -> T:
        task = asyncio.ensure_future(work)
        signals: list[int] = []

        def stop(number: int) -> None:
            signals.append(number)
            task.cancel()

        # nohup ignores a terminal that goes away; a shell ignores Ctrl-C for what it starts with &, where a signal that
        # still arrives was sent on purpose.
        heeded = [
            number
            for number in _SIGNALS
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
        ]
        with departure.heeding(stop, heeded):
            try:
                return await task
            except asyncio.CancelledError:
                if signals:
                    raise Interrupted(signals[0]) from None
                raise

    return asyncio.run(watch())
