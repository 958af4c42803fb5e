"""The first minute of a new user: a project is written, passes its own test, and runs while it is edited."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.acceptance.command import PATIENCE_S, Running, environment, tasklore
from tests.acceptance.system import PATIENT


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a project that `tasklore init` wrote."""
    folder = tmp_path_factory.mktemp("first")
    done = tasklore("init", "tip-jar", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "tip-jar"


@pytest.fixture(scope="module")
def system(project: Path) -> Iterator[Running]:
    """Yield `tasklore up` of that project, just started."""
    command = ("up", "--agents", "./tip_jar.py")
    with Running(
        *command, cwd=project, env=environment(**PATIENT), errors=project / "errors"
    ) as running:
        yield running
        assert running.end(signal.SIGINT) == 0


def test_the_project_passes_its_own_tests(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=project,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    kinds = [
        one["kind"] for one in yaml.safe_load_all((project / "k8s.yaml").read_text())
    ]
    assert {"Job", "Deployment", "ScaledObject"} <= set(kinds)


def test_nothing_is_written_over(project: Path) -> None:
    """A folder with something in it is refused, and so is a name that Python has."""
    assert "is not empty" in tasklore("init", "tip-jar", cwd=project.parent).stderr
    assert (
        "that is installed here; choose another"
        in tasklore("init", "json", cwd=project.parent).stderr
    )


def test_who_asks_while_servers_start_is_answered(
    project: Path, system: Running
) -> None:
    """The question waits for the system of this folder instead of being told to start one."""
    mark = project / ".tasklore" / "starting"
    while not mark.exists():
        assert system.process.poll() is None
        time.sleep(0.01)

    done = tasklore(
        "ask",
        "--json",
        "How much tip for a bill of 80?",
        cwd=project,
        env=environment(),
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reply"]["report"]["result"] == {"tip": 8}
    assert not mark.exists()


def wait_for(file: Path, text: str) -> None:
    """Return once *text* stands in *file*."""
    ends_at = time.monotonic() + PATIENCE_S
    while text not in file.read_text():
        assert time.monotonic() < ends_at, file.read_text()
        time.sleep(0.05)


def test_an_edited_agent_is_served_by_a_new_process(
    project: Path, system: Running
) -> None:
    """With `--reload`: a broken file, or a worker that died, is told of, and the next change starts it again."""
    agent = project / "tip_jar.py"
    errors = project / "worker_errors"
    text = agent.read_text()
    worker = ("worker", "--reload", "./tip_jar.py")
    with Running(
        *worker, cwd=project, env=environment(**PATIENT), errors=errors
    ) as running:
        assert running.line().startswith("ready http=")
        agent.write_text("def")
        wait_for(errors, "before it was ready; waiting for a change")
        agent.write_text(text)
        assert running.line().startswith("ready http=")
        [child] = (
            Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
            .read_text()
            .split()
        )
        os.kill(int(child), signal.SIGKILL)
        wait_for(errors, "worker ended by signal 9; waiting for a change")
        agent.touch()
        assert running.line().startswith("ready http=")
        assert running.end(signal.SIGINT) == 0
    assert "tip_jar.py changed; restarting the worker" in errors.read_text()
