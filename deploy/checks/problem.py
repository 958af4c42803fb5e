"""Problems that a check finds, and access to nested manifests."""

from dataclasses import dataclass

Manifest = dict[str, object]


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """Something that is wrong: where, what, and what to do about it."""

    place: str
    what: str
    cure: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}; {self.cure}"


class CannotCheck(Exception):
    """A check cannot be made here; the message names the missing tool."""


def at(manifest: object, *path: str | int) -> object:
    """Return what lies at *path* of *manifest*, None when there is nothing."""
    found = manifest
    for step in path:
        if isinstance(found, dict) and isinstance(step, str):
            found = found.get(step)
        elif (
            isinstance(found, list)
            and isinstance(step, int)
            and -len(found) <= step < len(found)
        ):
            found = found[step]
        else:
            return None
    return found


def listed(manifest: object, *path: str | int) -> list[object]:
    """Return the list at *path* of *manifest*, an empty one when there is none."""
    found = at(manifest, *path)
    return found if isinstance(found, list) else []


def mapped(manifest: object, *path: str | int) -> dict[str, object]:
    """Return the mapping at *path* of *manifest*, an empty one when there is none."""
    found = at(manifest, *path)
    return found if isinstance(found, dict) else {}


def name_of(manifest: Manifest) -> str:
    """Return how a person would call *manifest*."""
    return f"{manifest.get('kind')} {at(manifest, 'metadata', 'name')}"
