"""The wiring of a worker process: the one place where its connections are opened and its parts meet."""

import functools
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.errors import ConfigurationError, MemoryUnavailable
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import Cancellation, Progress, WorkerPresence
from tasklore.memory.breaker import Breaker
from tasklore.memory.budgets.governor import ModelBudget
from tasklore.memory.concurrency.semaphore import Semaphore
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import Inbox
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.functions import offer_functions
from tasklore.memory.ledger.journal import Journal
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.waits import Waits
from tasklore.memory.long_term.single_flight import SingleFlight
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.run_messages.store import RunMessages
from tasklore.memory.sessions.once import Computed
from tasklore.memory.sessions.session import SessionCache
from tasklore.memory.stories.shared_answers import open_answers
from tasklore.memory.stories.store import StoryStore
from tasklore.runtime import tracing
from tasklore.runtime.access import access_of
from tasklore.runtime.messaging.broker import reads_or_ignores
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.leases import Beat, Leases
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.messaging.pull import PullEngine
from tasklore.runtime.messaging.signatures import open_publishers
from tasklore.runtime.messaging.streams import (
    PullSource,
    StreamSizes,
    declare_consumer,
    declare_streams,
    find_consumer,
    task_sources,
)
from tasklore.runtime.models.llm import Llm
from tasklore.runtime.process import Process
from tasklore.runtime.servers import valkey
from tasklore.runtime.settings import Settings
from tasklore.workers.agent import Agent
from tasklore.workers.card import card_of
from tasklore.workers.child_tasks import ChildTasks
from tasklore.workers.context.recorder import Recording
from tasklore.workers.context.services import Services
from tasklore.workers.execution.acknowledger import Acknowledger, Erasing
from tasklore.workers.execution.bounded_runs import BoundedRuns
from tasklore.workers.execution.consumer import Consumer
from tasklore.workers.execution.crash_isolation import CrashIsolation
from tasklore.workers.execution.due_copies import DueCopies, open_due_copies
from tasklore.workers.execution.executor import Executor
from tasklore.workers.execution.recall import NearMatches
from tasklore.workers.execution.report_publisher import Metering, ReportPublisher
from tasklore.workers.execution.retry_decision import RetryPolicy, longest_wait_s
from tasklore.workers.execution.retry_scheduling import Retries
from tasklore.workers.execution.run_context import context_maker
from tasklore.workers.execution.stores import Stores
from tasklore.workers.execution.tracing import Tracing
from tasklore.workers.host import Host, ServedAgent
from tasklore.workers.listening.embedder import lend_episodes
from tasklore.workers.listening.wiring import (
    ListenerDependencies,
    demand_one_listener,
    open_listeners,
)
from tasklore.workers.message_masking import make_masker
from tasklore.workers.middleware import Hooks, Middleware
from tasklore.workers.models import asks_model, open_models
from tasklore.workers.presence import announce, end_presence, show_presence

log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class _Dependencies:
    """The open parts of this process."""

    client: Client
    link: Link
    outbox: Outbox
    due_copies: DueCopies
    leases: Leases
    memory: LongTermMemory
    #: For agents whose answers cost tokens: waited for as long as the ledger is.
    patient_memory: LongTermMemory
    ledger: Ledger
    places: Semaphore
    governor: ModelBudget
    flights: SingleFlight[bytes]
    services: Services
    #: For listeners, whose many commands must not hold up a recall.
    listening: Redis


async def run_worker(
    agents: Sequence[Agent],
    settings: Settings,
    *,
    remembers: bool = True,
    on_ready: Callable[[str], None] = lambda _address: None,
) -> None:
    """Serve *agents* until SIGTERM or SIGINT; *remembers* is the memory switch of all of them.

    *on_ready* is called with the HTTP address once tasks are taken.

    Raises:
        Unreachable: a server does not answer at the start, or the connection was closed for good.
        AgentConflict: another live worker serves an agent of this name with another schema.
        DriftedConfiguration: a stream or consumer is not as it should be.
    """
    worker = Worker(agents, settings, remembers=remembers, on_ready=on_ready)
    await worker.process.run(worker.lifespan, worker.start, worker.drain)


