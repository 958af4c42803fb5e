"""The services of a supervisor, on the connections that the wiring of its process opened."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import structlog
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.admission.limits import Shares
from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.pipelines import PIPELINE_AGENT, Pipeline
from tasklore.contracts.quantities.numerals.locales import mark_of
from tasklore.memory.breaker import Breaker
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import Inbox
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.holdings.store import Holdings, Store
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.memory.ledger.waits import Waits
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.schedules.store import ScheduleStore
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tasklore.memory.webhooks.outbox import WebhookOutbox
from tasklore.runtime.access import access_of
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.leases import Leases
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.output import OutputFollower
from tasklore.runtime.messaging.partitions import Owner, open_partitions
from tasklore.runtime.messaging.pull import PullEngine
from tasklore.runtime.messaging.signatures import open_publishers, open_signer
from tasklore.runtime.messaging.streams import PullSource, declare_consumer
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.models.llm import Llm
from tasklore.runtime.networks import networks_in
from tasklore.runtime.origins import headers_in, methods_in, origins_in
from tasklore.runtime.settings import Settings
from tasklore.runtime.variables import folders_in
from tasklore.supervisor.admission.gate import Gate
from tasklore.supervisor.admission.owner_bounds import OwnerBounds
from tasklore.supervisor.admission.queue_mover import WaitingQueueMover
from tasklore.supervisor.approvals.answers import Answers
from tasklore.supervisor.approvals.notifier import WaitNotifier, event_sender
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.cards import CardIndex
from tasklore.supervisor.dead_letters.queue import drop_letters
from tasklore.supervisor.delivery import Delivering, InboxDelivery, inbox_sources
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.json_schemas import JsonSchemas
from tasklore.supervisor.live_workers import LiveWorkers
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.pipelines.analysis.driver import AnalysisDriver
from tasklore.supervisor.pipelines.analysis.fold import AnalysisParts
from tasklore.supervisor.pipelines.analysis.requests import AnalysisRequests
from tasklore.supervisor.pipelines.as_tasks import AT_ONCE, PipelineTasks
from tasklore.supervisor.pipelines.declaration.fingerprints import Fingerprints
from tasklore.supervisor.pipelines.driver import PipelineDriver
from tasklore.supervisor.pipelines.live import DriverDependencies as PipelineParts
from tasklore.supervisor.pipelines.live import event_publisher
from tasklore.supervisor.pipelines.requests import Driving, PipelineRequests
from tasklore.supervisor.replies.notices import MEMORY_AGENT, Learned
from tasklore.supervisor.replies.recollection import open_recollections
from tasklore.supervisor.reports.reports import ReportWaiter
from tasklore.supervisor.schedules.book import ScheduleBook
from tasklore.supervisor.schedules.scheduler import Scheduler
from tasklore.supervisor.schedules.tick_maker import TickMaker
from tasklore.supervisor.service import Publish, Service
from tasklore.supervisor.understanding import Interpreter, make_interpreter
from tasklore.supervisor.understanding.cache import CachedInterpreter
from tasklore.supervisor.understanding.model import Counted
from tasklore.supervisor.webhooks.addresses import Addresses, NotAllowed
from tasklore.supervisor.webhooks.delivery import Sender, parse_secrets
from tasklore.supervisor.webhooks.events import WebhookEvents
from tasklore.supervisor.webhooks.sender import WebhookSender

if TYPE_CHECKING:
    from tasklore.supervisor.http.admission.key_file import KeyRing
    from tasklore.supervisor.http.handed import HandedRequests
    from tasklore.supervisor.http.server import HttpServer

log = structlog.get_logger(__name__)


class Webhooks(NamedTuple):
    """The parts that send webhooks, where `webhook_secret` is set."""

    addresses: Addresses
    events: WebhookEvents
    sender: WebhookSender


@dataclass(frozen=True, slots=True)
class Api:
    """The application of a supervisor as it is reached: by its *server*, and by processes that hand requests over."""

    server: "HttpServer"
    handed: "HandedRequests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The open connections of a supervisor's process, whose name is *name*, and the parts that all services use."""

    name: str
    settings: Settings
    metrics: Metrics
    link: Link
    redis: Redis
    outbox: Outbox
    webhooks: Webhooks | None
    cards: CardIndex
    dispatch: Dispatch
    reports: ReportWaiter
    canceller: Canceller
    ledger: Ledger
    output: OutputFollower
    answers: Answers
    schemas: JsonSchemas
    keys: "KeyRing | None"
    makers: Makers


