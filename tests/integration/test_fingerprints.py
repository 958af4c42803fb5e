"""Fingerprints of files by child processes: below allowed folders, within a budget, and fairly shared."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.pipelines.declaration.fingerprints import Fingerprints, Look

#: Seconds that a look may take here, and those for what takes none on a busy machine.
LOOK_S = 2.0
PATIENCE_S = 60.0


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """Make a folder with all that may lie in one, and a secret beside it."""
    home = tmp_path / "home"
    (home / "long").mkdir(parents=True)
    for number in range(30):
        (home / "long" / (f"{number:02}" + "x" * 58)).write_text("1")
    (home / "own.py").write_text("1")
    (tmp_path / "secret.py").write_text("2")
    (home / "out").symlink_to(tmp_path)
    (home / "circle").symlink_to(home / "circle")
    os.mkfifo(home / "pipe.py")
    (home / "endless.py").symlink_to("/dev/zero")
    with (home / "sparse").open("wb") as file:
        file.truncate(2**40)
    return home


@pytest.fixture
async def fingerprints(allowed: Path) -> AsyncIterator[Fingerprints]:
    taken = Fingerprints([allowed], size=2**20, seconds=LOOK_S)
    yield taken
    await taken.close()


async def took(
    fingerprints: Fingerprints, root: str, *globs: str, user_id: str = "ada"
) -> list[str]:
    looks: list[Look] = [(globs, {})]
    async with asyncio.timeout(PATIENCE_S):
        found = await fingerprints.take(root, looks, user_id=user_id)
    return sorted(found.marks[0])


async def test_a_root_that_is_not_allowed_is_refused(
    fingerprints: Fingerprints, allowed: Path
) -> None:
    for root in (
        "/",
        "{0}/..",
        "{0}/out",
        "{0}/circle",
        "{0}\0",
        "/proc/self/root",
        "/" + "a/" * 3000,
        "",
        "~",
    ):
        with pytest.raises(
            InvalidInput,
            match=r"^root: .*(TASKLORE_PIPELINE_ROOTS|leave it out|give a folder)",
        ):
            await fingerprints.take(root.format(allowed), user_id="ada")
    with pytest.raises(
        InvalidInput, match=r"^root: .*TASKLORE_PIPELINE_ROOTS names no folder"
    ):
        await Fingerprints().take(str(allowed), user_id="ada")


async def test_only_regular_files_below_the_root_are_found(
    fingerprints: Fingerprints, allowed: Path
) -> None:
    """In time, whatever the patterns; neither pipes, devices nor links that lead out or in a circle."""
    for globs, found in (
        (["**/" + "*?" * 18 + "*~"], []),
        (["**/" * 20 + "*~"], []),
        (["*" + "[!y]*" * 190, "[" * 900, "*x" * 400], []),
        (["*.py", "pipe.py", "endless.py", "circle"], ["f:own.py"]),
        (["out/*.py", "out/**", "circle/**", "**/secret.py"], []),
    ):
        assert await took(fingerprints, str(allowed), *globs) == found


async def test_a_look_over_its_budget_is_refused_and_the_next_is_served(
    fingerprints: Fingerprints, allowed: Path
) -> None:
    for _ in range(2):
        with pytest.raises(
            InvalidInput, match=r"reads_files: .*TASKLORE_FINGERPRINT_MAX_BYTES"
        ):
            await took(fingerprints, str(allowed), "sparse")
        assert await took(fingerprints, str(allowed), "own.py") == ["f:own.py"]


async def test_a_child_that_does_not_answer_is_killed_and_replaced(
    fingerprints: Fingerprints, allowed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tasklore.supervisor.pipelines.declaration.fingerprints._LATE_S", -1.0
    )
    assert await took(fingerprints, str(allowed), "own.py") == ["f:own.py"]
    [child] = fingerprints._children.idle
    os.kill(child.pid, 19)
    with pytest.raises(InvalidInput, match="TASKLORE_FINGERPRINT_S"):
        await took(fingerprints, str(allowed), "own.py")
    async with asyncio.timeout(PATIENCE_S):
        assert await child.wait() == -9
    monkeypatch.setattr(
        "tasklore.supervisor.pipelines.declaration.fingerprints._LATE_S", PATIENCE_S
    )
    assert await took(fingerprints, str(allowed), "own.py") == ["f:own.py"]


async def test_a_child_that_was_killed_while_idle_is_replaced(
    fingerprints: Fingerprints, allowed: Path
) -> None:
    assert await took(fingerprints, str(allowed), "own.py") == ["f:own.py"]
    [child] = fingerprints._children.idle
    os.kill(child.pid, 9)
    assert await child.wait() == -9
    assert await took(fingerprints, str(allowed), "own.py") == ["f:own.py"]


async def test_a_child_is_given_no_secret(
    fingerprints: Fingerprints, allowed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment says where to import from, and nothing else of ours."""
    monkeypatch.setenv("TASKLORE_LLM_API_KEY", "sk-secret")
    await took(fingerprints, str(allowed), "own.py")
    [child] = fingerprints._children.idle
    environment = await asyncio.to_thread(Path(f"/proc/{child.pid}/environ").read_bytes)
    assert [line.partition(b"=")[0] for line in environment.split(b"\0") if line] == [
        b"PYTHONPATH"
    ]


async def test_users_take_turns(
    fingerprints: Fingerprints, allowed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another's comes before the end of any of a hundred slow requests of one user."""
    monkeypatch.setattr(
        "tasklore.supervisor.pipelines.declaration.fingerprints._LATE_S", PATIENCE_S
    )
    await took(fingerprints, str(allowed), "own.py", user_id="ada")
    [child] = fingerprints._children.idle
    os.kill(child.pid, 19)
    hers = [
        asyncio.create_task(took(fingerprints, str(allowed), "own.py", user_id="eve"))
        for _ in range(100)
    ]
    await asyncio.sleep(0)
    assert await took(fingerprints, str(allowed), "own.py", user_id="ada") == [
        "f:own.py"
    ]
    assert not any(task.done() for task in hers)
    os.kill(child.pid, 18)
    assert await asyncio.gather(*hers) == [["f:own.py"]] * 100
