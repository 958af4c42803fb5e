"""A test that hangs is ended and says where it hung; the tests after it still run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HANGING = {
    "thread": """
import threading

def test_that_hangs():
    threading.Event().wait()  # a thread that waits
""",
    "loop": """
import asyncio

async def test_that_hangs():
    await asyncio.Event().wait()  # a loop that waits
""",
    "busy": """
async def test_that_hangs():
    while True:  # a loop that is held
        pass
""",
}


def test_a_hanging_test_ends_and_names_its_line(tmp_path: Path) -> None:
    """Without a limit CI would end it after an hour and a half, without a word on which one it was."""
    for kind, hangs in HANGING.items():
        file = tmp_path / f"test_{kind}.py"
        file.write_text(f"{hangs}\ndef test_after_it():\n    pass\n")
    # No plugin that is not needed: a busy machine takes long to import them.
    plugins = ["pytest_asyncio.plugin", "pytest_timeout", "tests.hanging"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *(option for plugin in plugins for option in ("-p", plugin)),
            *("-c", "pyproject.toml", "-o", "timeout=1", str(tmp_path)),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "3 failed, 3 passed" in done.stdout
    for kind, hangs in HANGING.items():
        failed = f"test_{kind}.py::test_that_hangs - Failed: Timeout (>1.0s)"
        assert failed in done.stdout
        assert hangs.partition("  #")[2].splitlines()[0] in done.stdout


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    """Two minutes, unless a mark says that it takes longer."""
    assert float(pytestconfig.getini("timeout")) == 120
