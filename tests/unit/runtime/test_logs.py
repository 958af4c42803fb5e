"""Logs: JSON lines into a file, text on a terminal, and one form for ours and the libraries'."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from tasklore.runtime.logs import Format, Level, bind_task, configure


class Terminal(io.StringIO):
    """A stream that somebody watches."""

    def isatty(self) -> bool:
        """Say yes."""
        return True


def fail_over(sentence: str) -> None:
    """Fail with *sentence* among the local variables."""
    raise KeyError(len(sentence))


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Put back what was configured before the test."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    level = root.level
    yield
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.level = level


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    """Return the events written so far."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_line_where_nobody_watches() -> None:
    """With its level and a time in UTC."""
    out = io.StringIO()
    configure(stream=out)
    structlog.get_logger().info("worker_ready", agents=["A"])
    [event] = lines(out)
    assert (event["event"], event["level"], event["agents"]) == (
        "worker_ready",
        "info",
        ["A"],
    )
    assert event["timestamp"].endswith("Z")


@pytest.mark.parametrize(
    ("form", "is_json"), [("auto", False), ("console", False), ("json", True)]
)
def test_a_terminal_gets_text_unless_json_is_asked_for(
    form: Format, is_json: bool
) -> None:
    """`auto` looks at the stream."""
    out = Terminal()
    configure("info", form, out)
    structlog.get_logger().info("worker_ready")
    assert out.getvalue().startswith("{") is is_json
    assert "worker_ready" in out.getvalue()


@pytest.mark.parametrize(("level", "heard"), [("debug", 4), ("warning", 2)])
def test_nothing_below_the_level_is_written(level: Level, heard: int) -> None:
    """For ours and for libraries alike."""
    out = io.StringIO()
    configure(level, "json", out)
    for log in (structlog.get_logger(), logging.getLogger("some.library")):
        log.debug("one")
        log.info("two")
        log.warning("three")
        log.error("four")
    assert len(lines(out)) == 2 * heard


@pytest.mark.parametrize(
    "library", ["openai._base_client", "httpx", "nats", "faststream"]
)
def test_libraries_that_repeat_what_people_wrote_are_not_heard_below_warning(
    library: str,
) -> None:
    """Not at debug either, where a client prints whole prompts."""
    out = io.StringIO()
    configure("debug", "json", out)
    logging.getLogger(library).info("a prompt")
    logging.getLogger(library).debug("a prompt")
    logging.getLogger(library).warning("trouble")
    assert [event["event"] for event in lines(out)] == ["trouble"]


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_holds_no_local_variables(form: Format) -> None:
    """They are what people wrote."""
    out = Terminal()
    configure("info", form, out)
    try:
        fail_over(" ".join(("my", "salary")))
    except KeyError:
        structlog.get_logger().exception("task_failed")
    assert "in fail_over" in out.getvalue()
    assert "my salary" not in out.getvalue()


def test_every_event_of_a_task_says_which_one_it_was() -> None:
    """What runs outside of its asyncio task does not."""
    out = io.StringIO()
    configure(stream=out)

    async def run() -> None:
        bind_task("BudgetTrackerAgent", "t-1")
        structlog.get_logger().info("started")

    asyncio.run(run())
    structlog.get_logger().info("idle")
    started, idle = lines(out)
    assert (started["agent"], started["task_id"]) == ("BudgetTrackerAgent", "t-1")
    assert "task_id" not in idle
