"""The messages of WAITING: read in the order they came in, held for a while, and read again by sequence when needed."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable, Iterable

from tasklore.contracts import subjects
from tasklore.runtime.messaging.direct import PAGE, DirectReads, Stored
from tasklore.runtime.messaging.jetstream import ask_jetstream, ask_or_none
from tasklore.runtime.messaging.link import Link, read_headers

#: Bytes of all messages that are held, and seconds for which any is: it may be erased from the stream meanwhile, and
#: the ledger ends the task of one that is moved after it.
_MOST_HELD = 32 * 1024 * 1024
HELD_S = 1.0
#: Messages that are read with one request, for one that is wanted.
_MOST_READ = 4


class WaitingMessages:
    """Reads the stream from *cursor* on, and any message of it by its sequence."""

    def __init__(
        self, link: Link, reads: DirectReads, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.cursor = 1
        self._created = ""
        self._link = link
        self._reads = reads
        self._now = now
        #: By sequence, in the order they were read: when, and the message.
        self._held: dict[int, tuple[float, Stored]] = {}
        self._held_bytes = 0

    async def find_stream(self) -> None:
        """Begin anew when the stream is another one by now.

        Raises:
            TaskloreError: the server does not answer, or there is no stream.
        """
        created = (
            await ask_jetstream(self._link.client, f"STREAM.INFO.{subjects.WAITING}")
        )["created"]
        if created != self._created:
            self.cursor = 1
            self._created = created

    async def read_new(self, pages: int) -> AsyncIterator[Stored]:
        """Yield the messages since the last time, at most so many pages of them.

        Raises:
            TaskloreError: the stream cannot be read.
        """
        for _ in range(pages):
            page = await self._reads.page(
                seq=self.cursor, next_by_subj=subjects.WAITING_ALL
            )
            for message in page.found:
                self.cursor = message.sequence + 1
                self._hold(message)
                yield message
            if not page.following:
                return

    async def fetch(self, sequences: Iterable[int]) -> list[Stored]:
        """Return the messages of *sequences*, in their order, without those that were erased.

        Raises:
            TaskloreError: the stream cannot be read.
        """
        self._let_go()
        wanted = list(sequences)
        found = dict[int, Stored]()
        spans = _spans(
            sorted(sequence for sequence in wanted if sequence not in self._held)
        )
        await asyncio.gather(*(self._read(span, found) for span in spans))
        for sequence in wanted:
            if sequence in self._held:
                found[sequence] = self._held.pop(sequence)[1]
                self._held_bytes -= len(found[sequence].body)
        return [found[sequence] for sequence in wanted if sequence in found]

    async def _read(self, span: list[int], found: dict[int, Stored]) -> None:
        at = span[0]
        last = span[-1]
        wanted = set(span)
        while at <= last:
            page = await self._reads.page(seq=at, batch=last - at + 1)
            found.update(
                (message.sequence, message)
                for message in page.found
                if message.sequence in wanted
            )
            at = page.last + 1 if page.found else last + 1
        for sequence in wanted - found.keys():
            # A copy that lags behind does not have it either: only the leader knows.
            answer = await ask_or_none(
                self._link.client,
                f"STREAM.MSG.GET.{subjects.WAITING}",
                {"seq": sequence},
            )
            if answer is not None:
                message = answer["message"]
                headers = read_headers(base64.b64decode(message.get("hdrs", ""))) or {}
                body = base64.b64decode(message.get("data", ""))
                found[sequence] = Stored(
                    sequence,
                    subject=message["subject"],
                    stored_at=message["time"],
                    headers=headers,
                    body=body,
                )

    def _hold(self, message: Stored) -> None:
        if self._held_bytes + len(message.body) <= _MOST_HELD:
            self._held_bytes += len(message.body)
            self._held[message.sequence] = self._now(), message

    def _let_go(self) -> None:
        until = self._now() - HELD_S
        while self._held:
            sequence, (read_at, message) = next(iter(self._held.items()))
            if read_at >= until:
                return
            del self._held[sequence]
            self._held_bytes -= len(message.body)


def _spans(sequences: list[int]) -> list[list[int]]:
    """Return *sequences*, which are sorted, in parts that are read with one request each."""
    spans: list[list[int]] = []
    for sequence in sequences:
        if spans and sequence - spans[-1][0] < min(
            PAGE, _MOST_READ * (len(spans[-1]) + 1)
        ):
            spans[-1].append(sequence)
        else:
            spans.append([sequence])
    return spans
