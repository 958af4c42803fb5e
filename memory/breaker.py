"""A circuit breaker: after a few failures in a row, leave a server alone for a while, then ask once."""

import time
from collections.abc import Callable


class Breaker:
    """Says whether asking a server is worth the wait, from how the last attempts went.

    Args:
        failures: This many failures in a row open it.
        rest_s: Seconds without any attempt once it is open; then one probe a rest, until one succeeds.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        failures: int = 3,
        rest_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = failures
        self._rest_s = rest_s
        self._clock = clock
        self._failures = 0
        self._next_probe = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the server counts as away."""
        return self._failures >= self._limit

    def allows(self) -> bool:
        """Return whether to try now; when open, True is the probe and the next True comes a rest later."""
        if self._failures < self._limit:
            return True
        now = self._clock()
        if now < self._next_probe:
            return False
        # A probe that is never heard of again (its task was cancelled) must not block the next one.
        self._next_probe = now + self._rest_s
        return True

    def succeeded(self) -> None:
        """Close: the server answered."""
        self._failures = 0

    def failed(self) -> None:
        """Count one failure, and rest when there were enough of them."""
        self._failures += 1
        if self._failures >= self._limit:
            self._next_probe = self._clock() + self._rest_s
