"""A world that does what a script says: the page of it is served as that of any other, by the example's own server.

`python -m tests.browser.scripted crowd --port N` serves one until it is ended, and prints its address.
"""

import argparse
import asyncio
import random
from collections.abc import Mapping, Sequence

from examples.coin_world.running import Answer, Runner
from examples.coin_world.server import serving
from examples.coin_world.world import Choice, Place, World

#: What breaks a page that makes HTML, a style or an address of what agents say.
HOSTILE = '<img src="x" onerror="window.harmed = 1"><script>window.harmed = 1</script>'
#: Names as bad as a world may hold them, which refuses less than the agents do.
HOSTILE_NAMES = (
    HOSTILE,
    "../../etc/passwd",
    "__proto__",
    "a'\"b c&amp;",
    "\u202eevil",
    "constructor",
    "n" * 200,
)
#: Of whom nothing is ever heard in time.
LATE = "Godot"
WORDS = (
    "I see 3 coins at: (4, 5), (6, 7), (2, 9).",
    "Where are the coins?",
    "I am at (3, 4) and see no objects.",
    "On my way!",
    "Nothing here, I go north. Is anything left in your corner of the world, or shall I come over?",
)


class Script:
    """Decides by lot: agents walk, take what is near, and some of them talk."""

    def __init__(
        self, seed: int, words: Sequence[str] = WORDS, chatty: float = 0.06
    ) -> None:
        self._chance = random.Random(seed)
        self._words = words
        self._chatty = chatty

    async def decide(self, world: World) -> Mapping[str, Answer]:
        """Return what everybody does."""
        return {
            name: self._answer(world, name) for name in world.plan.names if name != LATE
        } | {
            name: Answer(None, problem="it did not report in time")
            for name in world.plan.names
            if name == LATE
        }

    def _answer(self, world: World, name: str) -> Answer:
        choice = self._choice(world, name)
        shown = f"# Conversation\nNothing was said.\n# Current situation\nI am {name} at {tuple(world.place(name))}"
        return Answer(choice, prompt=f"You are {name}.\n{shown}")

    def _choice(self, world: World, name: str) -> Choice:
        senses = world.senses(name)
        here = world.place(name)
        others = [other for other in world.plan.names if other != name]
        if others and self._chance.random() < self._chatty:
            words = self._chance.choice(self._words)
            return Choice(
                "text",
                to=self._chance.choice(others),
                said=words,
                reasoning=words,
                by="a script",
            )
        coins = [Place(**seen["position"]) for seen in senses["worldObjects"]]
        nearest = min(coins, key=here.far_from, default=None)
        if nearest is not None and here.far_from(nearest) <= 1:
            return Choice(
                "collect", nearest, reasoning="It is within reach.", by="a script"
            )
        edge = world.plan.size
        goal = nearest or Place(
            self._chance.randint(0, edge), self._chance.randint(0, edge)
        )
        way = 1.02 * max(here.far_from(goal), 1)
        there = Place(
            round(here.x + (goal.x - here.x) / way, 2),
            round(here.z + (goal.z - here.z) / way, 2),
        )
        return Choice("move", there, reasoning="Something may be there.", by="a script")


def _worlds() -> dict[str, tuple[World, Script]]:
    crowd = [f"Agent {number}" for number in range(1, 51)]
    few = ["Alice", "Bob", "Carol", "Dan", "Erin", "Frank"]
    return {
        "few": (World.new(7, few, 20, 40), Script(7, chatty=0.1)),
        "crowd": (World.new(7, crowd, 20, 120), Script(7)),
        "hostile": (
            World.new(7, HOSTILE_NAMES, 10, 5),
            Script(7, [HOSTILE, "javascript:alert(1)"], chatty=0.7),
        ),
        "waiting": (World.new(7, ["Vladimir", LATE], 10, 9), Script(7, chatty=0)),
        "alone": (World.new(7, ["Robinson"], 1, 2), Script(7)),
    }


async def _serve(which: str, port: int, interval_ms: int, paused: bool) -> None:
    world, script = _worlds()[which]
    # All but one go on without coins, for as long as somebody looks.
    steps = 0 if which == "alone" else 1_000_000
    runner = Runner(
        world, script.decide, steps=steps, interval_ms=interval_ms, paused=paused
    )
    async with serving(runner, port=port) as url, asyncio.TaskGroup() as group:
        print(url, flush=True)  # noqa: T201 - who started this reads it
        group.create_task(runner.run())
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("world", choices=sorted(_worlds()))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--interval-ms", type=int, default=500)
    parser.add_argument("--paused", action="store_true")
    options = parser.parse_args()
    asyncio.run(
        _serve(options.world, options.port, options.interval_ms, options.paused)
    )
