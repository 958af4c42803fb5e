"""Takes each thing that the manifests promise away, one at a time, and sees that a check misses it.

Nothing is chosen: every field, every entry of a list and every whole manifest is removed once. What may go without a
complaint is listed, with its reason; anything else that nobody missed is a hole in the checks.
"""

import copy
import fnmatch
from collections.abc import Iterator, Sequence

from deploy.checks import custom, network, promises, whole
from deploy.checks.finding import Manifest, at, name_of

Path = tuple[str | int, ...]

#: What may be missing, as `Kind path`, and why that is no matter of security or durability.
FREE = {
    "* apiVersion*": "the strict schema demands it",
    "* kind*": "the strict schema demands it",
    "[!N]* metadata.labels*": "for people; selectors look at pods",
    "NetworkPolicy metadata.labels*": "for people",
    "Namespace metadata.labels.app.kubernetes.io/*": "for people",
    "Namespace metadata.labels.tasklore.dev/*": "for people",
    "* metadata.annotations*": "for people",
    "Deployment spec.template.metadata.labels.app.kubernetes.io/part-of": "for people",
    "Deployment spec.template.metadata.labels.tasklore.dev/agent": "for people",
    "Job spec.template.metadata.labels.app.kubernetes.io/[!n]*": "for people",
    "Deployment spec.revisionHistoryLimit": "how far back one can roll",
    "* spec.template.spec.containers.0.name": "the strict schema demands it",
    "* spec.template.spec.containers.0.ports.?.protocol": "TCP is what is meant without it",
    "* spec.template.spec.restartPolicy": "Always is what is meant without it, and the schema demands it of a Job",
    "NetworkPolicy spec.*.ports.?.protocol": "TCP is what is meant without it, and UDP is looked at by itself",
    "ConfigMap data.TASKLORE_LOG_LEVEL": "info is what is meant without it",
    "ConfigMap data.TASKLORE_SLOTS": "how much a pod takes at once",
    "ConfigMap data.TASKLORE_API_[!T]*": "where the API is, and its keys: without them it does not start",
    "ConfigMap data.TASKLORE_EVIDENCE_DIR": "where evidence lies",
    "Service spec.ports.0.port": "the strict schema demands it",
    "Service spec.ports.0.name": "for people",
    "Service spec.ports.0.protocol": "TCP is what is meant without it",
    "PrometheusRule *": "rules have tests of their own",
}


def uncaught(manifests: Sequence[Manifest], *, is_production: bool) -> list[str]:
    """Return each removal that no check misses and that is not free, as `Kind name path`.

    Raises:
        ValueError: the checks complain before anything is taken away, so that they would miss nothing.
    """
    if _complaints(manifests, manifests, is_production):
        raise ValueError("the manifests are not in order as they are; mend them first")
    return [told for told, left, changed in removals(manifests) if not _complaints(left, changed, is_production)]


def _complaints(manifests: Sequence[Manifest], changed: Sequence[Manifest], is_production: bool) -> bool:
    """Tell whether any check complains; those of one manifest alone look at *changed* alone."""
    touches_network = any(one.get("kind") == "NetworkPolicy" for one in changed)
    return bool(
        promises.problems(changed)
        or custom.problems(changed)
        or whole.problems(manifests, is_production=is_production)
        or (touches_network and network.problems(manifests))
    )


def removals(manifests: Sequence[Manifest]) -> Iterator[tuple[str, list[Manifest], list[Manifest]]]:
    """Yield everything that can be taken away and is not free: what is left of all, and what of it was touched."""
    for index, manifest in enumerate(manifests):
        rest = [*manifests[:index], *manifests[index + 1 :]]
        yield name_of(manifest), rest, [one for one in rest if one.get("kind") == manifest.get("kind")]
        for path in paths(manifest):
            if not is_free(str(manifest.get("kind")), path):
                told = f"{name_of(manifest)} {'.'.join(map(str, path))}"
                changed = without(manifest, path)
                yield told, [*rest[:index], changed, *rest[index:]], [changed]


def paths(found: object, place: Path = ()) -> Iterator[Path]:
    """Yield the place of every field and entry within *found*."""
    inner: list[tuple[str | int, object]] = []
    if isinstance(found, dict):
        inner = list(found.items())
    elif isinstance(found, list):
        inner = list(enumerate(found))
    for step, value in inner:
        yield (*place, step)
        yield from paths(value, (*place, step))


def without(manifest: Manifest, path: Path) -> Manifest:
    """Return a copy of *manifest* that has nothing at *path*."""
    changed = copy.deepcopy(manifest)
    around = at(changed, *path[:-1])
    if isinstance(around, dict | list):
        del around[path[-1]]  # type: ignore[arg-type]  # of the kind that `paths` found there
    return changed


def is_free(kind: str, path: Path) -> bool:
    """Tell whether *path* of a manifest of *kind* may be missing."""
    told = f"{kind} {'.'.join(map(str, path))}"
    return any(fnmatch.fnmatchcase(told, pattern) for pattern in FREE)
