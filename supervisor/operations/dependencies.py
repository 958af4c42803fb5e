"""What the services of a noun are made from, in each of the two processes that run operations."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.episodes.store import KEEP
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.memory.schedules.store import ScheduleStore
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.settings import Settings
from tasklore.supervisor.approvals.answers import Answers
from tasklore.supervisor.approvals.links import Links
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.cards import CardIndex
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.dead_letters.queue import DeadLetters
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.feed.tasks import Feeds
from tasklore.supervisor.json_schemas import JsonSchemas
from tasklore.supervisor.live_workers import LiveWorkers
from tasklore.supervisor.operations.console_links import ConsoleLinks
from tasklore.supervisor.operations.sent_tasks import TaskServices
from tasklore.supervisor.operations.token_signer import TokenSigner
from tasklore.supervisor.pipelines.analysis.requests import AnalysisRequests
from tasklore.supervisor.pipelines.requests import PipelineRequests
from tasklore.supervisor.reports.reports import ReportWaiter
from tasklore.supervisor.requests.services import RequestServices
from tasklore.supervisor.requests.work import InFlightRequests
from tasklore.supervisor.schedules.book import ScheduleBook
from tasklore.supervisor.schedules.tick_maker import TickMaker
from tasklore.supervisor.service import Service
from tasklore.supervisor.webhooks.addresses import Addresses

if TYPE_CHECKING:
    # Files of memories are read by the process that has the hands alone.
    from tasklore.supervisor.operations.memory.hand_edits import MemoryHands


@dataclass(frozen=True, kw_only=True)
class SupervisorDependencies(ABC):
    """The parts of a supervisor; `turns_kept` is how long turns are kept, None without end."""

    supervisor_id: str
    client: Client
    redis: Redis
    catalogue: Callable[[], Catalogue]
    attendance: LiveWorkers
    service: Service
    dispatch: Dispatch
    reports: ReportWaiter
    feeds: Feeds
    canceller: Canceller
    ledger: Ledger
    conversations: Conversations
    records: RequestRecords
    work: InFlightRequests
    pipelines: PipelineRequests
    analyses: AnalysisRequests
    schedules: ScheduleBook
    ticks: TickMaker
    runs: PipelineRuns
    sessions: SessionCache
    answers: Answers
    schemas: JsonSchemas
    webhooks: Addresses | None = None
    links: Links | None = None
    kinds: Kinds = field(default_factory=Kinds.load)
    turns_kept: timedelta | None = KEEP

    @property
    @abstractmethod
    def draining(self) -> asyncio.Event:
        """Set when the process is asked to end."""

    @property
    @abstractmethod
    def leaving(self) -> asyncio.Event:
        """Set when the process ends: waits are given up."""

    @property
    @abstractmethod
    def demands_keys(self) -> bool:
        """Whether clients need a key; without, everybody opens every stream as it is."""

    @property
    @abstractmethod
    def token_signer(self) -> TokenSigner | None:
        """What signs tokens of streams; None signs none."""

    @property
    @abstractmethod
    def console_links(self) -> ConsoleLinks | None:
        """What signs links that sign browsers in to the console; None signs none."""

    @abstractmethod
    def share(self, whole: int) -> int:
        """Return how many of *whole* one caller may have."""

    @property
    def for_tasks(self) -> TaskServices:
        """What sends tasks and looks at them, which several nouns do."""
        return TaskServices(
            supervisor_id=self.supervisor_id,
            redis=self.redis,
            catalogue=self.catalogue,
            dispatch=self.dispatch,
            reports=self.reports,
            ledger=self.ledger,
            records=self.records,
            conversations=self.conversations,
            canceller=self.canceller,
            answers=self.answers,
            webhooks=self.webhooks,
            leaving=self.leaving,
        )

    @property
    def for_requests(self) -> RequestServices:
        """What answers requests in words."""
        return RequestServices(
            catalogue=self.catalogue,
            service=self.service,
            dispatch=self.dispatch,
            ledger=self.ledger,
            conversations=self.conversations,
            records=self.records,
            work=self.work,
            canceller=self.canceller,
            share=self.share,
            draining=self.draining,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDependencies:
    """The open connections of a process with the rights of `operator`.

    `cards` may be empty at first. `hands` change memories, which no supervisor may.
    """

    settings: Settings
    metrics: Metrics
    link: Link
    redis: Redis
    outbox: Outbox
    cards: CardIndex
    attendance: LiveWorkers
    letters: DeadLetters
    hands: "MemoryHands"
    console_links: ConsoleLinks | None = None

    @property
    def ledger(self) -> Ledger:
        """The ledger of tasks."""
        return Ledger(self.redis)

    @property
    def schedules(self) -> ScheduleBook:
        """The book of schedules."""
        store = ScheduleStore(self.redis, self.settings.supervisor_id)
        return ScheduleBook(store, lambda: self.cards.catalogue)