def make_learned(redis: Redis, settings: Settings, cards: CardIndex) -> Learned | None:
    """Return the notices of learned facts in replies, None where they are switched off."""
    if not settings.say_learned:
        return None
    return Learned(
        Notices(redis),
        lambda: cards.catalogue.find(MEMORY_AGENT, "undo") is not None,
        episodes=Episodes(redis),
    )


def make_cached_interpreter(llm: Llm, redis: Redis, settings: Settings) -> Interpreter:
    """Return the interpreter of sentences, by rules and by *llm* where one is configured."""
    mark = mark_of(settings.locale) if settings.locale else None
    reading = make_interpreter(
        Counted(llm), open_recollections(redis, settings.kinds_dir), mark
    )
    return CachedInterpreter(reading)


def make_turn_sender(outbox: Outbox) -> Publish:
    """Return a function that publishes turns, and logs one that could not be stored."""

    def note(problem: Exception | None) -> None:
        if problem is not None:
            log.warning("turn_not_published", error=str(problem))

    def send(subject: str, body: bytes, message_id: str) -> None:
        outbox.send(subject, body, message_id, note)

    return send


def make_wait_desk(
    link: Link,
    redis: Redis,
    outbox: Outbox,
    settings: Settings,
    webhooks: WebhookEvents | None,
    schemas: JsonSchemas,
) -> WaitNotifier:
    """Return the notifier of waits, and whoever takes answers to them."""
    access = access_of()
    publishers = open_publishers(access)
    waits = Waits(
        redis,
        keep=timedelta(days=settings.ledger_keep_days),
        sign=open_signer(access),
        check=None if publishers is None else publishers.check,
    )
    return WaitNotifier(Answers(waits, outbox, schemas), event_sender(link), webhooks)


def make_webhooks(
    redis: Redis,
    *,
    settings: Settings,
    metrics: Metrics,
    reports: ReportWaiter,
    makers: Makers,
) -> Webhooks | None:
    """Return the parts that send webhooks, of *reports* too; None where there is no secret for them.

    Raises:
        ConfigurationError: the secret, or the address of the deployment, is none.
    """
    if settings.webhook_secret is None:
        return None
    addresses = Addresses(networks_in(settings.webhook_networks))
    outbox = WebhookOutbox(redis)
    try:
        everywhere = (
            addresses.make_callback(settings.webhook_url)
            if settings.webhook_url
            else None
        )
    except NotAllowed as error:
        raise ConfigurationError(f"TASKLORE_WEBHOOK_URL {error}") from error
    sender = Sender(
        addresses, parse_secrets(settings.webhook_secret.get_secret_value())
    )
    webhook_sender = WebhookSender(outbox, sender, metrics, makers)
    hears_tasks = settings.webhook_tasks
    soon = webhook_sender.look_soon
    events = WebhookEvents(
        outbox, metrics, everywhere=everywhere, hears_tasks=hears_tasks, look_soon=soon
    )
    reports.note_ended = events.note_reports
    return Webhooks(addresses, events, webhook_sender)


def make_owner_bounds(redis: Redis, settings: Settings) -> OwnerBounds:
    """Return the bounds of owners; where neither keys nor roles are required, everybody is the deployment itself."""
    if settings.api_keys_file is None and settings.role is None:
        return OwnerBounds()
    most: dict[Store, int] = {"queue": settings.tasks_max_bytes}
    if settings.kept_max_bytes is not None:
        most["store"] = settings.kept_max_bytes
    keep = timedelta(days=settings.ledger_keep_days)
    breaker = Breaker()
    holdings = Holdings(
        redis,
        most,
        results_keep=keep,
        reports_keep=timedelta(hours=settings.ledger_report_hours),
        breaker=breaker,
    )
    return OwnerBounds(holdings)


def make_admission(opened: Connections, gate: Gate) -> WaitingQueueMover:
    """Return the queue mover, which moves waiting tasks into TASKS."""
    budgets = Budgets(opened.redis, deadline_s=1.0)
    holder = f"{opened.name}-{secrets.token_hex(4)}"

    async def read_shares() -> Shares:
        return (await budgets.read()).limits.shares

    return WaitingQueueMover(
        opened.link,
        opened.redis,
        opened.outbox,
        gate.room,
        holder=holder,
        read_shares=read_shares,
    )


