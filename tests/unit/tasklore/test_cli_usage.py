"""Wrong commands: one line with the cure and an exit code."""

import json
import os
from pathlib import Path

import pytest

from tasklore.__main__ import main
from tasklore.commands.operations.target import (
    API_VARIABLE,
    CA_VARIABLE,
    KEY_VARIABLE,
    OPERATIONS_KEY_VARIABLE,
    OPERATIONS_VARIABLE,
)

#: Nobody listens there: it is a privileged port of loopback that no service has.
NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Run in an empty directory, with no variable of ours."""
    for variable in [name for name in os.environ if name.startswith("TASKLORE_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def end_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["tasklore", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (("dead-leters",), "Did you mean 'dead-letters'?"),
        (("ask", " "), "say what you want to know"),
        (("ask", "x", "--wait", "soon"), "--wait 'soon' is not a valid time span"),
        (("dlq", "list"), "`tasklore dlq` is called `tasklore dead-letters` now"),
        (("ltm", "forget", "--all"), "is called `tasklore results` now"),
        (("session", "list", "--json"), "is called `tasklore sessions` now"),
        (("results", "set", "a:1", "{nope"), "is not valid JSON"),
        (("memory", "import", "ana", "a", "b", "--resource", "food"), "give one"),
        (("results", "set", "a:1", "@missing.json"), "cannot read 'missing.json'"),
        (("sessions", "import", "missing.json"), "cannot read 'missing.json'"),
        (("worker",), "no agent is named"),
        (("worker", "no_such_agent"), "there is no module 'no_such_agent'"),
    ],
)
def test_a_mistake_is_one_line_with_the_cure(
    arguments: tuple[str, ...],
    cure: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert end_of(monkeypatch, *arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("tasklore: ")
    assert told.err.count("\n") == 1
    assert cure in told.err


@pytest.mark.parametrize(
    "arguments", [("ask", "x"), ("supervisor",), ("worker", "budget")]
)
def test_without_a_system_a_command_names_up(
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert end_of(monkeypatch, *arguments) == 3
    assert "`tasklore up`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("process", "words"),
    [(os.getpid(), "is starting; try again"), (2**30, "start a system with")],
    ids=["alive", "gone"],
)
def test_a_starting_system_is_not_called_absent(
    process: int,
    words: str,
    nowhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (nowhere / ".tasklore").mkdir()
    (nowhere / ".tasklore" / "starting").write_text(f"{process}\n")
    assert end_of(monkeypatch, "limits", "show") == 3
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--direct", "ask", "x"),
        ("--direct", "limits", "show"),
    ],
)
def test_an_absent_server_is_named_without_its_password(
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TASKLORE_NATS_URL", f"nats://me:secret@{NOBODY}")
    monkeypatch.setenv("TASKLORE_REDIS_URL", f"redis://me:secret@{NOBODY}")
    assert end_of(monkeypatch, *arguments) == 3
    told = capsys.readouterr().err
    assert NOBODY in told
    assert "secret" not in told


def test_an_unreadable_endpoints_file_is_a_usage_error(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (nowhere / ".tasklore").mkdir()
    (nowhere / ".tasklore" / "endpoints.json").write_text("{", "utf-8")
    assert end_of(monkeypatch, "ask", "x") == 2
    assert "endpoints.json" in capsys.readouterr().err


def test_up_refuses_half_of_the_servers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TASKLORE_NATS_URL", f"nats://{NOBODY}")
    assert end_of(monkeypatch, "up") == 2
    assert "TASKLORE_REDIS_URL" in capsys.readouterr().err


def test_config_prints_sources_and_no_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TASKLORE_LLM_API_KEY", "sk-secret")
    monkeypatch.setenv("TASKLORE_SLOTS", "8")
    assert end_of(monkeypatch, "config") == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line.split() for line in lines if line.startswith("TASKLORE_SLOTS")) == [
        "TASKLORE_SLOTS", "8", "messages", "environment",
    ]  # fmt: skip
    assert not any("sk-secret" in line for line in lines)


def test_the_variables_of_a_client_are_those_of_the_settings() -> None:
    from tasklore.runtime.settings import Settings
    from tasklore.runtime.variables import unknown_variables

    names = (
        API_VARIABLE,
        KEY_VARIABLE,
        OPERATIONS_VARIABLE,
        OPERATIONS_KEY_VARIABLE,
        CA_VARIABLE,
    )
    environ = dict.fromkeys(names, "x")
    assert unknown_variables(environ, Settings.model_fields) == {}


@pytest.mark.parametrize(
    "typed",
    [
        ("pipelines", "status", "no body", "--json"),
    ],
)
def test_a_refusal_is_json_with_the_option(
    typed: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TASKLORE_REDIS_URL", "redis://127.0.0.1:1")
    monkeypatch.setenv("TASKLORE_NATS_URL", "nats://127.0.0.1:1")
    assert end_of(monkeypatch, *typed) in (2, 3)
    out, err = capsys.readouterr()
    [problem] = json.loads(out)["problems"]
    assert err == f"tasklore: {problem}\n"
    assert end_of(monkeypatch, *typed[:-1]) in (2, 3)
    assert capsys.readouterr().out == ""
