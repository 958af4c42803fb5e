"""Signs of tasks beside their output: their progress, why they wait, their questions, and that they are gone."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import Progress
from tasklore.supervisor.approvals.questions import view_of
from tasklore.supervisor.feed.events import Place, Question, Waiting
from tasklore.supervisor.feed.progress import ProgressListeners

if TYPE_CHECKING:
    from tasklore.memory.ledger.ledger import Ledger, LedgerEntry
    from tasklore.memory.ledger.waits import Waits, WaitState
    from tasklore.runtime.messaging.link import Link
    from tasklore.supervisor.reports.reports import ReportDesk

log = structlog.get_logger(__name__)

#: Seconds between looks at tasks that are silent, and how many all feeds of a process look at in a second.
_LOOK_S = 2.0
#: Seconds of silence after which a task is looked at for the first time, or when a run of it has ended.
_SOON_S = 0.25
_LOOKS_PER_S = 200
#: Messages of progress that wait for a slow client; older ones are outdated.
_MOST_WAITING = 64


@dataclass(slots=True, kw_only=True)
class SignSources:
    """Where the signs of tasks come from, for the feeds of one process; `watched` counts the tasks of these."""

    link: "Link"
    supervisor_id: str
    ledger: "Ledger"
    reports: "ReportDesk"
    waits: "Waits"
    watched: int = 0
    progress: ProgressListeners = field(init=False)

    def __post_init__(self) -> None:
        self.progress = ProgressListeners(self.link, self.supervisor_id)


@dataclass(slots=True)
class _Watched:
    """One task: its questions and waits that were shown, by their names, and whether it was seen at all."""

    hears: bool
    shown: set[tuple[str, ...]] = field(default_factory=set)
    was_there: bool = False


class TaskSigns:
    """The signs of some tasks for one client, which knows of questions and waits until *known_ms*.

    `news` is set when progress was heard. A question or a wait that begins at the same millisecond as another is shown
    with it.
    """

    def __init__(
        self, sources: SignSources, news: asyncio.Event, known_ms: int = 0
    ) -> None:
        self.news = news
        self.known_ms = known_ms
        self.is_gone = False
        """Whether a task that was there is no longer known."""
        self.is_cancelled = False
        """Whether one was cancelled that does not run and has no report."""
        self._known_at_first = known_ms
        self._sources = sources
        self._tasks: dict[str, _Watched] = {}
        self._progress: deque[Progress] = deque(maxlen=_MOST_WAITING)
        self._loop = asyncio.get_running_loop()
        self._look_at = self._loop.time() + _SOON_S

    async def watch(self, task_ids: Iterable[str], *, hears: bool = True) -> None:
        """Watch more tasks, each once; without *hears* their progress is left out."""
        for task_id in task_ids:
            if task_id in self._tasks:
                continue
            self._tasks[task_id] = _Watched(hears)
            self._sources.watched += 1
            if hears:
                await self._sources.progress.listen(task_id, self._hear)

    async def watch_only(self, task_ids: Iterable[str]) -> None:
        """Watch these tasks and no other."""
        wanted = tuple(task_ids)
        await self.watch(wanted)
        for task_id in self._tasks.keys() - set(wanted):
            watched = self._tasks.pop(task_id)
            self._sources.watched -= 1
            if watched.hears:
                await self._sources.progress.leave(task_id, self._hear)

    async def close(self) -> None:
        """Watch no task any more."""
        await self.watch_only(())

    def _hear(self, progress: Progress) -> None:
        self._progress.append(progress)
        self.news.set()

    def take_progress(self) -> list[Progress]:
        """Return the progress that was heard since the last call."""
        taken = list(self._progress)
        self._progress.clear()
        return taken

    def postpone(self) -> None:
        """Look later: the task was heard just now, so that it does not wait."""
        self._look_at = self._loop.time() + self._pause_s

    def look_soon(self) -> None:
        """Look as soon as the task has been silent for a moment: a run of it has ended, maybe to wait."""
        self._look_at = min(self._look_at, self._loop.time() + _SOON_S)

    @property
    def due_in_s(self) -> float:
        """Seconds until the next look."""
        return max(0.0, self._look_at - self._loop.time())

    @property
    def _pause_s(self) -> float:
        return max(_LOOK_S, self._sources.watched / _LOOKS_PER_S)

    async def look(self, at: Place) -> list[Waiting | Question]:
        """Return waits and questions that have begun, oldest first, for a client at *at*; none before it is time."""
        if self.due_in_s:
            return []
        self.postpone()
        found: list[Waiting | Question] = []
        try:
            task_ids = tuple(self._tasks)
            asked = await self._sources.waits.asked_last(task_ids)
            for task_id, states in zip(task_ids, asked, strict=True):
                entry = await self._sources.ledger.read(task_id)
                found += self._compare(task_id, entry, states, at)
        except MemoryUnavailable as error:
            log.info("task_not_looked_at", error=str(error))
        return self._place(sorted(found, key=lambda one: one.since_ms))

    def _compare(
        self,
        task_id: str,
        entry: "LedgerEntry | None",
        states: Sequence["WaitState"],
        at: Place,
    ) -> list[Waiting | Question]:
        """Return waits and questions since the last look at a task that stands as *entry* and *states* say."""
        watched = self._tasks[task_id]
        if entry is None:
            self.is_gone = self.is_gone or watched.was_there
            return []
        watched.was_there = True
        newest = entry.generations[entry.newest]
        if newest.report is None and newest.state != "running" and newest.wish:
            self.is_cancelled = True
        found: list[Waiting | Question] = [
            Question(at, task_id, view_of(task_id, state))
            for state in states
            if state.wait.kind == "ask"
            and self._is_new(watched, ("question", state.wait.slot, state.wait.digest))
        ]
        wait = newest.waits_for
        # A question says more of a person that it waits for.
        if wait is not None and wait.kind != "person":
            waiting = Waiting(at, task_id, wait)
            if self._is_new(watched, (wait.kind, wait.name, str(waiting.since_ms))):
                found.append(waiting)
        return [one for one in found if one.since_ms > self._known_at_first]

    @staticmethod
    def _is_new(watched: _Watched, name: tuple[str, ...]) -> bool:
        is_new = name not in watched.shown
        watched.shown.add(name)
        return is_new

    def _place(self, found: Sequence[Waiting | Question]) -> list[Waiting | Question]:
        """Return *found* with their places: a client that has one of several of a millisecond comes back for all."""
        placed: list[Waiting | Question] = []
        for number, one in enumerate(found, 1):
            is_last = number == len(found) or found[number].since_ms > one.since_ms
            if is_last:
                self.known_ms = max(self.known_ms, one.since_ms)
            placed.append(one._replace(at=one.at._replace(known_ms=self.known_ms)))
        return placed
