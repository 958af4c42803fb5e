"""What waits for workers, by agent, and who is there to do it: seen from outside, as a dead worker tells nothing.

A task lies in TASKS until it is dealt with, so that what waits and what runs are counted together.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import structlog

from contracts import subjects
from contracts.errors import TaskloreError
from contracts.words import OTHER
from runtime.messaging.buckets import read_bucket
from runtime.messaging.jetstream import ask_jetstream
from runtime.messaging.link import Link
from supervisor.reports.reports import RunTimes
from supervisor.watch import Watch

log = structlog.get_logger(__name__)

#: Agents with series of their own; those with most tasks have them, the others are counted as one.
MOST_AGENTS = 64


class BacklogWatch(Watch):
    """What the last look saw; nothing before the first one, and nothing while the server cannot be asked.

    Args:
        link: The connection to NATS.
        agents: Ids of the agents that there are.
        run_times: How long tasks take.
        now: Seconds since 1970.
    """

    def __init__(
        self,
        link: Link,
        agents: Callable[[], Iterable[str]],
        run_times: RunTimes,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._link = link
        self._agents = agents
        self._run_times = run_times
        self._now = now
        self._tasks: dict[tuple[str, str], int] = {}
        self._workers: Counter[str] = Counter()
        self._shown: frozenset[str] = frozenset()
        self._oldest_at: float | None = None

    def unfinished(self) -> Mapping[str, float]:
        """Return by agent how many tasks wait or run."""
        return self._by_agent(dict.fromkeys(self._tasks, 1.0))

    def slot_s(self) -> Mapping[str, float]:
        """Return by agent for how many seconds they will hold a slot, all together."""
        return self._by_agent({name: self._run_times.of(*name) for name in self._tasks})

    def workers(self) -> Mapping[str, float]:
        """Return by agent how many workers live."""
        counted = dict.fromkeys(self._shown, 0.0)
        for agent, number in self._workers.items():
            shown = agent if agent in self._shown else OTHER
            counted[shown] = counted.get(shown, 0.0) + number
        return counted

    def oldest_s(self) -> float:
        """Return for how many seconds the oldest task has been waiting or running, 0 when there is none."""
        oldest_at = self._oldest_at
        return 0.0 if oldest_at is None else max(0.0, self._now() - oldest_at)

    async def look(self) -> None:
        """Ask once."""
        question = {"subjects_filter": subjects.TASKS_ALL}
        state: dict[str, Any] = {}
        present: dict[str, bytes] = {}
        try:
            state = (await ask_jetstream(self._link.client, f"STREAM.INFO.{subjects.TASKS}", question))["state"]
            present = await read_bucket(self._link, subjects.WORKERS_BUCKET)
        except TaskloreError as error:
            # Before the first worker there is no bucket of them.
            log.info("backlog_not_counted", tasks=bool(state), error=str(error))
        self._tasks = _tasks_in(state)
        self._oldest_at = datetime.fromisoformat(state["first_ts"]).timestamp() if self._tasks else None
        self._workers = Counter(key.partition(".")[0] for key in present)
        self._shown = self._choose() if state else frozenset()

    def _choose(self) -> frozenset[str]:
        tasks: Counter[str] = Counter(dict.fromkeys([*self._workers, *self._agents()], 0))
        for (agent, _), number in self._tasks.items():
            tasks[agent] += number
        return frozenset(agent for agent, _ in tasks.most_common(MOST_AGENTS))

    def _by_agent(self, weights: Mapping[tuple[str, str], float]) -> dict[str, float]:
        found = dict.fromkeys(self._shown, 0.0)
        for name, number in self._tasks.items():
            shown = name[0] if name[0] in self._shown else OTHER
            found[shown] = found.get(shown, 0.0) + number * weights.get(name, 0.0)
        return found


def _tasks_in(state: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Return how many messages each subject of the stream has, by agent and task."""
    found: dict[tuple[str, str], int] = {}
    for subject, number in (state.get("subjects") or {}).items():
        agent, _, task = subject.partition(".")[2].partition(".")
        found[agent, task] = number
    return found
