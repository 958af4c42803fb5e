"""How many more tasks of an agent TASKS may take: enough that its workers never starve, few enough to be fair.

TASKS is served in the order of arrival, so that every task there delays the next tenant. Workers fetch as many as they
have free slots; those that lie ready beyond that are to last for `_AHEAD_S`. A queue that was found empty may become
twice as long while it is looked at often. Where limits bound the runs of the agent, few are let wait for a place, as
these do so in the order of arrival too.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.contracts.admission.limits import Limits, Payer
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory.budgets.store import Budgets
from tasklore.runtime.messaging.jetstream import ask_jetstream, ask_or_none

#: Seconds of work that lie ready for the workers of an agent.
_AHEAD_S = 0.03
#: The fewest and most tasks that may lie ready, and those of an agent that no worker has served yet.
_FEWEST = 4
_MOST = 1024
_UNSERVED = 64
#: Seconds over which the rate is measured, and after which a queue that was empty says nothing about now.
_WINDOW_S = 0.25
_RECENT_S = 0.1
#: Seconds for which limits that were read are taken to hold.
_LIMITS_S = 0.5


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What was seen of an agent: tasks done by `since`, their rate, and the present bound of tasks that lie ready."""

    since: float
    done: int
    rate: float = 0.0
    bound: int = _FEWEST
    asked_at: float = 0.0


@dataclass(slots=True)
class MovedTasks:
    """The tasks of an agent that were moved into TASKS: how many by which last sequence of the stream."""

    steps: deque[tuple[int, int]] = field(default_factory=deque)

    def count_ready(self, ready: int, delivered: int) -> int:
        """Return how many, at most, are among the *ready* ones behind the sequence that was *delivered* last."""
        while self.steps and (not ready or self.steps[0][0] <= delivered):
            self.steps.popleft()
        return min(ready, sum(number for _, number in self.steps))


class Room:
    """Asks the server how many tasks of an agent lie ready, and says how many more may, by the limits of *budgets*."""

    def __init__(
        self,
        client: Client,
        budgets: Budgets | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._budgets = budgets
        self._now = now
        self._seen: dict[str, _Seen] = {}
        self._limits = Limits()
        self._read_at = -_LIMITS_S

    async def ask(self, agent_id: str, moved: MovedTasks | None = None) -> int:
        """Return how many more tasks of *agent_id* may go into TASKS now, 0 for none.

        With *moved*, those alone take room: what other programs send to TASKS themselves never shuts out who waits.

        Raises:
            TaskloreError: the server does not answer.
        """
        info = await ask_or_none(
            self._client, f"CONSUMER.INFO.{subjects.TASKS}.{agent_id}"
        )
        if info is None:
            question = {"subjects_filter": subjects.tasks_of(agent_id)}
            state = (
                await ask_jetstream(
                    self._client, f"STREAM.INFO.{subjects.TASKS}", question
                )
            )["state"]
            ready: dict[str, int] = state.get("subjects") or {}
            return max(0, _UNSERVED - sum(ready.values()))
        room = self._room(agent_id, info, moved)
        return min(room, await self._places(agent_id)) if room else 0

    async def _places(self, agent_id: str) -> int:
        """Return how many more tasks may come to wait for a place under the limits on all runs of *agent_id*."""
        if self._budgets is None:
            return _MOST
        try:
            if self._now() - self._read_at >= _LIMITS_S:
                limits = (await self._budgets.read()).limits.limits
                of_all = [
                    one
                    for one in limits
                    if one.at_most and not (one.tenant or one.user or one.task)
                ]
                self._limits = Limits(limits=tuple(of_all))
                self._read_at = self._now()
            bounds = self._limits.bounds_of(Payer(agent=agent_id))
            runs = await self._budgets.runs_under(bounds) if bounds else []
        except MemoryUnavailable:
            return _MOST
        spare = (
            max(_FEWEST, most) - waiting
            for most, (_, waiting) in zip(bounds.values(), runs, strict=True)
        )
        return max(0, min(spare, default=_MOST))

    async def note(self, moved: MovedTasks, number: int) -> None:
        """Note in *moved* that so many tasks have just been stored in TASKS.

        Raises:
            TaskloreError: the server does not answer.
        """
        state = (await ask_jetstream(self._client, f"STREAM.INFO.{subjects.TASKS}"))[
            "state"
        ]
        moved.steps.append((int(state["last_seq"]), number))

    def _room(
        self, agent_id: str, info: dict[str, Any], moved: MovedTasks | None
    ) -> int:
        now = self._now()
        ready = int(info["num_pending"])
        done = int(info["delivered"]["consumer_seq"]) - int(info["num_ack_pending"])
        seen = self._seen.setdefault(agent_id, _Seen(since=now, done=done))
        if (passed_s := now - seen.since) >= _WINDOW_S:
            seen.rate = max(0, done - seen.done) / passed_s
            seen.since = now
            seen.done = done
        usual = min(_MOST, max(_FEWEST, int(seen.rate * _AHEAD_S)))
        is_starving = ready == 0 and now - seen.asked_at < _RECENT_S
        seen.bound = min(_MOST, max(usual, seen.bound * 2)) if is_starving else usual
        seen.asked_at = now
        if moved is not None:
            ready = moved.count_ready(ready, int(info["delivered"]["stream_seq"]))
        return max(0, seen.bound - ready)
