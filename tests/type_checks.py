"""Checks programs of others by mypy, strictly, outside of the project."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def check_types(folder: Path, programs: Mapping[str, str]) -> list[str]:
    """Return the lines that mypy writes of *programs*, sources by module, written to *folder*."""
    files = [folder / f"{name}.py" for name in programs]
    for file, source in zip(files, programs.values(), strict=True):
        file.write_text(source, encoding="utf-8")
    mypy = str(Path(sys.executable).with_name("mypy"))
    # Beside it lie those of other tests of this process, which find the types of the product there.
    cache = str(folder.parent / "types-of-programs")
    done = subprocess.run(
        [
            mypy,
            "--strict",
            "--config-file=",
            "--no-error-summary",
            "--cache-dir",
            cache,
            *map(str, files),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=110,
    )
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()
