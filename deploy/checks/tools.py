"""The programs that checks run: found in a virtual environment of their own, beside Python, or on the PATH."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.checks.problem import CannotCheck

ROOT = Path(__file__).resolve().parents[2]
#: Where `requirements/deploy.txt` is installed; the variable names another folder.
FOLDER = Path(os.environ.get("TASKLORE_DEPLOY_TOOLS", ROOT / ".venv-deploy" / "bin"))
#: Seconds that one program may take.
DEADLINE_S = 120


def find(program: str) -> Path:
    """Return where *program* is.

    Raises:
        CannotCheck: it is nowhere.
    """
    folders = [
        str(FOLDER),
        str(Path(sys.executable).parent),
        os.environ.get("PATH", ""),
    ]
    if place := shutil.which(program, path=os.pathsep.join(folders)):
        return Path(place)
    raise CannotCheck(
        f"{program} is not installed; run make deploy-check, which installs requirements/deploy.txt"
    )


def run(
    program: str, *arguments: str | Path, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Return what *program* did with *arguments* and *text* on its standard input; its status is not judged.

    Raises:
        CannotCheck: it is nowhere, or does not end in time.
    """
    command: Sequence[str | Path] = [find(program), *arguments]
    environment = {
        **os.environ,
        "PATH": f"{FOLDER}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    try:
        return subprocess.run(  # noqa: S603 - programs that were found above
            command,
            input=text,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=DEADLINE_S,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotCheck(f"{program} took longer than {DEADLINE_S} s") from error
