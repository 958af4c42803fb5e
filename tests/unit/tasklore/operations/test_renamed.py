"""Old words name the new ones."""

from collections.abc import Callable

import pytest

from tasklore.commands import renamed
from tasklore.commands.app import make_root
from tasklore.commands.renamed import RENAMED


@pytest.mark.parametrize(
    ("words", "new"),
    [(("plan", "show", "x"), "schedules show"), (("plan", "--help"), "schedules")],
)
def test_an_old_word_names_the_new_one(
    run_command: Callable[..., int],
    words: tuple[str, ...],
    new: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = {"plan": "schedules", "plan show": "schedules show"}
    monkeypatch.setattr(renamed, "RENAMED", names)
    assert run_command(*words) == 2
    assert f"is called `tasklore {new}` now" in capsys.readouterr().err


def test_no_word_is_both_old_and_there() -> None:
    known = make_root().commands
    for old, new in RENAMED.items():
        assert old.split()[0] not in known or " " in old, old
        assert new.split()[0] in known, new
