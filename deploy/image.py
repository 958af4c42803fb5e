"""Builds the image and tries it out without a container engine: `python -m deploy.image`, as root on Debian.

buildah builds `deploy/Dockerfile` on a base that mmdebstrap makes of Debian's packages. bubblewrap then runs it as
Kubernetes would: as user 10001, the root read-only, no capability, no process but its own. A real NATS and Valkey
stand beside it; a worker in the image answers a task, and leaves with 0 on SIGTERM.
"""

import asyncio
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.image_trial import Unlike, try_out

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("buildah", "mmdebstrap", "bubblewrap")
PROGRAMS = ("buildah", "mmdebstrap", "bwrap")
#: What a base needs beyond the smallest Debian: the image's own default has it too.
_IN_BASE = "ca-certificates,python3,python3-venv,python3-pip"
_BASE = "localhost/tasklore-base"
_IMAGE = "localhost/tasklore:trial"
#: Seconds for one command; the base and the wheels are downloaded.
_COMMAND_S = 900
_CERTIFICATES = Path("/etc/ssl/certs")


class Lacking(Exception):
    """The image cannot be built here; the message names the missing package."""


def main() -> int:
    """Build, try out, and tell each step; 1 when one failed, 2 when it cannot be done here."""
    try:
        _demand_programs()
        with tempfile.TemporaryDirectory(prefix="tasklore-image-") as folder:
            root = _build(Path(folder))
            _say("running it read-only as 10001")
            asyncio.run(try_out(root, Path(folder)))
    except Lacking as error:
        sys.stderr.write(f"the image was not tried out: {error}\n")
        return 2
    except (subprocess.SubprocessError, Unlike, TimeoutError) as error:
        sys.stderr.write(f"failed: {error}\n")
        return 1
    _say("1 passed, 0 failed")
    return 0


def _demand_programs() -> None:
    """Install missing packages, where that is allowed.

    Raises:
        Lacking: it is not.
    """
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if not missing:
        if os.geteuid() != 0:
            raise Lacking(
                "buildah without a user namespace of its own needs root; run it as root"
            )
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Lacking(
            f"{', '.join(missing)} missing; as root on Debian: apt-get install {' '.join(PACKAGES)}"
        )
    _say(f"installing {' '.join(PACKAGES)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["update"],
        ["install", "--yes", "--no-install-recommends", *PACKAGES],
    ):
        _run(["apt-get", "--quiet", *command], environment)


def _build(folder: Path) -> Path:
    """Return the root of the image, built in *folder*."""
    _say("making a base of Debian's packages")
    archive = folder / "base.tar"
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")
    _run(
        [
            "mmdebstrap",
            "--variant=minbase",
            f"--include={_IN_BASE}",
            suite,
            str(archive),
            *_sources(),
        ]
    )
    _say("building the image")
    # Without a container engine's storage: every layer is a plain folder.
    buildah = [
        "buildah",
        "--root",
        f"{folder}/store",
        "--runroot",
        f"{folder}/run",
        "--storage-driver",
        "vfs",
    ]
    container = _run([*buildah, "from", "scratch"]).strip()
    _run([*buildah, "add", "--quiet", container, str(archive), "/"])
    _run([*buildah, "commit", "--quiet", container, _BASE])
    archive.unlink()
    mounts = (
        ["--volume", f"{_CERTIFICATES}:{_CERTIFICATES}:ro"]
        if _CERTIFICATES.is_dir()
        else []
    )
    arguments = {
        "BASE_IMAGE": _BASE,
        "PIP_CERT": str(_CERTIFICATES / "ca-certificates.crt"),
    }
    arguments |= {
        name: os.environ[name]
        for name in ("PIP_FIND_LINKS", "PIP_NO_INDEX")
        if _has_folder(name)
    }
    _run(
        [
            *(*buildah, "bud", "--isolation", "chroot", "--pull-never", *mounts),
            *(
                word
                for name, value in arguments.items()
                for word in ("--build-arg", f"{name}={value}")
            ),
            *(
                "--ignorefile",
                "deploy/Dockerfile.dockerignore",
                "--file",
                "deploy/Dockerfile",
                "--tag",
                _IMAGE,
                ".",
            ),
        ]
    )
    container = _run([*buildah, "from", "--pull-never", _IMAGE]).strip()
    return Path(_run([*buildah, "mount", container]).strip())


def _has_folder(variable: str) -> bool:
    """Tell whether *variable* names something that a build, which sees no folder of ours, could use."""
    value = os.environ.get(variable, "")
    return bool(value) and not value.startswith("/")


def _sources() -> list[str]:
    """Return where this machine has its own Debian from; without any, mmdebstrap knows a mirror itself."""
    files = [
        Path("/etc/apt/sources.list.d/debian.sources"),
        Path("/etc/apt/sources.list"),
    ]
    return [
        str(file)
        for file in files
        if file.is_file() and file.read_text("utf-8").strip()
    ][:1]


def _run(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    """Return the output of *command*.

    Raises:
        CalledProcessError: it failed; the last of what it said is on stderr.
    """
    done = subprocess.run(  # noqa: S603 - programs of the machine, named above
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_COMMAND_S,
        check=False,
    )
    if done.returncode != 0:
        sys.stderr.write((done.stdout + done.stderr)[-3000:])
        raise subprocess.CalledProcessError(done.returncode, list(command)[:2])
    return done.stdout


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
