"""Fixtures for every test: real servers, the scripted model, and logs that no test leaves behind."""

import logging
from collections.abc import Iterator

import pytest
import structlog

pytest_plugins = ["tests.servers", "tests.fixtures_llm"]


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    """Undo what a test configured: its stream may be closed when the next one logs."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
