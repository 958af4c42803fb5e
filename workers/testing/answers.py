"""What a kit remembers: its own answers, and which of them is near to a question, as the long-term memory finds it."""

from tasklore.memory import keys
from tasklore.memory.long_term.entries import CachedResult
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.recall import neighbour_at


class KitAnswers:
    """Answers by entry key, for as long as the kit is there."""

    def __init__(self) -> None:
        self._answers: dict[str, CachedResult] = {}
        self._places: dict[tuple[str, str], dict[str, str]] = {}

    def keep(self, job: Job, answer: CachedResult) -> None:
        """Keep *answer* unless nothing is remembered of the task."""
        if job.memory_key is None:
            return
        self._answers[job.memory_key] = answer
        if job.neighbourhood is not None:
            frame = keys.near_of(job.memory_key), job.neighbourhood.frame
            self._places.setdefault(frame, {})[job.neighbourhood.place] = job.memory_key

    def find(self, job: Job) -> CachedResult | None:
        """Return the answer to *job*, else to its nearest neighbour, which is then its `near`; None without one."""
        key = job.memory_key
        near = job.neighbourhood
        if job.memory != "miss" or key is None:
            return None
        if key in self._answers or near is None:
            return self._answers.get(key)
        places = self._places.get((keys.near_of(key), near.frame), {})
        for place in near.nearest(list(places), 1):
            answer = self._answers[places[place]]
            job.near = neighbour_at(
                job.parameters,
                neighbourhood=near,
                place=place,
                key=places[place],
                answer=answer,
            )
            return answer
        return None
