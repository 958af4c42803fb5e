"""Edits of one user's documents taken back by a task: whose documents these are was settled before it got them."""

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from contracts.errors import InvalidInput, UndoRefused

if TYPE_CHECKING:
    from memory.documents.history import PlanRecord

#: Plans that are looked through for what an earlier run of the same task did, moments ago.
_LOOKED_THROUGH = 100


class TakesBack(Protocol):
    """What is needed of `memory.documents.store.DocumentStore`."""

    async def undo(self, user_id: str, plan_id: str | None = None, *, by: str = "person", at: datetime) -> "PlanRecord":
        """Take a plan back and return the plan that did."""

    async def history(self, user_id: str, resource: str | None = None, limit: int = 100) -> "tuple[PlanRecord, ...]":
        """Return the last applied plans, newest first."""


class UserEdits:
    """The edits of one user's documents; nobody else's can be named here.

    Args:
        user_id: Whose they are.
        store: Where they lie.
        attempt: Which run of the task this is: one after the first may find done what it is to do.
        now: When it is done.

    Raises:
        InvalidInput: there is no user.
    """

    def __init__(self, user_id: str | None, store: TakesBack, attempt: int, now: datetime) -> None:
        if not user_id:
            raise InvalidInput("user_id is missing; edits are of somebody's documents, so say whose")
        self._user_id = user_id
        self._store = store
        self._attempt = attempt
        self._now = now

    async def undo(self, plan_id: str) -> "PlanRecord":
        """Take *plan_id* back in all its documents and return the plan that did, also when an earlier run was that.

        Raises:
            UndoRefused: a later plan touched the same place, or the plan does not stand.
            MemoryUnavailable: the store did not answer in time; the task is run again.
        """
        try:
            return await self._store.undo(self._user_id, plan_id, at=self._now)
        except UndoRefused:
            done = await self._done_before(plan_id) if self._attempt > 1 else None
            if done is None:
                raise
            return done

    async def _done_before(self, plan_id: str) -> "PlanRecord | None":
        """Return the plan that took *plan_id* back and stands, None when there is none."""
        recent = await self._store.history(self._user_id, limit=_LOOKED_THROUGH)
        taking = (record for record in recent if record.undoes == plan_id and record.kind == "undo")
        return next((record for record in taking if record.undone_by is None), None)
