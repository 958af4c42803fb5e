"""Signs of tasks beside their output: their progress, why they wait, their questions, and that they are gone."""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import Progress
from tasklore.supervisor.approvals.questions import view_of
from tasklore.supervisor.feed.events import (
    MOST_MARKS,
    BeganWaiting,
    FeedPosition,
    PersonQuestion,
)
from tasklore.supervisor.feed.progress import ProgressListeners

if TYPE_CHECKING:
    from tasklore.contracts.admission.waits import RunWait
    from tasklore.memory.ledger.ledger import Generation, Ledger
    from tasklore.memory.ledger.waits import Waits, WaitState
    from tasklore.runtime.messaging.link import Link
    from tasklore.supervisor.reports.reports import ReportWaiter

log = structlog.get_logger(__name__)

#: Seconds between looks at a task, and how many tasks all feeds of a process look at in a second: more than twice as
#: many are looked at less often. One takes 0.2 ms of a core, no body is read; looks for reports are counted apart.
_LOOK_S = 2.0
_LOOKS_PER_S = 1000
#: Seconds until a task is looked at for the first time, or when a run of it has ended.
_SOON_S = 0.25
#: States of a generation behind which no later one has begun.
_GOING_ON = ("accepted", "waiting", "running")
#: Messages of progress that wait for a slow client; older ones are outdated.
_MOST_WAITING = 64


@dataclass(slots=True, kw_only=True)
class SignSources:
    """Where the signs of tasks come from, for the feeds of one process; `watched` counts the tasks of these."""

    link: "Link"
    supervisor_id: str
    ledger: "Ledger"
    reports: "ReportWaiter"
    waits: "Waits"
    watched: int = 0
    progress: ProgressListeners = field(init=False)

    def __post_init__(self) -> None:
        self.progress = ProgressListeners(self.link, self.supervisor_id)


@dataclass(slots=True)
class _Watched:
    """One task by its *name*: whether its progress is heard, and what is known of it since the last look."""

    name: str
    hears: bool
    was_there: bool = False
    """Whether it was seen at all."""
    has_looked: bool = False
    newest: int = 0
    """Its newest generation, as far as it is known that there is no later one; 0 where that has to be read."""
    wait_mark: str = ""
    """The mark of the last wait that was seen."""


class _Seen(NamedTuple):
    """What a look at one task found: why it waits, and its questions."""

    wait: "RunWait | None"
    states: "Sequence[WaitState]"


