"""Why a task waits for its next run, and why its time was over, in words for people."""

from datetime import datetime, timedelta

from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.errors import (
    GiveUp,
    LlmError,
    LlmThrottled,
    MemoryUnavailable,
    TaskExpired,
)
from tasklore.contracts.moments import describe_deadline, spell_moment
from tasklore.memory.ledger.ledger import Ledger, read_wait
from tasklore.runtime.messaging.dead_letter import error_note

#: Characters of an error that readers of a task that waits are told.
_MOST_SAID = 200
#: How long a task waits for a model whose provider does not answer it. What it refuses for longer, in words that nobody
#: knows as final (an empty account, say), is not mended by waiting.
LONGEST = timedelta(days=1)


def run_wait(
    error: Exception, earlier: RunWait | None, now: datetime
) -> RunWait | None:
    """Return what a task waits for since *error*, None where it is for nothing but time.

    *earlier* is why it waited before this run, None where a model has answered it since.

    Raises:
        GiveUp: it has waited for the model for a day.
    """
    if not isinstance(error, LlmError) or error.away_s is None:
        return None
    if isinstance(error, LlmThrottled) and error.limit:
        wait = RunWait(
            kind="limit",
            name=error.limit,
            model=error.model,
            text=error.words,
            since=now,
            until=now + timedelta(seconds=error.room_in_s),
        )
    else:
        wait = RunWait(
            kind="model",
            name=error.model,
            model=error.model,
            text=f"the provider of model {error.model}",
            said=error.said,
            since=now,
            until=now + timedelta(seconds=error.away_s),
        )
    if earlier is None or (earlier.kind, earlier.name) != (wait.kind, wait.name):
        return wait
    if wait.kind == "model" and now - earlier.since >= LONGEST:
        hours = (now - earlier.since) // timedelta(hours=1)
        msg = f"it waited {hours} hours for {wait.words}; fix that and redrive it"
        raise GiveUp(msg) from error
    return wait.model_copy(update={"since": earlier.since})


def to_retry_wait(
    error: Exception, *, run: int, now: datetime, pause_s: float
) -> RunWait:
    """Return what a task waits for since number *run* of its runs ended with *error*: another one in *pause_s*."""
    note = error_note(error)
    return RunWait(
        kind="retry",
        name=note.type,
        text=f"its next run, as run {run} ended with {note.type}",
        said=" ".join(note.message.split())[:_MOST_SAID],
        since=now,
        until=now + timedelta(seconds=pause_s),
    )


async def explain_expiry(
    ledger: Ledger, task_id: str, generation: int, expired: Exception
) -> Exception:
    """Return *expired*, of a task of which no run may begin any more, with what kept it from its end until then."""
    deadline = expired.deadline if isinstance(expired, TaskExpired) else None
    if deadline is None:
        return expired
    try:
        past = await ledger.past(task_id, generation)
    except MemoryUnavailable:
        return expired
    passed = describe_deadline(deadline)
    if (wait := read_wait(past.waits_for)) is not None:
        since = spell_moment(wait.since)
        return TaskExpired(
            f"{passed} while it waited for {wait.words}, since {since}", deadline
        )
    if past.crashes:
        lost = "" if past.lost is None else f" ({past.lost})"
        return TaskExpired(
            f"{passed} before it could run again: the worker process ended in "
            f"{past.crashes} of its {past.attempts} runs{lost}, because of this task or "
            "another one in the same worker",
            deadline,
        )
    return expired
