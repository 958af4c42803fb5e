"""The wiring of a supervisor process: opens its connections and connects its parts."""

import asyncio
import functools
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from faststream.message import StreamMessage
from faststream.nats import NatsMessage
from nats.aio.client import Client
from nats.aio.msg import Msg
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import AnswerOutcome
from tasklore.contracts.cadence import EXPIRY_SWEEP_S
from tasklore.contracts.errors import ConfigurationError, MemoryUnavailable, Unreachable
from tasklore.contracts.messages import (
    AgentCard,
    AnalysisReply,
    Cancellation,
    PersonReply,
    PersonRequest,
    PipelineReply,
)
from tasklore.memory.breaker import Breaker
from tasklore.memory.budgets.governor import ModelBudget
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.functions import offer_functions
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.open_tasks import OpenTasks
from tasklore.memory.ledger.stream_epochs import StreamEpochs
from tasklore.memory.sessions.session import SessionCache
from tasklore.runtime.claim_loop import ClaimLoop
from tasklore.runtime.messaging.broker import reads, reads_nothing, reads_or_ignores
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.leases import Leases
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.messaging.output import OutputFollower, open_output
from tasklore.runtime.messaging.pull import DeliveryHandler, PullEngine
from tasklore.runtime.messaging.streams import (
    PullSource,
    StreamSizes,
    declare_consumer,
    declare_streams,
    find_consumer,
)
from tasklore.runtime.models.llm import Llm
from tasklore.runtime.process import Process
from tasklore.runtime.servers import valkey
from tasklore.runtime.settings import Settings
from tasklore.supervisor.admission.gate import open_gate
from tasklore.supervisor.admission.limit_waker import LimitWaker
from tasklore.supervisor.admission.owner_bounds import OwnerBounds
from tasklore.supervisor.admission.queue_mover import WaitingQueueMover
from tasklore.supervisor.admission.room import Room
from tasklore.supervisor.approvals.notifier import WaitNotifier
from tasklore.supervisor.approvals.requests import answer_bytes
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.cards import CardIndex, has_worker
from tasklore.supervisor.delivery import Delivering
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.http.admission.key_file import KeyRing
from tasklore.supervisor.http.admission.limits import ClientLimits
from tasklore.supervisor.json_schemas import JsonSchemas
from tasklore.supervisor.limits_file import apply_limits_file
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.pipelines.analysis.driver import AnalysisDriver
from tasklore.supervisor.pipelines.analysis.requests import AnalysisRequests
from tasklore.supervisor.pipelines.as_tasks import agent_card, read_pipelines
from tasklore.supervisor.pipelines.driver import PipelineDriver
from tasklore.supervisor.pipelines.requests import PipelineRequests
from tasklore.supervisor.replies.languages import Phraser
from tasklore.supervisor.reports import comparison
from tasklore.supervisor.reports.reports import HINT_PAUSE_S, ReportWaiter
from tasklore.supervisor.requests.refusals import make_refusals
from tasklore.supervisor.schedules.scheduler import Scheduler
from tasklore.supervisor.service import Service
from tasklore.supervisor.services import (
    Api,
    Connections,
    Webhooks,
    make_admission,
    make_analyses,
    make_cached_interpreter,
    make_learned,
    make_owner_bounds,
    make_pipelines,
    make_schedules,
    make_turn_sender,
    make_wait_desk,
    make_webhooks,
    open_api,
    open_delivering,
)
from tasklore.supervisor.stream_recovery import Recovery
from tasklore.supervisor.understanding.model import Counted
from tasklore.supervisor.watches import Watcher, make_watches

log = structlog.get_logger(__name__)

#: Requests answered side by side; each mostly waits for its report.
REQUESTS_AT_ONCE = 256
#: Reports taken at once to repair the ledger and serve who waits.
REPORT_SLOTS = 256
#: Seconds an unheard-of report stays with a supervisor before another replica is offered it.
REPORT_ACK_WAIT_S = 10.0
#: Seconds between looks at the whole bucket of cards: a lost notice is mended by then.
RELOAD_S = 30.0


async def run_supervisor(
    settings: Settings,
    *,
    on_ready: Callable[[str], None] = lambda _address: None,
    on_api: Callable[[str], None] = lambda _address: None,
) -> None:
    """Answer requests until SIGTERM or SIGINT; *on_ready* is called with the HTTP address once requests are taken.

    *on_api* is called with that of the HTTP API just before, unless it is switched off.

    Raises:
        Unreachable: a server does not answer at the start, or the connection was closed for good.
        DriftedConfiguration: a stream or consumer is not as it should be.
    """
    supervisor = Supervisor(settings, on_ready, on_api)
    await supervisor.process.run(
        supervisor.lifespan, supervisor.start, supervisor.drain
    )


