"""One run of a listener, kept from harming more than its rows, and the fate of rows whose run raised."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar

from tasklore.contracts.errors import (
    BudgetSpent,
    LlmError,
    LlmMalformed,
    LlmNotConfigured,
    LlmRejected,
    MemoryUnavailable,
    NotAccepted,
    TaskloreError,
)
from tasklore.memory.queues.claims import QueueRow
from tasklore.workers.execution.retry_decision import RetryPolicy, decide_retry
from tasklore.workers.listening.declaration import Listener

T = TypeVar("T")

#: The longest pause, in seconds, before a user is tried again whose run ended for want of a server: it may be back.
OUTAGE_CAP_S = 60.0
#: Rests in a row for want of a model before a fact waits for one out of its order: with pauses from 1 to 60 s some two
#: minutes. Until then whatever its user said after it waits behind it, and nothing overtakes what a blip held up.
MOST_MODEL_RESTS = 8
#: Characters of an error that stand in the table as the reason.
MAX_REASON = 500


class Unreadable(TaskloreError):
    """A row cannot be worked on, and never will be."""

    retryable = False


@dataclass(frozen=True, slots=True)
class Fate:
    """The consequence of an error for its rows.

    `outage`: a server was away, which is no fault of the row: it stays as it is, and its user rests for `pause_s`
    seconds. `retry`: it runs again after `pause_s`, before anything that follows it. `failed`: it is set aside.
    `needs_model`: it waits until a model can be asked.
    """

    state: Literal["outage", "retry", "failed", "needs_model"]
    reason: str
    pause_s: float = 0.0


def fate_of(
    error: Exception,
    *,
    attempt: int,
    allowed: int,
    rests: int,
    retry: RetryPolicy,
    now: datetime,
    most_model_rests: int | None = None,
) -> Fate:
    """Return the consequence of *error* in run number *attempt* of at most *allowed*.

    *rests* is how often its user has rested in a row for want of a server; after *most_model_rests* of them (None: as
    many as it takes) what still finds no model waits for one elsewhere.
    """
    reason = f"{type(error).__name__}: {error}"[:MAX_REASON]
    if isinstance(error, LlmNotConfigured | LlmRejected | BudgetSpent):
        # The key, the model's name or the schema is wrong, or a budget is spent: somebody mends that, or a new day
        # does, and nothing that was said is lost.
        return Fate("needs_model", reason)
    if is_outage(error):
        if (
            isinstance(error, LlmError)
            and most_model_rests is not None
            and rests >= most_model_rests
        ):
            return Fate("needs_model", reason)
        asked_s = getattr(error, "retry_after_s", None) or 0.0
        return Fate(
            "outage", reason, min(OUTAGE_CAP_S, max(asked_s, retry.pause_s(rests + 1)))
        )
    decision = decide_retry(
        error, attempt=attempt, max_attempts=allowed, retry=retry, now=now
    )
    return (
        Fate("failed", reason)
        if decision.pause_s is None
        else Fate("retry", reason, decision.pause_s)
    )


def demand_harmless(row: QueueRow, allowed: int) -> None:
    """Refuse *row* when more than *allowed* of its runs ended without an answer: it probably kills the process.

    The first of them was perhaps beside others, and any of these may have been to blame.

    Raises:
        Unreadable: it is to be set aside.
    """
    if row.crashes and row.attempts > allowed:
        raise Unreadable(f"{row.crashes} runs of it ended without a word")


def is_outage(error: BaseException) -> bool:
    """Return whether *error* comes from a server that is away, ours or a model's, and not from the row."""
    if isinstance(error, LlmMalformed):
        return False
    return isinstance(error, MemoryUnavailable | NotAccepted) or (
        isinstance(error, LlmError) and error.retryable
    )


async def run_contained(listener: Listener, run: Awaitable[T]) -> T:
    """Return the result of *run* of *listener*, within its deadline.

    Raises:
        TaskloreError: its time was over, it let a CancelledError escape without having been cancelled, or it raised an
            exception that would end the whole process.
        Exception: whatever it raises.
    """
    deadline = listener.deadline
    try:
        async with asyncio.timeout(
            deadline.total_seconds() if deadline is not None else None
        ) as time:
            return await run
    except TimeoutError as error:
        if not time.expired():
            raise
        msg = f"{listener.label} did not end within {deadline}; allow more time, or do less at once"
        raise TaskloreError(msg) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        msg = (
            f"{listener.label} raised CancelledError although it was not cancelled; catch the error where your code"
            " cancels something"
        )
        raise TaskloreError(msg) from error
    except Exception:
        raise
    except BaseException as error:
        msg = (
            f"{listener.label} raised {type(error).__name__}({error}), which is not "
            "an Exception; return or raise one"
        )
        raise TaskloreError(msg) from error
