"""What OpenTelemetry says in the log of a collector that is away: a line now and then, not several for each batch."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Seconds between two lines of one level: batches fail every five seconds, and each is tried several times.
EVERY_S = 60.0
#: Whoever of OpenTelemetry sends spans, and whoever keeps them until then.
_SPEAKERS = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk._shared_internal",
)


class _Seldom(logging.Filter):
    """Lets one record of each level through, and the next after `EVERY_S` seconds of *clock*."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._next_at: dict[int, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether *record* is due."""
        now = self._clock()
        if now < self._next_at.get(record.levelno, now):
            return False
        self._next_at[record.levelno] = now + EVERY_S
        return True


@contextmanager
def seldom(clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Let OpenTelemetry complain no more often than every `EVERY_S` seconds within the block."""
    muted = [(logging.getLogger(name), _Seldom(clock)) for name in _SPEAKERS]
    for logger, filtering in muted:
        logger.addFilter(filtering)
    try:
        yield
    finally:
        for logger, filtering in muted:
            logger.removeFilter(filtering)
