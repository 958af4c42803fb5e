"""`tasklore limits check`: a file of limits without a server."""

from pathlib import Path

import pytest

from tasklore.commands.limits.check import print_check
from tasklore.contracts.errors import InvalidInput

FILE = "[[limits]]\nname = 'openai'\ntokens = 200_000\nevery = 'minute'\n"


def test_a_file_is_checked_without_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the file, the limit and the field."""
    monkeypatch.setenv("TASKLORE_REDIS_URL", "redis://127.0.0.1:1")
    file = tmp_path / "limits.toml"
    file.write_text(FILE, "utf-8")
    print_check(file)
    assert capsys.readouterr().out == "limits.toml: 1 limit, nothing is wrong.\n"
    file.write_text(FILE.replace("200_000", "-1"), "utf-8")
    with pytest.raises(
        InvalidInput, match=r"limits.toml': limit 'openai'.tokens: must be greater"
    ):
        print_check(file)
    with pytest.raises(InvalidInput, match="No such file"):
        print_check(file.with_name("none.toml"))
