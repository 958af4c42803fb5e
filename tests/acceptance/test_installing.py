"""What is installed is one package: it disturbs nothing that has a plain name of its own, and nothing disturbs it."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.acceptance.external_program import outside
from tests.acceptance.system import ROOT, System

#: Packages that a project may well have, and that folders of the repository are called.
OWN_NAMES = ("contracts", "memory", "runtime", "supervisor", "workers")

AGENT = """
import contracts, memory, quantities, runtime, supervisor, workers

from tasklore import Agent, Parameters

agent = Agent("NamesAgent", keywords=("names",))


class Question(Parameters):
    name: str


@agent.task
async def whose(question: Question) -> str:
    \"\"\"Tell whose package it is.\"\"\"
    return globals()[question.name].WHOSE
"""

#: Seconds that building, installing or a demonstration may take on a busy machine.
PATIENCE_S = 100.0


def run(*command: str | Path, cwd: Path) -> str:
    """Run *command* to its end, with nothing of this checkout on its path, and return what it printed."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONPATH" and not name.startswith("TASKLORE_")
    }
    # The servers of the demonstration are programs that pip put beside this interpreter.
    environ["PATH"] = os.pathsep.join((sysconfig.get_path("scripts"), environ["PATH"]))
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind: str, source: Path, place: Path) -> Path:
    """Build a wheel or an sdist of *source* into *place*."""
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", place, cwd=source)
    (built,) = place.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the checkout."""
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel_of_sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the sdist."""
    sdist = build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return build("wheel", source, tmp_path_factory.mktemp("wheel-of-sdist"))


def files_of(wheel: Path) -> dict[str, bytes]:
    """Return the files of *wheel* by their names, without the list of them."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("RECORD")]
        return {name: archive.read(name) for name in names}


def test_a_wheel_holds_one_package(wheel: Path) -> None:
    """Every room lies in it, and nothing beside it."""
    tops = {name.split("/")[0] for name in files_of(wheel)}
    modules = {file for file in files_of(wheel) if file.endswith(".py")}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"tasklore"}
    for room in ("contracts", "memory", "runtime", "supervisor", "workers"):
        written = {f"tasklore/{one}" for one in python_files(ROOT / room)}
        assert written <= modules


def python_files(room: Path) -> set[str]:
    """Return the modules of *room*, as paths from the checkout."""
    return {file.relative_to(ROOT).as_posix() for file in room.rglob("*.py")}


def test_the_wheel_of_the_sdist_is_that_of_the_checkout(
    wheel: Path, wheel_of_sdist: Path
) -> None:
    """An sdist that lacks a linked folder would be noticed by nobody who works in a checkout."""
    assert files_of(wheel_of_sdist) == files_of(wheel)


def environment_with(wheel: Path, place: Path) -> Path:
    """Install *wheel* and packages of other makers with plain names into a new environment; return its interpreter.

    Third parties come from this environment, whose editable install of ours is not on the new one's path.
    """
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    own = Path(
        run(
            python, "-c", "import site; print(*site.getsitepackages())", cwd=place
        ).strip()
    )
    (own / "third_parties.pth").write_text(sysconfig.get_path("purelib"))
    for name in ("supervisor", "quantities"):
        (own / name).mkdir()
        (own / name / "__init__.py").write_text('WHOSE = "another distribution\'s"\n')
    pip = [sys.executable, "-m", "pip", "--python", python, "install"]
    run(*pip, "--quiet", "--no-deps", "--no-index", wheel, cwd=place)
    return python


async def test_a_project_keeps_its_own_packages_of_plain_names(
    own_system: System, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also beside distributions of such names; a worker serves them, and the command plays its demonstration."""
    python = environment_with(wheel, tmp_path_factory.mktemp("environment"))
    project = own_system.folder
    for name in OWN_NAMES:
        (project / name).mkdir()
        (project / name / "__init__.py").write_text('WHOSE = "mine"\n')
    (project / "names.py").write_text(AGENT)

    supervisor = own_system.installed(python, "supervisor")
    own_system.installed(python, "worker", "./names.py").ready()
    supervisor.ready()
    async with outside(own_system.servers.nats_url) as program:
        whose = {
            name: (await program.ask("NamesAgent", "whose", {"name": name}))["result"]
            for name in (*OWN_NAMES, "quantities")
        }

    assert whose == {
        **dict.fromkeys(OWN_NAMES, "mine"),
        "quantities": "another distribution's",
    }
    assert "from cache in" in run(python, "-m", "tasklore", "demo", cwd=project)


def test_a_room_is_not_imported_by_the_name_of_its_folder() -> None:
    """In a checkout it would be a second class beside each of the first."""
    for room in ("contracts", "memory", "runtime", "supervisor", "workers"):
        done = subprocess.run(
            [sys.executable, "-c", f"import {room}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"import 'tasklore.{room}'" in done.stderr
