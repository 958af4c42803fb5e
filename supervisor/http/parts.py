"""What a door of HTTP has, and the parts of the supervisor that the routes use, as its wiring gives them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import Inbox
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.episodes.store import KEEP
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.runtime.metrics import Metrics
from tasklore.supervisor.approvals.answers import Answers
from tasklore.supervisor.approvals.links import Links
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.feed.tasks import Feeds
from tasklore.supervisor.http.admission.clients import UnknownClients
from tasklore.supervisor.http.admission.cross_origin import CrossOrigin
from tasklore.supervisor.http.admission.key_file import KeyRing
from tasklore.supervisor.http.admission.limits import ClientLimits
from tasklore.supervisor.http.admission.stream_tokens import StreamTokens
from tasklore.supervisor.json_schemas import JsonSchemas
from tasklore.supervisor.operations.approvals import ApprovalServices
from tasklore.supervisor.operations.conversations import ConversationServices
from tasklore.supervisor.operations.memory.services import (
    MemoryServices,
    look_at_memories,
)
from tasklore.supervisor.operations.memory.tasks import send_by
from tasklore.supervisor.operations.sent_tasks import TaskServices
from tasklore.supervisor.pipelines.requests import PipelineRequests
from tasklore.supervisor.reports.reports import ReportDesk
from tasklore.supervisor.requests.services import RequestServices
from tasklore.supervisor.requests.work import Work
from tasklore.supervisor.schedules.book import ScheduleBook
from tasklore.supervisor.schedules.tick_maker import TickMaker
from tasklore.supervisor.service import Service
from tasklore.supervisor.webhooks.addresses import Addresses


class Life:
    """Counts the requests and streams that are open, and knows whether the process still takes more.

    `draining` is set when the process is asked to end: streams end. `leaving` is set when its grace is over: clients
    that still wait get the place to ask later.
    """

    def __init__(self) -> None:
        self.draining = asyncio.Event()
        self.leaving = asyncio.Event()
        self.streams_of: Counter[str] = Counter()
        self.inside_of: Counter[str] = Counter()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return self.streams_of.total()

    @property
    def inside(self) -> int:
        """The number of requests that are being answered."""
        return self.inside_of.total()

    @contextmanager
    def count(self, name: str) -> Iterator[None]:
        """Count one request of the key *name* within the block."""
        self._empty.clear()
        try:
            with _one_of(self.inside_of, name):
                yield
        finally:
            if not self.inside_of:
                self._empty.set()

    @contextmanager
    def streaming(self, name: str) -> Iterator[None]:
        """Count one open stream of events of the key *name* within the block."""
        with _one_of(self.streams_of, name):
            yield

    async def empty(self) -> None:
        """Return when no request is being answered."""
        await self._empty.wait()


@contextmanager
def _one_of(counts: Counter[str], name: str) -> Iterator[None]:
    """Count one of *name* within the block; a name with none takes no room."""
    counts[name] += 1
    try:
        yield
    finally:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Who is admitted over HTTP, how much they may send, and how serving ends, whatever is behind it.

    `keys` None admits everybody, on the loopback address only. `cross_origin` None lets no page from elsewhere ask.
    """

    keys: KeyRing | None = None
    cross_origin: CrossOrigin | None = None
    stream_tokens: StreamTokens | None = None
    limits: ClientLimits = field(default_factory=ClientLimits)
    unknown: UnknownClients = field(default_factory=UnknownClients)
    meter: Metrics = field(default_factory=Metrics)
    life: Life = field(default_factory=Life)
    grace_s: float = 30.0
    heartbeat_s: float = 15.0

    def digest_of_key(self, name: str) -> str | None:
        """Return the digest of the key that is called *name* now, None where there is none or none are required."""
        entry = None if self.keys is None else self.keys.named(name)
        return None if entry is None else entry.sha256

    def share(self, whole: int) -> int:
        """Return how many of *whole* one caller may have: all of them where everybody is the same caller."""
        return whole if self.keys is None else self.limits.share_of(whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiParts(Door):
    """All that a module of routes is given; `turns_kept` is how long turns are kept, None without end."""

    supervisor_id: str
    client: Client
    redis: Redis
    catalogue: Callable[[], Catalogue]
    service: Service
    dispatch: Dispatch
    reports: ReportDesk
    feeds: Feeds
    canceller: Canceller
    ledger: Ledger
    conversations: Conversations
    records: RequestRecords
    work: Work
    pipelines: PipelineRequests
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
    def for_tasks(self) -> TaskServices:
        """What sends tasks and looks at them."""
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
            leaving=self.life.leaving,
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
            draining=self.life.draining,
        )

    @property
    def for_memories(self) -> MemoryServices:
        """What looks at memories, and has them changed."""
        looks = look_at_memories(self.redis, self.kinds, self.turns_kept)
        return MemoryServices(
            **vars(looks),
            dispatch=self.dispatch,
            catalogue=self.catalogue,
            send=send_by(self.for_tasks),
        )

    @property
    def for_conversations(self) -> ConversationServices:
        """What reads conversations."""
        return ConversationServices(
            conversations=self.conversations, inbox=Inbox(self.redis)
        )

    @property
    def for_approvals(self) -> ApprovalServices:
        """The services of operations of approvals."""
        return ApprovalServices(
            answers=self.answers, ledger=self.ledger, links=self.links
        )
