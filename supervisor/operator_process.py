"""The wiring of a process with the rights of `operator`: operations at an address of their own.

It reads and mends by its own rights, and works when no supervisor does. It takes no tasks, no reports and no requests
in words: each request that starts or answers work it hands over to a supervisor.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog
from redis.asyncio import Redis

from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.memory.breaker import Breaker
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.connection import ConnectionCallbacks, connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.process import Process
from tasklore.runtime.servers import valkey
from tasklore.runtime.settings import Settings
from tasklore.supervisor.cards import CardIndex
from tasklore.supervisor.dead_letters.queue import open_dead_letters
from tasklore.supervisor.live_workers import LiveWorkers
from tasklore.supervisor.operations.dependencies import OperatorDependencies

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tasklore.supervisor.http.dependencies import Admission
    from tasklore.supervisor.http.server import HttpServer
    from tasklore.supervisor.operations.memory.hand_edits import MemoryHands

log = structlog.get_logger(__name__)

#: Seconds between looks at the cards of agents: nothing is told to this process when one changes.
_RELOAD_S = 10.0


#: Returns the hands of an operator with these connections.
LendHands = Callable[[Link, Redis, Outbox, Settings], "MemoryHands"]


@asynccontextmanager
async def open_operator(
    settings: Settings,
    name: str,
    metrics: Metrics,
    lend: LendHands,
    *,
    listener: ConnectionCallbacks | None = None,
    reconnected: Callable[[], None] = lambda: None,
) -> AsyncIterator[OperatorDependencies]:
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
                reconnected=reconnected,
            )
        )
        link = Link(client)
        outbox = await stack.enter_async_context(open_outbox(link, metrics))
        keep = timedelta(days=settings.ledger_keep_days)
        letters = await stack.enter_async_context(
            open_dead_letters(link, outbox, Ledger(redis, keep=keep, breaker=Breaker()))
        )
        yield OperatorDependencies(
            settings=settings,
            metrics=metrics,
            link=link,
            redis=redis,
            outbox=outbox,
            cards=CardIndex(metrics.count_refused_card),
            attendance=LiveWorkers(link),
            letters=letters,
            hands=lend(link, redis, outbox, settings),
        )


def make_application(opened: OperatorDependencies, door: "Admission") -> "FastAPI":
    """Return the application of an operator behind *door*."""
    # Imported only by a process that serves it.
    from tasklore.supervisor.http.hand_over import HandOver
    from tasklore.supervisor.http.operations_app import make_operations_app
    from tasklore.supervisor.operations import console
    from tasklore.supervisor.operations.nouns import NOUNS

    opened = replace(opened, console_links=door.console)
    own = [one for noun in NOUNS for one in noun.operator(opened)]
    return make_operations_app(
        door,
        HandOver(opened.link.client, opened.settings.supervisor_id),
        own=own,
        table=tuple(one for noun in NOUNS for one in noun.operations),
        console=console.for_operator(opened),
    )


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
        self._opened: OperatorDependencies | None = None
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


def _make_server(opened: OperatorDependencies) -> "HttpServer":
    from tasklore.supervisor.http.admission.clients import UnknownClients
    from tasklore.supervisor.http.admission.console_sessions import ConsoleSessions
    from tasklore.supervisor.http.admission.key_file import KeyRing
    from tasklore.supervisor.http.admission.limits import ClientLimits
    from tasklore.supervisor.http.dependencies import Admission
    from tasklore.supervisor.http.server import HttpServer, demand_keys, demand_tls

    settings = opened.settings
    keys = demand_keys(
        settings.operations_host, KeyRing.of(settings.api_keys_file), "OPERATIONS"
    )
    secret = settings.approval_secret
    door = Admission(
        keys=keys,
        # A link leads to where it was asked for: another address is of supervisors.
        console=ConsoleSessions.of(
            None if secret is None else secret.get_secret_value(), keys
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