@dataclass(slots=True, kw_only=True)
class _Dependencies:
    """The open parts of this process."""

    link: Link
    engine: PullEngine
    comparing: PullEngine
    service: Service
    bounds: OwnerBounds
    recovery: Recovery
    canceller: Canceller
    sessions: SessionCache
    driver: PipelineDriver
    pipelines: PipelineRequests
    analysing: AnalysisDriver
    analyses: AnalysisRequests
    schedules: Scheduler
    output: OutputFollower
    delivering: Delivering
    waiting: WaitNotifier
    admission: WaitingQueueMover
    waking: LimitWaker
    webhooks: Webhooks | None
    watches: tuple[Watcher, ...]
    api: Api | None

    @property
    def loops(self) -> tuple[ClaimLoop[Any, Any] | WaitingQueueMover, ...]:
        """The work that is done under leases."""
        hooks = () if self.webhooks is None else (self.webhooks.sender,)
        return (
            self.driver,
            self.analysing,
            self.schedules,
            self.waiting,
            self.admission,
            self.waking,
            *hooks,
        )


class Supervisor:
    """One supervisor process; its frame calls `lifespan`, `start` and `drain`."""

    def __init__(
        self,
        settings: Settings,
        on_ready: Callable[[str], None],
        on_api: Callable[[str], None] = lambda _address: None,
    ) -> None:
        self._settings = settings
        self._on_ready = on_ready
        self._on_api = on_api
        self.process = Process(
            f"{settings.supervisor_id}-{os.getpid()}", settings, "tasklore-supervisor"
        )
        self._declared = (
            read_pipelines(settings.pipelines_dir)
            if settings.pipelines_dir is not None
            else {}
        )
        own = agent_card(self._declared) if self._declared else None
        self._cards = CardIndex(self.process.metrics.count_refused_card, own)
        self._parts: _Dependencies | None = None
        self._serve_requests()
        self._serve_handed_requests()
        self._heed_cancellations()
        self._hear_cards()

    def _serve_requests(self) -> None:
        broker = self.process.broker
        supervisor_id = self._settings.supervisor_id
        broker.add_middleware(make_refusals())

        listen = functools.partial(
            broker.subscriber, queue=supervisor_id, max_workers=REQUESTS_AT_ONCE
        )

        @listen(subjects.requests(supervisor_id), title="requests")(
            decoder=reads(PersonRequest)
        )
        async def answer(request: PersonRequest) -> PersonReply:
            # Whoever asks here has shown no key: a caller would be what they say of themselves.
            unproven = request.model_copy(update={"caller": None})
            parts = self._demand_parts()
            # A repeat, as after `pending`, takes no room.
            if parts.bounds.counts(
                unproven.asked_by, unproven.user_id
            ) and not await parts.service.is_known(unproven):
                await parts.bounds.demand_words(unproven)
            return await parts.service.answer(unproven)

        # An unreadable request is refused there, as a reply of its own kind; so are all below.
        @listen(subjects.pipelines(supervisor_id), title="pipelines")(
            decoder=reads_nothing
        )
        async def drive(body: bytes) -> PipelineReply:
            return await self._demand_parts().pipelines.answer_bytes(body)

        @listen(subjects.analyses(supervisor_id), title="analyses")(
            decoder=reads_nothing
        )
        async def analyse(body: bytes) -> AnalysisReply:
            return await self._demand_parts().analyses.answer_bytes(body)

        @listen(subjects.approvals_to(supervisor_id), title="approvals")(
            decoder=reads_nothing
        )
        async def approve(body: bytes, message: NatsMessage) -> AnswerOutcome:
            return await answer_bytes(
                self._demand_parts().waiting.answers, message.raw_message.subject, body
            )

    def _serve_handed_requests(self) -> None:
        """Answer requests to the API that a process of the role `operator` hands over, with the API's application."""
        if self._settings.api_port is None:
            return
        supervisor_id = self._settings.supervisor_id
        subscriber = self.process.broker.subscriber
        listen = subscriber(
            subjects.operations(supervisor_id),
            queue=supervisor_id,
            # As many as may come over sockets: some wait for long, and the API refuses what is too much.
            max_workers=ClientLimits().connections,
            title="operations",
        )
        left = subscriber(
            subjects.operations_left(supervisor_id),
            title="operations left",
            no_reply=True,
        )

        @left(decoder=reads_nothing)
        async def note_left(body: bytes) -> None:
            api = self._demand_parts().api
            if api is not None:
                api.handed.note_left(body.decode("ascii", "replace"))

        @listen(decoder=reads_nothing)
        async def answer(body: bytes) -> bytes:
            api = self._demand_parts().api
            if api is None:
                raise ConfigurationError("this supervisor serves no API")
            return await api.handed.answer_bytes(body)

    def _heed_cancellations(self) -> None:
        """Make the cancellations of other programs final: one supervisor does so for all."""
        listen = self.process.broker.subscriber
        cancellations = listen(subjects.CANCEL_ANY, queue="supervisors", title="cancel")
        elsewhere = listen(
            subjects.CANCEL_ELSEWHERE, queue="supervisors", title="cancel elsewhere"
        )

        @elsewhere(decoder=reads_or_ignores(Cancellation))
        @cancellations(decoder=reads_or_ignores(Cancellation))
        async def heed(cancellation: Cancellation) -> None:
            await self._demand_parts().canceller.heed(cancellation)

    def _hear_cards(self) -> None:
        """Follow the bucket of cards: each put and each delete is a message on the bucket's own subject."""
        # The program that puts a card waits for the stream's own reply: ours would come first and be taken for it.
        notices = self.process.broker.subscriber(
            subjects.CARD_NOTICES, title="cards", no_reply=True
        )

        async def is_card(message: StreamMessage[Msg]) -> bool:
            return "KV-Operation" not in message.headers

        @notices(filter=is_card, decoder=reads_or_ignores(AgentCard))
        async def learn(card: AgentCard, message: NatsMessage) -> None:
            self._cards.learn(card, key=_key_of(message))

        @notices(decoder=reads_nothing)
        async def forget(message: NatsMessage) -> None:
            self._cards.forget(_key_of(message))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open every connection, and close them in the other order."""
        async with AsyncExitStack() as stack:
            self._parts = parts = await self._open(stack)
            vital = {
                "reports": parts.engine.vital_sign,
                "comparisons": parts.comparing.vital_sign,
                "pipelines": parts.driver.vital_sign,
                "analyses": parts.analysing.vital_sign,
                "schedules": parts.schedules.vital_sign,
                "messages": parts.delivering.vital_sign,
                "waits": parts.waiting.vital_sign,
                "wake-ups": parts.waking.vital_sign,
            } | (
                {"webhooks": parts.webhooks.sender.vital_sign}
                if parts.webhooks is not None
                else {}
            )
            self.process.serve_probes(
                stack, vital, {"reports": self._ready, "messages": self._delivers}
            )
            yield
            await self.process.end_tasks()

    async def _open(self, stack: AsyncExitStack) -> _Dependencies:
        settings = self._settings
        process = self.process
        connecting = connected(
            process.nats_url,
            f"tasklore-pull-{process.name}",
            process.listener(self._reconnected),
        )
        client = await stack.enter_async_context(connecting)
        redis = await stack.enter_async_context(self._connect_store())
        if settings.provision == "auto":
            await declare_streams(client, self._sizes())
            await declare_consumer(client, self._reports())
            await offer_functions(redis)
        await apply_limits_file(redis, settings.limits_file, process.spawn)
        leasing = Leases(
            url=process.nats_url,
            ack_wait_s=REPORT_ACK_WAIT_S,
            meter=process.metrics,
            failed=process.fail,
        )
        leases = await stack.enter_async_context(leasing)
        link = Link(client)
        ledger = self._make_ledger(redis)
        boxing = open_outbox(
            link,
            process.metrics,
            heal=lambda: self._provision(client),
        )
        outbox = await stack.enter_async_context(boxing)
        gate = await open_gate(link, Room(client, Budgets(redis, deadline_s=1.0)))
        reports = ReportWaiter(client, ledger, hint_pause_s=HINT_PAUSE_S)
        bounds = make_owner_bounds(redis, settings)
        reports.note_sizes = bounds.note_reports
        dispatch = Dispatch(outbox, ledger, gate, bounds)
        engine = self._engine(link, self._reports(), reports, leases)
        pairs = self._engine(
            link,
            comparison.SOURCE,
            comparison.ReportReconciler(client, ledger, outbox),
            leases,
        )
        await link.listen(
            subjects.reports_to(settings.supervisor_id), reports.hear_hint
        )
        await (recovery := self._recovery(client, redis, outbox, dispatch)).listen()
        llm = await self._open_llm(stack, redis)
        service = Service(
            settings.supervisor_id,
            catalogue=lambda: self._cards.catalogue,
            interpreter=make_cached_interpreter(llm, redis, settings),
            phraser=Phraser(Counted(llm)),
            dispatch=dispatch,
            reports=reports,
            conversations=Conversations(redis),
            publish=make_turn_sender(outbox),
            time_zone=settings.time_zone,
            learned=make_learned(redis, settings, self._cards),
            has_worker=lambda agent_id: has_worker(link, agent_id),
        )
        canceller = Canceller(
            client, outbox, ledger, process.name, waiting=WaitingTasks(redis)
        )
        # Values of many megabytes must not hold up a report, nor the renewal of a lease.
        large = await stack.enter_async_context(
            valkey.connect(process.redis_url, name=f"{process.name}-sessions")
        )
        sessions = SessionCache(large, max_value_bytes=settings.session_value_max_bytes)
        output = await stack.enter_async_context(open_output(link))
        keys = KeyRing.of(settings.api_keys_file)
        makers = Makers(keys)
        webhooks = make_webhooks(
            redis,
            settings=settings,
            metrics=process.metrics,
            reports=reports,
            makers=makers,
        )
        schemas = JsonSchemas()
        stack.push_async_callback(schemas.close)
        waiting = make_wait_desk(
            link,
            redis=redis,
            outbox=outbox,
            settings=settings,
            webhooks=webhooks and webhooks.events,
            schemas=schemas,
        )
        everything = Connections(
            name=process.name,
            settings=settings,
            metrics=process.metrics,
            link=link,
            redis=redis,
            outbox=outbox,
            webhooks=webhooks,
            cards=self._cards,
            dispatch=dispatch,
            reports=reports,
            canceller=canceller,
            ledger=ledger,
            output=output,
            answers=waiting.answers,
            schemas=schemas,
            keys=keys,
            makers=makers,
        )
        driver, pipelines, tasks = make_pipelines(everything, sessions, self._declared)
        delivering = await open_delivering(
            everything, leases, functools.partial(self._heal, client), tasks
        )
        schedules, book, maker = make_schedules(everything, pipelines)
        admission = make_admission(everything, gate)
        analysing, analyses = make_analyses(everything)
        api = open_api(
            everything,
            service=service,
            sessions=sessions,
            pipelines=pipelines,
            analyses=analyses,
            schedules=(book, maker),
        )
        watches = make_watches(
            process.metrics,
            link=link,
            redis=redis,
            cards=self._cards,
            reports=reports,
            webhooks=webhooks and webhooks.events,
        )
        return _Dependencies(
            link=link,
            engine=engine,
            comparing=pairs,
            service=service,
            bounds=bounds,
            recovery=recovery,
            canceller=canceller,
            sessions=sessions,
            driver=driver,
            pipelines=pipelines,
            analysing=analysing,
            analyses=analyses,
            schedules=schedules,
            output=output,
            delivering=delivering,
            waiting=waiting,
            admission=admission,
            waking=LimitWaker(WaitingTasks(redis), ledger, outbox),
            webhooks=webhooks,
            watches=watches,
            api=api,
        )

    def _connect_store(self) -> AbstractAsyncContextManager[Redis]:
        url = self.process.redis_url
        name = self.process.name
        return valkey.connect(
            url,
            name=name,
            reconnected=self.process.count_redis_reconnect,
        )

    async def _open_llm(self, stack: AsyncExitStack, redis: Redis) -> Llm:
        metrics = self.process.metrics
        governor = await stack.enter_async_context(
            ModelBudget(redis, unchecked=metrics.count_unchecked).running()
        )
        llm = await stack.enter_async_context(
            Llm(self._settings.llm(), meter=metrics, governor=governor)
        )
        await llm.warm_up()
        return llm

    def _recovery(
        self, client: Client, redis: Redis, outbox: Outbox, dispatch: Dispatch
    ) -> Recovery:
        return Recovery(
            client,
            outbox,
            OpenTasks(redis, keep=timedelta(days=self._settings.ledger_keep_days)),
            StreamEpochs(redis),
            tell_ledger=dispatch.tell_ledger,
            heal=lambda: self._provision(client),
            meter=self.process.metrics,
        )

    def _make_ledger(self, redis: Redis) -> Ledger:
        keep = timedelta(days=self._settings.ledger_keep_days)
        deadline_s = self._settings.ledger_deadline_ms / 1000
        return Ledger(
            redis,
            keep=keep,
            reports_keep=timedelta(hours=self._settings.ledger_report_hours),
            deadline_s=deadline_s,
            breaker=Breaker(),
        )

    async def start(self) -> None:
        """Learn the agents and begin to serve reports."""
        parts = self._demand_parts()
        await self._cards.load(parts.link)
        for run in (
            parts.engine.run,
            parts.comparing.run,
            parts.recovery.run,
            parts.delivering.run,
        ):
            self.process.spawn(run())
        for loop in parts.loops:
            self.process.spawn(loop.run())
        for watch in parts.watches:
            self.process.spawn(watch.run())
        self.process.spawn(parts.bounds.run())
        self.process.spawn(self._sweep_sessions())
        self.process.spawn(self._reload_cards())
        if parts.api is not None:
            self.process.spawn(parts.api.server.run())
            self._on_api(parts.api.server.url)
        log.info("supervisor_ready", supervisor=self._settings.supervisor_id)
        self._on_ready(self.process.address)

    async def drain(self) -> None:
        """Take no more reports and messages, and drive nothing more; another replica, or the next start, goes on."""
        parts = self._demand_parts()
        if parts.api is not None:
            # While reports still come in: its clients wait for them.
            await parts.api.server.drain(self.process.hurried)
        await asyncio.gather(
            *(loop.drain() for loop in parts.loops),
            parts.delivering.drain(),
            Delivering([parts.engine, parts.comparing]).drain(),
        )

    def _ready(self) -> tuple[bool, str]:
        return (
            self._parts is not None and self._parts.engine.ready,
            f"{len(self._cards.catalogue.cards)} agents known",
        )

    def _delivers(self) -> tuple[bool, str]:
        return (
            self._parts is not None and self._parts.delivering.ready,
            "inboxes of agents",
        )

    def _reports(self) -> PullSource:
        supervisor_id = self._settings.supervisor_id
        return PullSource(
            stream=subjects.REPORTS,
            durable=supervisor_id,
            filter_subject=subjects.reports_to(supervisor_id),
            ack_wait_s=REPORT_ACK_WAIT_S,
        )

    def _engine(
        self, link: Link, source: PullSource, handler: DeliveryHandler, leases: Leases
    ) -> PullEngine:
        heal = functools.partial(self._heal, link.client, source)
        return PullEngine(
            link=link,
            source=source,
            slots=REPORT_SLOTS,
            handler=handler,
            leases=leases,
            meter=self.process.metrics,
            heal=heal,
        )

    async def _provision(self, client: Client) -> None:
        if self._settings.provision == "auto":
            await declare_streams(client, self._sizes(), despite_drift=True)

    async def _heal(self, client: Client, source: PullSource) -> str:
        may_create = self._settings.provision == "auto"
        return await find_consumer(client, source, self._sizes(), may_create=may_create)

    def _sizes(self) -> StreamSizes:
        return StreamSizes.of(self._settings)

    async def _reload_cards(self) -> None:
        while True:
            await asyncio.sleep(RELOAD_S)
            await self._load_cards()

    async def _sweep_sessions(self) -> None:
        """Remove expired values from sessions, and expired sessions from their list."""
        while True:
            await asyncio.sleep(EXPIRY_SWEEP_S)
            try:
                await self._demand_parts().sessions.sweep()
            except MemoryUnavailable as error:
                log.info("sessions_not_swept", error=str(error))

    async def _load_cards(self) -> None:
        try:
            await self._cards.load(self._demand_parts().link)
        except Unreachable as error:
            log.info("cards_not_reloaded", error=str(error))

    def _reconnected(self) -> None:
        if self._parts is not None:
            self._parts.engine.reconnected()
            self._parts.comparing.reconnected()
            self._parts.delivering.reconnected()
            self._parts.recovery.look_soon()
            self._parts.output.look_soon()
            for loop in self._parts.loops:
                loop.look_soon()
            self.process.spawn(self._load_cards())

    def _demand_parts(self) -> _Dependencies:
        if self._parts is None:
            raise ConfigurationError("the supervisor is not ready yet; try again")
        return self._parts


def _key_of(message: NatsMessage) -> str:
    """Return the bucket's key in the subject of *message*."""
    return str(message.raw_message.subject).rpartition(".")[2]
