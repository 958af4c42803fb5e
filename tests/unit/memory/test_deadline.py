"""The deadline of an exchange: it ends a silence, but not an answer that a blocked loop has yet to read."""

import asyncio

import pytest

from tasklore.memory.command_batch import Deadline


async def test_silence_ends_at_the_deadline() -> None:
    """As a TimeoutError, with the waiting cancelled."""
    with pytest.raises(TimeoutError), Deadline(0.001):
        await asyncio.Event().wait()


async def test_an_answer_that_came_while_the_loop_was_blocked_counts() -> None:
    """A task that computes for long must not make its neighbours' memory unavailable."""
    loop = asyncio.get_running_loop()

    def block() -> None:
        until = loop.time() + 0.05
        while loop.time() < until:
            pass

    with Deadline(0.01):
        block()
        # Reading what has arrived takes a client a few turns of the loop.
        for _ in range(4):
            await asyncio.sleep(0)


async def test_an_error_inside_is_not_hidden() -> None:
    """Nor is a cancellation from outside turned into a timeout."""
    with pytest.raises(ValueError, match="mine"), Deadline(10):
        raise ValueError("mine")

    async def wait() -> None:
        with Deadline(10):
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
