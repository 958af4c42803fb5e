"""How long the turns of a person wait for more of them."""

from datetime import UTC, datetime, timedelta

import pytest

from tasklore.contracts.messages import ChatTurn
from tasklore.workers.listening.debounce import LOOK_S, BatchLimits, Debounce

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def turn(number: int, *, said: datetime) -> ChatTurn:
    """Return what ann said."""
    return ChatTurn(
        turn_id=f"t{number}",
        conversation_id="c",
        user_id="ann",
        speaker="person",
        text="hello",
        at=said,
    )


@pytest.mark.parametrize("ahead", [timedelta(), timedelta(hours=1)])
async def test_who_goes_on_is_waited_for_anew_whatever_their_clock_says(
    ahead: timedelta,
) -> None:
    """Twenty seconds from the last turn that was seen, and two minutes in all."""
    clock = Clock()
    debounce = Debounce(BatchLimits(turns=9, idle_s=20, longest_s=120), None, clock)
    turns = [turn(1, said=clock.now + ahead)]
    assert await debounce.pause_s("ann", turns) == LOOK_S
    clock.now += timedelta(seconds=15)
    turns.append(turn(2, said=clock.now + ahead))
    assert await debounce.pause_s("ann", turns) == LOOK_S
    clock.now += timedelta(seconds=15)
    assert await debounce.pause_s("ann", turns) == LOOK_S
    clock.now += timedelta(seconds=6)
    assert await debounce.pause_s("ann", turns) == 0


async def test_turns_that_waited_elsewhere_wait_no_more() -> None:
    """Their time began when they were said."""
    debounce = Debounce(BatchLimits(turns=9, idle_s=20), None, Clock())
    turns = [turn(1, said=NOW - timedelta(seconds=30))]
    assert await debounce.pause_s("ann", turns) == 0


async def test_turns_of_a_history_are_waited_for_as_if_they_were_said_now() -> None:
    """More of it follows, and a batch of one would be asked about alone."""
    clock = Clock()
    debounce = Debounce(BatchLimits(turns=9, idle_s=20, longest_s=120), None, clock)
    turns = [turn(1, said=NOW - timedelta(days=400))]
    assert await debounce.pause_s("ann", turns) == LOOK_S
    clock.now += timedelta(seconds=15)
    turns.append(turn(2, said=NOW - timedelta(days=399)))
    assert await debounce.pause_s("ann", turns) == LOOK_S
    clock.now += timedelta(seconds=15)
    assert await debounce.pause_s("ann", turns) == LOOK_S
    clock.now += timedelta(seconds=6)
    assert await debounce.pause_s("ann", turns) == 0
