"""The manifests as a cluster would be given them: each overlay, built by kustomize."""

import functools
from collections.abc import Callable, Iterable

import yaml

from deploy.checks.problem import CheckProblem, Manifest
from deploy.checks.tools import ROOT, run

#: Those that are checked in every way, and those that are built: the others are prod with one component more.
OVERLAYS = ("dev", "prod", "tls")
BUILT = (*OVERLAYS, "traced", "world", "linked")
#: Those that a loss of a node must not stop.
PRODUCTION = frozenset(OVERLAYS) - {"dev"}


@functools.cache
def rendered_text(overlay: str) -> str:
    """Return the output of kustomize for *overlay*.

    Raises:
        CannotCheck: there is no kubectl.
        ValueError: it cannot be built; says why.
    """
    done = run("kubectl", "kustomize", ROOT / "k8s" / "overlays" / overlay)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return done.stdout


def rendered(overlay: str) -> list[Manifest]:
    """Return the manifests of *overlay*, as `rendered_text`."""
    return [one for one in yaml.safe_load_all(rendered_text(overlay)) if one]


def problems() -> list[CheckProblem]:
    """Return which overlays cannot be built."""
    found = []
    for overlay in BUILT:
        try:
            rendered_text(overlay)
        except ValueError as error:
            found.append(
                CheckProblem(
                    f"k8s/overlays/{overlay}",
                    str(error),
                    "correct the file that it names",
                )
            )
    return found


def problems_in(
    overlays: Iterable[str], check: Callable[[list[Manifest]], list[CheckProblem]]
) -> list[CheckProblem]:
    """Return the problems that *check* finds in the manifests of each of *overlays*, with its name in their place."""
    return [
        CheckProblem(f"{overlay}: {one.place}", one.what, one.cure)
        for overlay in overlays
        for one in check(rendered(overlay))
    ]
