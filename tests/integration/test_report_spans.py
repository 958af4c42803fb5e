"""A report that somebody waits for has its span in the trace of its task, whichever way it is heard."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.traces import TraceContext, made_context
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime import tracing
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.pull import Delivery
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.runtime.tracing.spans import Value
from tasklore.supervisor.reports.reports import ReportWaiter
from tests.integration.test_comparison import a_report
from tests.servers import PATIENCE_S
from tests.unit.workers.execution.fake_worker import FakeEngine

NAME = "process reports.Other"
#: The trace of the message with the report, and that of the request.
MESSAGE = made_context(0xA, 0x1, 1)
REQUEST = made_context(0xB, 0x2, 1)


@dataclass
class KeptSpan(tracing.Span):
    """What a span was begun with, and whether it has ended."""

    name: str
    parent: TraceContext | None
    attributes: Mapping[str, Value]
    has_ended: bool = False

    def end(self) -> None:
        self.has_ended = True


@dataclass
class Tracer:
    """Keeps every span."""

    spans: list[KeptSpan] = field(default_factory=list)

    def begin(
        self,
        name: str,
        kind: tracing.Kind,
        parent: TraceContext | None,
        attributes: Mapping[str, Value],
        links: Sequence[TraceContext],
        began_ns: int | None,
        identity: str | None,
    ) -> tracing.Span:
        assert kind == "consumer"
        self.spans.append(KeptSpan(name, parent, attributes))
        return self.spans[-1]


@pytest.fixture
def tracer() -> Iterator[Tracer]:
    tracer = Tracer()
    tracing.use(tracer)
    yield tracer
    tracing.use(None)


class Stage:
    """A desk, and a worker that reports in a trace."""

    def __init__(self, client: Client, ledger: Ledger) -> None:
        self.client = client
        self.ledger = ledger
        self.desk = ReportWaiter(client, ledger)
        self.task_id = new_id(0)
        self.subject = subjects.report("Other", self.task_id, 1)
        self.body = a_report(self.task_id)

    def wait(self) -> asyncio.Task[object]:
        return asyncio.create_task(
            self.desk.report_on("Other", self.task_id, PATIENCE_S, is_new=True)
        )

    async def report(self, headers: Mapping[str, str] = MESSAGE.headers) -> None:
        await self.client.jetstream().publish(
            self.subject, self.body, headers=dict(headers)
        )

    async def consume(self) -> Delivery:
        """Let the consumer bring the report to the desk."""
        delivery = Delivery(
            subject=self.subject,
            body=self.body,
            headers=MESSAGE.headers,
            reply="ack",
            deliveries=1,
            sequence=1,
            arrived_at=0.0,
        )
        await self.desk.work([delivery], FakeEngine())  # type: ignore[arg-type]  # a fake
        return delivery


@pytest.fixture
async def stage(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stage]:
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(connected(servers.nats_url, "spans"))
        await declare_streams(client, StreamSizes())
        yield Stage(client, Ledger(redis, deadline_s=PATIENCE_S))


async def test_a_report_heard_by_a_hint_has_one_span_and_the_consumer_adds_none(
    stage: Stage, tracer: Tracer
) -> None:
    await Link(stage.client).listen("reports.Other.>", stage.desk.hear_hint)
    waiting = stage.wait()
    await asyncio.sleep(0)
    await stage.report()
    await waiting
    late = await stage.consume()

    assert [(one.name, one.parent) for one in tracer.spans] == [(NAME, MESSAGE)]
    assert tracer.spans[0].attributes["tasklore.task_id"] == stage.task_id
    assert tracer.spans[0].has_ended
    assert late.span is tracing.NO_SPAN


async def test_a_report_found_by_a_look_has_its_span(
    stage: Stage, tracer: Tracer
) -> None:
    await stage.report()
    await stage.desk.report_on("Other", stage.task_id, PATIENCE_S)

    assert [(one.name, one.parent) for one in tracer.spans] == [(NAME, MESSAGE)]


async def test_a_report_that_the_ledger_alone_has_is_below_the_request(
    stage: Stage, tracer: Tracer
) -> None:
    await stage.ledger.finish(stage.task_id, 1, "completed", stage.body)
    with tracing.within(REQUEST):
        await stage.desk.report_on("Other", stage.task_id, PATIENCE_S)

    assert [(one.name, one.parent) for one in tracer.spans] == [(NAME, REQUEST)]


async def test_the_consumer_that_is_first_has_the_span_and_a_hint_adds_none(
    stage: Stage, tracer: Tracer
) -> None:
    waiting = stage.wait()
    await asyncio.sleep(0)
    await stage.report()
    delivery = await stage.consume()
    await waiting
    await stage.desk.report_on("Other", stage.task_id, PATIENCE_S)

    first, again = tracer.spans
    assert delivery.span is first
    assert (first.name, first.parent) == (NAME, MESSAGE)
    # Another request that asks for the same report hears it anew.
    assert again.parent == MESSAGE


async def test_a_report_without_a_trace_has_no_span(
    stage: Stage, tracer: Tracer
) -> None:
    await stage.report({})
    await stage.desk.report_on("Other", stage.task_id, PATIENCE_S)

    assert tracer.spans == []
