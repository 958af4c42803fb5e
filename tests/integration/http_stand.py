"""The HTTP API on real servers in this process, with a service whose answers the test releases."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import (
    AgentCard,
    ChatTurn,
    PersonReply,
    PersonRequest,
    PipelineReply,
    PipelineRequest,
    TaskAssignment,
    TaskCall,
    TaskCard,
)
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.command_batch import Commands
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.memory.ledger.waits import Waits
from tasklore.memory.schedules.store import ScheduleStore
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.runtime.messaging import connection
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.messaging.output import open_output
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.feed.signs import SignSources
from tasklore.supervisor.feed.tasks import Feeds
from tasklore.supervisor.http.app import make_app
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.http.server import HttpServer
from tasklore.supervisor.json_schemas import JsonSchemas
from tasklore.supervisor.live_workers import LiveWorkers
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.reports.reports import ReportWaiter
from tasklore.supervisor.requests.request import Ended, ExtraCommands, ignore_part
from tasklore.supervisor.requests.work import InFlightRequests
from tasklore.supervisor.schedules.book import ScheduleBook
from tasklore.supervisor.schedules.tick_maker import TickMaker
from tests.servers import PATIENCE_S

SUPERVISOR = "HttpStand"
CARD = AgentCard(
    agent_id="EchoAgent",
    tasks=(
        TaskCard(
            name="echo",
            parameters={
                "type": "object",
                "additionalProperties": False,
                "required": ["word"],
                "properties": {"word": {"type": "string", "aliases": ["text"]}},
            },
        ),
    ),
    digest="0011223344556677",
)


@dataclass
class Scripted:
    """A service that answers every request once `gate` is open, and keeps both turns as the real one does."""

    conversations: Conversations
    dispatch: Dispatch
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[PersonRequest] = field(default_factory=list)
    error: Exception | None = None
    assigns: bool = False

    def task_id_of(self, request: PersonRequest) -> str:
        return f"r-{request.request_id}"

    async def answer(
        self,
        request: PersonRequest,
        *,
        routed: Callable[[TaskAssignment], None] = lambda _assignment: None,
        before: Sequence[ChatTurn] | None = None,
        ended: Ended = ignore_part,
        is_new: bool = False,
        alongside: ExtraCommands | None = None,
        among: Catalogue | None = None,
    ) -> PersonReply:
        self.asked.append(request)
        await self._keep(
            request,
            "person",
            request.text,
            alongside.words if alongside is not None else (),
        )
        if self.assigns:
            assignment = assigned(self.task_id_of(request), request.text)
            await self.dispatch.assign(assignment)
            routed(assignment)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        await self._keep(request, "assistant", f"Heard: {request.text}")
        return PersonReply(
            request_id=request.request_id or "none",
            conversation_id=request.conversation_id or "none",
            kind="unable",
            text=f"Heard: {request.text}",
        )

    async def _keep(
        self, request: PersonRequest, speaker: Any, text: str, beside: Commands = ()
    ) -> None:
        assert request.conversation_id is not None
        turn_id = f"{request.user_id}-{request.request_id}-{speaker[0]}"
        turn = ChatTurn(
            turn_id=turn_id[-64:],
            conversation_id=request.conversation_id,
            user_id=request.user_id,
            speaker=speaker,
            text=text,
            at="2026-01-01T00:00:00Z",  # type: ignore[arg-type]  # read as every message is
            request_id=request.request_id,
        )
        body = turn.model_dump_json().encode()
        await self.conversations.append(
            request.conversation_id,
            body,
            turn_id,
            user_id=request.user_id,
            beside=beside,
        )


def assigned(task_id: str, word: str = "hi") -> TaskAssignment:
    return TaskAssignment(
        task_id=task_id,
        agent_id="EchoAgent",
        supervisor_id=SUPERVISOR,
        task=TaskCall(name="echo", parameters={"word": word}),
        created_at="2026-01-01T00:00:00Z",  # type: ignore[arg-type]  # read as every message is
    )


async def refuse(request: PipelineRequest) -> PipelineReply:
    return PipelineReply(
        session_id=request.session_id,
        kind="refused",
        text="there are no pipelines here",
    )


@dataclass
class Stand:
    url: str
    parts: ApiDependencies
    service: Scripted
    server: HttpServer


@asynccontextmanager
async def http_stand(
    servers: EmbeddedServers,
    redis: Redis,
    *,
    tls: ssl.SSLContext | None = None,
    scripted: Callable[[Conversations, Dispatch], Scripted] = Scripted,
    **parts: Any,
) -> AsyncIterator[Stand]:
    """Serve the API within the block, over *tls* if given; *scripted* makes its service, *parts* replace the others."""
    async with AsyncExitStack() as stack:
        # The server is there; how soon this process, which does the work of many tests, gets to it is the machine's.
        patience = stack.enter_context(pytest.MonkeyPatch.context())
        patience.setattr(connection, "CONNECT_S", PATIENCE_S)
        client = await stack.enter_async_context(
            connected(servers.nats_url, f"stand-{new_id(0)}")
        )
        link = Link(client)
        await declare_streams(client, StreamSizes())
        outbox = await stack.enter_async_context(open_outbox(link))
        ledger = Ledger(redis, deadline_s=PATIENCE_S)
        dispatch = Dispatch(outbox, ledger)
        reports = ReportWaiter(client, ledger)
        await link.listen(subjects.reports_to(SUPERVISOR), reports.hear_hint)
        conversations = Conversations(redis, deadline_s=PATIENCE_S)
        records = RequestRecords(redis, deadline_s=PATIENCE_S)
        service = scripted(conversations, dispatch)
        catalogue = Catalogue([CARD])
        canceller = Canceller(
            client, outbox, ledger, "stand", waiting=WaitingTasks(redis)
        )
        makers = Makers(parts.get("keys"))
        book = ScheduleBook(
            ScheduleStore(redis, SUPERVISOR, deadline_s=PATIENCE_S),
            lambda: catalogue,
            makers=makers,
        )
        schemas = JsonSchemas()
        stack.push_async_callback(schemas.close)
        made = {
            "schedules": book,
            "ticks": TickMaker(
                supervisor_id=SUPERVISOR,
                catalogue=lambda: catalogue,
                dispatch=dispatch,
                pipelines=refuse,
                canceller=canceller,
                records=records,
                now=book.now,
                makers=makers,
            ),
            "supervisor_id": SUPERVISOR,
            "client": client,
            "redis": redis,
            "catalogue": lambda: catalogue,
            "attendance": LiveWorkers(client),
            "service": service,
            "dispatch": dispatch,
            "reports": reports,
            "feeds": Feeds(
                await stack.enter_async_context(open_output(link)),
                sources=SignSources(
                    link=link,
                    supervisor_id=SUPERVISOR,
                    ledger=ledger,
                    reports=reports,
                    waits=Waits(redis, deadline_s=PATIENCE_S),
                ),
            ),
            "canceller": canceller,
            "ledger": ledger,
            "conversations": conversations,
            "records": records,
            "work": InFlightRequests(service, records),
            "pipelines": None,
            "analyses": None,
            "answers": None,
            "schemas": schemas,
            "runs": PipelineRuns(redis, deadline_s=PATIENCE_S),
            "sessions": SessionCache(redis, deadline_s=PATIENCE_S),
            "grace_s": 5.0,
        }
        whole = ApiDependencies(**(made | parts))
        server = HttpServer(
            make_app(whole), whole, "127.0.0.1", 0, tls=tls, alongside=whole.work.going
        )
        running = asyncio.create_task(server.run())
        try:
            yield Stand(server.url, whole, service, server)
        finally:
            hurried = asyncio.Event()
            hurried.set()
            await server.drain(hurried)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
