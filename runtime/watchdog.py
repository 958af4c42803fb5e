"""Ends a process that stands still, so that another one can serve.

One C call that keeps Python's global lock stops the event loop and every thread. What counts here needs no lock: a
thread of `faulthandler`, which writes where each thread stands to stderr and ends the process with status 1, without
any clean-up, unless it is put off in time.
"""

import faulthandler
import threading
import time

#: Seconds that a process may need to leave beyond the grace period that it gives to running tasks.
LEAVE_S = 10.0
#: The descriptor of stderr: there may be no file object behind it that a C thread could use.
_STDERR = 2


class Watchdog:
    """Ends the process when `beat` is not called for *limit_s* seconds, or when `end_within` says so; until `stop`."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._ends_at = float("inf")
        self._beats_at = 0.0
        self._stopped = threading.Event()

    def beat(self) -> None:
        """Put the end off; cheap enough for every beat of an event loop."""
        now = time.monotonic()
        # A tenth of the limit apart: each makes a thread anew.
        if not self._stopped.is_set() and now >= self._beats_at:
            self._beats_at = now + self._limit_s / 10
            limit_s = max(0.1, min(self._limit_s, self._ends_at - now))
            faulthandler.dump_traceback_later(limit_s, file=_STDERR, exit=True)

    def beat_from_thread(self) -> None:
        """Put the end off from a thread of its own: an event loop may stand still as long as other threads go on."""

        def beat() -> None:
            while not self._stopped.wait(self._limit_s / 10):
                self.beat()

        self.beat()
        threading.Thread(target=beat, name="tasklore-watchdog", daemon=True).start()

    def end_within(self, seconds: float) -> None:
        """End the process in *seconds*, whatever beats: it was asked to leave and may have that long."""
        self._ends_at = time.monotonic() + seconds
        self._beats_at = 0.0
        self.beat()

    def stop(self) -> None:
        """End nothing any more."""
        self._stopped.set()
        faulthandler.cancel_dump_traceback_later()
