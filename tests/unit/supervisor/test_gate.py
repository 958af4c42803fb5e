"""The gate: no notice is lost, and what opens it is that nothing waits and there is room."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from nats.aio.msg import Msg

from tasklore.contracts import subjects
from tasklore.supervisor.admission.gate import OVER, Gate

AGENT = "BusyAgent"
#: Seconds for what takes a few hundredths of one.
PATIENCE_S = 10.0


@dataclass
class Wire:
    """What a gate publishes, and the notices that it waits for."""

    said: list[str] = field(default_factory=list)
    client: Any = None

    def __post_init__(self) -> None:
        self.client = self

    async def publish(self, subject: str, _body: bytes = b"") -> None:
        self.said.append(subject)


class Rooms:
    """Room for so many tasks each time it is asked."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.asked = 0

    async def ask(self, _agent: str) -> int:
        self.asked += 1
        return self.room


@pytest.fixture
def wire() -> Wire:
    return Wire()


def make_gate(wire: Wire, room: int = 4) -> Gate:
    # A clock that stands still: nothing opens by mere silence.
    return Gate(cast("Any", wire), cast("Any", Rooms(room)), lambda: 100.0)


def notice(body: bytes = b"") -> Msg:
    return Msg(cast("Any", None), subjects.waits(AGENT), data=body)


@pytest.mark.parametrize("tasks", [2, 100])
async def test_a_notice_soon_after_another_is_given_later(
    wire: Wire, tasks: int
) -> None:
    """One for all that came meanwhile, after the last of them: a desk that had looked before them looks again."""
    gate = make_gate(wire)
    for _ in range(tasks):
        await gate.note_waiting(AGENT)
    assert wire.said == [subjects.waits(AGENT)]
    async with asyncio.timeout(PATIENCE_S):
        while len(wire.said) < 2:  # noqa: ASYNC110 - a list makes no event
            await asyncio.sleep(0.001)
    assert len(wire.said) == 2


async def test_the_gate_opens_when_nothing_waits_and_there_is_room(wire: Wire) -> None:
    """At once, and for as many as there is room for; not while the desk has not been told of all of ours."""
    gate = make_gate(wire, room=2)
    await gate.note_waiting(AGENT)
    assert not await gate.is_open(AGENT)
    await gate.hear(notice())
    assert not await gate.is_open(AGENT)
    await gate.hear(notice(OVER))
    assert [await gate.is_open(AGENT) for _ in range(2)] == [True, True]

    await gate.note_waiting(AGENT)
    await gate.hear(notice(OVER))
    assert not await gate.is_open(AGENT)
    async with asyncio.timeout(PATIENCE_S):
        while len(wire.said) < 2:  # noqa: ASYNC110 - a list makes no event
            await asyncio.sleep(0.001)
    await gate.hear(notice(OVER))
    assert await gate.is_open(AGENT)


async def test_the_gate_stays_shut_without_room(wire: Wire) -> None:
    """Nothing waits, and the workers have all that they can do."""
    gate = make_gate(wire, room=0)
    await gate.hear(notice(OVER))
    assert not await gate.is_open(AGENT)
