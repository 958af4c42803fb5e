"""The plan of a storm: which fault falls when, drawn from a seed."""

import random
from dataclasses import dataclass, replace
from typing import Literal, Self

from tasklore.runtime.servers.embedded import Durability
from tests.acceptance.faults.plan import At, Every, Fault, FaultPlan

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


def plan(climate: Climate, seed: int) -> FaultPlan:
    """Return every fault: the same for the same seed."""
    dice = random.Random(f"blows {seed}")
    timed = [fault for fault, number in _counts(climate) for _ in range(number)]
    dice.shuffle(timed)
    share = climate.span_s / (len(timed) + 1)
    shortest_s = 0.7 * climate.kill_every_s
    longest_s = 1.3 * climate.kill_every_s
    endless = [
        Fault(
            kind="kill",
            role="worker",
            when=Every(shortest_s, longest_s, reports=climate.reports_between_kills),
            times=None,
        ),
        # A third as often as workers.
        Fault(
            kind="kill",
            role="supervisor",
            when=Every(3 * shortest_s, 3 * longest_s),
            times=None,
        ),
    ]
    moving = [Fault(kind="move ledger", when=At(climate.span_s / 4))]
    return FaultPlan(
        seed=seed,
        faults=(
            *endless,
            # One in each part of the span: faults that all fall at once would be one.
            *(
                replace(fault, when=At((index + dice.uniform(0.2, 1.2)) * share))
                for index, fault in enumerate(timed)
            ),
            *(moving if climate.ledger == "moving" else ()),
        ),
    )


def _counts(climate: Climate) -> list[tuple[Fault, int]]:
    """Return the faults that fall so many times, at times that are drawn later."""
    now = At(0)
    return [
        (Fault(kind="kill nats", when=now), climate.nats_kills),
        (Fault(kind="kill valkey", when=now), climate.valkey_kills),
        (Fault(kind="freeze", role="anybody", when=now), climate.stops),
        (Fault(kind="cut nats", role="anybody", when=now), (climate.cuts + 1) // 2),
        (Fault(kind="cut valkey", role="anybody", when=now), climate.cuts // 2),
        (Fault(kind="delete consumer", when=now), climate.deletions),
    ]
