"""What the HTTP library warns of stands in the log once a period, with the number of the rest."""

import logging
from collections.abc import Callable

import pytest
import structlog

from supervisor.http.server.log_limits import seldom

LIBRARY = logging.getLogger("uvicorn.error")


def counted(log: list[structlog.typing.EventDict]) -> list[tuple[str, int]]:
    """Return what is told of repeats: which warning, and how many more there were."""
    return [(one["warning"], one["times"]) for one in log if one["event"] == "http_warning_repeated"]


async def test_one_line_stands_for_many_and_the_rest_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Each kind of warning for itself; at the end what was not told yet is told."""
    with structlog.testing.capture_logs() as log, seldom():
        for _ in range(5):
            LIBRARY.warning("Invalid HTTP request received.")
        LIBRARY.warning("Unsupported upgrade request.")
    told = [one.message for one in caplog.records if one.name == LIBRARY.name]
    assert told == ["Invalid HTTP request received.", "Unsupported upgrade request."]
    assert counted(log) == [("Invalid HTTP request received.", 4)]


class Clock:
    """Waits for nobody: `ring` is the end of every period that is waited for."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def later(self, _seconds: float, call: Callable[[str], None], word: str) -> "Clock":
        """Keep *call* until the clock rings."""
        self._waiting.append(lambda: call(word))
        return self

    def cancel(self) -> None:
        """Let nothing more happen."""
        self._waiting.clear()

    def ring(self) -> None:
        """End the period."""
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()


def test_a_flood_is_a_line_a_period(caplog: pytest.LogCaptureFixture) -> None:
    """The number of the rest is told when the period ends; after a calm one the next complaint has its own line."""
    clock = Clock()
    with structlog.testing.capture_logs() as log, seldom(later=clock.later):
        for often in (3, 1, 0, 1):
            for _ in range(often):
                LIBRARY.warning("no HTTP")
            clock.ring()
    assert counted(log) == [("no HTTP", 2), ("no HTTP", 1)]
    assert len([one for one in caplog.records if one.name == LIBRARY.name]) == 2


async def test_what_is_worse_than_a_warning_is_always_told(caplog: pytest.LogCaptureFixture) -> None:
    """And afterwards everything is, as before."""
    with seldom():
        for _ in range(3):
            LIBRARY.error("our fault")
    LIBRARY.warning("again")
    LIBRARY.warning("again")
    assert len([one for one in caplog.records if one.name == LIBRARY.name]) == 5
