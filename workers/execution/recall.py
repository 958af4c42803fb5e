"""The recall of a batch: one question to the long-term memory for all jobs whose answers may be remembered."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.parameters.model import Parameters
from tasklore.contracts.parameters.neighbours import Neighbourhood
from tasklore.memory.long_term.entries import CachedResult, NearMatch
from tasklore.workers.execution.job import Job, NearResult
from tasklore.workers.middleware import Hooks, Middleware, notify_async

if TYPE_CHECKING:
    # the testing kit finds neighbours as well, and needs neither
    from tasklore.runtime.metrics import Metrics
    from tasklore.workers.execution.long_term import LongTerm

log = structlog.get_logger(__name__)


async def recall(
    jobs: Sequence[Job], memory: "LongTerm", metrics: "Metrics", hooks: Hooks
) -> None:
    """Give each of *jobs* whose answer is remembered that answer, as `recalled`; a memory that is away has none."""
    asking = [job for job in jobs if job.memory == "miss"]
    if not asking:
        return
    began_ns = time.time_ns()
    try:
        with metrics.time_lookup():
            answers = await memory.recall_many([job.memory_key or "" for job in asking])
    except MemoryUnavailable as error:
        log.info(
            "memory_unavailable", agent=asking[0].assignment.agent_id, error=str(error)
        )
        for job in asking:
            job.memory = "unavailable"
    else:
        for job, answer in zip(asking, answers, strict=True):
            job.recalled = answer
    await notify_async(hooks.after_recall, asking, began_ns)


class NearMatches(Middleware):
    """Answers to neighbouring questions, for tasks whose parameters allow it, where the exact answer is unknown."""

    def __init__(self, memory: "LongTerm") -> None:
        self._memory = memory

    async def after_recall(self, jobs: Sequence[Job], began_ns: int) -> None:  # noqa: ARG002 - as in `Middleware`
        """Give jobs whose own question is not remembered the answer of their nearest neighbour."""
        asking = [
            (job, job.neighbourhood)
            for job in jobs
            if job.neighbourhood is not None
            and job.recalled is None
            and job.memory == "miss"
        ]
        if not asking:
            return
        try:
            found = await self._memory.nearest(
                [(job.memory_key or "", near) for job, near in asking]
            )
        except MemoryUnavailable as error:
            log.info(
                "memory_unavailable",
                agent=asking[0][0].assignment.agent_id,
                error=str(error),
            )
            return
        for (job, neighbourhood), near in zip(asking, found, strict=True):
            if near is not None:
                _serve_neighbour(job, neighbourhood, near)


def _serve_neighbour(job: Job, neighbourhood: Neighbourhood, near: NearMatch) -> None:
    try:
        job.near = neighbour_at(
            job.parameters,
            neighbourhood=neighbourhood,
            place=near.place,
            key=near.key,
            answer=near.answer,
        )
        job.recalled = near.answer
    except Exception:
        # A serializer of the user's may raise anything: an answer that cannot be labelled is not served.
        log.exception("neighbour_not_served", agent=job.assignment.agent_id)


def neighbour_at(
    asked: Parameters,
    neighbourhood: Neighbourhood,
    place: str,
    key: str,
    answer: CachedResult,
) -> NearResult:
    """Return *answer*, the one remembered at *key*, as that of a neighbour at *place*."""
    distances = neighbourhood.distances(place)
    farthest = float(max(number for number, _ in distances.values()))
    texts = {name: text for name, (_, text) in distances.items()}
    return NearResult(
        key=key,
        answer=answer,
        distances=texts,
        farthest=farthest,
        computed_for=parameters_at(asked, neighbourhood, place),
    )


def parameters_at(
    asked: Parameters, neighbourhood: Neighbourhood, place: str
) -> dict[str, Any]:
    """Return the parameters that the answer at *place* was computed for, as JSON holds them."""
    return asked.model_copy(update=neighbourhood.values_at(place)).model_dump(
        mode="json"
    )
