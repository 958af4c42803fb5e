"""Modules that commands load before they work, and outputs that cannot be written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_RUN = """
import json, sys
sys.argv = ["tasklore", *json.loads(sys.argv[1])]
from tasklore.__main__ import main
try:
    main()
except SystemExit as end:
    print(json.dumps({"code": end.code, "modules": sorted(sys.modules)}))
"""


def loaded_by(*arguments: str) -> tuple[int, set[str]]:
    """Return the exit code of `tasklore` with *arguments*, with no server to reach, and the modules it loaded."""
    environment = {
        **os.environ,
        "TASKLORE_NATS_URL": "nats://127.0.0.1:1",
        "TASKLORE_REDIS_URL": "redis://127.0.0.1:1",
    }
    done = subprocess.run(
        [sys.executable, "-c", _RUN, json.dumps(arguments)],
        env=environment,
        capture_output=True,
        timeout=60,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    return told["code"], set(told["modules"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("results", "--help"),
    ],
)
def test_help_loads_no_large_library(arguments: tuple[str, ...]) -> None:
    _, modules = loaded_by(*arguments)
    assert not modules & {
        "nats",
        "faststream",
        "openai",
        "redis",
        "pydantic_settings",
        "rich",
        "structlog",
    }


def test_a_worker_loads_no_optional_library() -> None:
    script = (
        "import json, sys\n"
        "import tasklore.commands.up.serve, tasklore.commands.up.worker_setup\n"
        "import tasklore.workers.wiring, tasklore.workers.agents.budget\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=60, check=True
    )
    assert not set(json.loads(done.stdout)) & {"openai", "fastapi", "httpx", "aiohttp"}


def test_an_unwritable_output_is_one_line_and_a_failure() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tasklore", "config"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "tasklore: the output cannot be written: No space left on device"
    ]


def test_a_closed_output_keeps_the_exit_code() -> None:
    command = ["/bin/sh", "-c", f"exec {sys.executable} -m tasklore config >&-"]
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
