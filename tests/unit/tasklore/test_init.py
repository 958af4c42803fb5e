"""Names that `tasklore init` takes for a project."""

from pathlib import Path

import pytest

from tasklore.commands.init.project import write_project
from tasklore.contracts.errors import InvalidInput


@pytest.mark.parametrize(
    "name",
    [
        "memory",
        "budget",
        "json",
    ],
)
def test_a_name_of_an_installed_package_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InvalidInput,
        match=f"{name!r} is that of a package or an agent .*such as my-{name}",
    ):
        write_project(name)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "newsagent").mkdir()
    write_project("newsagent")
    assert (tmp_path / "newsagent" / "newsagent.py").is_file()
