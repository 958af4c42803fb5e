"""How many tasks have ended, and how, exactly: counted by the script that stores the report which counts.

A counter a slot of a cluster, in the slot of its tasks: report and count are one write, so that neither a kill nor a
lost reply can part them, and what a crash of the server takes back it takes back of both. A generation counts once. The
counters outlive the tasks: neither the time to live of a task nor forgetting a user takes anything off them.

Of many supervisors one adds them up, and the others read its sums.
"""

import asyncio
from collections import Counter
from typing import Annotated

from pydantic import Field, TypeAdapter
from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.ledger.ledger import number_in
from tasklore.memory.shared_values import AgedValue, SharedReading

#: Counters read at once: some 4 ms, of which the event loop is held up for 1.
_BATCH = 512
#: Milliseconds for which the sums of one process are those of all, and for which the others leave it to add them up.
SHARED_MS = 9_500
_SUMS = TypeAdapter(dict[str, Annotated[int, Field(ge=0, lt=1 << 63)]])


class Tally:
    """Reads the counters: all of them in 0.1 s, of which 30 ms are CPU time of ours and 7 ms the server's.

    Every method may raise MemoryUnavailable, after `deadline_s` seconds for each batch.
    """

    def __init__(self, client: Redis, *, deadline_s: float = 2.0) -> None:
        self._batch = CommandBatch(client, deadline_s)
        self._shared = SharedReading(
            client,
            keys.end_sums(),
            keep_ms=SHARED_MS,
            kind=_SUMS,
            deadline_s=deadline_s,
        )

    async def read(self) -> dict[str, int]:
        """Return how many generations of tasks have ended in each state since there is a ledger.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        counted: Counter[str] = Counter()
        questions: list[Command] = [("HGETALL", key) for key in keys.every_ended()]
        for start in range(0, len(questions), _BATCH):
            for reply in await self._batch.run(questions[start : start + _BATCH]):
                for state, number in as_mapping(reply).items():
                    counted[state.decode(errors="replace")] += number_in(number) or 0
            # Whoever else is served comes first.
            await asyncio.sleep(0)
        return dict(+counted)

    async def read_shared(self) -> AgedValue[dict[str, int]]:
        """Return the sums that a process kept within the last `SHARED_MS`; where none did, add them up and keep them.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        return await self._shared.take(self.read)
