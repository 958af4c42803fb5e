"""The short commands against a running system: ask, agents, ltm, config."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import uuid4

import pytest

from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.command import ROOT, environment, tasklore
from tests.acceptance.conftest import Standing
from tests.acceptance.system import BUDGET, Served, System
from tests.servers import PATIENCE_S

Command = Callable[..., "CompletedProcess[str]"]

QUESTION = "Check my budget: limit 50k, spent 42,000"
KEY = "analyze_budget:50000:42000:no_history"
AGENT = "BudgetTrackerAgent"


def commands_in(system: System, cwd: Path) -> Command:
    """Return what runs a command in *cwd* on the servers of *system*."""

    def run(*arguments: str, stdin: str = "") -> "CompletedProcess[str]":
        return system.command(*arguments, cwd=cwd, stdin=stdin)

    return run


@pytest.fixture
def command(standing: Standing, tmp_path: Path) -> Command:
    """Run commands against the system that stands for all tests."""
    return commands_in(standing.system, tmp_path)


@pytest.fixture
async def own(own_system: System, tmp_path: Path) -> Command:
    """Run commands against a system of the test alone, with the budget agent, whose memory is empty."""
    worker = own_system.worker(BUDGET)
    supervisor = own_system.supervisor()
    worker.ready()
    supervisor.ready()
    return commands_in(own_system, tmp_path)


#: How `ask` ends where the answer is a question back, and where no agent does what was asked.
QUESTION_BACK = 4
NOBODY_DOES = 5


def answer(done: "CompletedProcess[str]", code: int = 0) -> dict[str, object]:
    """Return the reply of an `ask --json` that ended with *code*."""
    assert done.returncode == code, done.stderr
    reply: dict[str, object] = json.loads(done.stdout)["reply"]
    return reply


def test_an_answer_is_text_for_people(command: Command) -> None:
    done = command("ask", QUESTION)
    assert done.returncode == 0
    assert "Remaining: 8,000" in done.stdout
    assert done.stderr == ""


def test_a_question_back_is_no_failure_and_can_be_answered(command: Command) -> None:
    """The hint names the conversation, in which the missing value completes the question."""
    asked = command("ask", "Check my budget of 50k")
    assert asked.returncode == QUESTION_BACK
    assert "spent" in asked.stdout
    hint = asked.stderr.strip()
    assert hint.startswith("tasklore: answer with: tasklore ask --conversation ")
    conversation = hint.split()[6]
    completed = command("ask", "--conversation", conversation, "I spent 42000")
    assert completed.returncode == 0
    assert "Remaining: 8,000" in completed.stdout


def test_who_waits_no_longer_is_told_how_to_fetch_the_answer(command: Command) -> None:
    """The printed command, as a shell reads it, finds what came of the same words of the same person."""
    words = "Let's take a nap of 611"
    pending = command("ask", "--wait", "0", "--user", "ana b", words)
    assert pending.returncode == 1, pending.stdout
    hint = pending.stderr.strip()
    assert hint.startswith("tasklore: for the answer: tasklore ask --request-id ")
    request_id, *rest = shlex.split(hint)[7:]
    assert rest == ["--user", "ana b", words]
    fetched = answer(command("ask", "--json", "--request-id", request_id, *rest))
    assert (fetched["kind"], fetched["request_id"]) == ("answer", request_id)


def test_a_task_that_failed_is_a_failure(command: Command) -> None:
    done = command(
        "ask", f'probe trouble with label cli-{uuid4().hex[:8]} and kind "give_up"'
    )
    assert done.returncode == 1, done.stdout
    assert "no run can mend this" in done.stdout


def test_nobody_who_takes_requests_is_said_with_the_cure(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    """Where nothing listens, where nothing is known, and where an operator's process finds no supervisor."""
    away = environment(TASKLORE_API_URL="http://127.0.0.1:1")
    direct = environment(
        TASKLORE_NATS_URL=servers.nats_url,
        TASKLORE_REDIS_URL=servers.redis_url,
        TASKLORE_SUPERVISOR_ID="Nobody",
    )
    for words, env, cure in (
        (("ask", "hello"), away, "`tasklore supervisor`"),
        (("ask", "hello"), environment(), "`tasklore up`"),
        (("--direct", "ask", "hello"), direct, "`tasklore supervisor`"),
    ):
        done = tasklore(*words, cwd=tmp_path, env=env)
        assert done.returncode == 3, done.stderr
        assert cure in done.stderr
        assert done.stderr.count("\n") == 1


def test_agents_and_their_workers_are_listed(command: Command) -> None:
    lines = command("--direct", "agents", "list").stdout.splitlines()
    assert lines[0].split() == ["AGENT", "ID", "VERSION", "LIVE", "WORKERS", "TASKS"]
    assert any(
        line.split()[:3] == [AGENT, "2", "1"] and "analyze_budget" in line
        for line in lines
    )
    listed = json.loads(command("--direct", "agents", "list", "--json").stdout)
    card = next(one for one in listed["agents"] if one["agent_id"] == AGENT)
    assert card["tasks"][0]["name"] == "analyze_budget"


def test_an_agent_is_shown_with_its_parameters_and_its_workers_address(
    command: Command, standing: Standing
) -> None:
    done = command("--direct", "agents", "show", AGENT)
    assert "budget_limit (required)" in done.stdout
    assert "history (default [])" in done.stdout
    assert standing.worker.http in done.stdout
    unknown = command("--direct", "agents", "show", "NoAgent")
    assert unknown.returncode == 2
    assert "there is no agent 'NoAgent'" in unknown.stderr


