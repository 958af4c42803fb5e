"""Calls of one turn of the event loop: carried out as one, each answered in its place."""

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar

import pytest

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory.gathered_calls import GatheredCalls
from tests.servers import PATIENCE_S

asker = ContextVar("asker", default="nobody")


class Doubler:
    """Doubles numbers once it may, and keeps what it was asked at a time, and on whose behalf."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.askers: set[str] = set()
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def double(self, numbers: Sequence[int]) -> list[int]:
        self.asked.append(list(numbers))
        self.askers.add(asker.get())
        self.is_asked.set()
        await self.may_answer.wait()
        if 13 in numbers:
            raise MemoryUnavailable("away")
        return [2 * number for number in numbers]


async def test_what_is_asked_in_one_turn_is_one_call_of_nobody_and_later_ones_another() -> (
    None
):
    """Each gets its own answers, in its order."""
    asker.set("the first")
    doubler = Doubler()
    doubler.may_answer.set()
    calls = GatheredCalls(doubler.double)

    found = await asyncio.gather(*(calls.ask(one) for one in ([1], [], [2, 3], [4])))
    later = await calls.ask([5])

    assert (found, later) == ([[2], [], [4, 6], [8]], [10])
    assert doubler.asked == [[1, 2, 3, 4], [5]]
    assert doubler.askers == {"nobody"}


async def test_a_failure_is_that_of_all_who_asked_and_of_no_later_one() -> None:
    """The next turn asks again."""
    doubler = Doubler()
    doubler.may_answer.set()
    calls = GatheredCalls(doubler.double)

    found = await asyncio.gather(
        calls.ask([13]), calls.ask([1]), return_exceptions=True
    )

    assert [type(one) for one in found] == [MemoryUnavailable, MemoryUnavailable]
    assert await calls.ask([1]) == [2]


async def test_whoever_leaves_does_not_end_the_call_of_the_others() -> None:
    """A run that is cancelled while the ledger is asked takes no other report with it."""
    doubler = Doubler()
    calls = GatheredCalls(doubler.double)
    leaving = asyncio.create_task(calls.ask([1]))
    staying = asyncio.create_task(calls.ask([2]))
    await asyncio.wait_for(doubler.is_asked.wait(), PATIENCE_S)

    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    doubler.may_answer.set()

    assert await staying == [4]