class Worker:
    """One worker process; its frame calls `lifespan`, `start` and `drain`."""

    def __init__(
        self,
        agents: Sequence[Agent],
        settings: Settings,
        *,
        remembers: bool,
        on_ready: Callable[[str], None],
    ) -> None:
        deadline = (
            timedelta(seconds=settings.task_deadline_s)
            if settings.task_deadline_s
            else None
        )
        demand_one_listener(agents)
        self._agents = [
            agent.with_defaults(max_attempts=settings.max_attempts, deadline=deadline)
            for agent in agents
        ]
        self._settings = settings
        self._remembers = remembers
        self._on_ready = on_ready
        # No other process has had this name: host, process id and a random end.
        host = "".join(
            letter if letter.isalnum() else "-" for letter in socket.gethostname()[:20]
        )
        self._worker_id = f"{host}-{os.getpid()}-{new_id(0)[-6:]}"
        self.process = Process(
            self._worker_id, settings, "tasklore-worker", may_block=True
        )
        self._metrics = self.process.metrics
        self._host = Host()
        self.process.when_asked(self._host.stop)
        self._exclusive = CrashIsolation(
            self._host.pause, patience_s=settings.ack_wait_s
        )
        self._presences: list[WorkerPresence] = []
        self._parts: _Dependencies | None = None
        self._serve_cancellations()
        self._progress = self.process.broker.publisher(
            subjects.progress(settings.supervisor_id, "task"),
            schema=Progress,
            title="progress",
        )

    def _serve_cancellations(self) -> None:
        listen = self.process.broker.subscriber
        requests_to_cancel = listen(subjects.CANCEL_ANY, title="cancel")
        requests_elsewhere = listen(subjects.CANCEL_ELSEWHERE, title="cancel elsewhere")
        # One worker notes it for good: nobody may run the task now, and a supervisor need not be there.
        to_note = listen(subjects.CANCEL_ANY, queue="workers", title="cancel for good")
        to_note_elsewhere = listen(
            subjects.CANCEL_ELSEWHERE,
            queue="workers",
            title="cancel for good elsewhere",
        )

        @requests_elsewhere(decoder=reads_or_ignores(Cancellation))
        @requests_to_cancel(decoder=reads_or_ignores(Cancellation))
        async def cancel(request: Cancellation) -> None:
            for child in self._host.cancel(request):
                await self._cancel(
                    Cancellation(
                        task_id=child,
                        reason=f"its parent was cancelled: {request.reason}",
                    )
                )

        @to_note_elsewhere(decoder=reads_or_ignores(Cancellation))
        @to_note(decoder=reads_or_ignores(Cancellation))
        async def note(request: Cancellation) -> None:
            if self._parts is None:
                return
            try:
                await self._parts.ledger.cancel(request.task_id, None, request.reason)
            except MemoryUnavailable as error:
                log.warning(
                    "cancellation_not_noted", task_id=request.task_id, error=str(error)
                )

    async def _cancel(self, request: Cancellation) -> None:
        await self.process.broker.publish(
            request, subject=subjects.cancel(request.task_id)
        )

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open every connection, and close them in the other order."""
        async with AsyncExitStack() as stack:
            self._parts = await self._open(stack)
            self.process.serve_probes(
                stack,
                {"engines": self._host.alive},
                {"consumers": self._host.ready},
                self._host.find_run,
            )
            yield
            await self.process.end_tasks()

    async def _open(self, stack: AsyncExitStack) -> _Dependencies:
        settings = self._settings
        url = self.process.nats_url
        listener = self.process.listener(self._host.reconnected)
        client = await stack.enter_async_context(
            connected(url, f"tasklore-pull-{self._worker_id}", listener)
        )
        await self._provision(client)
        redis = await self._connect_redis(stack, self._worker_id)
        if settings.provision == "auto":
            await offer_functions(redis)
        leases = await stack.enter_async_context(
            Leases(
                url=url,
                ack_wait_s=settings.ack_wait_s,
                meter=self._metrics,
                failed=self.process.fail,
                beside=self._renewing_runs,
            )
        )
        link = Link(client)
        heal = functools.partial(self._provision, client, again=True)
        outbox = await stack.enter_async_context(
            open_outbox(link, self._metrics, heal=heal)
        )
        due_copies = await stack.enter_async_context(open_due_copies(link))
        llm, governor = await open_models(
            stack,
            agents=self._agents,
            settings=settings,
            redis=redis,
            metrics=self._metrics,
        )
        breaker = Breaker()
        budget_s = settings.memory_budget_ms / 1000
        flights = await stack.enter_async_context(
            SingleFlight[bytes](
                redis,
                owner=self._worker_id,
                lease_s=settings.ack_wait_s,
                budget_s=budget_s,
                breaker=breaker,
            )
        )
        return _Dependencies(
            client=client,
            link=link,
            outbox=outbox,
            due_copies=due_copies,
            leases=leases,
            memory=LongTermMemory(redis, budget_s=budget_s, breaker=breaker),
            patient_memory=LongTermMemory(
                redis, budget_s=settings.ledger_deadline_ms / 1000
            ),
            ledger=(ledger := self._make_ledger(redis)),
            places=self._make_places(redis),
            governor=governor,
            flights=flights,
            services=await self._open_services(
                stack, llm=llm, redis=redis, link=link, outbox=outbox, ledger=ledger
            ),
            listening=await self._connect_redis(stack, f"{self._worker_id}-listening"),
        )

    async def _connect_redis(self, stack: AsyncExitStack, name: str) -> Redis:
        told = self.process.count_redis_reconnect
        return await stack.enter_async_context(
            valkey.connect(
                self.process.redis_url,
                name=name,
                reconnected=told,
            )
        )

    async def _open_services(
        self,
        stack: AsyncExitStack,
        llm: Llm,
        redis: Redis,
        link: Link,
        outbox: Outbox,
        ledger: Ledger,
    ) -> Services:
        settings = self._settings
        kinds = Kinds.load(
            *([settings.kinds_dir] if settings.kinds_dir is not None else [])
        )
        # Values of many megabytes must not hold up a recall. No phase, no connection.
        large = await self._connect_redis(stack, f"{self._worker_id}-sessions")
        # No session, no task: asking for one may take longer than asking a mere memory.
        budget_s = settings.ledger_deadline_ms / 1000
        flights = SingleFlight[Computed](
            large, owner=self._worker_id, lease_s=settings.ack_wait_s, budget_s=budget_s
        )
        publishers = open_publishers(access_of())
        children = ChildTasks(
            link=link,
            outbox=outbox,
            ledger=ledger,
            caller_id=access_of().role or "workers",
            publish_cancellation=self._cancel,
        )
        stack.push_async_callback(children.aclose)
        return Services(
            llm=llm,
            conversations=Conversations(redis),
            send_progress=self._send_progress,
            documents=DocumentStore(redis, kinds),
            episodes=await lend_episodes(redis, settings, llm.governor),
            kinds=kinds,
            sessions=SessionCache(
                large, max_value_bytes=settings.session_value_max_bytes
            ),
            session_flights=await stack.enter_async_context(flights),
            projects=ProjectMemory(large),
            journal=Journal(large, keep=timedelta(days=settings.ledger_keep_days)),
            waits=Waits(
                redis,
                keep=timedelta(days=settings.ledger_keep_days),
                check=None if publishers is None else publishers.check,
            ),
            stories=StoryStore(large),
            story_answers=await stack.enter_async_context(
                open_answers(large, self._worker_id, settings.story_calls, budget_s)
            ),
            inbox=Inbox(redis),
            agent_files=settings.agent_files,
            forgets_in_chat=settings.forget_in_chat == "by_sentence",
            count_session_hits=self._metrics.count_session_hits,
            redis=redis,
            children=children,
            outbox=outbox,
            recording=await self._open_recording(stack, llm),
        )

    async def _open_recording(
        self, stack: AsyncExitStack, llm: Llm
    ) -> Recording | None:
        settings = self._settings
        if not settings.run_messages_hours:
            return None
        # A batch of messages must not hold up a recall.
        redis = await self._connect_redis(stack, f"{self._worker_id}-messages")
        store = RunMessages(
            redis,
            keep=timedelta(hours=settings.run_messages_hours),
            breaker=Breaker(),
        )
        return Recording(
            store=store,
            masker=make_masker(settings, os.environ),
            model_of=lambda role: llm.role(role).model,
            exports=settings.tracing == "content",
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

    def _make_places(self, redis: Redis) -> Semaphore:
        return Semaphore(
            redis, self._settings.ack_wait_s, self._settings.ledger_deadline_ms / 1000
        )

    @asynccontextmanager
    async def _renewing_runs(self) -> AsyncIterator[Beat]:
        """Open what the thread of leases needs to renew runs in the ledger too, whatever the event loop does."""
        owner = self.process.loop
        lease_ms = max(1, int(self._settings.ack_wait_s * 1000))
        async with valkey.connect(
            self.process.redis_url, name=f"{self._worker_id}-leases", max_connections=4
        ) as redis:
            ledger = self._make_ledger(redis)
            places = self._make_places(redis)

            async def beat() -> None:
                await self._host.places.renew(places, owner)
                lost = await self._host.renew_runs(ledger, self._worker_id, lease_ms)
                if lost:
                    owner.call_soon_threadsafe(self._host.replace, lost)

            yield beat

    async def start(self) -> None:
        """Announce the agents and begin to take tasks."""
        parts = self._demand_parts()
        for agent in self._agents:
            await self._start_agent(agent, parts)
        # In one turn of the loop: a signal before it ends a process that has taken nothing.
        for served in self._host.agents:
            self.process.spawn(served.engine.run())
        for listener in self._host.listeners:
            listener.start(self.process.spawn)
        self._metrics.watch_slots(
            self._settings.slots * len(self._host.agents),
            lambda: float(self._host.held),
        )
        self.process.spawn(self._host.flush_hits(parts.memory))
        log.info(
            "worker_ready",
            worker=self._worker_id,
            agents=[agent.agent_id for agent in self._agents],
        )
        self._on_ready(self.process.address)

    async def _start_agent(self, agent: Agent, parts: _Dependencies) -> None:
        card = card_of(agent)

        async def forget(task: str) -> None:
            await parts.memory.forget(agent_id=agent.agent_id, task=task)

        await announce(parts.client, card, forget)
        if agent.tasks:
            await self._start_tasks(agent, parts)
        opened = (
            parts.client,
            parts.link,
            parts.outbox,
            parts.leases,
            parts.listening,
            parts.services,
        )
        own = (
            self._metrics,
            self._settings,
            self._worker_id,
            self._heal,
            self._exclusive,
            self._host.look_soon,
        )
        self._host.listeners += await open_listeners(
            agent, ListenerDependencies(*opened, parts.services.episodes, *own)
        )
        presence = WorkerPresence(
            worker_id=self._worker_id,
            agent_id=agent.agent_id,
            version=card.version,
            digest=card.digest,
            slots=self._settings.slots if agent.tasks else self._settings.listen_users,
            http=self.process.address,
            started_at=datetime.now(UTC),
        )
        self._presences.append(presence)
        self.process.spawn(
            show_presence(
                parts.client,
                presence,
                card,
                functools.partial(self._provision, parts.client, again=True),
                read_away=parts.services.llm.away_models,
            )
        )

    async def _start_tasks(self, agent: Agent, parts: _Dependencies) -> None:
        settings = self._settings
        source, waiting = task_sources(agent.agent_id, settings.ack_wait_s)
        if settings.provision == "auto":
            await declare_consumer(parts.client, source)
            await declare_consumer(parts.client, waiting)
        consumer = self._make_consumer(agent, parts)
        engine = PullEngine(
            link=parts.link,
            source=source,
            slots=settings.slots,
            handler=consumer,
            leases=parts.leases,
            meter=self._metrics,
            heal=lambda: self._heal(source),
        )
        self._host.agents.append(ServedAgent(agent, engine, consumer))

    def _make_consumer(self, agent: Agent, parts: _Dependencies) -> Consumer:
        settings = self._settings
        metrics = self._metrics
        worker_id = self._worker_id
        host = self._host
        memory = parts.patient_memory if asks_model(agent) else parts.memory
        kept = memory, parts.ledger, parts.flights, parts.services.sessions
        stores = Stores(*kept, host.hits, host.own_hits, host.ended, parts.governor)
        middleware: list[Middleware] = [
            NearMatches(memory),
            Metering(agent.agent_id, agent.tasks, metrics),
        ]
        if tracing.is_on():
            middleware.append(Tracing())
        if settings.erase_said == "at_once":
            middleware.append(Erasing(Eraser(parts.client)))
        acknowledger = Acknowledger(hooks := Hooks([*middleware, *agent.middleware]))
        publisher = ReportPublisher(
            agent.agent_id,
            parts.ledger,
            parts.outbox,
            metrics,
            acknowledger=acknowledger,
            hooks=hooks,
        )
        waits = parts.services.waits
        longest_s = settings.retry_schedule_s
        retries = Retries(
            stores,
            waits=waits,
            outbox=parts.outbox,
            metrics=metrics,
            acknowledger=acknowledger,
            scheduled_over_s=longest_s,
        )
        retry = RetryPolicy(
            settings.retry_base_s,
            settings.retry_cap_s,
            longest_wait_s(timedelta(days=settings.ledger_keep_days)),
        )
        executor = Executor(
            worker_id=worker_id,
            stores=stores,
            publisher=publisher,
            retries=retries,
            retry=retry,
            make_context=context_maker(
                agent,
                parts.services,
                parts.ledger,
                worker_id,
            ),
            metrics=metrics,
            exclusive=self._exclusive,
            bounded=BoundedRuns(
                worker_id=worker_id,
                store=parts.places,
                held=host.places,
                ledger=parts.ledger,
                client=parts.client,
                retries=retries,
                read_limits=parts.governor.limits,
            ),
            hooks=hooks,
            lease_s=settings.ack_wait_s,
        )
        return Consumer(
            agent,
            worker_id,
            stores=stores,
            executor=executor,
            publisher=publisher,
            metrics=metrics,
            hooks=hooks,
            due_copies=parts.due_copies,
            remembers=self._remembers,
        )

    async def drain(self) -> None:
        """Take nothing more, let what runs finish within the grace period, and say goodbye."""
        await self._host.drain(self._settings.grace_s, self.process.hurried)
        parts = self._demand_parts()
        for presence in self._presences:
            await end_presence(parts.client, presence)
        await self._host.flush_once(parts.memory)

    async def _provision(self, client: Client, *, again: bool = False) -> None:
        if self._settings.provision == "auto":
            await declare_streams(
                client, StreamSizes.of(self._settings), despite_drift=again
            )

    async def _heal(self, source: PullSource) -> str:
        may_create = self._settings.provision == "auto"
        return await find_consumer(
            self._demand_parts().client,
            source,
            StreamSizes.of(self._settings),
            may_create=may_create,
        )

    async def _send_progress(self, supervisor_id: str, progress: Progress) -> None:
        await self._progress.publish(
            progress, subject=subjects.progress(supervisor_id, progress.task_id)
        )

    def _demand_parts(self) -> _Dependencies:
        if self._parts is None:
            raise ConfigurationError(
                "the worker was not opened; run it through its frame"
            )
        return self._parts
