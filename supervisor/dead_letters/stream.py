"""The stream DEAD itself: read forwards and backwards in batches, counted without reading, deleted from.

Batches are direct reads: a page costs one request, and with each the server says how many letters follow that fit. So
the newest fifty of a hundred thousand are found by halving, in a dozen requests.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from tasklore.contracts import subjects
from tasklore.contracts.errors import Unreachable
from tasklore.runtime.messaging.direct import (
    DirectReads,
    NoSuchStream,
    open_direct_reads,
)
from tasklore.runtime.messaging.erasure import is_gone
from tasklore.runtime.messaging.jetstream import JetStreamRefused, ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.supervisor.dead_letters.letters import (
    Letter,
    LetterSelection,
    read_letter,
)
from tasklore.supervisor.dead_letters.summaries import LetterSummary, summary_of

#: Letters read with one request.
PAGE = 256

#: The server's code for a stream that does not exist.
_UNKNOWN_STREAM = 10059


class Extent(NamedTuple):
    """How many letters there are, and from which sequence to which; *first* is *last* + 1 when there are none."""

    letters: int
    first: int
    last: int


class LetterRange(NamedTuple):
    """The letters of one look that fit, of *looked_at*, which have *size* bytes, up to sequence *last* of *end*."""

    letters: list[Letter]
    looked_at: int
    size: int
    last: int
    end: int

    @property
    def has_more(self) -> bool:
        """Whether there may be letters behind it."""
        return self.last < self.end


@dataclass(slots=True, kw_only=True)
class NewestRange:
    """The letters of one look backwards that fit, the newest first, of *looked_at*, from sequence *first* on."""

    letters: list[LetterSummary]
    looked_at: int
    size: int
    first: int


class _Batch(NamedTuple):
    """The letters of one request and their bytes; `following` more fit after the last of these."""

    letters: list[Letter]
    following: int
    size: int


class DeadStream:
    """Reads and deletes letters in DEAD; opened with `open_dead_stream`.

    Raises:
        Unreachable: by every method, when the server does not answer or there is no such stream.
    """

    def __init__(self, link: Link, reads: DirectReads) -> None:
        self._link = link
        self._reads = reads

    async def extent(self) -> Extent:
        """Return how much there is."""
        state = (await self._call("INFO"))["state"]
        return Extent(state["messages"], state["first_seq"], state["last_seq"])

    async def read(self, sequence: int) -> Letter | None:
        """Return the letter at *sequence*, None when none is (any more)."""
        batch = await self._ask(seq=sequence, batch=1)
        # Without it the next one is returned.
        return next(
            (letter for letter in batch.letters if letter.sequence == sequence), None
        )

    async def count(self, selection: LetterSelection) -> int:
        """Return how many letters fit the agent and the time of *selection*."""
        return (await self._beginning(selection))[1]

    async def last_of(self, selection: LetterSelection) -> int:
        """Return the last sequence that may fit *selection*, as of now."""
        last = (await self.extent()).last
        if selection.up_to is not None:
            last = min(last, selection.up_to)
        if selection.until is not None:
            behind = await self._ask(start_time=selection.until.isoformat(), batch=1)
            last = min([last, *(letter.sequence - 1 for letter in behind.letters)])
        return last

    async def pages(
        self, selection: LetterSelection, last: int, *, after: int = 0
    ) -> AsyncIterator[LetterRange]:
        """Yield the letters above sequence *after*, up to *last*, that fit *selection*, the oldest first."""
        first, _ = await self._beginning(selection)
        at = max(first, after + 1)
        while at <= last:
            batch = await self._ask(seq=at, next_by_subj=selection.subject)
            letters = [letter for letter in batch.letters if letter.sequence <= last]
            if not letters:
                return
            yield LetterRange(
                [letter for letter in letters if selection.fits(letter)],
                looked_at=len(letters),
                size=batch.size,
                last=letters[-1].sequence,
                end=last,
            )
            at = letters[-1].sequence + 1

    async def pages_back(
        self, selection: LetterSelection, before: int, size: int
    ) -> AsyncIterator[NewestRange]:
        """Yield the letters below sequence *before* that fit *selection*, the newest first.

        The first page has about *size*; who goes on, since too few of them fit, gets ever larger ones.
        """
        first, _ = await self._beginning(selection)
        end = before
        while end > first:
            start = await self._start_of_page(selection.subject, first, end, size)
            page = NewestRange(letters=[], looked_at=0, size=0, first=start)
            at = start
            while at < end:
                batch = await self._ask(seq=at, next_by_subj=selection.subject)
                letters = [letter for letter in batch.letters if letter.sequence < end]
                # Bodies go at once: those of one page may have more bytes than a process.
                page.letters += [
                    summary_of(letter) for letter in letters if selection.fits(letter)
                ]
                page.looked_at += len(letters)
                page.size += batch.size
                at = batch.letters[-1].sequence + 1 if batch.letters else end
            page.letters.reverse()
            yield page
            end = start
            size = min(2 * size, PAGE)

    async def remove(self, sequence: int, *, erase: bool) -> bool:
        """Delete the letter at *sequence*; False when it was gone already.

        With *erase* its bytes are overwritten in the server's files, which takes 5 ms instead of 40 us.
        """
        try:
            await self._call("MSG.DELETE", {"seq": sequence, "no_erase": not erase})
        except JetStreamRefused as error:
            if is_gone(error):
                return False
            raise
        return True

    async def clear(self, last: int) -> int:
        """Delete everything up to sequence *last*, files and all, and return how many letters that were."""
        return int((await self._call("PURGE", {"seq": last + 1}))["purged"])

    async def _beginning(self, selection: LetterSelection) -> tuple[int, int]:
        """Return the first sequence that may fit *selection*, and how many letters do by subject and time."""
        since = selection.since
        place: dict[str, Any] = (
            {"seq": 1} if since is None else {"start_time": since.isoformat()}
        )
        batch = await self._ask(**place, batch=1, next_by_subj=selection.subject)
        if not batch.letters:
            return (await self.extent()).last + 1, 0
        return batch.letters[0].sequence, batch.following + 1

    async def _start_of_page(
        self, subject: str, first: int, end: int, size: int
    ) -> int:
        """Return from where *size* to twice that many letters lie below *end*; *first* when there are fewer."""
        behind = await self._count_from(subject, end)
        low = first
        high = end
        guess = max(first, end - size)
        while low < high:
            found = await self._count_from(subject, guess) - behind
            if size <= found <= 2 * size:
                return guess
            if found < size:
                high = guess
            else:
                low = guess + 1
            guess = (low + high) // 2
        return max(first, low - 1)

    async def _count_from(self, subject: str, sequence: int) -> int:
        batch = await self._ask(seq=sequence, batch=1, next_by_subj=subject)
        return batch.following + len(batch.letters)

    async def _ask(self, **request: Any) -> _Batch:
        """Return what the server finds: `seq` or `start_time` and whatever follows, up to a page."""
        try:
            page = await self._reads.page(**{"batch": PAGE} | request)
        except NoSuchStream as error:
            raise _no_stream() from error
        letters = [
            read_letter(
                one.sequence,
                one.subject,
                datetime.fromisoformat(one.stored_at),
                one.body,
            )
            for one in page.found
        ]
        return _Batch(
            letters, page.following, size=sum(len(one.body) for one in page.found)
        )

    async def _call(self, what: str, body: Any = None) -> dict[str, Any]:
        try:
            return await ask_jetstream(
                self._link.client, f"STREAM.{what}.{subjects.DEAD}", body
            )
        except JetStreamRefused as error:
            if error.err_code == _UNKNOWN_STREAM:
                raise _no_stream() from error
            raise


@asynccontextmanager
async def open_dead_stream(link: Link) -> AsyncIterator[DeadStream]:
    """Open DEAD on *link*; nothing is asked before the first call."""
    async with open_direct_reads(link, subjects.DEAD) as reads:
        yield DeadStream(link, reads)


def _no_stream() -> Unreachable:
    return Unreachable(
        f"there is no stream {subjects.DEAD} yet; start the system with `tasklore up`"
    )
