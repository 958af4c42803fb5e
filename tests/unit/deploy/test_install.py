"""The first setup, `requirements/install.py`: what an interrupted one leaves is repaired by the next."""

import importlib.util
import subprocess
import venv
from pathlib import Path

import pytest

INSTALL = Path(__file__).resolve().parents[3] / "requirements" / "install.py"


def test_an_environment_without_pip_is_made_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its Python came first, and then the setup was interrupted; a whole one is kept."""
    spec = importlib.util.spec_from_file_location("install", INSTALL)
    assert spec is not None
    assert spec.loader is not None
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    folder = tmp_path / ".venv"
    monkeypatch.setattr(install, "_FOLDER", folder)
    monkeypatch.setattr(install, "_pip", lambda *_arguments: 0)
    venv.create(folder, with_pip=False, symlinks=True)

    assert install.main(["dev.txt"]) == 0
    subprocess.run([folder / "bin" / "python", "-m", "pip", "--version"], check=True)
    (folder / "kept").touch()
    assert install.main(["dev.txt"]) == 0
    assert (folder / "kept").exists()
