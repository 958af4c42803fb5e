"""A world run step by step: everybody decides, what was decided is done at once, and whoever watches is shown it."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from examples.coin_world.world import Choice, World


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent answered: its choice, None when there was none in time, and why (`problem`).

    `prompt` is what it was shown, when that was asked for.
    """

    choice: Choice | None
    prompt: str | None = None
    problem: str | None = None


#: Asks everybody in a world what to do next, or reads what they once decided.
Decide = Callable[[World], Awaitable[Mapping[str, Answer]]]
#: Is told of every step that was made: the world after it, and what had been chosen.
Note = Callable[[World, Mapping[str, Choice | None]], None]


class Runner:
    """Runs a world until *steps* are made, or with 0 until all coins are gone; it can be paused, and watched.

    `took_ms` is how long the last step took, from the first question to the last change of the world.

    Args:
        world: The world; nobody else may change it meanwhile.
        decide: Where decisions come from.
        notes: Who is told of each step: to keep it, to check it, to say it.
        ends: Who is told that there is no more: the world is over, or nobody runs it any longer.
        steps: How many steps to make; 0 is until no coin is left.
        interval_ms: Milliseconds from the beginning of one step to that of the next, at least.
        paused: Whether to wait for `play` or `single_step` before the first step.
    """

    def __init__(
        self,
        world: World,
        decide: Decide,
        *,
        notes: Sequence[Note] = (),
        ends: Sequence[Callable[[], None]] = (),
        steps: int = 0,
        interval_ms: int = 0,
        paused: bool = False,
    ) -> None:
        self.world = world
        self._decide = decide
        self._notes = notes
        self._ends = ends
        self._steps = steps
        self._interval_s = interval_ms / 1000
        self._plays = not paused
        self._singles = 0
        self._began_at = float("-inf")
        self.took_ms = 0.0
        self._answers: Mapping[str, Answer] = {}
        self._version = 0
        self._change = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to do."""
        return self.world.step >= self._steps if self._steps else self.world.left == 0

    async def run(self) -> None:
        """Make step after step until the end; raises what deciding and noting raise."""
        try:
            while not self.is_over:
                await self._turn()
                await self._advance()
        finally:
            for end in self._ends:
                end()

    @property
    def version(self) -> int:
        """Count of changes of the picture: steps, and whether it is running."""
        return self._version

    async def changed(self, since: int) -> None:
        """Return once `version` is not *since*."""
        while self._version == since:
            await self._change.wait()

    def play(self) -> None:
        """Make steps from now on."""
        self._plays = True
        self._tell()

    def pause(self) -> None:
        """Make no further step after the one that is being made."""
        self._plays = False
        self._tell()

    def single_step(self) -> None:
        """Make one step, then none."""
        self._plays = False
        self._singles += 1
        self._tell()

    def pace(self, interval_ms: int) -> None:
        """Begin a step at most every *interval_ms* milliseconds."""
        self._interval_s = interval_ms / 1000
        self._tell()

    def picture(self) -> dict[str, Any]:
        """Return the world as it is now, for a page."""
        running = self._plays and not self.is_over
        pace = {"interval_ms": round(self._interval_s * 1000), "took_ms": self.took_ms}
        return {
            **self.world.picture(),
            "running": running,
            "over": self.is_over,
            **pace,
        }

    def told(self, name: str) -> dict[str, Any] | None:
        """Return what *name* was shown when it was last asked, and what it decided; None for nobody."""
        if name not in self.world.plan.names:
            return None
        answer = self._answers.get(name, Answer(None))
        return {
            "name": name,
            "step": self.world.step,
            "prompt": answer.prompt,
            "decision": answer.choice.as_data() if answer.choice is not None else None,
            "problem": answer.problem,
        }

    async def _turn(self) -> None:
        """Return when the next step is to be made."""
        clock = asyncio.get_running_loop().time
        while not self._singles:
            wait_s = (
                self._began_at + self._interval_s - clock() if self._plays else None
            )
            if wait_s is not None and wait_s <= 0:
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self.changed(self._version)
        self._singles = max(0, self._singles - 1)
        self._began_at = clock()

    async def _advance(self) -> None:
        started = time.perf_counter()
        answers = await self._decide(self.world)
        choices = {name: answer.choice for name, answer in answers.items()}
        self.world.apply(
            choices,
            {
                name: answer.problem
                for name, answer in answers.items()
                if answer.problem
            },
        )
        self._answers = answers
        self.took_ms = (time.perf_counter() - started) * 1000
        for note in self._notes:
            note(self.world, choices)
        self._tell()

    def _tell(self) -> None:
        """Let everybody who waits for a change look."""
        self._version += 1
        self._change.set()
        self._change = asyncio.Event()
