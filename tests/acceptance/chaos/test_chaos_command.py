"""The command that runs the profiles: what it takes, what it prints, and how it ends."""

import argparse
import io
from importlib.util import find_spec

import pytest
from rich.console import Console

from tests.acceptance.chaos import __main__ as command
from tests.acceptance.chaos.table import Row, show


def test_every_profile_has_a_module() -> None:
    """A name that is offered can be run."""
    assert [name for name in command.PROFILES if find_spec(f"tests.acceptance.chaos.{name}") is None] == []


def test_everything_is_run_unless_some_are_named() -> None:
    """Numbers that are not given are each profile's own."""
    everything = command.read_options([])
    some = command.read_options(["--only", "storm, healing", "--seeds", "2", "--tasks", "100", "--first-seed", "7"])

    assert everything.only == tuple(command.PROFILES)
    assert (everything.seeds, everything.tasks, everything.first_seed) == (None, None, 1)
    assert (some.only, some.seeds, some.tasks, some.first_seed) == (("storm", "healing"), 2, 100, 7)


@pytest.mark.parametrize("wrong", ["rain", "storm,rain", ","])
def test_a_profile_that_is_none_is_refused_with_those_that_are(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is run then."""
    with pytest.raises(SystemExit):
        command.read_options(["--only", wrong])

    assert "is no profile; take storm, " in capsys.readouterr().err


@pytest.mark.parametrize(("passed", "status"), [((True, True), 0), ((True, False), 1), ((), 1)])
def test_one_broken_promise_is_a_failure_and_so_is_an_empty_table(
    passed: tuple[bool, ...], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit status says it, and the table shows which."""

    async def profile(_options: argparse.Namespace) -> list[Row]:
        return [Row(f"promise {number}", "0 of 5", kept) for number, kept in enumerate(passed)]

    monkeypatch.setattr(command, "PROFILES", {"storm": profile})
    monkeypatch.setattr("sys.argv", ["chaos", "--only", "storm"])
    with pytest.raises(SystemExit) as ended:
        command.main()

    assert ended.value.code == status
    assert capsys.readouterr().out.count("promise ") == len(passed)


def test_the_table_says_what_was_asked_what_was_measured_and_whether_it_passed() -> None:
    """One line a promise; a broken one is in capitals."""
    out = io.StringIO()
    show(
        [Row("lost: 0", "0 of 5", passed=True), Row("twice: 0", "2 of 5", passed=False)],
        "2 promises",
        Console(file=out),
    )

    lines = out.getvalue().splitlines()
    assert any(all(word in line for word in ("lost: 0", "0 of 5", "yes")) for line in lines)
    assert any(all(word in line for word in ("twice: 0", "2 of 5", "NO")) for line in lines)
    assert "2 promises" in lines[-1]
