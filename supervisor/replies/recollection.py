"""Reads what memory knows of the person who asks, for the interpreter; it never fails and never takes long."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path as File

import structlog
from pydantic import JsonValue
from redis.asyncio import Redis

from contracts.errors import InvalidInput, MemoryUnavailable
from memory.documents.items import Item, leaf_text
from memory.documents.kinds import Kinds
from memory.documents.paths import Path, lookup, place_name
from memory.documents.plans import Snapshot
from memory.documents.storage.reader import DocumentReader, OwnDocuments
from memory.rendering.documents import Rendered, render
from memory.rendering.quoting import plain
from supervisor.understanding.prompt import Remembered

log = structlog.get_logger(__name__)

#: Tokens of what is remembered in one question: some fifteen lines, beside tasks that take many times as much.
BUDGET_TOKENS = 300
#: Seconds a person waits for what is remembered: a hundred times what it takes; without it they are asked back.
DEADLINE_S = 0.5


class Recollections:
    """What is remembered of whoever asks, and of nobody else: every look names the one user whose memory it is."""

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

    async def of(self, user_id: str | None, text: str) -> Sequence[Remembered]:
        """Return what has most to do with *text* of what is remembered of *user_id*, as far as the budget reaches.

        Nothing for nobody known, and nothing when the store does not answer in time.
        """
        if not user_id:
            return ()
        now = self._now()
        try:
            async with asyncio.timeout(self._deadline_s):
                own = self._reader.of(user_id)
                snapshot = await own.snapshot()
                block = await asyncio.to_thread(self._rendered, snapshot, text, now.date())
        except (MemoryUnavailable, InvalidInput, TimeoutError) as error:
            log.info("answered_without_memory", error=type(error).__name__)
            return ()
        if block.shown:
            await self._note(own, snapshot, block, now)
        return tuple(_lines(snapshot, block))

    def _rendered(self, snapshot: Snapshot, text: str, today: date) -> Rendered:
        bodies = {name: document.body for name, document in snapshot.documents.items()}
        return render(bodies, self._kinds, today=today, query=text, budget_tokens=self._budget_tokens, pinned_tokens=0)

    async def _note(self, own: OwnDocuments, snapshot: Snapshot, block: Rendered, now: datetime) -> None:
        """Note what was shown, for whoever asks later which memories were never of use."""
        places = [(name, place_name(path, lookup(snapshot.documents[name].body, path))) for name, path in block.shown]
        try:
            async with asyncio.timeout(self._deadline_s):
                await own.note_reads(places, now)
        except (MemoryUnavailable, TimeoutError) as error:
            log.info("reads_not_noted", error=type(error).__name__)


def open_recollections(redis: Redis, kinds_dir: File | None) -> Recollections:
    """Return what reads from *redis*, with the kinds of documents that *kinds_dir* adds to the shipped ones.

    Raises:
        ConfigurationError: that folder cannot be read, or says what does not fit.
    """
    kinds = Kinds.load(*([kinds_dir] if kinds_dir is not None else []))
    return Recollections(DocumentReader(redis, kinds, deadline_s=DEADLINE_S), kinds)


def _lines(snapshot: Snapshot, block: Rendered) -> Iterable[Remembered]:
    for name, path in block.shown:
        said = _said(lookup(snapshot.documents[name].body, path))
        yield Remembered(f"{name} {path}", f"{' / '.join(_names(name, path))}: {said}")


def _names(resource_id: str, path: Path) -> tuple[str, ...]:
    """Return what the document and the parts of it on the way to *path* are called: they may say whose it is."""
    document = resource_id.removeprefix("resource_").removeprefix("user_").removesuffix("_prefs")
    return (document, *(plain(step) for step in path.steps if isinstance(step, str)))


def _said(value: JsonValue) -> str:
    """Return what the block shows of *value*, without dates and confidence: those are nobody's amounts."""
    item = Item.read(value)
    return plain(item.display if item is not None else leaf_text(value))
