"""Remembering a result: what a worker does with it, and a testing kit too."""

from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from tasklore.contracts.errors import MemoryUnavailable

if TYPE_CHECKING:
    # the testing kit loads neither before a task needs it
    from tasklore.workers.execution.job import Job
    from tasklore.workers.execution.long_term import LongTerm

log = structlog.get_logger(__name__)


async def remember(
    long_term: "LongTerm",
    job: "Job",
    *,
    key: str,
    result: bytes,
    run_ms: int,
    now: datetime,
    nano_usd: int = 0,
) -> None:
    """Remember *result* of *job*, computed in *run_ms* for *nano_usd*, at *key*.

    A memory that is away is noted on *job*.
    """
    try:
        await long_term.remember(
            key,
            result,
            computed_ms=run_ms,
            ttl=job.task.remember_for,
            now_ms=int(now.timestamp() * 1000),
            user_token=job.user,
            parameters_json=job.parameters.model_dump_json().encode(),
            near=job.neighbourhood,
            nano_usd=nano_usd,
        )
    except MemoryUnavailable as error:
        job.memory = "unavailable"
        log.info("not_remembered", agent=job.assignment.agent_id, error=str(error))
    except Exception:
        # A serializer of the user's may raise anything: the result is there, and is reported all the same.
        job.memory = "unavailable"
        log.exception("not_remembered", agent=job.assignment.agent_id)
