"""`tasklore --direct` beside an API that demands keys, and when no supervisor is left."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasklore.supervisor.http.admission.key_file import make_key
from tests.acceptance.system import BUDGET, System, running_system


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    with running_system(tmp_path) as system:
        yield system


def run(system: System, *words: str) -> "subprocess.CompletedProcess[str]":
    return system.command("--direct", *words)


def test_a_command_needs_no_key_and_says_who_gave_it(system: System) -> None:
    """It starts work by a supervisor, in whose log it stands; without one it ends with 3 and the cure."""
    keys = system.folder / "keys.json"
    make_key(keys, "shop", ("ask",), None)
    supervisor = system.supervisor(api_keys_file=keys)
    worker = system.worker(BUDGET)
    supervisor.ready()
    worker.ready()
    supervisor.await_agents(1)

    made = run(
        system,
        *(
            "schedules",
            "add",
            "BudgetTrackerAgent",
            "analyze_budget",
            "--id",
            "nightly",
        ),
        *("--cron", "0 3 * * *", "-p", "limit=50000", "-p", "spent=42000", "--yes"),
    )
    assert made.returncode == 0, made.stderr
    listed = run(system, "schedules", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    (row,) = json.loads(listed.stdout)["schedules"]
    assert row["id"] == "nightly"
    assert row["created_by"].startswith("operator:")
    noted = [
        json.loads(line)
        for line in supervisor.log().splitlines()
        if '"event": "operation"' in line
    ]
    assert {one["operation"] for one in noted} == {"schedules_add"}
    assert all(one["caller"].startswith("operator:") for one in noted)

    refused = run(system, "schedules", "show", "none", "--json")
    assert refused.returncode == 2, refused.stderr
    both = run(system, "schedules", "list", "--api", "http://127.0.0.1:1")
    assert (both.returncode, "leave one out" in both.stderr) == (2, True)

    supervisor.kill()
    alone = run(system, "schedules", "list", "--json")
    assert alone.returncode == 0, alone.stderr
    assert [one["id"] for one in json.loads(alone.stdout)["schedules"]] == ["nightly"]
    agents = json.loads(run(system, "agents", "list", "--json").stdout)["agents"]
    assert [(one["agent_id"], one["live_workers"]) for one in agents] == [
        ("BudgetTrackerAgent", 1)
    ]
    assert [one["http"] for one in agents[0]["workers"]] == [worker.http]
    assert "There are no approvals." in run(system, "approvals", "list").stdout
    left = run(system, "schedules", "run", "nightly")
    assert left.returncode == 3
    assert "tasklore supervisor" in left.stderr
