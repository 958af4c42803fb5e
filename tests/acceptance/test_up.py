"""`tasklore up`: one command, a whole system, for as long as somebody wants it."""

import json
import os
import re
import signal
import stat
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.command import (
    PATIENCE_S,
    Running,
    await_none_in,
    await_text,
    environment,
    processes_in,
    tasklore,
)
from tests.acceptance.system import PATIENT

READY = re.compile(
    r"ready nats=(nats://127\.0\.0\.1:\d+) redis=(redis://127\.0\.0\.1:\d+) http=(http://127\.0\.0\.1:\d+)"
    r" api=http://127\.0\.0\.1:\d+ operations=(http://127\.0\.0\.1:\d+)\n"
)
QUESTION = "Check my budget: limit 50k, spent 42,000, history 5k, 7k, 8k and 6k"


@pytest.fixture
def apart(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose temporary files lie below *tmp_path*, by which all that is started is found."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    return environment(TMPDIR=str(tmp_path / "tmp"), **PATIENT)


def up(tmp_path: Path, env: Mapping[str, str], *options: str) -> Running:
    """Start a system with the budget agent, in the directory `here`."""
    agents = (
        ()
        if "--agents" in options
        else ("--agents", "tasklore.workers.agents.budget", "--no-memory")
    )
    return Running(
        "up",
        *agents,
        *options,
        cwd=tmp_path / "here",
        env=env,
        errors=tmp_path / "errors",
    )


def ask(
    tmp_path: Path, env: Mapping[str, str], question: str = QUESTION
) -> dict[str, object]:
    """Ask from the directory in which the system was started."""
    done = tasklore("ask", "--json", question, cwd=tmp_path / "here", env=env)
    assert done.returncode == 0, done.stderr
    reply: dict[str, object] = json.loads(done.stdout)["reply"]
    return reply


def memory_of(reply: dict[str, object]) -> str:
    """Return what the memory had to do with the answer."""
    report = reply["report"]
    assert isinstance(report, dict)
    return str(report["memory"]["outcome"])


def messages_of(
    tmp_path: Path, env: Mapping[str, str], reply: dict[str, object]
) -> dict[str, list[dict[str, object]]]:
    """Return what is kept of the run of a reply."""
    report = reply["report"]
    assert isinstance(report, dict)
    words = ("trace", str(report["task_id"]), "--messages", "--json")
    done = tasklore(*words, cwd=tmp_path / "here", env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[dict[str, object]]] = json.loads(done.stdout)
    return found


def test_up_ask_and_ctrl_c(apart: Mapping[str, str], tmp_path: Path) -> None:
    """One line when it is ready, an answer to whoever asks, and nothing left at the end of a temporary one."""
    with up(tmp_path, apart, "--temporary") as system:
        ready = READY.fullmatch(system.line())
        assert ready is not None
        endpoints = tmp_path / "here" / ".tasklore" / "endpoints.json"
        assert stat.S_IMODE(endpoints.stat().st_mode) == 0o600
        assert json.loads(endpoints.read_text())["nats"] == ready[1]
        worker = json.loads(endpoints.read_text())["workers"]["worker-1"]
        assert json.loads(endpoints.read_text())["operations"] == ready[4]
        pages = (f"{ready[3]}/readyz", f"{worker}/healthz", f"{ready[4]}/v1/agents")
        for page in pages:
            with urllib.request.urlopen(page, timeout=PATIENCE_S) as answer:  # noqa: S310  # our own, on loopback
                assert answer.status == 200
        computed = ask(tmp_path, apart)
        assert memory_of(computed) == "miss"
        recalled = ask(
            tmp_path,
            apart,
            "50 grand is my limit, 42000.00 spent; history [5000, 7000, 8000, 6000]",
        )
        assert memory_of(recalled) == "hit"
        seen = messages_of(tmp_path, apart, computed)
        assert [one["kind"] for one in seen["messages"]] == ["parameters", "result"]
        answered = messages_of(tmp_path, apart, recalled)
        assert [one["kind"] for one in answered["sources"]] == ["cache"]
        assert system.end(signal.SIGINT) == 0
        assert system.rest() == ""
    assert (tmp_path / "errors").read_text() == ""
    assert await_none_in(tmp_path) == {}
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("data_dir", [".tasklore", "data"])
def test_what_was_remembered_is_kept_and_so_are_the_ports(
    data_dir: str, apart: Mapping[str, str], tmp_path: Path
) -> None:
    """Without an option in `.tasklore`; a second system in it is refused while the first one runs."""
    options = () if data_dir == ".tasklore" else ("--data-dir", data_dir)
    env = {**apart, "TASKLORE_DATA_DIR": data_dir}
    with up(tmp_path, apart, *options) as system:
        ready = system.line()
        assert READY.fullmatch(ready)
        assert memory_of(ask(tmp_path, env)) == "miss"
        second = tasklore("up", *options, cwd=tmp_path / "here", env=apart)
        assert second.returncode == 2
        assert "in use" in second.stderr
        assert system.end(signal.SIGINT) == 0
    with up(tmp_path, apart, *options) as system:
        assert system.line() == ready
        assert memory_of(ask(tmp_path, env)) == "hit"
        assert system.end(signal.SIGTERM) == 0
    assert not (tmp_path / "here" / data_dir / "endpoints.json").exists()


def test_what_dies_is_started_again(apart: Mapping[str, str], tmp_path: Path) -> None:
    """A killed worker and a killed server come back; each is said in a line on stderr."""
    with up(tmp_path, apart) as system:
        assert READY.fullmatch(system.line())
        for victim, back in (
            ("tasklore.commands.up worker", "worker-1 is back"),
            ("tasklore.commands.up supervisor --operations", "operations is back"),
            ("valkey-server", "valkey-server is back"),
        ):
            pids = [
                pid
                for pid, command in processes_in(tmp_path).items()
                if _runs(command, victim)
            ]
            assert len(pids) == 1
            os.kill(pids[0], signal.SIGKILL)
            assert back in await_text(tmp_path / "errors", back)
            assert ask(tmp_path, apart)["kind"] == "answer"
        assert system.end(signal.SIGINT) == 0
    said = (tmp_path / "errors").read_text()
    assert re.search(r"worker-1 \(process \d+\) ended by signal 9", said)


def test_nothing_outlives_a_killed_parent(
    apart: Mapping[str, str], tmp_path: Path
) -> None:
    """`kill -9` of the command itself: its servers, roles and guards end too."""
    with up(tmp_path, apart, "--workers", "2") as system:
        assert READY.fullmatch(system.line())
        assert len(processes_in(tmp_path)) >= 6
        assert system.end(signal.SIGKILL) == -9
    assert await_none_in(tmp_path) == {}


def test_servers_that_are_named_are_used(
    apart: Mapping[str, str], servers: EmbeddedServers, tmp_path: Path
) -> None:
    env = {
        **apart,
        "TASKLORE_NATS_URL": servers.nats_url,
        "TASKLORE_REDIS_URL": servers.redis_url,
    }
    env["TASKLORE_SUPERVISOR_ID"] = "UpTest"
    with up(tmp_path, env) as system:
        assert system.line().startswith(
            f"ready nats={servers.nats_url} redis={servers.redis_url} http="
        )
        commands = processes_in(tmp_path).values()
        assert not any("-server" in command for command in commands)
        assert ask(tmp_path, env)["kind"] == "answer"
        assert system.end(signal.SIGINT) == 0
    assert servers.nats.is_running
    assert servers.valkey.is_running


def test_what_an_agent_prints_stays_out_of_the_way(
    apart: Mapping[str, str], tmp_path: Path
) -> None:
    """More than a pipe holds goes to stderr; stdout has its one line, and the worker is not stopped by it."""
    (tmp_path / "here" / "chatty.py").write_text(_CHATTY)
    with up(tmp_path, apart, "--agents", "./chatty.py") as system:
        assert READY.fullmatch(system.line())
        assert ask(tmp_path, apart, "chat with 3 words")["kind"] == "answer"
        assert system.end(signal.SIGINT) == 0
        assert system.rest() == ""
    assert (tmp_path / "errors").read_text().count("blah") == 50_000


def _runs(command: str, program: str) -> bool:
    """Return whether *command* is *program* itself, not the shell that guards it."""
    return program in command and not command.startswith("/bin/sh")


_CHATTY = '''"""Talks while it works."""

from tasklore import Agent, Parameters

agent = Agent("ChattyAgent", keywords=("chat",))


class Chat(Parameters):
    """How much to say."""

    words: int


@agent.task
async def chat(chat: Chat) -> int:
    """Chat with so many words."""
    print("blah " * 50_000)
    return chat.words
'''


#: An agent with a bug of each kind, by the word that brings it about, and the line that is to be named.
BUGS = '''"""An agent that fails in many ways."""

import asyncio
import sys
from datetime import timedelta

from tasklore import Agent, Parameters

agent = Agent("BugAgent", keywords=("fail",))


class Way(Parameters):
    """The way to fail."""

    way: str


def share(total: int, parts: int) -> float:
    return total / parts


@agent.task(
    remember=False,
    max_attempts=2,
    retry_base=timedelta(milliseconds=10),
    examples=("fail, way divide",),
)
async def fail(way: Way) -> dict[str, int]:
    """Fail by a way."""
    if way.way == "divide":
        share(1, 0)
    if way.way == "lookup":
        return {"found": {}["absent"]}
    if way.way == "attribute":
        return None.value
    if way.way == "raise":
        raise RuntimeError("no luck")
    if way.way == "leave":
        sys.exit("done")
    if way.way == "interrupt":
        raise KeyboardInterrupt
    if way.way == "cancel":
        raise asyncio.CancelledError
    return "no such result"
'''
PLACES = {
    "divide": 'line 19, in share: "return total / parts"',
    "lookup": 'line 33, in fail: "return {"found": {}["absent"]}"',
    "attribute": 'line 35, in fail: "return None.value"',
    "raise": 'line 37, in fail: "raise RuntimeError("no luck")"',
    "leave": 'line 39, in fail: "sys.exit("done")"',
    "interrupt": 'line 41, in fail: "raise KeyboardInterrupt"',
    "cancel": 'line 43, in fail: "raise asyncio.CancelledError"',
    "result": 'line 28, in fail: "async def fail(way: Way) -> dict[str, int]:"',
}


def test_a_bug_of_an_agent_is_seen_in_the_terminal_and_in_the_answer(
    tmp_path: Path, apart: dict[str, str]
) -> None:
    """With the author's file and line, and the command that shows more; nothing else has to be run."""
    (tmp_path / "here" / "bugs.py").write_text(BUGS)
    with up(tmp_path, apart, "--agents", "./bugs.py") as system:
        READY.fullmatch(system.line())
        for way in PLACES:
            done = tasklore(
                "ask", f"fail, way: {way}", cwd=tmp_path / "here", env=apart
            )
            assert done.returncode == 1, done.stdout
            [task_id] = re.findall(
                r"`tasklore dead-letters show (\S+)` shows more", done.stdout
            )
            assert f"bugs.py, {PLACES[way]}" in done.stderr
            said = await_text(
                tmp_path / "errors", f"tasklore dead-letters show {task_id}"
            )
            events = [json.loads(line) for line in said.splitlines() if task_id in line]
            ended = next(one for one in events if one["event"] == "task_failed")
            assert ended["level"] == "warning"
            assert (ended["agent"], ended["task"]) == ("BugAgent", "fail")
            assert f"bugs.py, {PLACES[way]}" in ended["place"]
            assert "tasklore/" not in ended["place"].split("bugs.py")[1]
            if way == "result":
                assert "returned a str that does not fit" in done.stdout
