"""What blocks an event loop is named while it does: by its task, and the line of its author."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator

import pytest

from tasklore.runtime import blocking
from tasklore.runtime.blocking import BlockWatch, Runner, place_of
from tasklore.runtime.health import Pulse
from tasklore.runtime.process import _unless_blocked

#: Seconds for what takes a tenth of one.
PATIENCE_S = 20.0
RUN = Runner("PriceAgent", "quote", "t-1")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "BLOCKED_AFTER_S", 0.5)
    monkeypatch.setattr(blocking, "_LOOK_S", 0.01)


@pytest.fixture
async def pulse() -> Iterator[Pulse]:
    pulse = Pulse()
    pulse.start()
    yield pulse
    pulse.stop()


def hold_up(watch: BlockWatch) -> tuple[bool, str]:
    """Stand still until it is noticed, as careless code does; return what is said of it."""
    until = time.monotonic() + PATIENCE_S
    while watch.check()[0] and time.monotonic() < until:
        json.dumps([0] * 1000)
    return watch.check()


async def test_the_run_and_its_line_are_named(pulse: Pulse) -> None:
    """Counted once a block, and forgotten when the loop turns again."""
    counted: list[tuple[str, str]] = []
    ours = asyncio.current_task()
    watch = BlockWatch(
        pulse,
        lambda task: RUN if task is ours else None,
        lambda agent, task: counted.append((agent, task)),
    )
    watch.start()
    try:
        for times in (1, 2):
            fine, words = hold_up(watch)
            assert not fine
            assert "PriceAgent.quote, task t-1, at " in words
            assert f"{__file__}:" in words
            assert "in hold_up" in words
            assert counted == [("PriceAgent", "quote")] * times
            async with asyncio.timeout(PATIENCE_S):
                while not watch.check()[0]:  # noqa: ASYNC110 - a thread notices it
                    await asyncio.sleep(0.01)
    finally:
        watch.stop()


async def test_what_is_no_run_is_named_by_its_line(pulse: Pulse) -> None:
    """A task that a run has started, or code of a library's own."""
    watch = BlockWatch(pulse)
    watch.start()
    try:
        fine, words = hold_up(watch)
    finally:
        watch.stop()
    assert not fine
    assert words.partition(" by at ")[2].startswith(__file__)


def test_the_line_is_the_authors_and_not_that_of_a_library() -> None:
    """The innermost frame may be one of json, ssl or ours; without any other it is that one."""
    frames = []

    def look(_value: object) -> object:
        frames.append(sys._getframe())
        return None

    json.dumps(object(), default=look)
    assert f"{__file__}:" in place_of(frames[0])
    inner = frames[0].f_back
    assert inner is not None
    assert "json" in inner.f_code.co_filename
    assert f"{__file__}:" in place_of(inner)
    assert place_of(None) == "an unknown place"


def test_a_part_that_waited_for_the_loop_has_a_moment_to_go_on() -> None:
    """What the block made late fails for nothing until the loop was steady for as long as the part may be silent."""
    now = 100.0
    pulse = Pulse(stuck_after_s=60, monotonic=lambda: now)
    check = _unless_blocked(pulse, lambda: (False, "last heard 20 s ago"))
    for _ in range(40):
        now += 0.25
        pulse.beat()
    assert check() == (False, "last heard 20 s ago")

    now += 20.0
    assert check()[0]
    pulse.beat()
    seen = []
    for _ in range(40):
        now += 0.25
        pulse.beat()
        seen.append(check()[0])
    assert seen == [True] * 31 + [False] * 9
