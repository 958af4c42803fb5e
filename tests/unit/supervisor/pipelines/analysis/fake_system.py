"""Analyses with fakes all around, in virtual time: stores of this process, and agents that are functions."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tasklore.contracts.analysis.document import AnalysisDocument
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import SeatSettings, StoryBase, StorySettings
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import (
    AgentCard,
    AnalysisReply,
    AnalysisRequest,
    CompletionReport,
    ErrorNote,
    TaskAssignment,
    TaskCard,
    Usage,
)
from tasklore.runtime import tracing
from tasklore.runtime.metrics import Metrics
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.pipelines.analysis.driver import AnalysisDriver
from tasklore.supervisor.pipelines.analysis.fold import AnalysisParts
from tasklore.supervisor.pipelines.analysis.requests import AnalysisRequests
from tests.fakes.analyses import FakeAnalyses
from tests.fakes.sessions import FakeSessions
from tests.fakes.stories import FakeStories
from tests.unit.supervisor.pipelines import fake_system
from tests.unit.supervisor.reports import report_on
from tests.virtual_time import elapsed_s

STORY = "harbour"
TEXT = "Mara set the lamp down."
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
#: Milliseconds that every task of the fakes says it took.
TOOK_MS = 200

#: What an agent finds, or how it fails, given its assignment.
Work = Callable[[TaskAssignment], Any]


def now() -> datetime:
    return START + timedelta(seconds=elapsed_s())


class FakeWorkers(fake_system.FakeWorkers):
    """Workers whose functions are found by agent; they note when each began, and in which trace."""

    spent_by_cancelled = Usage(cost_usd=0.25)

    def __init__(self) -> None:
        super().__init__(FakeSessions())
        #: How often each task ran, by its agent.
        self.ran: Counter[str] = Counter()
        self.traces: list[str] = []
        self.begun_at: dict[str, float] = {}

    async def assign(
        self, assignment: TaskAssignment, *, patience_s: float = 10.0
    ) -> None:
        await asyncio.sleep(0)
        await super().assign(assignment)
        self.traces.append(str(tracing.current() or ""))

    async def is_under_way(self, task_id: str) -> bool:
        return (
            any(one.task_id == task_id for one in self.assigned)
            and not self._report(task_id).done()
        )

    def ids_of(self, agent: str) -> list[str]:
        return list(
            dict.fromkeys(one.task_id for one in self.assigned if one.agent_id == agent)
        )

    async def _run(self, assignment: TaskAssignment) -> CompletionReport:
        agent = assignment.agent_id
        self.ran[agent] += 1
        self.begun_at[agent] = elapsed_s()
        try:
            found = self.works.get(agent, lambda _: {"by": "rules"})(assignment)  # type: ignore[arg-type]
            found = await found if asyncio.iscoroutine(found) else found
        except ValueError as error:
            problem = ErrorNote(type="ValueError", message=str(error))
            return report_on(assignment, "failed", run_ms=TOOK_MS, error=problem)
        return (
            found
            if isinstance(found, CompletionReport)
            else report_on(assignment, result=found, run_ms=TOOK_MS)
        )


def cards(*agents: tuple[str, str]) -> Catalogue:
    """Return what a supervisor knows of *agents*, each with its one task."""
    return Catalogue(
        AgentCard(
            agent_id=agent, tasks=(TaskCard(name=task, parameters={}),), digest="d"
        )
        for agent, task in agents
    )


#: Our own ten.
TEN = tuple((seat.agent_id, seat.task) for seat in SECTION_AGENTS)


class Broken(FakeAnalyses):
    """Analyses whose store can be away: `away` folds fail, `lost` ones are done all the same, or none is read."""

    away = 0
    lost = 0
    folds = 0
    is_gone = False

    async def record(
        self, story_id: str, number: int
    ) -> tuple[int, bytes | None, bytes | None]:
        if self.is_gone:
            raise MemoryUnavailable("away")
        return await super().record(story_id, number)

    async def fold(self, *words: Any, **options: Any) -> bool:
        if self.away:
            self.away -= 1
            raise MemoryUnavailable("away")
        self.folds += 1
        done = await super().fold(*words, **options)
        if self.lost:
            self.lost -= 1
            raise MemoryUnavailable("no answer in time")
        return done


class FakeSystem:
    """Everything that analyses are worked on with; `works` are functions by the ids of agents."""

    def __init__(
        self, works: Mapping[str, Work] | None = None, **settings: Any
    ) -> None:
        self.stories = FakeStories()
        self.analyses = Broken(
            self.stories, clock_ms=lambda: int(now().timestamp() * 1000)
        )
        self.workers = FakeWorkers()
        self.workers.works |= works or {}
        self.metrics = Metrics("1")
        self.catalogue = cards(*TEN)
        self.keep = 100
        self.load(**settings)

    def load(
        self, *, agents: Mapping[str, SeatSettings] | None = None, **settings: Any
    ) -> None:
        told = StorySettings(story_id=STORY, agents=dict(agents or {}), **settings)
        self.stories.put(StoryBase(settings=told))

    def parts(self, lease_s: float = 5.0) -> AnalysisParts:
        return AnalysisParts(
            supervisor_id="S",
            stories=self.stories,
            analyses=self.analyses,
            dispatch=self.workers,
            reports=self.workers,
            canceller=self.workers,
            catalogue=lambda: self.catalogue,
            meter=self.metrics,
            keep=self.keep,
            lease_s=lease_s,
            now=now,
        )

    @contextlib.asynccontextmanager
    async def supervisor(self, lease_s: float = 5.0) -> AsyncIterator["Supervisor"]:
        parts = self.parts(lease_s)
        desk = AnalysisDriver(parts)
        working = asyncio.create_task(desk.run())
        await asyncio.sleep(0)
        try:
            yield Supervisor(desk, AnalysisRequests(parts, desk), working)
            await desk.drain()
            await asyncio.wait([working])
        finally:
            working.cancel()

    async def document(self, number: int = 1) -> AnalysisDocument:
        found = await self.analyses.read(STORY, number)
        assert found is not None
        return found

    async def sections(self, number: int = 1) -> dict[str, Any]:
        return dict((await self.document(number)).sections())


class Supervisor:
    """A desk at work, and whoever answers requests beside it."""

    def __init__(
        self,
        desk: AnalysisDriver,
        requests: AnalysisRequests,
        working: asyncio.Task[None],
    ) -> None:
        self.desk = desk
        self.working = working
        self._requests = requests

    async def ask(self, number: int = 1, **wish: Any) -> AnalysisReply:
        request = AnalysisRequest(
            **{"story_id": STORY, "response_number": number, "text": TEXT, **wish}
        )
        return await self._requests.answer(request)

    async def ask_bytes(self, body: bytes) -> AnalysisReply:
        return await self._requests.answer_bytes(body)

    def die(self) -> None:
        for task in (*self.desk._serving.values(), self.working):
            task.cancel()
