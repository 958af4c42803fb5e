"""Whether the packages that Python finds under our names are ours: they are plain words that others use too.

PyPI's `supervisor`, a process manager, installs a package of the same name as one of ours and silently writes its
files over them.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tasklore.contracts.errors import ConfigurationError

#: Every top-level package that our distribution installs.
PACKAGES = (
    "contracts",
    "quantities",
    "memory",
    "runtime",
    "supervisor",
    "workers",
    "tasklore",
)

_DISTRIBUTION = "tasklore"


def demand_own_packages(packages: Sequence[str] = PACKAGES) -> None:
    """Return when each of *packages* is the one that Tasklore installed; nothing is imported for it.

    Raises:
        ConfigurationError: one lies elsewhere, or another distribution wrote over it; names it and the cure.
    """
    root = Path(__file__).resolve().parent.parent
    written = _written_digests(root)
    for package in packages:
        place = _place_of(package)
        expected = root / package / "__init__.py"
        if place is None or place != expected:
            raise ConfigurationError(
                _complaint(
                    package,
                    f"comes from {str(place or 'nowhere')!r}, not from {str(root)!r}",
                )
            )
        digest = written.get(f"{package}/__init__.py")
        if digest is not None and digest != _digest(place):
            raise ConfigurationError(
                _complaint(package, f"in {str(place.parent)!r} was overwritten")
            )


def _written_digests(root: Path) -> dict[str, str]:
    """Return the digest of each file that an installer wrote into *root*, by its path; none for a source tree.

    RECORD is read by hand: importlib.metadata costs every command 0.03 s of CPU.
    """
    records = root.glob(f"{_DISTRIBUTION}-*.dist-info/RECORD")
    lines = (
        line for record in records for line in record.read_text("utf-8").splitlines()
    )
    entries = (line.split(",") for line in lines if "/__init__.py,sha256=" in line)
    return {file: digest.removeprefix("sha256=") for file, digest, *_ in entries}


def _place_of(package: str) -> Path | None:
    try:
        spec = find_spec(package)
    except ValueError:
        return None
    return (
        Path(spec.origin).resolve()
        if spec is not None and spec.origin is not None
        else None
    )


def _digest(file: Path) -> str:
    """Return the digest of *file* as a wheel's RECORD spells it."""
    import base64
    import hashlib

    return (
        base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest())
        .rstrip(b"=")
        .decode()
    )


def _complaint(package: str, what: str) -> str:
    from importlib.metadata import packages_distributions

    others = sorted(
        {
            name
            for name in packages_distributions().get(package, ())
            if name.lower() != _DISTRIBUTION
        }
    )
    whose = f" (it is also installed by {', '.join(others)})" if others else ""
    return (
        f"the package {package!r} {what}{whose}: another distribution uses this name; "
        "install Tasklore into a virtual environment of its own: "
        'python3 -m venv .venv && .venv/bin/pip install "tasklore[all]"'
    )
