"""Take expired items out of documents: no prompt shows them any more, and from now on only the history has them."""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime

import structlog

from tasklore.contracts.errors import TaskloreError
from tasklore.memory.documents.storage.reader import DocumentOwners
from tasklore.memory.documents.storage.store import DocumentStore

log = structlog.get_logger(__name__)

#: Seconds between two pages of users: a sweep of a million of them takes hours, and nobody waits for it.
_PAGE_S = 0.2
#: Share by which a pause varies, so that workers do not sweep at the same moment.
_JITTER = 0.2


class Sweeper:
    """Sweeps the documents of all users every *every_s* seconds; several workers may, and each item goes once."""

    def __init__(
        self,
        store: DocumentStore,
        owners: DocumentOwners,
        now: Callable[[], datetime],
        every_s: float,
    ) -> None:
        self._store = store
        self._owners = owners
        self._now = now
        self._every_s = every_s

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await self.sweep_all()
            await asyncio.sleep(
                self._every_s * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - jitter
            )

    async def sweep_all(self) -> int:
        """Sweep everybody once and return how many had something expired; what fails is left for the next time."""
        swept = 0
        cursor = 0
        while True:
            try:
                page = await self._owners.page(cursor)
            except TaskloreError as error:
                log.info("sweep_interrupted", error=str(error))
                return swept
            for user in page.users:
                try:
                    swept += await self._store.sweep(user, self._now()) is not None
                except TaskloreError as error:
                    log.info("not_swept", error=str(error))
            cursor = page.cursor
            if not cursor:
                return swept
            await asyncio.sleep(_PAGE_S)
