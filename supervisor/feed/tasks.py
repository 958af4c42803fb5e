"""The feed of one task: its output, how far it is, why it waits, its questions, and its end."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from itertools import groupby
from typing import Any

import structlog

from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.messages import CompletionReport
from tasklore.runtime.messaging.direct import NoSuchStream
from tasklore.runtime.messaging.output import (
    EmittedEvents,
    Item,
    OutputFollower,
    OutputGap,
    OutputReader,
)
from tasklore.supervisor.feed.beats import Heartbeat
from tasklore.supervisor.feed.events import (
    FROM_START,
    Done,
    FeedPosition,
    Gap,
    Restarted,
    TaskEvent,
    TextEmission,
    ValueEmission,
)
from tasklore.supervisor.feed.signs import SignSources, TaskSigns

log = structlog.get_logger(__name__)

#: Seconds until output that cannot be read is read again, and tries to read its rest before a client is cut off.
_PAUSE_S = 1.0
_TRIES = 5
#: Seconds between looks for the report, of which every supervisor hears at once.
_REPORT_LOOK_S = 15.0
#: Longest pause between two events of one client, shortest one that is made, and pause for a second of being late.
_PAUSE_CAP_S = 1.0
_SHORTEST_S = 0.05
_PAUSE_FOR_LATE = 20.0


class TaskFeed:
    """The feed of one task for one client; `news` is set when `take` may have something.

    Without *signs* it has the output alone.
    """

    def __init__(
        self,
        task_id: str,
        *,
        reader: OutputReader,
        signs: TaskSigns | None,
        after: FeedPosition,
    ) -> None:
        self.news = reader.news
        self._task_id = task_id
        self._reader = reader
        self._signs = signs
        self._after = after
        self._reads_at = 0.0
        self._loop = asyncio.get_running_loop()

    @property
    def at(self) -> FeedPosition:
        """How far it is."""
        known = self._after.known if self._signs is None else self._signs.known
        return FeedPosition(self._reader.at, known)

    @property
    def is_cancelled(self) -> bool:
        """Whether the task was cancelled before it ran: it may have no report."""
        return self._signs is not None and self._signs.is_cancelled

    @property
    def is_gone(self) -> bool:
        """Whether the task is no longer known: its time is over, or its user was forgotten."""
        return self._signs is not None and self._signs.is_gone

    @property
    def expired_report(self) -> CompletionReport | None:
        """What is left of the report of a task that ended too long ago, None where it is kept, or has not come."""
        if self._signs is None or self._signs.expired_report is None:
            return None
        return CompletionReport.model_validate_json(self._signs.expired_report)

    async def take(self) -> list[TaskEvent]:
        """Return the events since the last call, without waiting for any."""
        had_ended = self._reader.has_ended
        events = _make_events(await self._read(), self.at.known)
        signs = self._signs
        if signs is None:
            return events
        if self._reader.has_ended and not had_ended:
            signs.look_soon()
        return [*events, *signs.take_progress(), *await signs.look(self.at)]

    async def wait(self, within_s: float) -> float:
        """Return once `take` may have something, and how late it is; after *within_s* seconds at the latest."""
        if self._signs is not None:
            within_s = min(within_s, self._signs.due_in_s)
        return await self._reader.wait(within_s)

    async def take_rest(
        self, report: CompletionReport, *, tries: int = _TRIES
    ) -> AsyncGenerator[list[TaskEvent], None]:
        """Yield the rest of the output of a task that ended with *report*.

        Raises:
            TaskloreError: it cannot be read, however often it is tried.
        """
        for attempt in range(1, tries + 1):
            try:
                async for items in self._reader.read_rest(report.attempt):
                    yield _make_events(items, self.at.known)
            except NoSuchStream:
                # Nothing of it will come back; the report has the result.
                yield [Gap(self.at, self._reader.at.sequence + 1, None)]
                return
            except TaskloreError as error:
                log.info("output_not_read", error=str(error))
                if attempt == tries:
                    raise
                await asyncio.sleep(_PAUSE_S)
            else:
                return

    def end(self, report: CompletionReport | None) -> Done:
        """Return the last event, behind the rest of the output."""
        has_expired = (
            report is not None
            and self._after.output.sequence > 0
            and not self._reader.found_any
        )
        return Done(self.at, self._task_id, report, has_expired)

    async def _read(self) -> list[Item]:
        """Return new output; none, and for a while, when the stream cannot be read."""
        if self._loop.time() < self._reads_at:
            self.news.clear()
            return []
        try:
            return await self._reader.read()
        except TaskloreError as error:
            log.info("output_not_read", error=str(error))
            self._reads_at = self._loop.time() + _PAUSE_S
            self._loop.call_later(_PAUSE_S, self._reader.look_soon)
            return []


class Feeds:
    """Opens feeds of tasks in one process, whose output *output* reads.

    Without *sources*, as in a command, a feed has the output of its task alone.
    """

    def __init__(
        self,
        output: OutputFollower,
        *,
        sources: SignSources | None = None,
    ) -> None:
        self.sources = sources
        self._output = output
        self._late_s = 0.0

    def demand_sources(self) -> SignSources:
        """Return where the signs of tasks come from.

        Raises:
            RuntimeError: these feeds have the output alone.
        """
        if self.sources is None:
            raise RuntimeError("these feeds have the output of tasks and nothing else")
        return self.sources

    @asynccontextmanager
    async def open(
        self,
        task_id: str,
        after: FeedPosition = FROM_START,
        *,
        hears_progress: bool = False,
    ) -> AsyncIterator[TaskFeed]:
        """Open the feed of *task_id* behind *after*."""
        async with AsyncExitStack() as stack:
            reading = self._output.follow(task_id, after.output)
            reader = await stack.enter_async_context(reading)
            signs = None
            if self.sources is not None:
                signs = TaskSigns(self.sources, reader.news, after.known)
                stack.push_async_callback(signs.close)
                await signs.watch([task_id], hears=hears_progress)
            yield TaskFeed(task_id, reader=reader, signs=signs, after=after)

    async def follow(
        self,
        task_id: str,
        after: FeedPosition = FROM_START,
        *,
        leaving: asyncio.Event,
        beat_s: float,
    ) -> AsyncGenerator[list[TaskEvent], None]:
        """Yield the events of *task_id* behind *after*, at last `Done`; nothing at all every *beat_s* seconds.

        It ends without `Done` once the process is *leaving*, where the task is no longer known, and where its output
        cannot be read: the client comes back with its place.
        """
        sources = self.demand_sources()
        async with self.open(task_id, after, hears_progress=True) as feed:
            reported = asyncio.ensure_future(
                sources.reports.report_on(
                    sources.supervisor_id, task_id, math.inf, look_s=_REPORT_LOOK_S
                )
            )
            left = asyncio.ensure_future(leaving.wait())
            for sign in (reported, left):
                sign.add_done_callback(lambda _done: feed.news.set())
            try:
                going_on = self._follow_until(feed, (reported, left), beat_s)
                async with aclosing(going_on):
                    async for events in going_on:
                        yield events
                if left.done() or feed.is_gone:
                    return
                report = reported.result() if reported.done() else None
                if report is not None:
                    async with aclosing(feed.take_rest(report)) as rest:
                        async for events in rest:
                            yield events
                yield [feed.end(report or feed.expired_report)]
            except TaskloreError as error:
                log.info("feed_cut", task_id=task_id, error=str(error))
            finally:
                for sign in (reported, left):
                    sign.cancel()
                await asyncio.gather(reported, left, return_exceptions=True)

    async def _follow_until(
        self,
        feed: TaskFeed,
        ends: Sequence["asyncio.Future[Any]"],
        beat_s: float,
    ) -> AsyncGenerator[list[TaskEvent], None]:
        """Yield events, and nothing every *beat_s* seconds, until one of *ends* is done or no report follows."""
        beat = Heartbeat(beat_s)
        while not (
            feed.is_gone
            or feed.expired_report is not None
            or any(end.done() for end in ends)
        ):
            if events := await feed.take():
                yield events
                await self._pause()
                continue
            self._note_late(await feed.wait(beat.due_in_s))
            if beat.take():
                if feed.is_cancelled:
                    return
                yield []

    def _note_late(self, late_s: float) -> None:
        """Take into account that an event was so late."""
        self._late_s += 0.02 * (late_s - self._late_s)

    async def _pause(self) -> None:
        """Wait before the next events of a client: while this process is late, many have fewer and larger ones."""
        pause_s = min(_PAUSE_CAP_S, _PAUSE_FOR_LATE * self._late_s)
        if pause_s < _SHORTEST_S:
            return
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + pause_s
        await asyncio.sleep(pause_s)
        self._note_late(loop.time() - ends_at)


def _make_events(items: list[Item], known: tuple[str, ...]) -> list[TaskEvent]:
    """Return *items* of the output as events; texts that follow on each other are one."""
    events: list[TaskEvent] = []
    for item in items:
        at = FeedPosition(item.at, known)
        if isinstance(item, EmittedEvents):
            events += _split(item, known)
        elif isinstance(item, OutputGap):
            events.append(
                Gap(at, item.first, None if item.is_end else item.at.sequence)
            )
        else:
            events.append(Restarted(at, item.has_waited))
    return events


def _split(item: EmittedEvents, known: tuple[str, ...]) -> list[TaskEvent]:
    events: list[TaskEvent] = []
    number = item.at.sequence - len(item.events)
    for is_text, group in groupby(item.events, lambda event: isinstance(event, str)):
        found = list(group)
        if is_text:
            number += len(found)
            at = FeedPosition(item.at._replace(sequence=number), known)
            events.append(TextEmission(at, "".join(map(str, found))))
            continue
        for value in found:
            number += 1
            at = FeedPosition(item.at._replace(sequence=number), known)
            events.append(ValueEmission(at, value))  # type: ignore[arg-type]  # no text is left
    return events
