"""Readers of the output of running tasks: first the events in OUTPUT, then those that come live, each once.

The stream counts. A live message that does not follow on what a reader has sends it back to the stream, and so does a
reader that is slower than its task: it keeps a bounded number of messages. Any number of readers of one task share one
subscription, and none has a consumer.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import structlog
from nats.aio.subscription import Subscription
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.messages import EmittedValue, TaskOutput
from tasklore.runtime.messaging.direct import DirectReads, open_direct_reads
from tasklore.runtime.messaging.link import Arrival, Link

log = structlog.get_logger(__name__)

Heard = TypeVar("Heard")

#: Messages and bytes of one read of the stream for a reader, and of live messages that wait for it.
_PAGE = 128
_PAGE_BYTES = 256 * 1024
_MOST_WAITING = 256
_MOST_WAITING_BYTES = 64 * 1024
#: Seconds between looks into the stream of a reader without news: a live message may have been lost.
LOOK_S = 5.0
#: Seconds until the stream is read again that has not yet stored a message that was heard, first and at most.
_RETRY_S = 0.02
_RETRY_CAP_S = 2.0
#: Seconds that the end of the output is waited for once the report is there: a node of a cluster may be behind.
_END_S = 1.0


class OutputPosition(NamedTuple):
    """How far a reader is: the number of the last event that it has of one run of the task; 0.0.0 is the beginning."""

    generation: int = 0
    attempt: int = 0
    sequence: int = 0

    def __str__(self) -> str:
        """Return it as clients send it: `generation.attempt.sequence`."""
        return ".".join(map(str, self))


BEGINNING = OutputPosition()


class EmittedEvents(NamedTuple):
    """Events of one run that follow on each other; *at* is the last of them."""

    at: OutputPosition
    events: tuple[str | EmittedValue, ...]


class OutputRestart(NamedTuple):
    """A new run has begun; the output of the earlier one, which broke off or *has_waited*, is void."""

    at: OutputPosition
    has_waited: bool = False


class OutputGap(NamedTuple):
    """Events from *first* on were lost, up to *at*; with *is_end* their number is not known."""

    at: OutputPosition
    first: int
    is_end: bool = False


Item = EmittedEvents | OutputRestart | OutputGap


class _Live(NamedTuple):
    generation: int
    attempt: int
    output: TaskOutput
    size: int


class SharedSubscriptions(Generic[Heard]):
    """One subscription a subject for all of a process that listen to it.

    *parse* makes of a message what they hear, None of one that is passed over.
    """

    def __init__(self, link: Link, parse: Callable[[Arrival], Heard | None]) -> None:
        self._link = link
        self._parse = parse
        self._shared: dict[str, _Shared[Heard]] = {}

    def __len__(self) -> int:
        return len(self._shared)

    async def listen(self, subject: str, hear: Callable[[Heard], None]) -> None:
        """Call *hear* with each message on *subject* from now on; it must neither wait nor raise."""
        shared = self._shared.setdefault(subject, _Shared(self._parse))
        shared.listeners.add(hear)
        async with shared.opening:
            if shared.subscription is None:
                shared.subscription = await self._link.listen(subject, shared.hear)

    async def leave(
        self, subjects_left: Iterable[str], hear: Callable[[Heard], None]
    ) -> None:
        """Call *hear* no more with messages on these subjects, however long it takes to end their subscriptions."""
        ended: list[Subscription] = []
        for subject in subjects_left:
            shared = self._shared.get(subject)
            if shared is None:
                continue
            shared.listeners.discard(hear)
            if shared.listeners:
                continue
            del self._shared[subject]
            if shared.subscription is not None:
                ended.append(shared.subscription)
        for subscription in ended:
            await self._link.unlisten(subscription)


@dataclass(slots=True)
class _Shared(Generic[Heard]):
    """The subscription to one subject, with those that listen."""

    parse: Callable[[Arrival], Heard | None]
    listeners: set[Callable[[Heard], None]] = field(default_factory=set)
    subscription: Subscription | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    def hear(self, arrival: Arrival) -> None:
        """Hand a message to each listener."""
        if (heard := self.parse(arrival)) is not None:
            for hear in self.listeners:
                hear(heard)


class OutputReader:
    """Reads the output of one task from a position on; `news` is set when `read` may have something."""

    def __init__(self, reads: DirectReads, task_id: str, after: OutputPosition) -> None:
        self.news = asyncio.Event()
        self.at = after
        self.has_ended = False
        """Whether the run at this position said that nothing follows."""
        self.found_any = False
        """Whether any output of the task was there."""
        self._reads = reads
        self._subject = subjects.output_on(task_id)
        self._task_id = task_id
        self._reported_by: int | None = None
        self._cursor = 1
        self._is_behind = True
        self._run: str | None = None
        self._before = 0
        self._live: deque[_Live] = deque()
        self._live_bytes = 0
        self._retry_s = _RETRY_S
        self._loop = asyncio.get_running_loop()
        self._heard_at = 0.0
        self._looks_at = self._loop.time() + LOOK_S

    def hear(self, live: _Live) -> None:
        """Take a live message; when too many wait the stream is read in place of them."""
        if (
            len(self._live) >= _MOST_WAITING
            or self._live_bytes + live.size > _MOST_WAITING_BYTES
        ):
            self._drop_live()
            self._is_behind = True
        # Of too many the last is kept: it shows when the stream has all before it.
        self._live.append(live)
        self._live_bytes += live.size
        self._heard_at = self._heard_at or self._loop.time()
        self.news.set()

    def look_soon(self) -> None:
        """Read the stream next."""
        self._is_behind = True
        self.news.set()

    async def wait(self, within_s: float) -> float:
        """Return once there may be news, and how late it is; after *within_s* seconds at the latest."""
        self._heard_at = 0.0
        looks_in_s = self._looks_at - self._loop.time()
        try:
            async with asyncio.timeout(max(0.0, min(within_s, looks_in_s))):
                await self.news.wait()
        except TimeoutError:
            if looks_in_s <= within_s:
                self.look_soon()
        return self._loop.time() - self._heard_at if self._heard_at else 0.0

    async def read(self) -> list[Item]:
        """Return what follows, a bounded part of it; nothing when nothing is there yet.

        Raises:
            TaskloreError: the stream cannot be read.
        """
        self.news.clear()
        items: list[Item] = []
        if self._is_behind or self._loop.time() >= self._looks_at:
            self._is_behind = True
            self._looks_at = self._loop.time() + LOOK_S
            page = await self._reads.page(
                seq=self._cursor,
                next_by_subj=self._subject,
                batch=_PAGE,
                max_bytes=_PAGE_BYTES,
            )
            for stored in page.found:
                self._cursor = stored.sequence + 1
                if (live := _parse(stored.subject, stored.body)) is not None:
                    self._accept(live, items)
            if page.following:
                self.news.set()
                return items
            self._is_behind = False
        while self._live:
            live = self._live[0]
            if not self._follows(live):
                self._is_behind = True
                self._loop.call_later(self._retry_s, self.news.set)
                self._retry_s = min(_RETRY_CAP_S, 2 * self._retry_s)
                break
            self._retry_s = _RETRY_S
            self._live.popleft()
            self._live_bytes -= live.size
            self._looks_at = self._loop.time() + LOOK_S
            self._accept(live, items)
        return items

    async def read_rest(self, attempt: int) -> AsyncIterator[list[Item]]:
        """Yield the rest of the output of a task whose report came from *attempt*; a gap when its end is missing.

        Where a later attempt was read, which did not report, it is void: the one that did follows from its beginning.
        Raises as `read` does.
        """
        self._reported_by = attempt
        if self.at.attempt > attempt:
            self._turn_to(OutputPosition(self.at.generation, attempt))
            self._cursor = 1
            self._drop_live()
            self._is_behind = True
            yield [OutputRestart(self.at)]
        gives_up_at = self._loop.time() + _END_S
        # What was heard may be all; else the stream is read.
        if items := await self.read():
            yield items
        self._drop_live()
        self._is_behind = True
        while not (self.has_ended and self.at.attempt >= attempt):
            is_whole = False
            while not is_whole:
                if items := await self.read():
                    yield items
                is_whole = not self.news.is_set()
            if self.has_ended and self.at.attempt >= attempt:
                return
            is_missing = self._run is not None and self.at.attempt == attempt
            if not is_missing or self._loop.time() >= gives_up_at:
                if is_missing and not self.has_ended:
                    yield [OutputGap(self.at, self.at.sequence + 1, is_end=True)]
                return
            if not items:
                self._drop_live()
                self._is_behind = True
                await asyncio.sleep(_RETRY_S)

    def _drop_live(self) -> None:
        self._live.clear()
        self._live_bytes = 0

    def _follows(self, live: _Live) -> bool:
        """Return whether *live* can be taken without the stream: nothing is missing before it."""
        run = live.generation, live.attempt
        if run < self.at[:2]:
            return True
        output = live.output
        if run > self.at[:2] or self._is_next(output):
            return output.first == output.before + 1
        if self._run is None:
            return False
        return output.run != self._run or output.first <= self.at.sequence + 1

    def _is_next(self, output: TaskOutput) -> bool:
        """Return whether *output* is of a run that follows the one here in the same attempt, which only waited."""
        return (
            self._run is not None
            and output.run != self._run
            and output.before > self._before
        )

    def _turn_to(self, at: OutputPosition) -> None:
        """Read another run from *at* on."""
        self.at = at
        self._run = None
        self.has_ended = False

    def _accept(self, live: _Live, items: list[Item]) -> None:
        """Add the new events of *live* to *items*."""
        run = (live.generation, live.attempt)
        output = live.output
        self.found_any = True
        is_void = self._reported_by is not None and live.attempt > self._reported_by
        if run < self.at[:2] or is_void:
            return
        begins_at = OutputPosition(*run, output.before)
        is_next = self._is_next(output)
        if begins_at > self.at and (run > self.at[:2] or self._run is None or is_next):
            is_first = self.at.generation == 0
            self._turn_to(begins_at)
            if not is_first:
                items.append(OutputRestart(begins_at, output.waited))
        elif is_next:
            # This reader came back in the middle of it.
            self._turn_to(self.at)
        if self._run is None:
            self._run = output.run
            self._before = output.before
        elif output.run != self._run:
            return
        missing = output.first - self.at.sequence - 1
        if missing > 0:
            first = self.at.sequence + 1
            self.at = self.at._replace(sequence=output.first - 1)
            items.append(OutputGap(self.at, first))
        events = output.events[max(0, -missing) :]
        if events:
            self.at = self.at._replace(sequence=self.at.sequence + len(events))
            items.append(EmittedEvents(self.at, events))
        self.has_ended = self.has_ended or output.end


class OutputFollower:
    """The readers of one process; opened with `open_output`."""

    def __init__(self, link: Link, reads: DirectReads) -> None:
        self._reads = reads
        self._readers: set[OutputReader] = set()
        self._live = SharedSubscriptions(link, _parse_arrival)

    def __len__(self) -> int:
        """How many tasks are followed, each by one subscription."""
        return len(self._live)

    def look_soon(self) -> None:
        """Have every reader look into the stream: the connection was away."""
        for reader in self._readers:
            reader.look_soon()

    @asynccontextmanager
    async def follow(
        self, task_id: str, after: OutputPosition = BEGINNING
    ) -> AsyncIterator[OutputReader]:
        """Open a reader of the output of *task_id* after position *after*."""
        reader = OutputReader(self._reads, task_id, after)
        subject = subjects.output_on(task_id)
        self._readers.add(reader)
        try:
            await self._live.listen(subject, reader.hear)
            yield reader
        finally:
            self._readers.discard(reader)
            await self._live.leave([subject], reader.hear)


@asynccontextmanager
async def open_output(link: Link) -> AsyncIterator[OutputFollower]:
    """Open the output of tasks on *link*."""
    async with open_direct_reads(link, subjects.OUTPUT) as reads:
        yield OutputFollower(link, reads)


def _parse_arrival(arrival: Arrival) -> _Live | None:
    return _parse(arrival.subject, arrival.body)


def _parse(subject: str, body: bytes) -> _Live | None:
    run = subjects.run_of_output(subject)
    if run is None:
        return None
    try:
        return _Live(run[1], run[2], TaskOutput.model_validate_json(body), len(body))
    except ValidationError as error:
        log.warning("unreadable_output", problems=error.error_count())
        return None
