"""The first setup repairs an interrupted one."""

import importlib.util
from pathlib import Path

import pytest

INSTALL = Path(__file__).resolve().parents[3] / "requirements" / "install.py"


def write_python(folder: Path, exit_code: int) -> None:
    """Write a Python into *folder* whose every command ends with *exit_code*."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    python.chmod(0o755)


def test_an_environment_without_pip_is_created_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A setup that was interrupted leaves a Python without pip; a whole environment is kept."""
    spec = importlib.util.spec_from_file_location("install", INSTALL)
    assert spec is not None
    assert spec.loader is not None
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
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
