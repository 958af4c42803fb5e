"""The feed of a request in words: its tasks, their signs and ends, and its own end."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import CompletionReport
from tasklore.supervisor.feed.beats import Heartbeat, wait_first
from tasklore.supervisor.feed.events import BecameTasks, Done, FeedEvent, FeedPosition
from tasklore.supervisor.feed.signs import SignSources, TaskSigns

log = structlog.get_logger(__name__)

#: Seconds between looks at a request without any news.
_LOOK_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStanding:
    """How a request stands: the tasks that it became, of several those that have *ended*, and whether it *is_done*.

    *whole_id* is the task that it becomes where it is one, *report* that of it, None without one. *changed*
    is set once there is more to tell, None where only the stores know.
    """

    whole_id: str
    task_ids: tuple[str, ...]
    ended: Mapping[str, CompletionReport | None]
    is_done: bool
    report: CompletionReport | None
    changed: asyncio.Event | None


async def follow_request(
    sources: SignSources,
    look: Callable[[], Awaitable[RequestStanding]],
    *,
    known: tuple[str, ...],
    leaving: asyncio.Event,
    beat_s: float,
) -> AsyncGenerator[list[FeedEvent], None]:
    """Yield the events of a request, at last `Done`; nothing at all every *beat_s* seconds.

    The first event is `BecameTasks`, without tasks while there are none, and of a request that is done and became none.
    Questions and waits with the marks *known* are left out. It ends without `Done` once the process is *leaving*.
    Errors of *look* are raised, but not that the store does not answer, once it did.
    """
    beat = Heartbeat(beat_s)
    signs = TaskSigns(sources, asyncio.Event(), known)
    comparison = _Comparison(signs)
    try:
        standing = await look()
        while not standing.is_done:
            signs.news.clear()
            if events := await comparison.take(standing):
                yield events
            if leaving.is_set():
                return
            news = (signs.news, leaving, standing.changed)
            await wait_first(
                *(sign.wait() for sign in news if sign is not None),
                within_s=min(_LOOK_S, beat.due_in_s, signs.due_in_s),
            )
            if beat.take():
                yield []
            try:
                standing = await look()
            except MemoryUnavailable as error:
                log.info("request_not_looked_at", error=str(error))
        end = Done(FeedPosition(), standing.whole_id, standing.report)
        yield [*comparison.compare(standing), end]
    finally:
        await signs.close()


class _Comparison:
    """Compares how a request stands with what its client knows."""

    def __init__(self, signs: TaskSigns) -> None:
        self._signs = signs
        self._routed: tuple[str, ...] | None = None
        self._ended: set[str] = set()

    def compare(self, standing: RequestStanding) -> list[FeedEvent]:
        """Return that it has become tasks, unless that is known."""
        if standing.task_ids == self._routed:
            return []
        self._routed = standing.task_ids
        return [BecameTasks(standing.task_ids)]

    async def take(self, standing: RequestStanding) -> list[FeedEvent]:
        """Return all that is new of a request that goes on."""
        events = self.compare(standing)
        # Before it is known what the request becomes it may be this one task, which may be quick to say how far it is.
        known = standing.task_ids or (standing.whole_id,)
        await self._signs.watch_only(one for one in known if one not in self._ended)
        at = FeedPosition(known=self._signs.known)
        events += [*self._signs.take_progress(), *await self._signs.look(at)]
        for task_id, report in standing.ended.items():
            if task_id not in self._ended:
                self._ended.add(task_id)
                events.append(Done(at, task_id, report))
        return events
