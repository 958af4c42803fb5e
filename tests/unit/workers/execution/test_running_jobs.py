"""A run as others see it: what cuts it short, and until when."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from tasklore.workers.execution.running_jobs import Leaving, RunningJob


def running(*, idempotent: bool = True) -> RunningJob:
    """Return a run of a task that has not begun."""
    named: Any = {"named": "t1", "ancestors": (), "parent_id": None, "root_id": None}
    job = {
        "assignment": type("Assignment", (), named),
        "generation": 1,
        "task": type("Task", (), {"idempotent": idempotent, "name": "speak"}),
        "deadline": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return RunningJob(cast("Any", type("Job", (), job)))


async def test_a_run_that_begins_as_the_worker_leaves_goes_on_to_its_end() -> None:
    """It holds its places by then, and the worker waits for it."""
    one = running()
    one.leave()
    with pytest.raises(Leaving):
        one.check()
    one.begin()
    one.check()
    one.leave()
    assert not one.is_cut_short
