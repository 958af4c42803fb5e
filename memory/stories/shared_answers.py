"""Answers that agents of a story share: the first of them, in any process, asks the question for all."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from pydantic import JsonValue
from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.long_term.single_flight import FlightPlace, Joined, SingleFlight
from tasklore.memory.sessions.once import Computed

#: How long an answer is kept: longer than the latest agent of an analysis is awaited.
KEEP = timedelta(minutes=15)


class SharedAnswers:
    """Keeps answers by story, response and name; the lease of the asking agent lies beside them.

    Args:
        client: A client that does not decode responses.
        flights: Shared by all callers of this process.
        calls: How agents share questions: `ten`, `grouped` or `one`.
        deadline_s: Seconds for one round trip.
    """

    def __init__(
        self,
        client: Redis,
        flights: SingleFlight[Computed],
        calls: str = "ten",
        *,
        deadline_s: float = 1.0,
    ) -> None:
        self.calls = calls
        self._batch = CommandBatch(client, deadline_s)
        self._flights = flights

    async def get_or_compute(
        self,
        story_id: str,
        number: int,
        name: str,
        compute: Callable[[], Awaitable[JsonValue]],
        *,
        wait_s: float,
    ) -> JsonValue:
        """Return the answer *name*, or the result of *compute*, which is then that answer.

        One caller over all processes computes and the others wait for it; when it dies another one computes. A caller
        that has waited *wait_s*, or cannot reach the server, computes for itself.
        """
        # No entry of a session begins with a dot, so that none has these keys.
        answers, lease = (
            keys.session_flight(story_id, f".{number}{more}")
            for more in ("", f":{name}")
        )
        place = FlightPlace(answers, name, lease)

        async def recall() -> Computed | None:
            [raw] = await self._batch.run([("HGET", place.hash, place.field)])
            return None if raw is None else Computed(json.loads(raw))

        outcome = await self._flights.join(place, recall, wait_s=wait_s)
        if isinstance(outcome, Joined):
            return outcome.value.value
        async with outcome:
            value = await compute()
            if not value and not outcome.is_leased:
                # Another one may have an answer still.
                return value
            with suppress(MemoryUnavailable):
                await self._batch.run(
                    [
                        ("HSET", place.hash, place.field, json.dumps(value)),
                        ("PEXPIRE", place.hash, int(KEEP.total_seconds() * 1000)),
                    ]
                )
            outcome.share(Computed(value))
        return value


@asynccontextmanager
async def open_answers(
    client: Redis, owner: str, calls: str, deadline_s: float
) -> AsyncIterator[SharedAnswers]:
    """Yield the answers that agents in this process share; *owner* names it.

    Agents that share a question are late after seconds: the place of one that died is taken within five.
    """
    async with SingleFlight[Computed](
        client, owner=f"{owner}-stories", budget_s=deadline_s
    ) as flights:
        yield SharedAnswers(client, flights, calls, deadline_s=deadline_s)
