"""Every process makes sure that the packages under our names are ours."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tasklore.runtime.origin import PACKAGES, demand_own_packages

ROOT = Path(__file__).resolve().parents[2]
_CHECK = (
    "from tasklore.runtime.origin import demand_own_packages; demand_own_packages()"
)


def _check(*paths: Path) -> subprocess.CompletedProcess[str]:
    return _run(_CHECK, *paths)


def _run(code: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Run *code* in a fresh interpreter that looks for packages in *paths* first, from a folder without any."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd="/",
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def _record_line(site: Path, file: Path) -> str:
    digest = (
        base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest())
        .rstrip(b"=")
        .decode()
    )
    return (
        f"{file.relative_to(site).as_posix()},sha256={digest},{file.stat().st_size}\n"
    )


def _install(site: Path) -> None:
    """Lay our packages into *site* as an installer of wheels does."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, site / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    information = site / "tasklore-0.1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tasklore\nVersion: 0.1.0\n"
    )
    (information / "RECORD").write_text(
        "".join(_record_line(site, file) for file in sorted(site.rglob("*.py")))
    )


def test_our_own_packages_are_accepted() -> None:
    """This very process runs on ours."""
    demand_own_packages()


def test_a_foreign_package_of_our_name_is_refused(tmp_path: Path) -> None:
    """The message names the package, where it lies and the cure."""
    (tmp_path / "supervisor").mkdir()
    (tmp_path / "supervisor" / "__init__.py").write_text("# a process manager\n")

    done = _check(tmp_path, ROOT)

    assert done.returncode != 0
    assert "ConfigurationError: the package 'supervisor' comes from" in done.stderr
    assert str(tmp_path) in done.stderr
    assert (
        'virtual environment of its own: python3 -m venv .venv && .venv/bin/pip install "tasklore[all]"'
        in done.stderr
    )


def test_an_installed_package_that_was_overwritten_is_refused(tmp_path: Path) -> None:
    """A process manager installed after us puts its files over ours: the place is right and the content is not."""
    _install(tmp_path)
    before = _check(tmp_path)
    assert before.returncode == 0, before.stderr
    (tmp_path / "supervisor" / "__init__.py").write_text("#\n")

    done = _check(tmp_path)

    assert done.returncode != 0
    assert "the package 'supervisor'" in done.stderr
    assert "was overwritten" in done.stderr


@pytest.mark.parametrize(
    "door",
    [
        "from tasklore.__main__ import main; main()",
        'from tasklore.runtime.process import Process; Process("any", None)',
    ],
)
def test_every_door_of_the_house_makes_sure_of_it(tmp_path: Path, door: str) -> None:
    """The command says so before it runs anything, and a serving process before it connects."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "__init__.py").write_text("")

    done = _run(door, tmp_path, ROOT)

    assert done.returncode != 0
    assert "the package 'memory' comes from" in done.stderr
