"""Commands that are made from the manifest: their help, and where they stand beside those written by hand."""

from collections.abc import Callable
from importlib import import_module

import pytest

from tasklore.commands.app import GROUPS, WRITTEN

Run = Callable[..., int]


def test_help_says_everything(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("schedules", "add", "--help") == 0
    told = capsys.readouterr().out
    assert (
        told
        == """\
Usage: tasklore schedules add [OPTIONS] {AGENT.TASK}

  Keep a schedule.

  Requires an API key with the role ask if API keys are enabled.

Arguments:
  AGENT.TASK

Options:
  --idempotency-key IDEMPOTENCY-KEY
  -p, --parameter NAME=VALUE      A parameter. Repeatable.
  --missed MISSED                 Ticks missed while nothing ran. One of skip,
                                  once, all.  [default: once]
  --every EVERY
  --days DAYS                     Repeatable.
  --budget JSON|@FILE
  --pipeline FILE|NAME
  --value VALUE
  --dry-run
  --eager / --no-eager            [default: true]
  -y, --yes                       Do not ask.
  --api URL                       API URL (overrides TASKLORE_API_URL).
  --json                          Print JSON for programs.
  -h, --help                      Show this message and exit.

  Example:
    tasklore schedules add AGENT.TASK
"""
    )


def test_a_noun_lists_its_operations(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("schedules") == 0
    told = capsys.readouterr().out
    assert "See schedules." in told
    assert "  list    List schedules.\n  add     Keep a schedule." in told


def test_the_list_of_all_commands_has_both_kinds(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("--help") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert " schedules See schedules. " in told
    assert " k8s Print manifests for Kubernetes. " in told


@pytest.mark.parametrize("noun", sorted(WRITTEN))
def test_commands_that_are_written_by_hand_are_there(noun: str) -> None:
    module = import_module(f"tasklore.commands.{noun.replace('-', '_')}.app")
    assert module.app.registered_commands


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("schedules", "ad"), "No such command 'ad'. Did you mean 'add'?"),
        (("schedules", "show"), "Missing argument 'ID'"),
        (
            ("schedules", "list", "--limt", "3"),
            "No such option: --limt (Possible options: --limit)",
        ),
        (("schedules", "list", "--limit"), "requires an argument"),
        (("schedules", "list", "x"), "unexpected extra argument"),
        (("results", "import"), "Missing argument 'FILE'"),
    ],
)
def test_a_mistake_is_one_line(
    run_command: Run,
    words: tuple[str, ...],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(*words) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


def test_a_noun_without_a_sentence_is_told_by_its_verbs(
    run_command: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new noun needs no line among those of others."""
    monkeypatch.delitem(GROUPS, "results")
    assert run_command("results") == 0
    assert "  Import, export, forget results.\n" in capsys.readouterr().out
