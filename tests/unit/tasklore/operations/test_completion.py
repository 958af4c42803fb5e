"""Scripts that complete: tried in bash, which starts nothing for them."""

import subprocess
from collections.abc import Callable

import pytest

Run = Callable[..., int]


@pytest.fixture
def script(run_command: Run, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the script for bash."""
    assert run_command("completion", "bash") == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tasklore sch", {"schedules"}),
        ("tasklore schedules ", {"list", "add", "show", "remove", "--help"}),
        ("tasklore schedules add --mi", {"--missed"}),
        ("tasklore schedules add A.b --missed ", {"skip", "once", "all"}),
        ("tasklore schedules add A.b --missed o", {"once"}),
        ("tasklore k8s ag", {"agent"}),
        ("tasklore schedules show nightly --j", {"--json"}),
        ("tasklore completion --h", {"--help"}),
    ],
)
def test_bash_completes_what_can_follow(
    script: str, line: str, offered: set[str]
) -> None:
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    probe = (
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
        'PATH=; _tasklore; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["/bin/bash", "-euc", f"{script}\n{probe}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == offered, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_every_word(
    run_command: Run, shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("completion", shell) == 0
    told = capsys.readouterr().out
    assert "skip once all" in told
    assert "tasklore" in told


def test_another_shell_is_refused(
    run_command: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("completion", "csh") == 2
    assert "SHELL 'csh' is not one of bash, zsh, fish" in capsys.readouterr().err
