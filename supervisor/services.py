"""The wiring of what a supervisor drives and delivers, on the connections that the wiring of its process opened."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from redis.asyncio import Redis

from contracts import subjects
from contracts.pipelines import PIPELINE_AGENT, Pipeline
from memory.conversations.inbox import Inbox
from memory.conversations.notices import Notices
from memory.ledger.ledger import Ledger
from memory.projects.project import ProjectMemory
from memory.sessions.pipeline_runs import PipelineRuns
from memory.sessions.session import SessionCache
from memory.stories.analyses import AnalysisStore
from memory.stories.store import StoryStore
from quantities.numerals.locales import mark_of
from runtime.access import access_of
from runtime.messaging.erasure import Eraser
from runtime.messaging.leases import Leases
from runtime.messaging.link import Link
from runtime.messaging.outbox import Outbox
from runtime.messaging.partitions import Whose, open_partitions
from runtime.messaging.pull import PullEngine
from runtime.messaging.signatures import open_publishers
from runtime.messaging.streams import Source, declare_consumer
from runtime.metrics import Metrics
from runtime.models.llm import Llm
from runtime.settings import Settings, folders_in
from supervisor.cancellation import Canceller
from supervisor.cards import CardIndex
from supervisor.dead_letters.queue import drop_letters
from supervisor.delivery import Delivering, MessageDesk, inbox_sources
from supervisor.dispatch import Dispatch
from supervisor.pipelines.analysis.desk import AnalysisDesk
from supervisor.pipelines.analysis.requests import AnalysisRequests
from supervisor.pipelines.analysis.run import AnalysisParts
from supervisor.pipelines.as_tasks import AT_ONCE, PipelineTasks
from supervisor.pipelines.declaration.fingerprints import Fingerprints
from supervisor.pipelines.desk import PipelineDesk
from supervisor.pipelines.live import Parts as PipelineParts
from supervisor.pipelines.live import teller
from supervisor.pipelines.requests import Driving, PipelineRequests
from supervisor.replies.notices import MEMORY_AGENT, Learned
from supervisor.replies.recollection import open_recollections
from supervisor.reports.reports import ReportDesk
from supervisor.requests.known_sentences import KnownSentences
from supervisor.understanding import Interpreter, make_interpreter
from supervisor.understanding.model import Counted


@dataclass(frozen=True, slots=True)
class Ground:
    """What is open in a supervisor's process, whose name is *name*."""

    name: str
    settings: Settings
    metrics: Metrics
    link: Link
    redis: Redis
    outbox: Outbox
    cards: CardIndex
    dispatch: Dispatch
    reports: ReportDesk
    canceller: Canceller
    ledger: Ledger


def learned_on(redis: Redis, settings: Settings, cards: CardIndex) -> Learned | None:
    """Return what says in replies what memory learned, None where that is switched off."""
    if not settings.say_learned:
        return None
    return Learned(Notices(redis), lambda: cards.catalogue.find(MEMORY_AGENT, "undo") is not None)


def interpreter_on(llm: Llm, redis: Redis, settings: Settings) -> Interpreter:
    """Return what understands sentences, by rules and by *llm* where one is configured."""
    mark = mark_of(settings.locale) if settings.locale else None
    reading = make_interpreter(Counted(llm), open_recollections(redis, settings.kinds_dir), mark)
    return KnownSentences(reading)


def pipelines_on(
    ground: Ground, sessions: SessionCache, declared: Mapping[str, Pipeline]
) -> tuple[PipelineDesk, PipelineRequests, PipelineTasks | None]:
    """Return what drives pipelines, what takes wishes of them, and what takes tasks where there are *declared* ones."""
    settings = ground.settings
    fingerprints = Fingerprints(
        folders_in(settings.pipeline_roots),
        files=settings.fingerprint_files,
        size=settings.fingerprint_max_bytes,
        seconds=settings.fingerprint_s,
    )
    parts = PipelineParts(
        supervisor_id=settings.supervisor_id,
        runs=PipelineRuns(ground.redis),
        cache=sessions,
        projects=ProjectMemory(ground.redis),
        dispatch=ground.dispatch,
        reports=ground.reports,
        canceller=ground.canceller,
        tell=teller(ground.link),
        meter=ground.metrics,
        evidence_dir=settings.evidence_dir.absolute(),
        fingerprints=fingerprints,
        drop_letters=partial(drop_letters, ground.link),
    )
    # Another process may have this one's name and number, on another machine or later.
    holder = f"{ground.name}-{secrets.token_hex(4)}"
    desk = PipelineDesk(parts, holder=holder, lease_s=settings.pipeline_lease_s)
    driving = Driving(desk.look_soon, desk.cancel)
    requests = PipelineRequests(parts, cards=lambda: ground.cards.catalogue.cards, driving=driving)
    if not declared:
        return desk, requests, None
    tasks = PipelineTasks(
        declared,
        requests,
        runs=parts.runs,
        ledger=ground.ledger,
        outbox=ground.outbox,
        meter=ground.metrics,
        name=ground.name,
    )
    return desk, requests, tasks


def analyses_on(ground: Ground) -> tuple[AnalysisDesk, AnalysisRequests]:
    """Return what drives analyses and what takes wishes of them."""
    settings = ground.settings
    parts = AnalysisParts(
        supervisor_id=settings.supervisor_id,
        stories=StoryStore(ground.redis),
        analyses=AnalysisStore(ground.redis),
        dispatch=ground.dispatch,
        reports=ground.reports,
        canceller=ground.canceller,
        catalogue=lambda: ground.cards.catalogue,
        meter=ground.metrics,
        keep=settings.analyses_kept,
    )
    desk = AnalysisDesk(parts, lease_s=settings.analysis_lease_s)
    return desk, AnalysisRequests(parts, desk)


async def open_delivering(
    ground: Ground, leases: Leases, heal: Callable[[Source], Awaitable[str]], tasks: PipelineTasks | None
) -> Delivering:
    """Return what delivers messages to agents, and *tasks*, None where no pipeline may be asked for as one.

    Its consumers are made where that is allowed, and by *heal* when lost.

    Raises:
        DriftedConfiguration: a consumer reads something else.
        Unreachable: the server does not answer.
    """
    desk = MessageDesk(
        Whose(ground.name, supervisor_id=ground.settings.supervisor_id),
        inbox=Inbox(ground.redis),
        outbox=ground.outbox,
        meter=ground.metrics,
        eraser=Eraser(ground.link) if ground.settings.erase_said == "at_once" else None,
        publishers=open_publishers(access_of()),
    )
    may_create, meter = ground.settings.provision == "auto", ground.metrics
    engines = await open_partitions(
        ground.link,
        inbox_sources(ground.settings.ack_wait_s),
        desk,
        leases=leases,
        meter=meter,
        heal=heal,
        may_create=may_create,
    )
    if tasks is None:
        return Delivering(engines)
    source = Source(subjects.TASKS, PIPELINE_AGENT, subjects.tasks_of(PIPELINE_AGENT), ground.settings.ack_wait_s)
    await declare_consumer(ground.link.client, source, may_create=may_create)
    engine = PullEngine(ground.link, source, AT_ONCE, tasks, leases, meter, partial(heal, source))
    return Delivering([*engines, engine], tasks.drain)
