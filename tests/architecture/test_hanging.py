"""A test that hangs is ended and says where it hung; the tests after it still run."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HANGING = {
    "a thread that waits": """
import threading

def test_that_hangs():
    threading.Event().wait()  # here
""",
    "a loop that waits": """
import asyncio

async def test_that_hangs():
    await asyncio.Event().wait()  # here
""",
    "a loop that is held": """
async def test_that_hangs():
    while True:  # here
        pass
""",
}


@pytest.mark.parametrize("kind", HANGING)
def test_a_hanging_test_ends_and_names_its_line(kind: str, tmp_path: Path) -> None:
    """Without a limit CI would end it after an hour and a half, without a word on which one it was."""
    file = tmp_path / "test_hanging.py"
    file.write_text(f"{HANGING[kind]}\ndef test_after_it():\n    pass\n")
    options = ["-c", "pyproject.toml", "-p", "tests.hanging", "-o", "timeout=1"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *options,
            str(file),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "1 failed, 1 passed" in done.stdout
    assert "Timeout (>1.0s)" in done.stdout
    assert "# here" in done.stdout


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    """Two minutes, unless a mark says that it takes longer."""
    assert float(pytestconfig.getini("timeout")) == 120
