"""The retry decision: whether a run that raised is followed by another run, and when, or which status ends it."""

import math
import random
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from tasklore.contracts.errors import (
    EntryTooLarge,
    GiveUp,
    InvalidInput,
    LlmError,
    MemoryUnavailable,
    NotApproved,
    PhaseReplaced,
    RetryLater,
    TaskCancelled,
    TaskExpired,
    UnknownSession,
)
from tasklore.contracts.messages import Status
from tasklore.workers.user_code import is_raised_by

if TYPE_CHECKING:
    from tasklore.workers.task import Task

log = structlog.get_logger(__name__)

#: Slips of code: in a task's own, no further run mends them. What data or another system may cause (KeyError,
#: IndexError, ValueError, AssertionError, ArithmeticError) is not among them.
PROGRAMMING_ERRORS = (
    TypeError,
    AttributeError,
    NameError,
    ImportError,
    SyntaxError,
    NotImplementedError,
)

#: The longest pause, in seconds, of a task that waits for Redis: it heals within seconds of the server. The shortest is
#: 1 s, whatever the task's own retries say.
OUTAGE_PAUSE_S = 5.0
#: Runs that may end for want of Redis while the ledger answers: by then it is the task's own key that is spoiled.
MOST_EXCUSED = 100

#: The longest wait for another run: a day before LATER drops what is scheduled there.
_LONGEST_WAIT = timedelta(days=29)
#: How long before the ledger forgets a task its next run begins.
_KNOWN_STILL = timedelta(hours=1)


def longest_wait_s(keep: timedelta) -> float:
    """Return how many seconds a task may wait for another run when the ledger knows it for *keep*.

    One that waits for longer could be lost without a word: LATER drops its schedule, and the ledger, which could bring
    it back when LATER is lost, no longer knows it.
    """
    return min(max(keep - _KNOWN_STILL, keep / 2), _LONGEST_WAIT).total_seconds()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a task that raised runs again: full jitter up to `base_s * 2 ** attempt`, at most `cap_s`, in seconds.

    No wait is longer than `longest_s`, also when the error asks for it: see `longest_wait_s`.
    """

    base_s: float = 1.0
    cap_s: float = 300.0
    longest_s: float = longest_wait_s(timedelta(days=7))

    def of(self, task: "Task") -> "RetryPolicy":
        """Return the policy of *task*: its own pauses where it declares any, these elsewhere."""
        if task.retry_base is None and task.retry_cap is None:
            return self
        base_s = (
            self.base_s if task.retry_base is None else task.retry_base.total_seconds()
        )
        cap_s = self.cap_s if task.retry_cap is None else task.retry_cap.total_seconds()
        return RetryPolicy(
            base_s,
            max(base_s, cap_s) if task.retry_cap is None else cap_s,
            self.longest_s,
        )

    def pause_s(self, attempt: int) -> float:
        """Return seconds until the run after *attempt*."""
        longest_s = min(self.cap_s, self.base_s * float(2 ** min(attempt - 1, 20)))
        return random.uniform(0.0, 1.0) * longest_s  # noqa: S311 - jitter


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """Either `pause_s` until the next run, or the terminal `status`; a `dead_reason` keeps the delivery in DEAD."""

    status: Status = "failed"
    pause_s: float | None = None
    dead_reason: str | None = None


def is_programming_error(error: BaseException, task: "Task | None") -> bool:
    """Return whether *error* is a slip in the code of *task* itself, and none for which it asks to be run again."""
    if task is None or isinstance(error, task.retry_on):
        return False
    if isinstance(error, BaseExceptionGroup):
        return all(is_programming_error(one, task) for one in error.exceptions)
    return isinstance(error, PROGRAMMING_ERRORS) and is_raised_by(
        error, task.handler.function
    )


def decide_retry(
    error: BaseException,
    *,
    task: "Task | None" = None,
    attempt: int,
    max_attempts: int,
    retry: RetryPolicy,
    now: datetime,
    left_s: float | None = None,
    excused: int = 0,
) -> RetryDecision:
    """Return the decision on *error* in run number *attempt* of at most *max_attempts*.

    *task* is None when a listener ran. *now* is the time in UTC. *left_s* is how many seconds are left until the
    deadline, None without one: a run that would begin after it is none. *excused* is how many runs ended for want of
    our own servers, no fault of the task.
    """
    if isinstance(error, TaskExpired | TaskCancelled | PhaseReplaced):
        # A replaced phase has another run of its own: this one need not be kept.
        return RetryDecision(
            "expired" if isinstance(error, TaskExpired) else "cancelled"
        )
    if isinstance(error, UnknownSession | EntryTooLarge):
        # Not the request is at fault, but the session or the size of an entry.
        return RetryDecision(dead_reason="gave_up")
    if isinstance(error, InvalidInput | NotApproved):
        return RetryDecision("rejected")
    is_final = isinstance(error, GiveUp) or getattr(error, "retryable", True) is False
    if is_final or is_programming_error(error, task):
        return RetryDecision(dead_reason="gave_up" if is_final else "code_error")
    if isinstance(error, LlmError) and error.away_s is not None:
        # Its run is taken back from the attempts; how long it waits in all is up to the caller.
        wait_s = error.away_s if left_s is None else min(error.away_s, left_s)
        return RetryDecision(pause_s=wait_s)
    if isinstance(error, MemoryUnavailable) and excused < MOST_EXCUSED:
        # No task dies of an outage of ours, however long it is, and none spins through it.
        longest_s = min(OUTAGE_PAUSE_S, 2.0 ** min(attempt + excused, 20))
        wanted_s = max(1.0, random.uniform(0.5, 1.0) * longest_s)  # noqa: S311 - jitter
    elif attempt >= max_attempts:
        return RetryDecision(dead_reason="attempts")
    else:
        asked_s = retry_after_s(error, now)
        wanted_s = retry.pause_s(attempt) if asked_s is None else asked_s
    if left_s is not None and wanted_s >= left_s:
        return RetryDecision(dead_reason="deadline")
    if wanted_s > retry.longest_s:
        log.info("wait_shortened", asked_s=wanted_s, pause_s=retry.longest_s)
    return RetryDecision(pause_s=min(wanted_s, retry.longest_s))


def retry_after_s(error: BaseException, now: datetime) -> float | None:
    """Return the pause in seconds that *error* asks for, by itself or as a provider's `retry_after_s`, or None."""
    if isinstance(error, RetryLater) and error.at is not None:
        return max(0.0, (error.at - now).total_seconds())
    for name in ("after_s", "retry_after_s"):
        value = getattr(error, name, None)
        if isinstance(value, int | float) and (
            isinstance(value, int) or math.isfinite(value)
        ):
            # A whole number may be larger than any float.
            return max(0.0, float(min(value, sys.float_info.max)))
    return None
