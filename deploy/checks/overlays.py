"""The manifests as a cluster would be given them: each overlay, built by kustomize."""

import functools

import yaml

from deploy.checks.problem import Manifest, Problem
from deploy.checks.tools import ROOT, run

#: Those that are checked in every way, and those that are built: the others are prod with one component more.
OVERLAYS = ("dev", "prod", "tls")
BUILT = (*OVERLAYS, "traced", "world", "linked")
#: Those that a loss of a node must not stop.
PRODUCTION = frozenset(OVERLAYS) - {"dev"}


def rendered_text(overlay: str) -> str:
    """Return what kustomize makes of *overlay*.

    Raises:
        CannotCheck: there is no kubectl.
        ValueError: it cannot be built; says why.
    """
    done = _kustomize(overlay)
    if done[0] != 0:
        raise ValueError(done[2].strip())
    return done[1]


def rendered(overlay: str) -> list[Manifest]:
    """Return the manifests of *overlay*, as `rendered_text`."""
    return [one for one in yaml.safe_load_all(rendered_text(overlay)) if one]


def problems() -> list[Problem]:
    """Return which overlays cannot be built."""
    found = [(overlay, _kustomize(overlay)) for overlay in BUILT]
    cure = "correct the file that it names"
    return [Problem(f"k8s/overlays/{name}", error.strip(), cure) for name, (status, _, error) in found if status != 0]


@functools.cache
def _kustomize(overlay: str) -> tuple[int, str, str]:
    done = run("kubectl", "kustomize", ROOT / "k8s" / "overlays" / overlay)
    return done.returncode, done.stdout, done.stderr
