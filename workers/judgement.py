"""What becomes of a run that raised: another run, and when, or the end, and as what."""

import random
from dataclasses import dataclass

from contracts.errors import GiveUp, InvalidInput, RetryLater, TaskCancelled, TaskExpired
from contracts.messages import Status


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a task that raised runs again: full jitter up to `base_s * 2 ** attempt`, at most `cap_s`, in seconds."""

    base_s: float = 1.0
    cap_s: float = 300.0

    def pause_s(self, attempt: int) -> float:
        """Return seconds until the run after *attempt*."""
        longest_s = min(self.cap_s, self.base_s * float(2 ** min(attempt - 1, 20)))
        return random.uniform(0.1, 1.0) * longest_s  # noqa: S311 - jitter


@dataclass(frozen=True, slots=True)
class Judgement:
    """Either `pause_s` until the next run, or the terminal `status`; a `dead_reason` keeps the delivery in DEAD."""

    status: Status = "failed"
    pause_s: float | None = None
    dead_reason: str | None = None


def judge(error: BaseException, *, attempt: int, max_attempts: int, retry: RetryPolicy) -> Judgement:
    """Return what follows from *error* in run number *attempt* of at most *max_attempts*."""
    if isinstance(error, TaskExpired):
        return Judgement("expired")
    if isinstance(error, TaskCancelled):
        return Judgement("cancelled")
    if isinstance(error, InvalidInput):
        return Judgement("rejected")
    if isinstance(error, GiveUp) or getattr(error, "retryable", True) is False:
        return Judgement(dead_reason="gave_up")
    if attempt >= max_attempts:
        return Judgement(dead_reason="attempts")
    asked_s = error.after_s if isinstance(error, RetryLater) else None
    return Judgement(pause_s=retry.pause_s(attempt) if asked_s is None else max(0.0, asked_s))
