"""The deadline of an exchange: it ends a silence, but not an answer that a blocked loop has yet to read."""

import asyncio

import pytest

from tasklore.memory import command_batch
from tasklore.memory.command_batch import Deadline
from tasklore.memory.shared_connection import LastHeard


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


async def test_a_server_that_answers_others_is_not_late() -> None:
    """Silence counts from its last word to anybody who shares the pool."""
    loop = asyncio.get_running_loop()
    heard = LastHeard()
    words = 0

    async def answer_others() -> None:
        nonlocal words
        while True:
            heard.at = loop.time()
            words += 1
            await asyncio.sleep(0.005)

    others = asyncio.create_task(answer_others())
    with Deadline(0.05, heard):
        while words < 40:  # noqa: ASYNC110 - counts what another task does
            await asyncio.sleep(0.005)
    others.cancel()
    with pytest.raises(TimeoutError), Deadline(0.001, heard):
        await asyncio.Event().wait()


async def test_a_server_that_answers_others_alone_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One answer that never comes ends with the time that the ledger is waited for."""
    monkeypatch.setattr(command_batch, "BUSY_S", 0.05)
    loop = asyncio.get_running_loop()
    heard = LastHeard()

    async def answer_others() -> None:
        while True:
            heard.at = loop.time()
            await asyncio.sleep(0)

    others = asyncio.create_task(answer_others())
    with pytest.raises(TimeoutError), Deadline(0.01, heard):
        await asyncio.Event().wait()
    others.cancel()


async def test_a_process_that_stood_still_gives_the_server_its_time_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have stood still before its question left: what it does without an answer would be told beside it."""
    monkeypatch.setattr(command_batch, "BUSY_S", 0.1)
    loop = asyncio.get_running_loop()
    heard = LastHeard()

    async def stand_still() -> None:
        until = loop.time() + 1.0
        while loop.time() < until:
            pass

    with Deadline(0.5, heard):
        await stand_still()
        await asyncio.sleep(0.05)

    async def stand_still_again_and_again() -> None:
        for _ in range(10):
            await stand_still()
            await asyncio.sleep(0.05)

    with pytest.raises(TimeoutError), Deadline(0.2, heard):
        await stand_still_again_and_again()


async def test_a_loop_that_is_slow_is_not_the_servers_fault() -> None:
    """Each turn takes longer than the whole deadline, and the answer comes with the third."""
    loop = asyncio.get_running_loop()
    heard = LastHeard()

    async def keep_busy() -> None:
        while True:
            until = loop.time() + 0.03
            while loop.time() < until:
                pass
            await asyncio.sleep(0)

    busy = asyncio.create_task(keep_busy())
    with Deadline(0.01, heard):
        for _ in range(3):
            await asyncio.sleep(0)
    busy.cancel()
