"""`tasklore demo`: the main job from nothing, and nothing afterwards."""

import re
import select
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.acceptance.command import PATIENCE_S, Running, await_none_in, environment, processes_in, tasklore


@pytest.fixture
def apart(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose temporary files lie below *tmp_path*, by which all that is started is found."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    return environment(TMPDIR=str(tmp_path / "tmp"))


def test_it_computes_once_and_remembers_another_wording(apart: Mapping[str, str], tmp_path: Path) -> None:
    """Miss, hit, miss, in words and with times; no process and no file is left."""
    done = tasklore("demo", cwd=tmp_path / "here", env=apart)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.findall(r"^  (computed|remembered) in \d+\.\d ms$", done.stdout, re.MULTILINE) == [
        "computed",
        "remembered",
        "computed",
    ]
    assert re.findall(r"understood as (\S+)", done.stdout) == [
        "analyze_budget:50000:42000:no_history",
        "analyze_budget:50000:42000:no_history",
        "analyze_budget:50000:45000:no_history",
    ]
    assert re.findall(r"^  Remaining: (\S+)$", done.stdout, re.MULTILINE) == ["8,000", "8,000", "5,000"]
    assert "\x1b" not in done.stdout
    assert await_none_in(tmp_path) == {}
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize(("wish", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_in_the_middle_it_leaves_nothing_either(
    wish: signal.Signals, code: int, apart: Mapping[str, str], tmp_path: Path
) -> None:
    """A signal while its servers and roles are starting: quiet, and all gone."""
    with Running("demo", cwd=tmp_path / "here", env=apart, errors=tmp_path / "errors") as demo:
        give_up_at = time.monotonic() + PATIENCE_S
        while not _is_starting_roles(tmp_path):
            assert time.monotonic() < give_up_at
            select.select([], [], [], 0.01)
        assert demo.end(wish) == code
    assert (tmp_path / "errors").read_text() == ""
    assert await_none_in(tmp_path) == {}
    assert list((tmp_path / "tmp").iterdir()) == []


def _is_starting_roles(folder: Path) -> bool:
    return any("-m tasklore worker" in command for command in processes_in(folder).values())
