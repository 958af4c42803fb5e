"""Stand-ins for what a host lends, for tests without servers."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from contracts.errors import InvalidInput
from memory.documents.kinds import Kinds
from memory.documents.plans import Document, Snapshot

if TYPE_CHECKING:
    from memory.documents.history import PlanRecord
    from memory.documents.items import Body
    from memory.documents.paths import Path


@cache
def shipped_kinds() -> Kinds:
    """Return the kinds of documents that come with the house."""
    return Kinds.load()


class FakeDocuments:
    """Stands for `memory.documents.reader.DocumentReader`: everybody has *bodies*, by resource id, and no history.

    `read` keeps what was noted as shown to somebody, by user id.
    """

    def __init__(self, bodies: "Mapping[str, Body] | None" = None, kinds: Kinds | None = None) -> None:
        self.bodies = dict(bodies or {})
        self.kinds = kinds or shipped_kinds()
        self.read: dict[str, list[tuple[str, str]]] = {}

    def of(self, user_id: str) -> "FakeOwnDocuments":
        """Return a reader of the documents of *user_id*."""
        if not user_id:
            raise InvalidInput("documents belong to one user each; say whose")
        return FakeOwnDocuments(self, user_id)


class FakeOwnDocuments:
    """Stands for `memory.documents.reader.OwnDocuments`."""

    def __init__(self, documents: FakeDocuments, user_id: str) -> None:
        self._documents = documents
        self._user_id = user_id

    async def snapshot(self, resources: Sequence[str] | None = None) -> Snapshot:
        """Return what was given as revision 1, and templates of the other kinds as 0."""
        kinds, bodies = self._documents.kinds, self._documents.bodies
        wanted = [*kinds.ids, *bodies] if resources is None else resources
        found: dict[str, Document] = {}
        for resource_id in dict.fromkeys(wanted):
            kind = kinds.get(resource_id)
            if resource_id in bodies:
                found[resource_id] = Document(resource_id, 1, bodies[resource_id])
            elif kind is not None:
                found[resource_id] = Document(resource_id, 0, kind.template)
        return Snapshot(self._user_id, found)

    async def history(
        self,
        resource: str | None = None,  # noqa: ARG002 - as in the class it stands for
        limit: int = 100,  # noqa: ARG002
    ) -> "tuple[PlanRecord, ...]":
        """Return nothing."""
        return ()

    async def explain(self, resource: str, path: "Path | str") -> "tuple[PlanRecord, ...]":  # noqa: ARG002 - as above
        """Return nothing."""
        return ()

    async def note_reads(self, places: Iterable[tuple[str, str]], at: datetime) -> None:  # noqa: ARG002 - as above
        """Keep what was shown for the test to look at."""
        self._documents.read.setdefault(self._user_id, []).extend(places)
