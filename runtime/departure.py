"""What SIGTERM and SIGINT do to this process, from its first line to its last.

As process 1 of a container Python never hears a signal without a handler. So one is set before anything is imported,
and none is ever given back: at each moment a signal either ends the process at once or is heeded by what runs.
"""

import atexit
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

#: Commands that serve until they are asked to end: to end is how they succeed.
_SERVING = frozenset({"supervisor", "worker", "up"})
#: What a shell expects of a process that ended by a signal: this plus the signal's number.
_SIGNALLED = 128
_ASKED = (signal.SIGTERM, signal.SIGINT)


def status_of(number: int, arguments: Sequence[str]) -> int:
    """Return the exit code of the command with *arguments* that the signal *number* ended.

    0 for what serves. Not for others: a job that makes streams has not made them.
    """
    return 0 if _SERVING.intersection(arguments[:1]) else _SIGNALLED + number


def prepare(arguments: Sequence[str]) -> None:
    """End the command with *arguments* at once when it is asked to; for the first line of a program.

    A parent may block both signals when it starts it: then none is lost before this line either.
    """
    # Ctrl-C interrupts what does not serve as it does any program.
    numbers = _ASKED if _SERVING.intersection(arguments[:1]) else (signal.SIGTERM,)

    def leave(number: int) -> None:
        os._exit(status_of(number, arguments))

    for number in numbers:
        signal.signal(number, _in_this_process(leave))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKED)
    # Python gives its handlers back before it has ended, and then leaves with its own code anyway.
    atexit.register(_ignore, numbers)


@contextmanager
def heeding(
    wish: Callable[[int], None], numbers: Sequence[int] = _ASKED
) -> Iterator[None]:
    """Have *wish* called in the running event loop with each signal of *numbers*, until the block ends.

    A handler of the event loop would be taken away at its end, with nothing in its place.
    """
    import asyncio  # not before `prepare`

    loop = asyncio.get_running_loop()

    def tell(number: int) -> None:
        loop.call_soon_threadsafe(wish, number)

    handler = _in_this_process(tell)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was or signal.SIG_DFL)


def _in_this_process(wish: Callable[[int], None]) -> Callable[[int, object], None]:
    """Return a handler that calls *wish*; a process that is forked from this one ends as one without a handler."""
    ours = os.getpid()

    def handle(number: int, _frame: object) -> None:
        if os.getpid() == ours:
            wish(number)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    return handle


def _ignore(numbers: Sequence[int]) -> None:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