async def test_an_agent_is_retired_once_its_workers_are_gone(
    own: Command, own_system: System
) -> None:
    refused = own("--direct", "agents", "retire", AGENT)
    assert refused.returncode == 2
    assert "live worker" in refused.stderr
    assert own("--direct", "agents", "retire", AGENT, "--force").returncode == 0
    assert "no agents" in own("--direct", "agents", "list").stdout
    asked = answer(own("ask", "--json", QUESTION), NOBODY_DOES)
    assert asked["kind"] == "unable"
    assert own("--direct", "agents", "retire", AGENT).returncode == 2


async def test_what_is_remembered_can_be_seen_changed_and_forgotten(
    own: Command, tmp_path: Path
) -> None:
    """As a person at the command line goes; the operations have tests of their own."""

    def results(*words: str, stdin: str = "") -> "CompletedProcess[str]":
        return own("--direct", "results", *words, stdin=stdin)

    def told(*words: str) -> Any:
        return json.loads(results(*words, "--json").stdout)

    assert "There are no results." in results("list").stdout
    for question in (QUESTION, QUESTION, "limit 60k, spent 42,000"):
        answer(own("ask", "--json", question))
    listed = told("list", "--since", "1h", "--agent", AGENT)["results"]
    assert [entry["question"] for entry in listed] == [
        "analyze_budget:60000:42000:no_history",
        KEY,
    ]
    assert KEY in results("list").stdout
    assert told("show", KEY)["result"]["remaining"] == 8000
    assert told("stats")["entries"] == 2

    mended = told("show", KEY)["result"] | {"remaining": 1}
    (tmp_path / "result.json").write_text(json.dumps(mended))
    assert results("set", KEY, "@result.json").returncode == 0
    assert answer(own("ask", "--json", QUESTION))["report"]["result"] == mended  # type: ignore[index]
    unfit = results("set", KEY, "@-", stdin='{"remaining": "much"}')
    assert unfit.returncode == 2
    assert "remaining must be" in unfit.stderr
    assert "spending_rate is missing" in unfit.stderr

    old = f"tl:ltm:{{{AGENT}}}:v1.1-00000000:{KEY}"
    assert results("set", old, "@result.json").returncode == 0
    seen = " ".join(own("doctor").stdout.split())
    assert f"1 answer of {AGENT} from other code or another version" in seen
    unasked = results("forget", "--stale")
    assert unasked.returncode == 2
    assert "pass --yes" in unasked.stderr
    assert told("forget", "--stale", "--yes")["concerns"] == 1
    assert told("forget", "--stale")["concerns"] == 0

    assert told("forget", KEY, "--yes")["concerns"] == 1
    assert results("show", KEY).returncode != 0
    assert told("forget", "--all", "--yes")["concerns"] == 1


async def test_a_memory_file_comes_in_and_goes_out(
    own: Command, tmp_path: Path
) -> None:
    """The cut entry is quarantined, listed and counted; the whole one answers the next question."""
    whole = "analyze_budget:50000:42000:5000,7000,8000,6000"
    cut = "analyze_budget:100000:30000:5000,6000,7000,5000,25000"
    (tmp_path / "memory.json").write_text(
        json.dumps({"tasks": {whole: {"remaining": 8000.0}, cut: {"x": 1}, "a:1": {}}})
    )
    done = own("--direct", "results", "import", AGENT, "memory.json", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["stored"], told["quarantined"]) == (1, [cut])
    assert [one["key"] for one in told["refused"]] == ["a:1"]
    question = "limit 50k, spent 42000, history 5000, 7000, 8000, 6000"
    assert (
        answer(own("ask", "--json", question))["report"]["memory"]["outcome"] == "hit"
    )  # type: ignore[index]
    five = "limit 100000, spent 30000, history 5000, 6000, 7000, 5000, 25000"
    assert (
        answer(own("ask", "--json", five))["report"]["result"]["spending_rate"] == 9600
    )  # type: ignore[index]
    exported = own("--direct", "results", "export", AGENT)
    keys = {json.loads(line)["key"] for line in exported.stdout.splitlines()}
    assert keys == {whole, cut}


async def test_a_memory_file_comes_in_for_a_worker_with_settings(
    own_system: System, tmp_path: Path
) -> None:
    """The example makes the keys that the worker looks for of its code and its settings: the next question is a hit."""
    file = tmp_path / "memory.json"
    document = {"tasks": {KEY: {"remaining": 8000.0}}}
    file.write_text(json.dumps(document, indent=2))
    config = tmp_path / "agent_config.json"
    config.write_text(
        json.dumps({"agent_id": AGENT, "anomaly_threshold_multiplier": 1.5})
    )
    made = run_module("examples.migrate_results", str(file), "--config", str(config))
    assert made.returncode == 0, made.stderr
    command = commands_in(own_system, tmp_path)
    supervisor = own_system.supervisor()
    with configured(own_system, tmp_path, config) as worker:
        worker.ready()
        supervisor.ready()
        words = ("--direct", "results", "import", AGENT, "-", "--json")
        done = command(*words, stdin=made.stdout)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["stored"] == 1
        told = answer(command("ask", "--json", QUESTION))["report"]
        assert told["memory"]["outcome"] == "hit"  # type: ignore[index]
        assert told["result"] == {"remaining": 8000.0}  # type: ignore[index]


def run_module(name: str, *words: str) -> "CompletedProcess[str]":
    """Run a module of the checkout, as a person would."""
    return subprocess.run(
        [sys.executable, "-m", name, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def configured(system: System, folder: Path, config: Path) -> Served:
    """Start a worker with a configuration file and nothing else."""
    env = {
        "TASKLORE_NATS_URL": system.servers.nats_url,
        "TASKLORE_REDIS_URL": system.servers.redis_url,
    }
    return Served(["worker", "--config", str(config)], env, folder / "configured.log")
