"""Reading of passages by their numbers: the body of a turn lies under the number of its first passage."""

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
    held = await _read(batch, turns, numbers)
    firsts = {
        number: number if body.startswith(b"{") else int(body)
        for number, body in held.items()
    }
    lacking = sorted(set(firsts.values()) - held.keys())
    if lacking:
        held |= await _read(batch, turns, lacking)
    return {
        number: (first, held[first])
        for number, first in firsts.items()
        if first in held
    }


async def _read(
    batch: CommandBatch, turns: str, numbers: Sequence[int]
) -> dict[int, bytes]:
    bodies = (await batch.run([("HMGET", turns, *numbers)]))[0]
    return {
        number: body
        for number, body in zip(numbers, bodies, strict=True)
        if body is not None
    }
