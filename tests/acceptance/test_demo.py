"""`tasklore demo`: the main job from nothing, and nothing afterwards."""

import re
import select
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tests.acceptance.command import (
    PATIENCE_S,
    Running,
    await_none_in,
    environment,
    processes_in,
    tasklore,
)
from tests.acceptance.system import PATIENT


@pytest.fixture
def apart(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose temporary files lie below *tmp_path*, by which all that is started is found."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    return environment(TMPDIR=str(tmp_path / "tmp"))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return what the demo printed, and the folder that it was played in."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "tmp").mkdir()
    (folder / "here").mkdir()
    done = tasklore(
        "demo",
        cwd=folder / "here",
        env=environment(TMPDIR=str(folder / "tmp"), **PATIENT),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout, folder


def test_it_leaves_nothing_behind(played: tuple[str, Path]) -> None:
    """No process, no file, not even the evidence of what failed on purpose; and no colour where nobody sees it."""
    said, folder = played
    assert "\x1b" not in said
    assert await_none_in(folder) == {}
    assert list((folder / "tmp").iterdir()) == []
    assert list((folder / "here").iterdir()) == []


def test_it_computes_once_and_remembers_another_wording(
    played: tuple[str, Path],
) -> None:
    said, _ = played
    assert re.findall(
        r"^  (computed|from cache) in \d+\.\d ms$", said, re.MULTILINE
    ) == [
        "computed",
        "from cache",
        "computed",
    ]
    assert re.findall(r"understood as (\S+)", said) == [
        "analyze_budget:50000:42000:no_history",
        "analyze_budget:50000:42000:no_history",
        "analyze_budget:50000:45000:no_history",
    ]
    assert re.findall(r"^  Remaining: (\S+)$", said, re.MULTILINE) == [
        "8,000",
        "8,000",
        "5,000",
    ]


def test_a_pipeline_fails_at_its_fourth_phase_and_goes_on_from_there(
    played: tuple[str, Path],
) -> None:
    """Three phases are computed once and reused, what they took is what was saved, and the standard is held to."""
    said, _ = played
    act = said[
        said.index("> tasklore pipelines run code-report") : said.index(
            "Ten agents read a story"
        )
    ]
    run, resumed = act.split("> tasklore pipelines resume ", 1)
    looks = {"modules", "imports", "functions"}
    rest = {"standards_check", "report"}

    assert set(_phases(run, "\u2713")) == looks
    assert list(_phases(run, "\u2717")) == ["standards_check"]
    assert "record one: tasklore projects standard" in run
    assert set(_phases(resumed, "=")) == looks
    assert set(_phases(resumed, "\u2713")) == rest
    assert {
        name: took.removesuffix(" saved")
        for name, took in _phases(resumed, "=").items()
    } == _phases(run, "\u2713")
    saved = re.search(
        r"3 phases were not computed again, which saved ([\d,]+) ms", resumed
    )
    assert saved is not None
    assert int(saved[1].replace(",", "")) > 0
    assert re.search(
        r"^  - s1 is (kept|not kept by \d+ modules): No module over 300 lines\.$",
        resumed,
        re.MULTILINE,
    )
    assert (
        "Another supervisor or worker could have resumed it as well, also on another day."
        in resumed
    )


def test_ten_agents_read_a_story_and_a_few_lines_stand_for_its_files(
    played: tuple[str, Path],
) -> None:
    """Every agent without a model; the context keeps within its budget, and says how much it stands for."""
    said, _ = played
    act = said[said.index("> tasklore analyses run lighthouse ") :]
    table, rest = act.split("5 responses in ", 1)
    found = table[table.index("\nsection ") :]
    rows = [line.split()[:2] for line in found.splitlines() if line[:1].islower()][1:]

    assert rows == [[seat.section, "rules"] for seat in SECTION_AGENTS]
    assert [line.split()[1] for line in act.splitlines()[1:6]] == ["whole"] * 5
    tokens = re.search(
        r": ([\d,]+) tokens of files -> (\d+) tokens$", rest, re.MULTILINE
    )
    assert tokens is not None
    assert int(tokens[1].replace(",", "")) >= 20_000
    assert 0 < int(tokens[2]) <= 350
    context = rest[rest.index("  <!-- AGENT CONTEXT -->") :]
    assert "\n  **Characters**: Mentioned: " in context
    assert "  <!-- END AGENT CONTEXT -->\n" in context
    assert "Without a model" in context


def _phases(text: str, mark: str) -> dict[str, str]:
    """Return the phases in *text* with *mark*, and the time beside each."""
    return dict(re.findall(rf"^  {mark} (\w+) +(\S.*)$", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("wish", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_stopped_in_the_middle_it_leaves_nothing_either(
    wish: signal.Signals, code: int, apart: Mapping[str, str], tmp_path: Path
) -> None:
    """A signal while its servers and roles are starting: quiet, and all gone."""
    with Running(
        "demo", cwd=tmp_path / "here", env=apart, errors=tmp_path / "errors"
    ) as demo:
        give_up_at = time.monotonic() + PATIENCE_S
        while not _is_starting_roles(tmp_path):
            assert time.monotonic() < give_up_at
            select.select([], [], [], 0.01)
        assert demo.end(wish) == code
    assert (tmp_path / "errors").read_text() == ""
    assert await_none_in(tmp_path) == {}
    assert list((tmp_path / "tmp").iterdir()) == []


def _is_starting_roles(folder: Path) -> bool:
    return any(
        "-m tasklore.commands.up worker" in command
        for command in processes_in(folder).values()
    )
