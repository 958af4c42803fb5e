"""Types of what users copy: `python -m tests.architecture.typed_pages` checks pages, examples and a new project.

The Python of a page is one module, each line where it is on the page, so that an error names the page and its line.
"""

import contextlib
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tasklore.commands.init.project import write_project
from tests.architecture.page_code import pages_with, place_code
from tests.architecture.tree import ROOT, name_of

#: Where the code of pages is put for mypy, out of sight.
_FOLDER = ROOT / ".mypy_cache" / "pages"
#: Beside pages: examples, and the program that collects the changelog.
_ALONGSIDE = ("examples", "changes")
#: What `tasklore init` writes, which is checked as well.
_PROJECT = "greeter"


def write_modules(folder: Path) -> dict[Path, str]:
    """Write the Python of each page into a module of *folder*; return the name of the page by its module."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {}
    for page in pages_with("python"):
        name = name_of(page)
        module = folder / f"{re.sub(r'[^a-z0-9]+', '_', name.lower())}.py"
        module.write_text(place_code(page.read_text("utf-8"), "python"), "utf-8")
        names[module] = name
    for left in set(folder.glob("*.py")) - set(names):
        left.unlink()
    return names


def write_new_project(folder: Path) -> list[Path]:
    """Write what `tasklore init` writes into *folder*; return its modules."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / _PROJECT, ignore_errors=True)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        write_project(_PROJECT)
    return sorted((folder / _PROJECT).glob("*.py"))


def check(folder: Path) -> tuple[int, str]:
    """Return the exit code of mypy, and what it says with the names of pages."""
    names = write_modules(folder)
    project = write_new_project(folder / "project")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--explicit-package-bases"),
            *map(str, [*names, *project]),
            *_ALONGSIDE,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    for module, name in names.items():
        for path in (str(module), module.relative_to(ROOT).as_posix()):
            said = said.replace(path, name)
    return done.returncode, said


def main() -> int:
    """Check, print what mypy says, and end as it does."""
    code, said = check(_FOLDER)
    sys.stdout.write(said)
    return code


if __name__ == "__main__":
    sys.exit(main())
