"""The first setup repairs an interrupted one."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

INSTALL = Path(__file__).resolve().parents[3] / "requirements" / "install.py"


def write_python(folder: Path, exit_code: int) -> None:
    """Write a Python into *folder* whose every command ends with *exit_code*."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    python.chmod(0o755)


def loaded() -> Any:
    """Return the module that installs, which lies in no package."""
    spec = importlib.util.spec_from_file_location("install", INSTALL)
    assert spec is not None
    assert spec.loader is not None
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    return install


@pytest.mark.parametrize(
    ("said", "is_offline"),
    [
        ("WARNING: ... Failed to establish a new connection: [Errno -3]", True),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", False),
    ],
)
def test_no_network_is_said_plainly(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    said: str,
    *,
    is_offline: bool,
) -> None:
    """The last line of pip would be that no distribution matches."""
    install = loaded()
    write_python(tmp_path, 1)
    python = tmp_path / "bin" / "python"
    python.write_text(f"#!/bin/sh\necho '{said}'\nexit 1\n")
    monkeypatch.setattr(install, "_FOLDER", tmp_path)
    assert install._pip("x") == 1
    told = capsys.readouterr().err
    assert ("The package index cannot be reached" in told) is is_offline


def test_an_environment_without_pip_is_created_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A setup that was interrupted leaves a Python without pip; a whole environment is kept."""
    install = loaded()
    created: list[dict[str, bool]] = []

    def create(folder: Path, **options: bool) -> None:
        created.append(options)
        write_python(folder, 0)

    monkeypatch.setattr(install, "_FOLDER", tmp_path / ".venv")
    monkeypatch.setattr(install, "_pip", lambda *_arguments: 0)
    monkeypatch.setattr(install.venv, "create", create)
    write_python(tmp_path / ".venv", 1)
    for _ in range(2):
        assert install.main(["dev.txt"]) == 0
    assert created == [{"with_pip": True, "symlinks": True, "clear": True}]
