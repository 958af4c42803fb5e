"""When who is killed: inside each phase, on each boundary between two, and at any time, worker and supervisor alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random

from tests.acceptance.faults.plan import Fault, FaultPlan, Moment, Role
from tests.acceptance.pipeline_storm.nine_phases import CORRECTION, PHASES

VICTIMS: tuple[Role, ...] = ("worker", "supervisor")

#: Inputs that runs are for: half of them have something to correct.
NUMBERS = 6


@dataclass(frozen=True, slots=True)
class StruckRun:
    """A run for the input *number*, in which a process of *victim*'s role is killed at its *moment*."""

    victim: Role
    moment: Moment
    number: int

    def plan(self, seed: int) -> FaultPlan:
        """Return the one fault of it."""
        kill = Fault(kind="kill", role=self.victim, when=self.moment)
        return FaultPlan(seed=seed, faults=(kill,))

    def __str__(self) -> str:
        """Return it in words."""
        moment = self.moment
        when = (
            f"{moment.share:.0%} through"
            if moment.place == "any"
            else f"{moment.place} {moment.step or 'the request'}"
        )
        return f"{self.victim} killed {when}, number {self.number}"


def plan(runs: int, seed: int) -> list[StruckRun]:
    """Return as many runs, every kind in turns; of 76 on each kind of each phase comes twice."""
    random = Random(seed)
    kinds = [
        _endless(victim, place, random)
        for place in ("inside", "after", "any")
        for victim in VICTIMS
    ]
    # A moment at any time is worth half as much as one that is known to hit.
    turns = cycle([0, 1, 2, 3, 4, 5, 0, 1, 2, 3])
    return [next(kinds[turn]) for turn in islice(turns, runs)]


def _endless(victim: Role, place: str, random: Random) -> Iterator[StruckRun]:
    """Return every moment of a kind in random order, again and again."""
    while True:
        if place == "any":
            number = random.randrange(NUMBERS)
            yield StruckRun(victim, Moment("any", None, random.random()), number)
            continue
        inside = place == "inside"
        for phase in random.sample(
            PHASES if inside else (None, *PHASES), len(PHASES) + (not inside)
        ):
            number = random.randrange(NUMBERS)
            if phase == CORRECTION:
                # Of an even number nothing is corrected.
                number |= 1
            moment = Moment("inside" if inside else "after", phase)
            yield StruckRun(victim, moment, number)
