"""Whether the packages that Python finds under our names are ours: they are plain words that others use too.

PyPI's `supervisor`, a process manager, installs a package of the same name as one of ours and silently writes its
files over them.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from contracts.errors import ConfigurationError

#: Every top-level package that our distribution installs.
PACKAGES = ("contracts", "quantities", "memory", "runtime", "supervisor", "workers", "tasklore")

_DISTRIBUTION = "tasklore"


def demand_own_packages(packages: Sequence[str] = PACKAGES) -> None:
    """Return when each of *packages* is the one that Tasklore installed; nothing is imported for it.

    Raises:
        ConfigurationError: one lies elsewhere, or another distribution wrote over it; names it and the cure.
    """
    try:
        ours = distribution(_DISTRIBUTION)
    except PackageNotFoundError:
        # Run from a source tree that nobody installed: all of them lie beside this one.
        ours = None
    root = _root_of(ours)
    written = _written_digests(ours)
    for package in packages:
        place = _place_of(package)
        expected = root / package / "__init__.py"
        if place is None or place != expected.resolve():
            raise ConfigurationError(
                _complaint(package, f"comes from {str(place or 'nowhere')!r}, not from {str(root)!r}")
            )
        digest = written.get(f"{package}/__init__.py")
        if digest is not None and digest != _digest(place):
            raise ConfigurationError(_complaint(package, f"in {str(place.parent)!r} was overwritten"))


def _root_of(ours: Distribution | None) -> Path:
    """Return the folder that holds our packages: the project's own in an editable install."""
    if ours is None:
        return Path(__file__).resolve().parent.parent
    direct = json.loads(ours.read_text("direct_url.json") or "{}")
    if direct.get("dir_info", {}).get("editable"):
        return Path(url2pathname(urlsplit(direct["url"]).path))
    return Path(str(ours.locate_file("")))


def _written_digests(ours: Distribution | None) -> dict[str, str]:
    """Return the digest of each file that the installer wrote, by its path; none for those of an editable install."""
    files = ours.files if ours is not None else None
    return {
        file.as_posix(): file.hash.value for file in files or () if file.hash is not None and file.hash.mode == "sha256"
    }


def _place_of(package: str) -> Path | None:
    try:
        spec = find_spec(package)
    except ValueError:
        return None
    return Path(spec.origin).resolve() if spec is not None and spec.origin is not None else None


def _digest(file: Path) -> str:
    """Return the digest of *file* as a wheel's RECORD spells it."""
    return base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()


def _complaint(package: str, what: str) -> str:
    others = sorted({name for name in packages_distributions().get(package, ()) if name.lower() != _DISTRIBUTION})
    whose = f" (it is also installed by {', '.join(others)})" if others else ""
    return (
        f"the package {package!r} {what}{whose}: another distribution uses this name; "
        "install Tasklore into a virtual environment of its own: "
        "python3 -m venv .venv && .venv/bin/pip install tasklore"
    )
