"""The loop that wakes tasks for which there is room: how often it looks, and what it does when it cannot."""

import json
from typing import Any, Literal

import pytest

from tasklore.contracts.errors import MemoryUnavailable, NotAccepted
from tasklore.memory.ledger.runs import Woken
from tasklore.runtime.claim_loop import NotYet
from tasklore.supervisor.admission import limit_waker
from tasklore.supervisor.admission.limit_waker import LimitWaker
from tests.understanding_cases import AT

TASK = "t1:1"
ASSIGNMENT = json.dumps(
    {
        "task_id": "t1",
        "agent_id": "AskerAgent",
        "supervisor_id": "S",
        "created_at": AT.isoformat(),
        "task": {"name": "colour", "parameters": {}},
    }
).encode()


class FakeWaiting:
    """Stands for `WaitingTasks`: notes what it is told."""

    def __init__(self) -> None:
        self.looks = 0
        self.has_more = False
        self.leads = False
        self.woken: list[str] = []
        self.told: list[tuple[str, str]] = []

    async def wake(self, most: int) -> list[str]:
        self.looks += 1
        return self.woken[:most]

    async def await_note(self, task: str) -> None:
        self.told.append(("await_note", task))

    async def wake_again(self, task: str, after_s: float) -> None:
        self.told.append((f"wake_again {after_s:.0f}", task))

    async def forget(self, task: str) -> None:
        self.told.append(("forget", task))


class FakeLedger:
    """Stands for `Ledger`: a task is as it is told to be."""

    def __init__(self, found: Woken | Literal["running", "ended"] | Exception) -> None:
        self._found = found

    async def wake(self, task_id: str, generation: int) -> Any:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


class FullOutbox:
    """Takes nothing."""

    async def put(self, *_: Any, **__: Any) -> None:
        raise NotAccepted("full")


def waker_of(waiting: FakeWaiting, found: Any) -> LimitWaker:
    """Return the loop over fakes."""
    return LimitWaker(waiting, FakeLedger(found), FullOutbox())  # type: ignore[arg-type]


@pytest.mark.parametrize("why", ["store", "stream"])
async def test_one_that_could_not_be_woken_is_so_again_before_long(why: str) -> None:
    """It rests here for less than that, so that it is not looked at in vain."""
    waiting = FakeWaiting()
    found = MemoryUnavailable("away") if why == "store" else Woken(0, ASSIGNMENT, "")
    with pytest.raises(NotYet) as raised:
        await waker_of(waiting, found).work(TASK, TASK)
    assert waiting.told == [("wake_again 1", TASK)]
    assert raised.value.pause_s < 1.0


@pytest.mark.parametrize(
    ("found", "told"), [("running", "await_note"), ("ended", "forget")]
)
async def test_one_that_does_not_wait_is_left_to_its_run(
    found: Literal["running", "ended"], told: str
) -> None:
    """It may be about to wait, or is over."""
    waiting = FakeWaiting()
    await waker_of(waiting, found).work(TASK, TASK)
    assert waiting.told == [(told, TASK)]


async def test_one_process_looks_twice_a_second_and_goes_on_where_there_is_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An idle system costs the others a command a second each."""
    clock = 100.0
    monkeypatch.setattr(limit_waker.time, "monotonic", lambda: clock)
    waiting = FakeWaiting()
    waker = waker_of(waiting, "ended")
    for _ in range(40):
        await waker.due(9)
        clock += 0.125
    assert waiting.looks == 5
    waiting.looks, waiting.leads = 0, True
    for _ in range(40):
        await waker.due(9)
        clock += 0.125
    assert waiting.looks == 10
    waiting.looks = 5
    waiting.woken = [TASK]
    for _ in range(40):
        await waker.due(9)
        clock += 0.125
    assert waiting.looks == 25
    waiting.woken, waiting.has_more = [], True
    for _ in range(40):
        await waker.due(9)
        clock += 0.125
    assert waiting.looks == 45
