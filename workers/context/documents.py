"""Reading the JSON memory of one user, who is fixed before an agent gets it."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from tasklore.contracts.errors import InvalidInput, MemoryUnavailable

if TYPE_CHECKING:
    from tasklore.memory.documents.items import Body
    from tasklore.memory.documents.kinds import Kinds
    from tasklore.memory.documents.paths import Path
    from tasklore.memory.documents.plans import Snapshot
    from tasklore.memory.documents.storage.history import PlanRecord
    from tasklore.memory.documents.storage.reader import DocumentReader
    from tasklore.memory.rendering.documents import Quotation
    from tasklore.workers.context.recorder import RunRecorder

log = structlog.get_logger(__name__)

#: Tokens of documents in a prompt, about: a page and a half, a fifth of what recalling whole histories costs elsewhere.
BUDGET_TOKENS = 800
#: Items that are named beside a block, or beside what a search found.
MOST_NOTED = 50


class UserDocuments:
    """The documents of one user, to be read; no other user can be named here.

    Raises:
        InvalidInput: there is no user: a task without a known asker reads no documents.
    """

    def __init__(
        self,
        user_id: str | None,
        reader: "DocumentReader",
        kinds: "Kinds",
        now: datetime,
        recorder: "RunRecorder | None" = None,
    ) -> None:
        if not user_id:
            raise InvalidInput(
                "user_id is required to read documents; send the task with one"
            )
        self.user_id = user_id
        self._own = reader.of(user_id)
        self.kinds = kinds
        self.now = now
        self.recorder = recorder

    async def snapshot(self, resources: Sequence[str] | None = None) -> "Snapshot":
        """Return *resources* as they all are at one moment; None: all kinds, and whatever else is stored.

        Raises:
            MemoryUnavailable: the store did not answer in time.
        """
        return await self._own.snapshot(resources)

    async def rendered(
        self,
        resource: str | None = None,
        *,
        query: str = "",
        budget_tokens: int = BUDGET_TOKENS,
        said: "Sequence[Quotation]" = (),
    ) -> str:
        """Return *resource*, None for all documents, as a block of Markdown for a prompt; "" for an empty one.

        Pinned items come first, beside the budget; then answers to *query*, as far as *budget_tokens* reach, and
        turns that were *said*. All stands in it as quoted data, so that no sentence of it can act as an instruction.
        Shown items are noted as read, so that unused memories can be found later.

        Raises:
            MemoryUnavailable: the store did not answer in time.
        """
        from tasklore.memory.documents.paths import lookup, place_name
        from tasklore.memory.rendering.documents import render

        bodies = await self.bodies(None if resource is None else [resource])
        block = render(
            bodies,
            self.kinds,
            today=self.now.date(),
            query=query,
            budget_tokens=budget_tokens,
            said=said,
        )
        places = [
            (name, place_name(path, lookup(bodies[name], path)))
            for name, path in block.shown
        ]
        if self.recorder is not None:
            self.recorder.note(
                "memory",
                block.text,
                name="block",
                given=query,
                items=[f"{name} {place}" for name, place in places[:MOST_NOTED]],
                turns=len(said) or None,
            )
        if places:
            try:
                await self._own.note_reads(places, self.now)
            except MemoryUnavailable as error:
                log.info("reads_not_noted", error=str(error))
        return block.text

    async def bodies(self, resources: Sequence[str] | None = None) -> "dict[str, Body]":
        """Return the bodies of *resources*, None for all, by resource id.

        Raises:
            MemoryUnavailable: the store did not answer in time.
        """
        return {
            name: document.body
            for name, document in (await self.snapshot(resources)).documents.items()
        }

    async def history(
        self, resource: str | None = None, limit: int = 100
    ) -> "tuple[PlanRecord, ...]":
        """Return the last *limit* applied plans, newest first; those of one document when *resource* is given.

        Raises:
            MemoryUnavailable: the store did not answer in time.
        """
        return await self._own.history(resource, limit)

    async def explain(
        self, resource: str, path: "Path | str"
    ) -> "tuple[PlanRecord, ...]":
        """Return the plans that touched the value now at *path*, newest first.

        Raises:
            MemoryUnavailable: the store did not answer in time.
        """
        return await self._own.explain(resource, path)
