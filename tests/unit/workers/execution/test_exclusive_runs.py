"""Runs side by side, and runs that must be alone."""

import asyncio

import pytest

from tasklore.workers.execution.crash_isolation import GROUP, CrashIsolation, StillBusy


class Visits:
    """Notes who is in, and the most there ever were beside somebody alone."""

    def __init__(self) -> None:
        self.told: list[bool] = []
        self.exclusive = CrashIsolation(self.told.append)
        self.inside: list[str] = []
        self.seen: list[list[str]] = []

    async def visit(
        self,
        name: str,
        leaves: asyncio.Event,
        *,
        alone: bool = False,
        grouped: bool = False,
    ) -> None:
        """Be in until *leaves* is set."""
        await self.exclusive.enter(alone=alone, grouped=grouped)
        self.inside.append(name)
        self.seen.append(list(self.inside))
        await leaves.wait()
        self.inside.remove(name)
        self.exclusive.leave(alone=alone, grouped=grouped)


async def _turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_who_wants_to_be_alone_waits_for_all_and_nobody_enters_meanwhile() -> (
    None
):
    """Newcomers go in afterwards, and taking anything is paused from the wish to the end."""
    visits = Visits()
    early = asyncio.Event()
    lonely = asyncio.Event()
    late = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(visits.visit("a", early))
        group.create_task(visits.visit("b", early))
        await _turns()
        group.create_task(visits.visit("alone", lonely, alone=True))
        await _turns()
        group.create_task(visits.visit("late", late))
        await _turns()
        assert (visits.inside, visits.told) == (["a", "b"], [True])
        early.set()
        await _turns()
        assert visits.inside == ["alone"]
        lonely.set()
        await _turns()
        assert (visits.inside, visits.told) == (["late"], [True, False])
        late.set()


async def test_several_are_alone_one_after_the_other() -> None:
    """Never two of them at once, and the pause lasts for all."""
    visits = Visits()
    leaves = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(visits.visit(str(number), leaves, alone=True))
        await _turns()
        leaves.set()
    assert sorted(visits.seen) == [[str(number)] for number in range(5)]
    assert visits.told == [True, False]


async def test_a_wish_that_is_given_up_lets_the_others_in() -> None:
    """A worker that leaves does not wait for exclusive."""
    visits = Visits()
    early = asyncio.Event()
    late = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(visits.visit("early", early))
        await _turns()
        lonely = asyncio.create_task(visits.visit("alone", late, alone=True))
        await _turns()
        lonely.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lonely
        group.create_task(visits.visit("late", late))
        await _turns()
        assert (visits.inside, visits.told) == (["early", "late"], [True, False])
        early.set()
        late.set()


async def test_nobody_is_waited_for_for_ever() -> None:
    """The wish ends, others may come in again, and it is not tried again at once while they are there."""
    told: list[bool] = []
    exclusive = CrashIsolation(told.append, patience_s=0.01)
    await exclusive.enter(alone=False)
    with pytest.raises(StillBusy):
        await exclusive.enter(alone=True)
    assert told == [True, False]
    with pytest.raises(StillBusy):
        await exclusive.enter(alone=True)
    assert told == [True, False]
    exclusive.leave(alone=False)
    await exclusive.enter(alone=True)
    assert told == [True, False, True]


async def test_a_group_is_small_and_others_go_in_beside_it() -> None:
    visits = Visits()
    leaves = asyncio.Event()
    others_leave = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for number in range(GROUP):
            tasks.create_task(visits.visit(f"suspect {number}", leaves, grouped=True))
        await _turns()
        waiting = [
            tasks.create_task(visits.visit(f"waiting {number}", leaves, grouped=True))
            for number in range(2)
        ]
        await _turns()
        tasks.create_task(visits.visit("other", others_leave))
        await _turns()
        assert visits.inside == [
            *(f"suspect {number}" for number in range(GROUP)),
            "other",
        ]
        waiting[0].cancel()
        await _turns()
        leaves.set()
        others_leave.set()
    assert visits.told == []
    assert "waiting 1" in visits.seen[-1]
    again = asyncio.create_task(visits.visit("again", leaves, grouped=True))
    await _turns()
    assert again.done()
