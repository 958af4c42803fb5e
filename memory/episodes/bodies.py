"""Reading of passages by their numbers: the body of a turn lies under the number of its first passage.

Of any other, `p` and its number lead to the first: version 0.2 takes whatever lies under a number for a turn.
"""

from collections.abc import Sequence

from tasklore.memory.command_batch import CommandBatch

__all__ = ["read_bodies"]


async def read_bodies(
    batch: CommandBatch, turns: str, numbers: Sequence[int]
) -> dict[int, tuple[int, bytes]]:
    """Return of *numbers* the first number and the body of the turn of each; without those that are gone.

    Raises:
        MemoryUnavailable: the store did not answer in time.
    """
    if not numbers:
        return {}
    further = [f"p{number}" for number in numbers]
    bodies, leading = await batch.run(
        [("HMGET", turns, *numbers), ("HMGET", turns, *further)]
    )
    held = _present(numbers, bodies)
    firsts = dict(zip(held, held, strict=True))
    firsts |= {
        number: int(first) for number, first in _present(numbers, leading).items()
    }
    lacking = sorted(set(firsts.values()) - held.keys())
    if lacking:
        more = (await batch.run([("HMGET", turns, *lacking)]))[0]
        held |= _present(lacking, more)
    return {
        number: (first, held[first])
        for number, first in firsts.items()
        if first in held
    }


def _present(numbers: Sequence[int], found: Sequence[bytes | None]) -> dict[int, bytes]:
    return {
        number: body
        for number, body in zip(numbers, found, strict=True)
        if body is not None
    }