class TaskSigns:
    """The signs of some tasks for one client, which knows of the questions and waits with the marks *known*.

    `news` is set when progress was heard.
    """

    def __init__(
        self, sources: SignSources, news: asyncio.Event, known: tuple[str, ...] = ()
    ) -> None:
        self.news = news
        self.known = known
        """The marks of what the client knows, and of what was shown here."""
        self.is_gone = False
        """Whether a task that was there is no longer known."""
        self.is_cancelled = False
        """Whether, at the last look, one was cancelled that does not run and has no report."""
        self.expired_report: bytes | None = None
        """What is left of a task whose report is no longer kept: how it ended, as JSON of a report."""
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
            self._tasks[task_id] = _Watched(task_id, hears)
            self._sources.watched += 1
            if hears:
                await self._sources.progress.listen(task_id, self._hear)

    async def watch_only(self, task_ids: Iterable[str]) -> None:
        """Watch these tasks and no other."""
        wanted = tuple(task_ids)
        await self.watch(wanted)
        left = self._tasks.keys() - set(wanted)
        # All at once: whoever is cancelled meanwhile leaves none behind.
        dropped = {task_id: self._tasks.pop(task_id) for task_id in left}
        self._sources.watched -= len(dropped)
        heard = [task_id for task_id, watched in dropped.items() if watched.hears]
        await self._sources.progress.leave(heard, self._hear)

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

    def look_soon(self) -> None:
        """Look in a moment: a run of the task has ended, maybe to wait."""
        self._look_at = min(self._look_at, self._loop.time() + _SOON_S)

    @property
    def due_in_s(self) -> float:
        """Seconds until the next look."""
        return max(0.0, self._look_at - self._loop.time())

    async def look(self, at: FeedPosition) -> list[BeganWaiting | PersonQuestion]:
        """Return waits and questions that the client does not know, oldest first; none before it is time to look.

        *at* is where its output is.
        """
        if self.due_in_s:
            return []
        pause_s = max(_LOOK_S, self._sources.watched / _LOOKS_PER_S)
        self._look_at = self._loop.time() + pause_s
        try:
            seen = await self._see(dict(self._tasks))
        except MemoryUnavailable as error:
            log.info("task_not_looked_at", error=str(error))
            return []
        present: set[str] = set()
        found: list[tuple[str, BeganWaiting | PersonQuestion]] = []
        for task_id, (wait, states) in seen.items():
            watched = self._tasks[task_id]
            # A question says more of a person that it waits for.
            if wait is not None and wait.kind != "person":
                waiting = BeganWaiting(at, task_id, wait)
                watched.wait_mark = waiting.mark
                found.append((waiting.mark, waiting))
            # A run that finds nothing new to wait for goes on with the same wait.
            present.add(watched.wait_mark)
            for state in states:
                if state.wait.kind != "ask":
                    continue
                question = PersonQuestion(at, task_id, view_of(task_id, state))
                present.add(question.mark)
                if not (state.has_answer or state.is_withdrawn or state.has_report):
                    found.append((question.mark, question))
        shown: list[BeganWaiting | PersonQuestion] = []
        for mark, sign in sorted(found, key=lambda one: one[1].since_ms):
            if mark not in self.known:
                kept = (one for one in self.known if one in present)
                self.known = (*kept, mark)[-MOST_MARKS:]
                shown.append(sign._replace(at=at._replace(known=self.known)))
        return shown

    async def _see(self, tasks: Mapping[str, _Watched]) -> dict[str, _Seen]:
        """Return what there is of *tasks*, in a few round trips; only of a task that may have ended its entry is read.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        known = {task_id: one for task_id, one in tasks.items() if one.newest}
        asked = [
            (getattr(one.name, "agent_id", ""), task_id, one.newest)
            for task_id, one in known.items()
        ]
        found = await self._sources.ledger.glance(asked) if asked else []
        glances = dict(zip(known, found, strict=True))
        is_cancelled = False
        waits: dict[str, RunWait | None] = {}
        for task_id, watched in tasks.items():
            glance = glances.get(task_id)
            if glance is not None and glance.state in _GOING_ON:
                waits[task_id] = glance.waits_for
                continue
            newest = await self._read(watched)
            if newest is not None:
                waits[task_id] = newest.waits_for
                is_cancelled = is_cancelled or _is_cancelled(newest)
        self.is_cancelled = is_cancelled
        asking = [tasks[task_id].name for task_id in waits]
        states = await self._sources.waits.asked_last(asking) if asking else []
        return {
            task_id: _Seen(wait, theirs)
            for (task_id, wait), theirs in zip(waits.items(), states, strict=True)
            if task_id in self._tasks
        }

    async def _read(self, watched: _Watched) -> "Generation | None":
        """Return the newest generation of a task from its entry, None without one."""
        ledger = self._sources.ledger
        entry = await ledger.read(watched.name)
        if entry is None and not watched.has_looked:
            # One that ended long ago is found by its agent alone.
            watched.name = await ledger.name(watched.name)
            entry = await ledger.read(watched.name)
        watched.has_looked = True
        if entry is None:
            self.is_gone = self.is_gone or watched.was_there
            return None
        watched.was_there = True
        watched.name = entry.task_id
        watched.newest = entry.newest
        newest = entry.generations[entry.newest]
        if newest.expired is not None:
            self.expired_report = newest.report
        return newest


def _is_cancelled(newest: "Generation") -> bool:
    return (
        newest.report is None
        and newest.state != "running"
        and newest.cancel_request is not None
    )