def make_pipelines(
    opened: Connections, sessions: SessionCache, declared: Mapping[str, Pipeline]
) -> tuple[PipelineDriver, PipelineRequests, PipelineTasks | None]:
    """Return the driver of pipelines, their requests, and their tasks where there are *declared* ones."""
    settings = opened.settings
    fingerprints = Fingerprints(
        folders_in(settings.pipeline_roots),
        files=settings.fingerprint_files,
        size=settings.fingerprint_max_bytes,
        seconds=settings.fingerprint_s,
    )
    parts = PipelineParts(
        supervisor_id=settings.supervisor_id,
        runs=PipelineRuns(opened.redis),
        cache=sessions,
        projects=ProjectMemory(opened.redis),
        dispatch=opened.dispatch,
        reports=opened.reports,
        canceller=opened.canceller,
        tell=event_publisher(opened.link),
        meter=opened.metrics,
        evidence_dir=settings.evidence_dir.absolute(),
        fingerprints=fingerprints,
        makers=opened.makers,
        drop_letters=partial(drop_letters, opened.link),
    )
    # Another process may have this one's name and number, on another machine or later.
    holder = f"{opened.name}-{secrets.token_hex(4)}"
    driver = PipelineDriver(parts, holder=holder, lease_s=settings.pipeline_lease_s)
    driving = Driving(driver.look_soon, driver.cancel)
    requests = PipelineRequests(
        parts, cards=lambda: opened.cards.catalogue.cards, driving=driving
    )
    if not declared:
        return driver, requests, None
    tasks = PipelineTasks(
        declared,
        requests,
        runs=parts.runs,
        ledger=opened.ledger,
        outbox=opened.outbox,
        meter=opened.metrics,
        name=opened.name,
    )
    return driver, requests, tasks


def make_schedules(
    opened: Connections, pipelines: PipelineRequests
) -> tuple[Scheduler, ScheduleBook, TickMaker]:
    """Return the scheduler of schedules, their book, and the maker of their ticks."""
    supervisor_id = opened.settings.supervisor_id
    store = ScheduleStore(opened.redis, opened.settings.supervisor_id)
    makers = opened.makers
    book = ScheduleBook(store, lambda: opened.cards.catalogue, makers=makers)
    maker = TickMaker(
        supervisor_id=supervisor_id,
        catalogue=lambda: opened.cards.catalogue,
        dispatch=opened.dispatch,
        pipelines=pipelines.take_up,
        canceller=opened.canceller,
        records=RequestRecords(opened.redis),
        now=book.now,
        makers=makers,
    )
    return Scheduler(book, maker), book, maker


def make_analyses(opened: Connections) -> tuple[AnalysisDriver, AnalysisRequests]:
    """Return the driver of analyses and their requests."""
    settings = opened.settings
    parts = AnalysisParts(
        supervisor_id=settings.supervisor_id,
        stories=StoryStore(opened.redis),
        analyses=AnalysisStore(opened.redis),
        dispatch=opened.dispatch,
        reports=opened.reports,
        canceller=opened.canceller,
        catalogue=lambda: opened.cards.catalogue,
        meter=opened.metrics,
        keep=settings.analyses_kept,
        lease_s=settings.pipeline_lease_s,
    )
    driver = AnalysisDriver(parts)
    return driver, AnalysisRequests(parts, driver)


async def open_delivering(
    opened: Connections,
    leases: Leases,
    heal: Callable[[PullSource], Awaitable[str]],
    tasks: PipelineTasks | None,
) -> Delivering:
    """Return the delivery of messages to agents, and of *tasks*, None where no pipeline may be asked for as one.

    Its consumers are created where that is allowed, and by *heal* when lost.

    Raises:
        DriftedConfiguration: a consumer reads something else.
        Unreachable: the server does not answer.
    """
    driver = InboxDelivery(
        Owner(opened.name, supervisor_id=opened.settings.supervisor_id),
        inbox=Inbox(opened.redis),
        outbox=opened.outbox,
        meter=opened.metrics,
        eraser=Eraser(opened.link) if opened.settings.erase_said == "at_once" else None,
        publishers=open_publishers(access_of()),
    )
    may_create = opened.settings.provision == "auto"
    meter = opened.metrics
    engines = await open_partitions(
        opened.link,
        inbox_sources(opened.settings.ack_wait_s),
        driver,
        leases=leases,
        meter=meter,
        heal=heal,
        may_create=may_create,
    )
    if tasks is None:
        return Delivering(engines)
    source = PullSource(
        stream=subjects.TASKS,
        durable=PIPELINE_AGENT,
        filter_subject=subjects.tasks_of(PIPELINE_AGENT),
        ack_wait_s=opened.settings.ack_wait_s,
    )
    await declare_consumer(opened.link.client, source, may_create=may_create)
    engine = PullEngine(
        link=opened.link,
        source=source,
        slots=AT_ONCE,
        handler=tasks,
        leases=leases,
        meter=meter,
        heal=partial(heal, source),
    )
    return Delivering([*engines, engine], tasks.drain)


