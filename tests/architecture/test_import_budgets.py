"""What a process loads: a heavy library is imported only where it is used, because every start pays for it."""

import os
import subprocess
import sys

import pytest

from tests.architecture.tree import ROOT

HEAVY = {
    "openai",
    "faststream",
    "fastapi",
    "redis",
    "nats",
    "prometheus_client",
    "httpx",
    "uvloop",
    "pydantic_ai",
    "mcp",
}

#: Rooms of our own: what they load, they were made to load, and splitting a module is no cost worth a test.
OUR_OWN = {
    "contracts",
    "quantities",
    "memory",
    "runtime",
    "supervisor",
    "workers",
    "tasklore",
}

#: What is imported, what it may load of HEAVY, and at most how many modules of others: a library that slips in shows.
BUDGETS = [
    ("tasklore.contracts.messages", set(), 240),
    ("workers", set(), 385),
    ("tasklore.workers.agents.budget", set(), 385),
    ("tasklore.workers.testing", {"nats"}, 410),
    ("tasklore.supervisor.understanding", set(), 385),
    ("tasklore.__main__", set(), 165),
    ("tasklore.commands.app", set(), 240),
    (
        "tasklore.workers.wiring",
        {"nats", "redis", "faststream", "prometheus_client"},
        890,
    ),
    (
        "tasklore.supervisor.wiring",
        {"nats", "redis", "faststream", "prometheus_client"},
        850,
    ),
]


def _run(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("module", "allowed", "most"), BUDGETS)
def test_a_door_loads_no_more_than_it_needs(
    module: str, allowed: set[str], most: int
) -> None:
    """Counted in a fresh interpreter: modules, not seconds, so that a slow machine changes nothing."""
    done = _run(f"import {module}, sys; print(*sys.modules)")
    # Libraries load these wherever they are installed, as the extras `tracing` and `agents` do.
    paid = {"opentelemetry", "attr", "cryptography", "email_validator"}
    loaded = [
        name
        for name in done.stdout.split()
        if name.partition(".")[0] not in OUR_OWN | paid
    ]

    assert {name for name in loaded if name in HEAVY} <= allowed
    assert len(loaded) <= most


def test_the_command_says_what_it_can_without_loading_the_house() -> None:
    """`tasklore --help` needs neither pydantic nor another room than its own and the errors."""
    done = _run("import tasklore.commands.app, sys; print(*sys.modules)")

    assert not {"pydantic", "supervisor", "workers", "memory", "structlog"} & set(
        done.stdout.split()
    )


#: What a client of the API does without: it is started for each question.
NO_CLIENTS = HEAVY | {"pydantic", "asyncio", "structlog", "rich"}


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("schedules",),
        ("schedules", "list", "--api", "http://127.0.0.1:1"),
        ("schedules", "show", "x", "--api", "http://127.0.0.1:1"),
        ("api", "GET", "/v1/agents", "--api", "http://127.0.0.1:1"),
        ("ask", "how is my budget?", "--api", "http://127.0.0.1:1"),
    ],
)
def test_a_client_of_the_api_loads_nothing_else(words: tuple[str, ...]) -> None:
    """Neither the list of commands nor an operation."""
    note = "import atexit, sys; atexit.register(lambda: print(*sys.modules))"
    done = _run(f"{note}; from tasklore.__main__ import main; main()", *words)

    loaded = set(done.stdout.split())
    assert done.returncode in (0, 3), done.stderr
    assert "typer" in loaded
    assert not loaded & NO_CLIENTS


#: Packages of the extras `cli` and `api`, and the one that only prompts need.
_EXTRA = ("typer", "rich", "fastapi", "starlette", "uvicorn", "jinja2")
_MISSING = f"import sys; sys.modules.update(dict.fromkeys({_EXTRA})); "


def test_a_worker_needs_no_package_of_a_command_line_or_an_api() -> None:
    """All that `python -m tasklore.commands.up worker` imports is there without the extras."""
    modules = (
        "tasklore.commands.up.__main__, tasklore.commands.up.serve, "
        "tasklore.commands.up.worker_setup, tasklore.workers.wiring, tasklore.testing"
    )
    done = _run(
        f"{_MISSING}import tasklore.commands.agents.check, {modules}, tasklore.workers.agents.budget"
    )

    assert done.returncode == 0, done.stderr


def test_a_worker_loads_none_of_them_where_they_are_installed() -> None:
    """Libraries that would use rich or uvicorn where they find it do not find it."""
    code = "import sys; from tasklore.commands.up.serve import load_worker; load_worker(); print(*sys.modules)"
    done = _run(code)

    assert not {
        name for name in done.stdout.split() if name.partition(".")[0] in _EXTRA
    }, done.stderr


def test_no_table_of_tokens_is_loaded_before_a_call_is_held_to_a_limit() -> None:
    """They cost a second of CPU and 130 MB, and most workers never ask a model."""
    code = (
        "import redis.asyncio, sys; "
        "from tasklore.memory.budgets.governor import ModelBudget; "
        "ModelBudget(redis.asyncio.Redis())"
    )
    done = _run(f"{code}; print(*sys.modules)")

    assert (done.stderr, "bpe_openai" in done.stdout.split()) == ("", False)


@pytest.mark.parametrize(
    ("arguments", "package"), [(("ask", "hi"), "typer"), (("--help",), "typer")]
)
def test_a_missing_extra_is_one_line_with_the_command_that_installs_it(
    arguments: tuple[str, ...], package: str
) -> None:
    """No traceback, and the exit code of unusable input."""
    done = _run(f"{_MISSING}from tasklore.__main__ import main; main()", *arguments)

    line = f'tasklore: this needs {package}, which is not installed: pip install "tasklore[cli]"\n'
    assert (done.returncode, done.stderr) == (2, line)
