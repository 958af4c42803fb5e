"""Changes of the memory of one user, who is fixed before a task gets them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tasklore.contracts.errors import InvalidInput, MemoryUnavailable, UndoRefused
from tasklore.workers.forgetting.erasure import Forgotten, UserStore, forget_user

if TYPE_CHECKING:
    from tasklore.memory.documents.draft import Draft
    from tasklore.memory.documents.kinds import Kinds
    from tasklore.memory.documents.plans import Plan
    from tasklore.memory.documents.storage.history import PlanRecord
    from tasklore.memory.documents.storage.store import DocumentStore
    from tasklore.memory.episodes.recall import KeepsTurns
    from tasklore.memory.tombstones.store import Hidden
    from tasklore.workers.forgetting.hidden_memory import AddedAgain, HiddenMemory

#: Plans that are looked through for what an earlier run of the same task did, moments ago.
_LOOKED_THROUGH = 100
#: Tries to store a change while others store theirs.
_ATTEMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMemory:
    """How much is remembered of one user: *items* in *documents*, and turns; *since* is the day of the first turn."""

    documents: int
    items: int
    turns: int
    since: datetime | None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing at all."""
        return not (self.documents or self.turns)


class UserEdits:
    """The edits of one user's documents; no other user can be named here.

    Args:
        user_id: Whose they are.
        store: Where they lie.
        attempt: Which run of the task this is: one after the first may find its edit done.
        now: When it is done.
        parts: Where else something of the user lies, in the order in which it is forgotten.
        episodes: Where their turns are kept.
        hiding: What hides and brings back all of it; None where nothing does.
        is_forgotten_in_chat: Whether the deployment lets a person be forgotten from a chat.

    Raises:
        InvalidInput: there is no user.
    """

    def __init__(
        self,
        *,
        user_id: str | None,
        store: "DocumentStore",
        attempt: int,
        now: datetime,
        parts: Sequence[UserStore] = (),
        episodes: "KeepsTurns | None" = None,
        hiding: "HiddenMemory | None" = None,
        is_forgotten_in_chat: bool = True,
    ) -> None:
        if not user_id:
            raise InvalidInput(
                "user_id is missing; edits are of somebody's documents, so say whose"
            )
        self._user_id = user_id
        self._store = store
        self._attempt = attempt
        self._now = now
        self._parts = parts
        self._episodes = episodes
        self._hiding = hiding
        self.is_forgotten_in_chat = is_forgotten_in_chat

    async def keep_turns(self, *, is_on: bool, days: int | None) -> None:
        """Say whether turns of the user are kept, and for how many days; None leaves that to the deployment.

        Raises:
            MemoryUnavailable: the store did not answer in time.
        """
        if self._episodes is not None:
            await self._episodes.settle(self._user_id, is_on=is_on, days=days)

    async def change(
        self, plan_id: str, plan_of: "Callable[[Draft], Plan]"
    ) -> dict[str, int]:
        """Apply and store the plan *plan_id*, which *plan_of* makes of the documents as they are; return the revisions.

        What an earlier run of the same task stored is not applied again.

        Raises:
            EditRefused: the documents' guard refuses it.
            MemoryUnavailable: the store did not answer in time, or others changed the documents each time.
        """
        from tasklore.memory.documents.draft import Draft
        from tasklore.memory.documents.guard import LIMITS
        from tasklore.memory.documents.storage.repository import Stale

        if self._attempt > 1:
            recent = await self._store.history(self._user_id, limit=_LOOKED_THROUGH)
            for record in recent:
                if record.plan_id == plan_id:
                    return dict(record.revisions)
        for _ in range(_ATTEMPTS):
            draft = Draft(await self._store.snapshot(self._user_id), LIMITS, self._now)
            draft.apply(plan_of(draft))
            done = await self._store.commit(draft)
            if not isinstance(done, Stale):
                return dict(done.revisions)
        raise MemoryUnavailable(
            f"the documents were changed by others {_ATTEMPTS} times in a row; ask again"
        )

    async def held(self, kinds: "Kinds") -> HeldMemory:
        """Return how much is remembered of the user, in documents of *kinds* and any others.

        Raises:
            MemoryUnavailable: a store did not answer in time.
        """
        from tasklore.memory.documents.entries import entries_of

        documents = (await self._store.snapshot(self._user_id)).documents
        stored = {name: one for name, one in documents.items() if one.revision}
        items = sum(
            1 for name, one in stored.items() for _ in entries_of(name, one.body, kinds)
        )
        kept = self._episodes
        turns = 0 if kept is None else await kept.count(self._user_id)
        first = await kept.first(self._user_id) if kept is not None and turns else None
        return HeldMemory(
            documents=len(stored),
            items=items,
            turns=turns,
            since=None if first is None else first.at,
        )

    async def forget(self) -> Forgotten:
        """Remove the memory of the user where this worker may, and return the counts of removed and remaining parts.

        Raises:
            MemoryUnavailable: the store did not answer in time; those removed by then stay removed.
        """
        return await forget_user(self._user_id, self._parts)

    async def hidden_by(self, task_id: str) -> "Hidden | None":
        """Return what an earlier run of *task_id* hid; None where that is nothing.

        Raises:
            MemoryUnavailable: the store did not answer in time.
        """
        if self._hiding is None:
            return None
        return await self._hiding.stones.hidden_by(self._user_id, task_id)

    async def hide(self, task_id: str) -> "Hidden":
        """Hide the memory of the user at once, and return until when it can be brought back; once for each *task_id*.

        Raises:
            InvalidInput: nothing hides memories here.
            MemoryUnavailable: the store did not answer in time; a repeat finishes it.
        """
        return await self._demand_hiding().hide(
            self._user_id, by=task_id, now=self._now
        )

    async def hidden(self) -> "Hidden | None":
        """Return what `bring_back` would bring back; None where nothing is hidden.

        Raises:
            MemoryUnavailable: the store did not answer in time.
        """
        if self._hiding is None:
            return None
        return await self._hiding.stones.latest(self._user_id, self._now)

    async def bring_back(self, task_id: str) -> "AddedAgain | None":
        """Bring back all that was hidden last, with later words; None where nothing is hidden.

        Raises:
            InvalidInput: nothing hides memories here.
            MemoryUnavailable: the store did not answer in time; a repeat finishes it.
        """
        return await self._demand_hiding().bring_back(
            self._user_id, by=task_id, now=self._now
        )

    def _demand_hiding(self) -> "HiddenMemory":
        if self._hiding is None:
            raise InvalidInput(
                "no memory can be hidden here; `tasklore memory forget` erases it"
            )
        return self._hiding

    async def undo(self, plan_id: str) -> "PlanRecord":
        """Take *plan_id* back in all its documents and return the plan that did, also when an earlier run was that.

        Raises:
            UndoRefused: a later plan touched the same place, or the plan does not stand.
            MemoryUnavailable: the store did not answer in time; the task is run again.
        """
        try:
            return await self._store.undo(self._user_id, plan_id, at=self._now)
        except UndoRefused:
            if self._attempt > 1:
                for record in await self._store.history(
                    self._user_id, limit=_LOOKED_THROUGH
                ):
                    if (
                        record.undoes == plan_id
                        and record.kind == "undo"
                        and record.undone_by is None
                    ):
                        return record
            raise
