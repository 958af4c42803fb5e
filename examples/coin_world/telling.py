"""What the program says to people: a line at a time, and nothing that would steer a terminal."""

import sys
from collections.abc import Mapping

from examples.coin_world.world import Choice, World


def plain(text: str) -> str:
    """Return *text* as one line of what can be printed: agents, models and files of other people wrote it."""
    return " ".join(
        "".join(
            letter for letter in text if letter.isprintable() or letter.isspace()
        ).split()
    )


def say(text: str) -> None:
    """Write *text* to stdout as one line."""
    print(plain(text), flush=True)  # noqa: T201 - what it says is its output


def warn(text: str) -> None:
    """Write *text* to stderr as one line."""
    print(plain(text), file=sys.stderr, flush=True)  # noqa: T201 - what it warns of is no output of the world


def tell(world: World, _choices: Mapping[str, Choice | None]) -> None:
    """Say what somebody who watches would like to hear of this step."""
    for name, deed in world.deeds.items():
        choice = deed.choice
        if deed.late or deed.refused:
            say(f"{world.time:g}s {name} waits: {deed.refused or choice.reasoning}")
        elif choice.action == "collect":
            say(
                f"{world.time:g}s {name} has {world.collected(name)}, {world.left} left"
            )
        elif choice.action == "text":
            say(f"{world.time:g}s {name} to {choice.to}: {choice.said}")
