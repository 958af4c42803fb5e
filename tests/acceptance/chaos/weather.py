"""The plan of a storm: which blow falls when, drawn from a seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Self

from tasklore.runtime.servers.embedded import Durability

#: What a blow is; see `tests.acceptance.chaos.storm`.
Blow = Literal[
    "kill nats", "kill valkey", "stop", "cut nats", "cut valkey", "delete consumer"
]
#: The layout of the ledger in a storm, or that it moves from the first to the second in the middle of one.
LedgerUnderStorm = Literal["1", "2", "moving"]


@dataclass(frozen=True, kw_only=True)
class Climate:
    """How a storm is: numbers of tasks and blows, spans in seconds."""

    tasks: int = 5000
    task_ms: int = 50
    workers: int = 4
    slots: int = 2
    supervisors: int = 2
    ack_wait_s: float = 2.0
    kill_every_s: float = 2.0
    #: Where the machine may have much else to do, no task shall meet one kill after another and hardly run between.
    reports_between_kills: int = 25
    nats_kills: int = 5
    valkey_kills: int = 3
    stops: int = 1
    cuts: int = 4
    deletions: int = 1
    #: At least so many kills have to hit a running task.
    least_hits: int = 15
    #: A worker is frozen and a wire cut for this long: longer than `ack_wait_s`.
    silence_s: float = 3.0
    #: The work goes on at least this long, as blows are slow: they fall within it.
    span_s: float = 30.0
    durability: Durability = "strict"
    ledger: LedgerUnderStorm = "1"

    def lasting(self, tasks: int) -> Self:
        """Return it with *tasks*: as much longer, and with as many more blows, as so many tasks take."""
        times = max(1, round(tasks / self.tasks))
        return replace(
            self,
            tasks=tasks,
            nats_kills=times * self.nats_kills,
            valkey_kills=times * self.valkey_kills,
            stops=times * self.stops,
            cuts=times * self.cuts,
            deletions=times * self.deletions,
            least_hits=times * self.least_hits,
            span_s=times * self.span_s,
        )


#: A storm for every test run: seconds instead of a minute.
BREEZE = Climate(
    tasks=240,
    kill_every_s=0.7,
    reports_between_kills=16,
    nats_kills=1,
    valkey_kills=1,
    stops=0,
    cuts=1,
    deletions=1,
    least_hits=1,
    span_s=3.0,
)


@dataclass(frozen=True)
class Planned:
    """A blow, and the seconds after the first task at which it falls."""

    at_s: float
    blow: Blow


def plan(climate: Climate, seed: int) -> list[Planned]:
    """Return every blow but the kills of workers, in order: the same for the same seed."""
    dice = random.Random(f"blows {seed}")
    counts: dict[Blow, int] = {
        "kill nats": climate.nats_kills,
        "kill valkey": climate.valkey_kills,
        "stop": climate.stops,
        "cut nats": (climate.cuts + 1) // 2,
        "cut valkey": climate.cuts // 2,
        "delete consumer": climate.deletions,
    }
    blows = [blow for blow, number in counts.items() for _ in range(number)]
    dice.shuffle(blows)
    share = climate.span_s / (len(blows) + 1)
    # One in each part of the span: blows that all fall at once would be one.
    return [
        Planned((index + dice.uniform(0.2, 1.2)) * share, blow)
        for index, blow in enumerate(blows)
    ]


def pauses(climate: Climate, seed: int) -> Iterator[float]:
    """Yield seconds from one kill of a worker to the next, for ever."""
    dice = random.Random(f"kills {seed}")
    while True:
        yield climate.kill_every_s * dice.uniform(0.7, 1.3)