def open_api(
    opened: Connections,
    service: Service,
    sessions: SessionCache,
    pipelines: PipelineRequests,
    analyses: AnalysisRequests,
    schedules: tuple[ScheduleBook, TickMaker],
) -> Api | None:
    """Return the HTTP API, listening but not yet answering; None where it is switched off.

    Raises:
        ConfigurationError: the address cannot be listened on, or other machines reach it and there are no keys.
    """
    settings = opened.settings
    if settings.api_port is None:
        return None
    # Imported only by a process that serves it.
    from tasklore.supervisor.approvals.links import Links
    from tasklore.supervisor.feed.signs import SignSources
    from tasklore.supervisor.feed.tasks import Feeds
    from tasklore.supervisor.http.admission.clients import Origins, UnknownClients
    from tasklore.supervisor.http.admission.console_sessions import ConsoleSessions
    from tasklore.supervisor.http.admission.limits import ClientLimits
    from tasklore.supervisor.http.admission.stream_tokens import StreamTokens
    from tasklore.supervisor.http.app import make_app
    from tasklore.supervisor.http.dependencies import ApiDependencies
    from tasklore.supervisor.http.handed import HandedRequests
    from tasklore.supervisor.http.server import (
        HttpServer,
        demand_cross_origin,
        demand_keys,
        demand_tls,
    )
    from tasklore.supervisor.requests.work import InFlightRequests

    records = RequestRecords(opened.redis)
    sources = SignSources(
        link=opened.link,
        supervisor_id=settings.supervisor_id,
        ledger=opened.ledger,
        reports=opened.reports,
        waits=opened.answers.waits,
    )
    secret = settings.approval_secret
    keys = demand_keys(settings.api_host, opened.keys)
    parts = ApiDependencies(
        supervisor_id=settings.supervisor_id,
        client=opened.link.client,
        redis=opened.redis,
        catalogue=lambda: opened.cards.catalogue,
        attendance=LiveWorkers(opened.link),
        service=service,
        dispatch=opened.dispatch,
        reports=opened.reports,
        feeds=Feeds(opened.output, sources=sources),
        canceller=opened.canceller,
        ledger=opened.ledger,
        conversations=Conversations(opened.redis),
        records=records,
        work=InFlightRequests(service, records),
        pipelines=pipelines,
        analyses=analyses,
        schedules=schedules[0],
        ticks=schedules[1],
        runs=PipelineRuns(opened.redis),
        sessions=sessions,
        answers=opened.answers,
        schemas=opened.schemas,
        webhooks=opened.webhooks and opened.webhooks.addresses,
        links=Links(
            secret.get_secret_value(),
            opened.answers,
            settings.approval_url,
            makers=opened.makers,
        )
        if secret is not None
        else None,
        kinds=Kinds.load(*filter(None, [settings.kinds_dir])),
        keys=keys,
        console=ConsoleSessions.of(
            None if secret is None else secret.get_secret_value(),
            keys,
            settings.approval_url,
        ),
        stream_tokens=StreamTokens(secret.get_secret_value(), keys)
        if secret is not None and keys is not None
        else None,
        cross_origin=demand_cross_origin(
            origins_in(settings.api_cors_origins),
            methods_in(settings.api_cors_methods),
            headers_in(settings.api_cors_headers),
            has_keys=keys is not None,
        ),
        limits=ClientLimits(
            settings.api_body_max_bytes, settings.api_rate, settings.api_burst
        ),
        unknown=UnknownClients(
            Origins(networks_in(settings.api_trusted_proxies)),
            rate=settings.api_unknown_rate,
        ),
        meter=opened.metrics,
        turns_kept=settings.episodes_kept,
        grace_s=settings.grace_s,
    )
    app = make_app(parts)
    server = HttpServer(
        app,
        parts,
        settings.api_host,
        settings.api_port,
        tls=demand_tls(settings.api_tls_cert_file, settings.api_tls_key_file),
        alongside=parts.work.going,
    )
    return Api(
        server, HandedRequests(app, server.url, parts.life.draining, opened.makers)
    )
