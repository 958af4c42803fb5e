"""What the loops of this room need of the table of waiting rows, of the documents' store and of whoever counts."""

from collections.abc import Sequence
from typing import Protocol

from contracts.errors import TaskloreError
from memory.claims import Claim, Closing
from memory.documents.commits import Committed, Stale
from memory.documents.draft import Draft
from workers.documents import OwnReads


class LeaseLost(TaskloreError):
    """The rows are somebody else's by now, or will be: stop, whatever comes of this run is refused."""


class Unreadable(TaskloreError):
    """A row cannot be worked on, and never will be."""

    retryable = False


class ClosesRows(Protocol):
    """What whoever works on a claim needs of `memory.queues.PersonalQueue`."""

    async def note(self, claim: Claim, row_id: str, note: bytes) -> bool:
        """Keep what was worked out for a row; False when the lease is lost."""

    async def close(self, claim: Claim, closings: Sequence[Closing]) -> bool:
        """Say what became of rows; False when the lease is lost."""


class ClaimsRows(ClosesRows, Protocol):
    """What the loop of claims needs of `memory.queues.PersonalQueue`."""

    async def owners_due(self, now_ms: int, limit: int) -> list[str]:
        """Return at most *limit* users whose rows wait and are due."""

    async def claim(self, owner: str, *, holder: str, limit: int, lease_ms: int, now_ms: int) -> Claim | None:
        """Lease the first rows of *owner*; None when none is due or somebody else works on them."""

    async def renew(self, claim: Claim, lease_ms: int) -> bool:
        """Lease anew from now on; False when the lease is lost."""

    async def release(self, claim: Claim) -> None:
        """Give the rows that are not closed back."""


class StoresDrafts(Protocol):
    """What whoever works on facts needs of `memory.documents.store.DocumentStore`."""

    def of(self, user_id: str) -> OwnReads:
        """Return a reader of the documents of *user_id*."""

    async def commit(
        self, draft: Draft, *, claim: Claim | None = None, closings: Sequence[Closing] = ()
    ) -> Committed | Stale:
        """Store the draft and close the rows in one step, or nothing."""
