"""ClientLimits of the API: rates, sizes, times and numbers at once."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """ClientLimits of one process.

    `rate` is requests a second of one key, `burst` how many more may follow a pause. `at_once` requests are answered at
    the same time, `streams` of these as streams of events, on at most `connections`. `share` is the part of these, and
    of the requests under way, that one key may have, so that it shuts no other out; without keys there is one caller,
    who may have everything.
    """

    body_bytes: int = 1024 * 1024
    rate: float = 100.0
    burst: int = 500
    at_once: int = 2000
    streams: int = 1500
    share: float = 0.5
    #: Seconds for a body, from the end of its headers: a slow line sends the largest in that time.
    body_s: float = 30.0
    #: Seconds for the headers of a request, from the connection or the end of the keep-alive on.
    head_s: float = 30.0
    #: More than are answered at once, so that most clients read why when it is too much.
    connections: int = 3000

    def share_of(self, whole: int) -> int:
        """Return how many of *whole* one key may have."""
        return max(1, int(whole * self.share))


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Rates:
    """A bucket of tokens for each name: *burst* may come at once, *rate* a second after that.

    Each process counts for itself: with three replicas a key may send three times as much. Of names that clients choose
    at most *most* have their own bucket. One more takes the place of the name that was silent longest, if that has its
    whole burst again; else it shares a bucket with all the others.
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        most: int | None = None,
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._monotonic = monotonic
        self._most = most
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._others = _Bucket(burst, monotonic())

    def __len__(self) -> int:
        """Return how many names have their own bucket."""
        return len(self._buckets)

    def take(self, name: str) -> int:
        """Count one request of *name* and return 0, or return the whole seconds after which there is room for it."""
        now = self._monotonic()
        bucket = self._find_bucket(name, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0
        return max(1, math.ceil((1 - bucket.tokens) / self._rate))

    def _find_bucket(self, name: str, now: float) -> _Bucket:
        if (known := self._buckets.get(name)) is not None:
            self._buckets.move_to_end(name)
            return known
        if self._most is not None and len(self._buckets) >= self._most:
            silent, oldest = next(iter(self._buckets.items()))
            if oldest.tokens + (now - oldest.at) * self._rate < self._burst:
                return self._others
            del self._buckets[silent]
        self._buckets[name] = bucket = _Bucket(self._burst, now)
        return bucket
