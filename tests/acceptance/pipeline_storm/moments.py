"""When who is killed: inside each phase, on each boundary between two, and at any time, worker and supervisor alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random
from typing import Literal

from tests.acceptance.pipeline_storm.nine_phases import CORRECTION, PHASES

Victim = Literal["worker", "supervisor"]
VICTIMS: tuple[Victim, ...] = ("worker", "supervisor")

#: Inputs that runs are for: half of them have something to correct.
NUMBERS = 6


@dataclass(frozen=True, slots=True)
class Moment:
    """When *victim* is killed in a run for the input *number*.

    `inside` *phase*, between its start and its end; `after` its report is stored and before the next one starts, None
    is before the first; or at `any` time, after *share* of what an undisturbed run takes.
    """

    victim: Victim
    place: Literal["inside", "after", "any"]
    phase: str | None
    number: int
    share: float = 0.0

    def __str__(self) -> str:
        """Return it in words."""
        when = (
            f"{self.share:.0%} through"
            if self.place == "any"
            else f"{self.place} {self.phase or 'the request'}"
        )
        return f"{self.victim} killed {when}, number {self.number}"


def plan(runs: int, seed: int) -> list[Moment]:
    """Return as many moments, every kind in turns; of 76 on each kind of each phase comes twice."""
    random = Random(seed)
    kinds = [
        _endless(victim, place, random)
        for place in ("inside", "after", "any")
        for victim in VICTIMS
    ]
    # A moment at any time is worth half as much as one that is known to hit.
    turns = cycle([0, 1, 2, 3, 4, 5, 0, 1, 2, 3])
    return [next(kinds[turn]) for turn in islice(turns, runs)]


def _endless(victim: Victim, place: str, random: Random) -> Iterator[Moment]:
    """Return every moment of a kind in random order, again and again."""
    while True:
        if place == "any":
            yield Moment(
                victim, "any", None, random.randrange(NUMBERS), random.random()
            )
            continue
        inside = place == "inside"
        for phase in random.sample(
            PHASES if inside else (None, *PHASES), len(PHASES) + (not inside)
        ):
            number = random.randrange(NUMBERS)
            if phase == CORRECTION:
                # Of an even number nothing is corrected.
                number |= 1
            yield Moment(victim, "inside" if inside else "after", phase, number)
