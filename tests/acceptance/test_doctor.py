"""`tasklore doctor` beside a running system, as an operator would use it."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command import (
    Running,
    await_text,
    environment,
    processes_in,
    tasklore,
)


@dataclass(frozen=True)
class System:
    """A system that `tasklore up` runs in `here`, and what it says of itself on stderr."""

    here: Path
    env: dict[str, str]
    errors: Path

    def doctor(self, *options: str, code: int = 0) -> dict[str, Any]:
        """Return what the doctor tells programs, having ended with *code*."""
        done = tasklore("doctor", "--json", *options, cwd=self.here, env=self.env)
        assert done.returncode == code, done.stdout + done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        assert report["exit_code"] == code
        return report

    def pid_of(self, program: str) -> int:
        """Return the process that runs *program*, not the shell that guards it."""
        found = processes_in(self.here.parent).items()
        (pid,) = [
            pid
            for pid, command in found
            if program in command and not command.startswith("/bin/sh")
        ]
        return pid

    def written(self) -> dict[str, Any]:
        """Return what endpoints.json says."""
        content: dict[str, Any] = json.loads(
            (self.here / ".tasklore" / "endpoints.json").read_text()
        )
        return content


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run a system for all tests; those that hurt it come last."""
    tmp_path = tmp_path_factory.mktemp("system")
    here = tmp_path / "here"
    errors = tmp_path / "errors"
    here.mkdir()
    (tmp_path / "tmp").mkdir()
    env = environment(TMPDIR=str(tmp_path / "tmp"))
    with Running(
        "up",
        "--agents",
        "tasklore.workers.agents.budget",
        cwd=here,
        env=env,
        errors=errors,
    ) as system:
        assert system.line().startswith("ready ")
        yield System(here, env, errors)
        assert system.end(signal.SIGINT) == 0


def marks(report: dict[str, Any]) -> dict[str, str]:
    """Return what is wrong, by check."""
    return {
        one["check"]: one["mark"]
        for one in report["findings"]
        if one["mark"] not in ("ok", "note")
    }


def test_what_a_person_reads_is_plain_text_with_cures(system: System) -> None:
    """No colours where nobody looks, a mistyped variable is told, and `--strict` makes that count."""
    env = {**system.env, "TASKLORE_DURABLITY": "strict"}
    done = tasklore("doctor", cwd=system.here, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "fix: write TASKLORE_DURABILITY" in done.stdout
    assert "Durability: standard - " in done.stdout
    assert tasklore("doctor", "--strict", cwd=system.here, env=env).returncode == 1


def test_a_system_of_ours_is_safe_and_stays_so_after_a_crash_of_its_server(
    system: System,
) -> None:
    """Even strictly: the monitoring is found in endpoints.json, also at its new address."""
    report = system.doctor("--strict")
    assert (marks(report), report["durability"]) == ({}, "standard")
    first = system.written()["monitor"]
    os.kill(system.pid_of("nats-server"), signal.SIGKILL)
    await_text(system.errors, "nats-server is back")
    assert system.written()["monitor"] != first
    again = {one["check"]: one["mark"] for one in system.doctor()["findings"]}
    assert again["nats.sync_interval"] == "ok"


def test_a_frozen_worker_ends_the_examination_with_the_code_of_an_outage(
    system: System,
) -> None:
    """Its page is named in endpoints.json and says nothing; everything else is examined."""
    worker = system.pid_of("tasklore.commands.up worker")
    os.kill(worker, signal.SIGSTOP)
    try:
        report = system.doctor(code=3)
    finally:
        os.kill(worker, signal.SIGCONT)
    assert marks(report)["processes.reachable"] == "problem"
    assert report["durability"] == "standard"
