"""Limits: how many requests a key may send, and how large they may be."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one process takes: bytes of a body, requests a second of one key, how many at once of it, and of all."""

    body_bytes: int = 1024 * 1024
    rate: float = 100.0
    burst: int = 500
    at_once: int = 1000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Rates:
    """A bucket of tokens for each key name: *burst* may come at once, *rate* a second after that.

    Each process counts for itself: with three replicas a key may send three times as much.
    """

    def __init__(self, rate: float, burst: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._monotonic = monotonic
        self._buckets: dict[str, _Bucket] = {}

    def take(self, name: str) -> int:
        """Return 0 and count one request of *name*, or the whole seconds after which there is room for it."""
        now = self._monotonic()
        bucket = self._buckets.setdefault(name, _Bucket(self._burst, now))
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0
        return max(1, math.ceil((1 - bucket.tokens) / self._rate))
