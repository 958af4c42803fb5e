"""A storm of calls on limits, in simulated time: the scripts are real, slots, parking and the provider are played.

The provider has hard limits and books of its own. It counts a call when it arrives, by what it will take.
"""

import heapq
import random
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from redis.asyncio import Redis

from tasklore.contracts.admission.limits import CallUsage, ModelCall, Payer
from tasklore.contracts.errors import BudgetSpent, LlmThrottled
from tasklore.memory.budgets.governor import ModelBudget, Reservation

#: A word that is one token to every counter.
_WORD = " the"
#: Seconds that a parked task may begin late: schedules have whole seconds.
_LATE_S = 1.0
#: Seconds for which a call waits in its slot, as `tasklore.runtime.models.governor.PATIENCE_S`.
_PATIENCE_S = 2.0


@dataclass
class Provider:
    """A provider with a hard limit of tokens in any 60 seconds, and its books."""

    tokens_a_minute: int
    counted: deque[tuple[float, int]] = field(default_factory=deque)
    in_window: int = 0
    billed: int = 0
    refused: int = 0
    served: int = 0

    def take(self, now: float, tokens: int) -> bool:
        """Count a call that arrives, unless it is refused."""
        while self.counted and self.counted[0][0] + 60 <= now:
            self.in_window -= self.counted.popleft()[1]
        if self.in_window + tokens > self.tokens_a_minute:
            self.refused += 1
            return False
        self.counted.append((now, tokens))
        self.in_window = self.in_window + tokens
        self.billed = self.billed + tokens
        self.served = self.served + 1
        return True


@dataclass
class Storm:
    """What came of a storm: `late_s` is how long after its time each parked task began, in order of their ends."""

    provider: Provider
    used: float = 0.0
    parked: int = 0
    inversions: int = 0
    starts: list[int] = field(default_factory=list)


async def run_storm(  # noqa: C901 - one loop over the events of a simulation
    redis: Redis,
    seed: int,
    *,
    processes: int = 3,
    slots: int = 64,
    seconds: float = 180.0,
    limit: int = 200_000,
    most_tasks: int = 2_000,
) -> Storm:
    """Let every slot of every process take tasks for *seconds*, of which the first 60 are not measured."""
    draw = random.Random(seed)
    clock = [1_790_000_000.0]
    begin = clock[0]
    number = count()
    provider = Provider(limit)
    storm = Storm(provider)

    def now() -> datetime:
        return datetime.fromtimestamp(0, UTC) + timedelta(seconds=clock[0])

    governors = [ModelBudget(redis, now=now) for _ in range(processes)]
    #: (time, order, process, task, what): a slot that looks for work, a call that ends.
    events: list[
        tuple[float, int, int, int, tuple[Reservation, CallUsage] | float | None]
    ] = []
    #: Parked tasks by when they are due.
    parked: list[tuple[float, int]] = []
    for process in range(processes):
        for _ in range(slots):
            heapq.heappush(
                events, (begin + draw.random(), next(number), process, -1, None)
            )
    tasks = iter(range(most_tasks))
    before = 0
    while events:
        at, _, process, task, what = heapq.heappop(events)
        clock[0] = max(clock[0], at)
        if clock[0] > begin + seconds:
            break
        if clock[0] < begin + 60:
            before = provider.billed
        governor = governors[process]
        if isinstance(what, tuple):
            governor.settle(*what)
            await governor.flush()
            task = -1
            what = None
        waits_until = what if isinstance(what, float) else clock[0] + _PATIENCE_S
        if task < 0:
            is_due = bool(parked) and parked[0][0] <= clock[0]
            task = heapq.heappop(parked)[1] if is_due else next(tasks, -1)
            if task < 0:
                heapq.heappush(
                    events,
                    (
                        parked[0][0] if parked else clock[0] + 1,
                        next(number),
                        process,
                        -1,
                        None,
                    ),
                )
                continue
        prompt = 50 + task * 7919 % 400
        output = 20 + task * 104_729 % 380
        call = ModelCall(
            model="gpt-6-luna",
            payer=Payer(run=f"t{task}:1:1"),
            text=_WORD * prompt,
            most_output=500,
            price=lambda read, written: read + written,
        )
        try:
            held = await governor.reserve(call)
        except LlmThrottled as error:
            wait_s = error.away_s or 0.0
            if clock[0] + wait_s <= waits_until:
                heapq.heappush(
                    events,
                    (clock[0] + wait_s, next(number), process, task, waits_until),
                )
                continue
            storm.parked += 1
            heapq.heappush(parked, (clock[0] + wait_s + draw.uniform(0, _LATE_S), task))
            heapq.heappush(events, (clock[0], next(number), process, -1, None))
            continue
        except BudgetSpent:
            break
        storm.starts.append(task)
        if provider.take(clock[0] + draw.uniform(0.001, 0.02), prompt + output):
            taken = CallUsage(
                input=prompt, output=output, cached=0, nano_usd=prompt + output
            )
        else:
            taken = CallUsage(requests=0)
        heapq.heappush(
            events,
            (
                clock[0] + draw.uniform(0.1, 3.0),
                next(number),
                process,
                task,
                (held, taken),
            ),
        )
    storm.used = (provider.billed - before) / (limit * (seconds - 60) / 60)
    return storm
