"""`tasklore init`: names that a project may have."""

from pathlib import Path

import pytest

from contracts.errors import InvalidInput
from tasklore.init.project import write_project


@pytest.mark.parametrize("name", ["memory", "workers", "redis", "budget", "json", "tasklore", "pydantic-settings"])
def test_a_project_is_not_called_as_something_that_is_installed(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its module would hide that, or never be found; nothing is written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=f"{name!r} is that of a package or an agent .*such as my-{name}"):
        write_project(name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_empty_may_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where Python looks for packages in the folder around it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "newsagent").mkdir()
    write_project("newsagent")
    assert (tmp_path / "newsagent" / "newsagent.py").is_file()
