"""Fingerprints of the files that pipelines read: taken in child processes, within a budget.

Clients choose folders and patterns. So a disk that does not answer occupies a child, which is killed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasklore.contracts.errors import InvalidInput
from tasklore.runtime.children import ChildProcesses
from tasklore.supervisor.pipelines.declaration.marks import over_budget

_CHILD = "tasklore.supervisor.pipelines.declaration.fingerprint_child"
#: Children at once: they share a disk and leave processors to who serves.
_AT_ONCE = 4
#: Seconds for a child to start and to answer, beyond what looking may take.
_LATE_S = 5.0
#: Bytes of one answer: 20,000 marks are some 2 MB.
_LONGEST = 16 * 1024 * 1024

#: Patterns of a phase, and marks that are known of its files.
Look = tuple[Sequence[str], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The marks of each look by name of the file, and for each glob the first changed path that fits it, if any."""

    marks: list[dict[str, str]] = field(default_factory=list)
    changed: dict[str, str] = field(default_factory=dict)


class Fingerprints:
    """Takes fingerprints below *roots* alone, none when there are none.

    A fingerprint may take so many *files*, bytes (*size*) and *seconds*.
    """

    def __init__(
        self,
        roots: Sequence[Path] = (),
        *,
        files: int = 20_000,
        size: int = 1024**3,
        seconds: float = 10.0,
    ) -> None:
        self._roots = [str(root) for root in roots]
        self._budget = files, size, seconds
        self._children = ChildProcesses(_CHILD, at_once=_AT_ONCE, longest=_LONGEST)

    async def take(
        self,
        root: str,
        looks: Sequence[Look] = (),
        *,
        user_id: str | None,
        changed: Sequence[str] = (),
        globs: Sequence[str] = (),
    ) -> Fingerprint:
        """Return the fingerprint of *looks* below *root*, and which of *globs* the files *changed* fit.

        Without any of these, return when *root* may be looked at. One user's are taken one after another.

        Raises:
            InvalidInput: *root* lies below none of ours, or it takes more than the budget; with field and cure.
        """
        if not self._roots:
            raise InvalidInput(
                "root: files below it cannot be read here, as TASKLORE_PIPELINE_ROOTS names no folder; name those that "
                "pipelines may read where the supervisor runs, or leave out `reads_files`"
            )
        job = {"root": root, "looks": looks, "changed": changed, "globs": globs}
        answer = await self._ask(
            {**job, "roots": self._roots, "budget": self._budget}, user_id
        )
        if "refused" in answer:
            raise InvalidInput(answer["refused"])
        return Fingerprint(answer["marks"], answer["changed"])

    async def close(self) -> None:
        """End the children that wait for work."""
        await self._children.close()

    async def _ask(self, job: Mapping[str, Any], user_id: str | None) -> dict[str, Any]:
        try:
            return await self._children.ask(
                job, self._budget[2] + _LATE_S, whose=user_id
            )
        except TimeoutError as error:
            raise over_budget(
                f"looking at the files took more than {self._budget[2]:g} s, or all memory",
                "S",
            ) from error
