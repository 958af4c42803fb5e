"""Recollection: what memory knows of the person who asks, for the interpreter; it never fails and never takes long."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path as File

import structlog
from pydantic import JsonValue
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.memory.documents.items import Item, leaf_text
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.paths import Path, lookup, place_name
from tasklore.memory.documents.storage.reader import DocumentReader
from tasklore.memory.rendering.documents import render
from tasklore.memory.rendering.quoting import plain
from tasklore.supervisor.understanding.prompt import PersonalMemory

log = structlog.get_logger(__name__)

#: Tokens of memories in one question: some fifteen lines, beside tasks that take many times as much.
BUDGET_TOKENS = 300
#: Seconds a person waits for memories: a hundred times the usual; without them they are asked back.
DEADLINE_S = 0.5


class Recollections:
    """The memories of the person who asks, and of no other: every look names the one user whose memory it is."""

    def __init__(
        self,
        reader: "DocumentReader",
        kinds: Kinds,
        *,
        budget_tokens: int = BUDGET_TOKENS,
        deadline_s: float = DEADLINE_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._reader = reader
        self._kinds = kinds
        self._budget_tokens = budget_tokens
        self._deadline_s = deadline_s
        self._now = now

    async def of(self, user_id: str | None, text: str) -> Sequence[PersonalMemory]:
        """Return the memories of *user_id* that have most to do with *text*, as far as the budget reaches.

        None for an unknown user, and none when the store does not answer in time.
        """
        if not user_id:
            return ()
        now = self._now()
        try:
            async with asyncio.timeout(self._deadline_s):
                own = self._reader.of(user_id)
                snapshot = await own.snapshot()
                bodies = {
                    name: document.body for name, document in snapshot.documents.items()
                }
                block = await asyncio.to_thread(
                    render,
                    bodies,
                    self._kinds,
                    today=now.date(),
                    query=text,
                    budget_tokens=self._budget_tokens,
                    pinned_tokens=0,
                )
        except (MemoryUnavailable, InvalidInput, TimeoutError) as error:
            log.info("answered_without_memory", error=type(error).__name__)
            return ()
        if block.shown:
            # For a later look at memories that were never of use.
            places = [
                (name, place_name(path, lookup(bodies[name], path)))
                for name, path in block.shown
            ]
            try:
                async with asyncio.timeout(self._deadline_s):
                    await own.note_reads(places, now)
            except (MemoryUnavailable, TimeoutError) as error:
                log.info("reads_not_noted", error=type(error).__name__)
        return tuple(
            _read_line(name, path, lookup(bodies[name], path))
            for name, path in block.shown
        )


def open_recollections(redis: Redis, kinds_dir: File | None) -> Recollections:
    """Return the recollections in *redis*, with the kinds of documents that *kinds_dir* adds to the shipped ones.

    Raises:
        ConfigurationError: that folder cannot be read, or does not fit.
    """
    kinds = Kinds.load(*([kinds_dir] if kinds_dir is not None else []))
    return Recollections(DocumentReader(redis, kinds, deadline_s=DEADLINE_S), kinds)


def _read_line(resource_id: str, path: Path, value: JsonValue) -> PersonalMemory:
    """Return *value* as the block shows it, without dates and confidence: those are no amounts of the person."""
    item = Item.read(value)
    text = plain(item.display if item is not None else leaf_text(value))
    # The names of the document and of the parts on the way may say whose it is.
    document = (
        resource_id.removeprefix("resource_")
        .removeprefix("user_")
        .removesuffix("_prefs")
    )
    names = (document, *(plain(step) for step in path.steps if isinstance(step, str)))
    return PersonalMemory(f"{resource_id} {path}", f"{' / '.join(names)}: {text}")
