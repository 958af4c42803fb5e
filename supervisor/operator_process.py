"""The wiring of a process with the rights of `operator`: operations at an address of their own.

It reads and mends by its own rights, and works when no supervisor does. It takes no tasks, no reports and no requests
in words: each request that starts or answers work it hands over to a supervisor.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog
from redis.asyncio import Redis

from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import Inbox
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.memory.ledger.waits import Waits
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.schedules.store import ScheduleStore
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.memory.webhooks.outbox import WebhookOutbox
from tasklore.runtime.messaging.connection import Listener, connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.process import Process
from tasklore.runtime.servers import valkey
from tasklore.runtime.settings import Settings
from tasklore.supervisor.attendance import Attendance
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.cards import CardIndex
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.operations.dead_letters import (
    DeadLetterServices,
    open_dead_letter_services,
)
from tasklore.supervisor.operations.pipelines import PipelineStores
from tasklore.supervisor.operations.sent_tasks import TaskLooks
from tasklore.supervisor.schedules.book import ScheduleBook

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tasklore.supervisor.http.operations_app import Noun
    from tasklore.supervisor.http.parts import Door
    from tasklore.supervisor.http.server import HttpServer
    from tasklore.supervisor.operations.memory.hand_edits import (
        MemoryHands,
        OperatorMemory,
    )

log = structlog.get_logger(__name__)

#: Seconds between looks at the cards of agents: nothing is told to this process when one changes.
_RELOAD_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorConnections:
    """The open connections of an operator, and the parts that the services of all nouns are made of.

    `cards` may be empty at first. `hands` change memories, which no supervisor may.
    """

    settings: Settings
    metrics: Metrics
    link: Link
    redis: Redis
    outbox: Outbox
    cards: CardIndex
    letters: DeadLetterServices
    hands: "MemoryHands"


#: Returns the hands of an operator with these connections.
LendHands = Callable[[Link, Redis, Outbox, Settings], "MemoryHands"]


@asynccontextmanager
async def open_operator(
    settings: Settings,
    name: str,
    metrics: Metrics,
    lend: LendHands,
    *,
    listener: Listener | None = None,
    reconnected: Callable[[], None] = lambda: None,
) -> AsyncIterator[OperatorConnections]:
    """Open the connections of an operator, called *name*, to the servers of *settings* within the block.

    Raises:
        ConfigurationError: no servers are named.
        Unreachable: NATS does not answer.
    """
    if settings.nats_url is None or settings.redis_url is None:
        raise ConfigurationError(
            "no servers are named; set TASKLORE_NATS_URL and TASKLORE_REDIS_URL, or run `tasklore up`"
        )
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            connected(settings.nats_url, f"tasklore-{name}-work", listener)
        )
        redis = await stack.enter_async_context(
            valkey.connect(
                settings.redis_url,
                name=name,
                max_connections=settings.redis_max_connections,
                reconnected=reconnected,
            )
        )
        link = Link(client)
        outbox = await stack.enter_async_context(
            open_outbox(link, metrics, settings.publish_deadline_s)
        )
        keep = timedelta(days=settings.ledger_keep_days)
        letters = await stack.enter_async_context(
            open_dead_letter_services(link, outbox, redis, keep=keep)
        )
        yield OperatorConnections(
            settings=settings,
            metrics=metrics,
            link=link,
            redis=redis,
            outbox=outbox,
            cards=CardIndex(metrics.count_refused_card),
            letters=letters,
            hands=lend(link, redis, outbox, settings),
        )


def make_application(opened: OperatorConnections, door: "Door") -> "FastAPI":
    """Return the application of an operator behind *door*."""
    # Imported only by a process that serves it.
    from tasklore.supervisor.http.hand_over import HandOver
    from tasklore.supervisor.http.operations_app import make_operations_app

    return make_operations_app(
        door,
        HandOver(opened.link.client, opened.settings.supervisor_id),
        make_nouns(opened),
    )


def make_nouns(opened: OperatorConnections) -> "tuple[Noun[Any], ...]":
    """Return each noun of the table, with the services that an operator has for it."""
    from tasklore.supervisor.http.operations_app import Noun
    from tasklore.supervisor.operations import (
        agents,
        approvals,
        budget,
        conversations,
        dead_letters,
        limits,
        memories,
        pipelines,
        requests,
        results,
        retirement,
        schedules,
        sessions,
        tasks,
        webhooks,
    )

    store = ScheduleStore(opened.redis, opened.settings.supervisor_id)
    book = ScheduleBook(store, lambda: opened.cards.catalogue)
    keep_days = opened.settings.memory_keep_days
    ledger = Ledger(opened.redis)

    async def read_catalogue() -> Catalogue:
        # Nothing tells this process of a card that changes.
        await opened.cards.load(opened.link)
        return opened.cards.catalogue

    return (
        Noun(
            operations=schedules.OPERATIONS,
            run_here=schedules.LOOKS,
            services=schedules.ScheduleLooks(book=book),
        ),
        Noun(
            operations=tasks.OPERATIONS,
            run_here=tasks.LOOKS,
            services=TaskLooks(
                redis=opened.redis,
                ledger=ledger,
                records=RequestRecords(opened.redis),
                canceller=Canceller(
                    opened.link.client,
                    opened.outbox,
                    ledger,
                    "tasklore-operations",
                    waiting=WaitingTasks(opened.redis),
                ),
            ),
        ),
        Noun(operations=requests.OPERATIONS),
        Noun(
            operations=conversations.OPERATIONS,
            run_here=conversations.OPERATIONS,
            services=conversations.ConversationServices(
                conversations=Conversations(opened.redis), inbox=Inbox(opened.redis)
            ),
        ),
        Noun(
            operations=pipelines.OPERATIONS,
            run_here=pipelines.BY_STORES,
            services=_make_pipeline_stores(opened, book),
        ),
        Noun(
            operations=dead_letters.OPERATIONS,
            run_here=dead_letters.OPERATIONS,
            services=opened.letters,
        ),
        Noun(
            operations=results.OPERATIONS,
            run_here=results.OPERATIONS,
            services=results.open_result_services(
                opened.link,
                opened.redis,
                keep=None if keep_days is None else timedelta(days=keep_days),
            ),
        ),
        Noun(
            operations=sessions.OPERATIONS,
            run_here=sessions.OPERATIONS,
            services=sessions.open_session_services(
                opened.redis,
                max_value_bytes=opened.settings.session_value_max_bytes,
            ),
        ),
        Noun(
            operations=agents.OPERATIONS,
            run_here=agents.LOOKS,
            services=agents.AgentLooks(
                read_catalogue=read_catalogue, attendance=Attendance(opened.link)
            ),
        ),
        Noun(
            operations=approvals.OPERATIONS,
            run_here=approvals.LOOKS,
            services=approvals.ApprovalStore(waits=Waits(opened.redis), ledger=ledger),
        ),
        Noun(
            operations=retirement.OPERATIONS,
            run_here=retirement.OPERATIONS,
            services=retirement.RetirementServices(line=opened.link),
        ),
        Noun(
            operations=memories.OPERATIONS,
            run_here=(*memories.LOOKS, *memories.EDITS),
            services=_make_memory(opened),
        ),
        Noun(
            operations=webhooks.OPERATIONS,
            run_here=webhooks.OPERATIONS,
            services=webhooks.WebhookServices(outbox=WebhookOutbox(opened.redis)),
        ),
        Noun(
            operations=limits.OPERATIONS,
            run_here=limits.OPERATIONS,
            services=limits.LimitServices(budgets=Budgets(opened.redis)),
        ),
        Noun(
            operations=budget.OPERATIONS,
            run_here=budget.OPERATIONS,
            services=budget.BudgetServices(budgets=Budgets(opened.redis)),
        ),
    )


def _make_pipeline_stores(
    opened: OperatorConnections, book: ScheduleBook
) -> PipelineStores:
    redis = opened.redis
    most = opened.settings.session_value_max_bytes
    return PipelineStores(
        supervisor_id=opened.settings.supervisor_id,
        runs=PipelineRuns(redis),
        sessions=SessionCache(redis, max_value_bytes=most),
        projects=ProjectMemory(redis),
        records=RequestRecords(redis),
        schedules=book,
        budgets=Budgets(redis),
        catalogue=lambda: opened.cards.catalogue,
        absent=Attendance(opened.link).absent,
    )


def _make_memory(opened: OperatorConnections) -> "OperatorMemory":
    """Return the services of operations on memories."""
    from tasklore.supervisor.operations.memory.hand_edits import OperatorMemory
    from tasklore.supervisor.operations.memory.services import look_at_memories

    settings = opened.settings
    kinds = Kinds.load(*filter(None, [settings.kinds_dir]))
    looks = look_at_memories(opened.redis, kinds, settings.episodes_kept)
    dispatch = Dispatch(opened.outbox, Ledger(opened.redis))
    return OperatorMemory(**vars(looks), dispatch=dispatch, hands=opened.hands)


async def run_operations(
    settings: Settings,
    lend: LendHands,
    *,
    on_ready: Callable[[str], None] = lambda _address: None,
    on_api: Callable[[str], None] = lambda _address: None,
) -> None:
    """Serve operations until SIGTERM or SIGINT, with the hands that *lend* returns.

    *on_api* is called with their address, *on_ready* with that of the probes.

    Raises:
        Unreachable: a server does not answer at the start, or the connection was closed for good.
        ConfigurationError: the address cannot be listened on, or other machines reach it and there are no keys.
    """
    operations = Operations(settings, lend, on_ready, on_api)
    await operations.process.run(
        operations.lifespan, operations.start, operations.drain
    )


class Operations:
    """One process that serves operations; its frame calls `lifespan`, `start` and `drain`."""

    def __init__(
        self,
        settings: Settings,
        lend: LendHands,
        on_ready: Callable[[str], None],
        on_api: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._lend = lend
        self._on_ready = on_ready
        self._on_api = on_api
        self.process = Process(
            f"{settings.supervisor_id}-operations-{os.getpid()}",
            settings,
            "tasklore-operations",
        )
        self._opened: OperatorConnections | None = None
        self._server: HttpServer | None = None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open every connection, and close them in the other order."""
        process = self.process
        async with AsyncExitStack() as stack:
            opening = open_operator(
                self._settings,
                process.name,
                process.metrics,
                self._lend,
                listener=process.listener(lambda: None),
                reconnected=process.count_redis_reconnect,
            )
            self._opened = opened = await stack.enter_async_context(opening)
            self._server = _make_server(opened)
            process.serve_probes(stack, {}, {})
            yield
            await process.end_tasks()

    async def start(self) -> None:
        """Begin to answer."""
        if self._server is None:
            raise ConfigurationError("the operations are not open yet; try again")
        self.process.spawn(self._follow_cards())
        self.process.spawn(self._server.run())
        self._on_api(self._server.url)
        log.info("operations_ready", url=self._server.url)
        self._on_ready(self.process.address)

    async def drain(self) -> None:
        """Accept nothing new, and return when all requests have been answered, or the grace is over."""
        if self._server is not None:
            await self._server.drain(self.process.hurried)

    async def _follow_cards(self) -> None:
        while self._opened is not None:
            try:
                await self._opened.cards.load(self._opened.link)
            except Unreachable as error:
                # A supervisor that starts at the same time may yet have to make their bucket.
                log.info("cards_not_loaded", error=str(error))
            await asyncio.sleep(_RELOAD_S)


def _make_server(opened: OperatorConnections) -> "HttpServer":
    from tasklore.supervisor.http.admission.clients import UnknownClients
    from tasklore.supervisor.http.admission.limits import ClientLimits
    from tasklore.supervisor.http.parts import Door
    from tasklore.supervisor.http.server import HttpServer, demand_keys, demand_tls

    settings = opened.settings
    door = Door(
        keys=demand_keys(
            settings.operations_host, settings.api_keys_file, "OPERATIONS"
        ),
        limits=ClientLimits(
            settings.api_body_max_bytes, settings.api_rate, settings.api_burst
        ),
        unknown=UnknownClients(rate=settings.api_unknown_rate),
        meter=opened.metrics,
        grace_s=settings.grace_s,
    )
    return HttpServer(
        make_application(opened, door),
        door,
        settings.operations_host,
        settings.operations_port,
        tls=demand_tls(settings.api_tls_cert_file, settings.api_tls_key_file),
        setting="OPERATIONS",
    )
