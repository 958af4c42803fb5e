"""Another run of a task that waits, at once: its schedule is replaced by one that is due."""

from datetime import datetime

from tasklore.contracts import subjects
from tasklore.contracts.traces import spelled_context
from tasklore.runtime.messaging.outbox import Outbox

#: Seconds for it to be stored; the notifier and the scheduler make up for one that was not.
_STORED_WITHIN_S = 5.0


async def wake_up(
    outbox: Outbox,
    *,
    task_id: str,
    generation: int,
    attempt: int,
    agent_id: str,
    task_name: str,
    assignment: bytes,
    trace: str,
    now: datetime,
    why: str,
) -> None:
    """Let run number *attempt* of a task begin *now*; *why* tells wake-ups of one run apart.

    Raises:
        NotAccepted, MessageTooLarge: that is not known to be stored.
    """
    context = spelled_context(trace)
    await outbox.put(
        subjects.schedule(task_id, generation),
        assignment,
        subjects.wake_message_id(task_id, generation, attempt, why),
        headers={
            **(context.headers if context is not None else {}),
            subjects.GENERATION_HEADER: str(generation),
            subjects.ATTEMPT_HEADER: str(attempt),
            **subjects.schedule_headers(now, subjects.due(agent_id, task_name)),
        },
        patience_s=_STORED_WITHIN_S,
    )
