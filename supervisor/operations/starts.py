"""When work that is sent may begin."""

from datetime import datetime

from tasklore.supervisor.dispatch import MOST_AHEAD
from tasklore.supervisor.operations.refusals import Fault, unusable


def demand_reachable(starts_at: datetime | None, now: datetime) -> None:
    """Return when a message can wait until *starts_at*; None is at once.

    Raises:
        Refused: 422, it lies too far ahead.
    """
    if starts_at is not None and starts_at > now + MOST_AHEAD:
        words = f"a task waits for {MOST_AHEAD.days} days at most; POST /v1/schedules with that `at` instead"
        raise unusable([Fault(where="at", message=words)])
