"""Limits: how many requests a key may send and have under way, how large they may be, and how long their sending."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one process takes.

    `rate` is requests a second of one key, `burst` how many more than that it may send after a pause. `at_once` is how
    many of all keys are answered at the same time, `streams` how many of these are streams of events. `share` is the
    part of both, and of the requests under way, that one key may have: whoever keeps its connections open shuts nobody
    out. Where no keys are demanded there is one caller, who has everything.
    """

    body_bytes: int = 1024 * 1024
    rate: float = 100.0
    burst: int = 500
    at_once: int = 1000
    streams: int = 500
    share: float = 0.5
    #: Seconds in which a body has to be there, from the end of its headers: a slow line sends the largest in that time.
    body_s: float = 30.0

    def share_of(self, whole: int) -> int:
        """Return how many of *whole* one key may have."""
        return max(1, int(whole * self.share))


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Rates:
    """A bucket of tokens for each key name: *burst* may come one after the other, *rate* a second after that.

    It counts what comes, not what is under way at the same time.

    Each process counts for itself: with three replicas a key may send three times as much. Of names that strangers
    choose no more than *most* are told apart: beyond that one takes the place of the name that was silent longest, if
    that has its whole burst again, and otherwise shares a bucket with all the others.
    """

    def __init__(
        self, rate: float, burst: int, monotonic: Callable[[], float] = time.monotonic, *, most: int | None = None
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._monotonic = monotonic
        self._most = most
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._others = _Bucket(burst, monotonic())

    def __len__(self) -> int:
        """Return how many names are told apart."""
        return len(self._buckets)

    def take(self, name: str) -> int:
        """Return 0 and count one request of *name*, or the whole seconds after which there is room for it."""
        now = self._monotonic()
        bucket = self._bucket_of(name, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0
        return max(1, math.ceil((1 - bucket.tokens) / self._rate))

    def _bucket_of(self, name: str, now: float) -> _Bucket:
        known = self._buckets.get(name)
        if known is not None:
            self._buckets.move_to_end(name)
            return known
        if self._most is not None and len(self._buckets) >= self._most:
            silent, oldest = next(iter(self._buckets.items()))
            if oldest.tokens + (now - oldest.at) * self._rate < self._burst:
                return self._others
            del self._buckets[silent]
        self._buckets[name] = bucket = _Bucket(self._burst, now)
        return bucket
