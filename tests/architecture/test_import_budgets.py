"""What a process loads: a heavy library is imported only where it is used, because every start pays for it."""

import os
import subprocess
import sys

import pytest

from tests.architecture.tree import ROOT

HEAVY = {"openai", "faststream", "fastapi", "redis", "nats", "prometheus_client", "httpx", "uvloop"}

#: Rooms of our own: what they load, they were made to load, and splitting a module is no cost worth a test.
OUR_OWN = {"contracts", "quantities", "memory", "runtime", "supervisor", "workers", "tasklore"}

#: What is imported, what it may load of HEAVY, and at most how many modules of others: a library that slips in shows.
BUDGETS = [
    ("contracts.messages", set(), 240),
    ("workers", set(), 385),
    ("workers.agents.budget", set(), 385),
    ("workers.testing", {"nats"}, 410),
    ("supervisor.understanding", set(), 385),
    ("tasklore.__main__", set(), 260),
    ("tasklore.ask.ask", {"nats"}, 405),
    ("workers.wiring", {"nats", "redis", "faststream", "prometheus_client"}, 890),
    ("supervisor.wiring", {"nats", "redis", "faststream", "prometheus_client"}, 850),
]


@pytest.mark.parametrize(("module", "allowed", "most"), BUDGETS)
def test_a_door_loads_no_more_than_it_needs(module: str, allowed: set[str], most: int) -> None:
    """Counted in a fresh interpreter: modules, not seconds, so that a slow machine changes nothing."""
    code = f"import {module}, sys; print(*sys.modules)"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    # redis-py loads OpenTelemetry wherever it is installed; the extra `tracing` is what it is paid for.
    paid = {"opentelemetry"}
    loaded = [name for name in done.stdout.split() if name.partition(".")[0] not in OUR_OWN | paid]

    assert {name for name in loaded if name in HEAVY} <= allowed
    assert len(loaded) <= most


def test_the_command_says_what_it_can_without_loading_the_house() -> None:
    """`tasklore --help` needs neither pydantic nor another room than its own and the errors."""
    code = "import tasklore.app, sys; print(*sys.modules)"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)

    assert not {"pydantic", "supervisor", "workers", "memory", "structlog"} & set(done.stdout.split())
