"""How many more tasks of an agent TASKS may take: enough that its workers never starve, few enough to be fair.

TASKS is served in the order of arrival, so that every task there delays the next tenant. Workers fetch as many as they
have free slots; those that lie ready beyond that are to last for `_AHEAD_S`. A queue that was found empty may become
twice as long while it is looked at often.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client

from contracts import subjects
from runtime.messaging.jetstream import ask_jetstream, ask_or_none

#: Seconds of work that lie ready for the workers of an agent.
_AHEAD_S = 0.03
#: The fewest and most tasks that may lie ready, and those of an agent that no worker has served yet.
_FEWEST, _MOST, _UNSERVED = 4, 1024, 64
#: Seconds over which the rate is measured, and after which a queue that was empty says nothing about now.
_WINDOW_S, _RECENT_S = 0.25, 0.1


@dataclass(slots=True)
class _Seen:
    """What was seen of an agent: tasks done by `since`, their rate, and the present bound of tasks that lie ready."""

    since: float
    done: int
    rate: float = 0.0
    bound: int = _FEWEST
    asked_at: float = 0.0


class Room:
    """Asks the server how many tasks of an agent lie ready, and says how many more may."""

    def __init__(self, client: Client, now: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now = now
        self._seen: dict[str, _Seen] = {}

    async def ask(self, agent_id: str) -> int:
        """Return how many more tasks of *agent_id* may go into TASKS now, 0 for none.

        Raises:
            TaskloreError: the server does not answer.
        """
        info = await ask_or_none(self._client, f"CONSUMER.INFO.{subjects.TASKS}.{agent_id}")
        if info is None:
            question = {"subjects_filter": subjects.tasks_of(agent_id)}
            state = (await ask_jetstream(self._client, f"STREAM.INFO.{subjects.TASKS}", question))["state"]
            ready: dict[str, int] = state.get("subjects") or {}
            return max(0, _UNSERVED - sum(ready.values()))
        return self._room(agent_id, info)

    def _room(self, agent_id: str, info: dict[str, Any]) -> int:
        now, ready = self._now(), int(info["num_pending"])
        done = int(info["delivered"]["consumer_seq"]) - int(info["num_ack_pending"])
        seen = self._seen.setdefault(agent_id, _Seen(now, done))
        if (passed_s := now - seen.since) >= _WINDOW_S:
            seen.rate, seen.since, seen.done = max(0, done - seen.done) / passed_s, now, done
        usual = min(_MOST, max(_FEWEST, int(seen.rate * _AHEAD_S)))
        is_starving = ready == 0 and now - seen.asked_at < _RECENT_S
        seen.bound = min(_MOST, max(usual, seen.bound * 2)) if is_starving else usual
        seen.asked_at = now
        return max(0, seen.bound - ready)
