"""Install pinned packages into `.venv`, with a line every few seconds: `install.py FILE...`; needs only Python.

pip itself is silent while it downloads and unpacks. Its exit code is ours.
"""

import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_FOLDER = _ROOT / ".venv"
#: Seconds between two lines.
_EVERY_S = 3.0
#: What pip says, far above its last line, where no index answers.
_NO_NETWORK = (
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "ConnectTimeoutError",
)
#: Last lines of pip that are shown when it fails.
_SHOWN = 20


def main(files: list[str]) -> int:
    """Install *files*, then the project itself without its dependencies; return pip's exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036 - it runs with whatever Python is there
        sys.exit(
            f"Tasklore needs Python 3.11 or newer, this is {sys.version.split()[0]}; try make PYTHON=python3.12"
        )
    if not _has_pip():
        _say("creating .venv")
        venv.create(_FOLDER, with_pip=True, symlinks=True, clear=True)
    _say(f"installing the packages of {', '.join(files)}")
    pinned = [part for file in files for part in ("-r", file)]
    # The files name all that is needed: pip takes a package for unpinned where another one asks for an extra of it.
    packages = _pip("--require-hashes", "--no-deps", *pinned)
    return packages or _pip("--no-deps", "--no-build-isolation", "--editable", ".")


def _has_pip() -> bool:
    """Return whether the environment can install: one whose making was interrupted has Python, but no pip."""
    python = _FOLDER / "bin" / "python"
    command = [str(python), "-m", "pip", "--version"]
    return (
        python.exists()
        and subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603
    )


def _pip(*arguments: str) -> int:
    command = [
        str(_FOLDER / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
    ]
    process = subprocess.Popen(  # noqa: S603 - pip of our own environment
        [*command, "--progress-bar", "off", *arguments],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    seen = {"count": 0, "last": ""}
    threading.Thread(target=_report, args=(process, seen), daemon=True).start()
    lines = []
    for line in process.stdout or ():
        lines.append(line)
        word, _, rest = line.strip().partition(" ")
        if word == "Collecting":
            seen.update(count=seen["count"] + 1, last=rest.partition(" ")[0])
        elif word == "Installing":
            seen.update(last="unpacking")
    if process.wait() != 0:
        _say("".join(lines[-_SHOWN:]))
        if any(sign in line for line in lines for sign in _NO_NETWORK):
            _say(
                "The package index cannot be reached: connect this machine to it, or name a mirror (PIP_INDEX_URL) or"
                " a folder of wheels (PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER), then run the same again."
            )
    return process.returncode


def _report(process: "subprocess.Popen[str]", seen: dict[str, object]) -> None:
    began = time.monotonic()
    while process.poll() is None:
        time.sleep(_EVERY_S)
        if process.poll() is None:
            _say(
                f"installing, {time.monotonic() - began:.0f} s: {seen['count']} packages, {seen['last']}"
            )


def _say(what: str) -> None:
    sys.stderr.write(f"{what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
