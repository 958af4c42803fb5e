"""What the image installs: all that the wheel needs, in the very versions that the tests ran with."""

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.checks.problem import CheckProblem
from deploy.checks.tools import ROOT

IMAGE = ROOT / "deploy" / "requirements.txt"
TESTED = ROOT / "requirements" / "dev.txt"
#: Extras of ours that the image has.
EXTRAS = ("api", "cli", "tokens", "tracing")
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
_CURE = "make it anew; docs/reference/deploy.md says how"


def problems() -> list[CheckProblem]:
    """Return pins that are missing, have another version than in the tests, or have no hash."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [
        one for extra in EXTRAS for one in project["optional-dependencies"][extra]
    ]
    needed = {
        name
        for one in (*project["dependencies"], *extras)
        for name in _names(Requirement(one))
    }
    image = pins(IMAGE)
    tested = pins(TESTED)
    place = "deploy/requirements.txt"
    found = [
        CheckProblem(place, f"lacks {name}", _CURE)
        for name in sorted(needed - image.keys())
    ]
    for name, versions in sorted(image.items()):
        if name in tested and not versions <= tested[name]:
            what = f"has {name} {', '.join(sorted(versions))}, tests ran with {', '.join(sorted(tested[name]))}"
            found.append(CheckProblem(place, what, _CURE))
    files = [
        IMAGE,
        *IMAGE.parent.glob("requirements-*.txt"),
        *TESTED.parent.glob("*.txt"),
    ]
    for file in files:
        bare = without_hash(file.read_text("utf-8"))
        found += [
            CheckProblem(
                str(file.relative_to(ROOT)), f"pins {name} without a hash", _CURE
            )
            for name in bare
        ]
    return found


def without_hash(text: str) -> list[str]:
    """Return what the requirements in *text* name without an exact version and a hash of it."""
    entries = text.replace("\\\n", " ").splitlines()
    return [
        entry.split(maxsplit=1)[0]
        for entry in entries
        if entry.strip()
        and not entry.startswith("#")
        and not ("==" in entry and "--hash=sha256:" in entry)
    ]


def pins(file: Path) -> dict[str, set[str]]:
    """Return the versions of each package that *file* pins; there may be one for each of several machines."""
    found: dict[str, set[str]] = {}
    for name, version in _PIN.findall(file.read_text("utf-8")):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def _names(wanted: Requirement) -> set[str]:
    """Return the name of *wanted*, and the names that its extras bring directly."""
    brought = [Requirement(one) for one in requires(wanted.name) or [] if wanted.extras]
    markers = [(one.name, one.marker) for one in brought]
    with_extras = {
        name
        for name, marker in markers
        for extra in wanted.extras
        if _is_for(marker, extra)
    }
    return {canonicalize_name(name) for name in {wanted.name, *with_extras}}


def _is_for(marker: Marker | None, extra: str) -> bool:
    return (
        marker is not None
        and marker.evaluate({"extra": extra})
        and not marker.evaluate({"extra": ""})
    )
