"""What the analysis of a response costs beyond the agents in it: ten that sleep, ten that do not, and none at all.

The longest chain of the roster has two agents: whoever waits for findings begins when they are there. An analysis is
timed from before its request to the arrival of the answer.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import nats
import nats.errors
from nats.aio.client import Client
from redis.asyncio import Redis

from benchmarks.lanes import assignment
from benchmarks.pipeline_rows import NOTHING
from benchmarks.processes import NotMeasuredError, Worker, running
from benchmarks.producer import PATIENCE_S, Asking, Producer
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, percentile, ratio
from tasklore.contracts import subjects
from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import (
    Entity,
    SeatSettings,
    StoryBase,
    StorySettings,
)
from tasklore.contracts.messages import AnalysisReply, AnalysisRequest
from tasklore.memory.rendering.prompt_context import within
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tasklore.workers.agents.story.names import Handles
from tasklore.workers.agents.story.prose import quotations, sentences

SUPERVISOR = "bench-analyses"
_AGENTS = len(SECTION_AGENTS)
#: Agents one after the other in the longest chain, and milliseconds that each sleeps.
CHAIN = 2
NAP_MS = 200
#: Milliseconds that an analysis may take beyond its longest chain, and that each agent may cost beyond its task.
ASKED_MS = 100.0
ASKED_EACH_MS = 5.0
#: Responses of one story: fewer than a supervisor keeps, so that the first can be served in the end.
MOST = 90
#: Seconds between two requests to a supervisor that is about to serve.
_AGAIN_S = 0.1
_SLOW = f"analysis by ten agents of {NAP_MS} ms"
_FAST = "analysis by ten instant agents"
_HOSTILE = "hostile 64 KB response, names and counts"
#: What such a response repeats: each was read anew from every place of it once.
_REPEATED = (".", "Mr. ", "'x ", "'x,' ", '"No." ', "\u00ab a", "Mara and ", "7 ")
_SERVED = "analysis served from memory"
_READ = "analysis read from the store"
_CONTEXT = "context of an analysis"


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, or one that says why there is no figure."""
    try:
        async with _stage(nats_url, redis_url) as stage:
            bare = await stage.bare(profile.questions)
            slow = await stage.analysed("slow", NAP_MS, max(5, profile.questions // 10))
            fast = await stage.analysed("fast", 0, min(MOST, profile.questions // 4))
            served, document = await stage.served(profile.questions)
            reads, gets = await _read(redis_url, profile.recalls)
    except (NotMeasuredError, TimeoutError, nats.errors.Error) as error:
        return [missing(_SLOW, str(error) or "no answer in time")]
    return [
        _slow_row(slow),
        _fast_row(fast, bare),
        _served_row(served, gets),
        _read_row(reads, gets),
        _context(document),
        _hostile(),
    ]


@dataclass(frozen=True)
class _Timed:
    """Milliseconds of each analysis, and CPU milliseconds of the supervisor over all of them."""

    took_ms: list[float]
    cpu_ms: float


class _Stage:
    """A supervisor with two workers, and whoever asks them."""

    def __init__(
        self, client: Client, redis: Redis, asking: Asking, processes: list[Worker]
    ) -> None:
        self._client = client
        self._stories = StoryStore(redis)
        self._asking = asking
        self._processes = processes

    async def bare(self, count: int) -> list[float]:
        """Return the milliseconds of *count* tasks that do nothing."""
        await self._asking.ask(assignment(NOTHING, {"number": 0}))
        return [
            (await self._asking.ask(assignment(NOTHING, {"number": number})))[0]
            for number in range(count)
        ]

    async def analysed(self, story_id: str, nap_ms: int, count: int) -> _Timed:
        """Have *count* responses of a new story analysed, one after the other."""
        on = {"contradiction": SeatSettings(enabled=True)}
        await self._stories.load(
            StoryBase(settings=StorySettings(story_id=story_id, agents=on))
        )
        await self._ready(story_id)
        supervisor = self._processes[0]
        took = list[float]()
        cpu_s = supervisor.cpu_s()
        for number in range(1, count + 1):
            taken_ms, reply = await self.ask(
                story_id, number, f"{nap_ms} {'Marcus said nothing. ' * 100}"
            )
            if reply.document is None or reply.document["meta"]["agents_ok"] != _AGENTS:  # type: ignore[index,call-overload]
                raise NotMeasuredError(
                    f"an analysis is {reply.kind}: {reply.text or reply.document}"
                )
            took.append(taken_ms)
        return _Timed(took, (supervisor.cpu_s() - cpu_s) * 1000)

    async def served(self, count: int) -> tuple[list[float], AnalysisDocument]:
        """Ask for one of the responses again and again."""
        took = list[float]()
        for _ in range(count + count // 10):
            taken_ms, reply = await self.ask("fast", 1, None)
            if not reply.served or reply.document is None:
                raise NotMeasuredError(
                    f"an analysis was not served: {reply.kind} {reply.text}"
                )
            took.append(taken_ms)
            document = reply.document
        return took[count // 10 :], read_document(document)

    async def ask(
        self, story_id: str, number: int, text: str | None
    ) -> tuple[float, AnalysisReply]:
        """Return the milliseconds until the answer, and the answer."""
        request = AnalysisRequest(
            story_id=story_id, response_number=number, text=text, wait_ms=60_000
        )
        body = request.model_dump_json(exclude_none=True).encode()
        started = time.perf_counter()
        answer = await self._client.request(
            subjects.analyses(SUPERVISOR), body, timeout=PATIENCE_S
        )
        taken_ms = (time.perf_counter() - started) * 1000
        for process in self._processes:
            process.ensure_running()
        return taken_ms, AnalysisReply.model_validate_json(answer.data)

    async def _ready(self, story_id: str) -> None:
        """Return once the supervisor knows every agent."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with contextlib.suppress(nats.errors.NoRespondersError):
                    reply = (await self.ask(story_id, 0, "0 Marcus said nothing."))[1]
                    if (
                        reply.document is not None
                        and reply.document["meta"]["agents_ok"] == _AGENTS
                    ):  # type: ignore[index,call-overload]
                        return
                await asyncio.sleep(_AGAIN_S)


@contextlib.asynccontextmanager
async def _stage(nats_url: str, redis_url: str) -> AsyncIterator[_Stage]:
    environment = {
        "TASKLORE_NATS_URL": nats_url,
        "TASKLORE_REDIS_URL": redis_url,
        "TASKLORE_SUPERVISOR_ID": SUPERVISOR,
        "TASKLORE_LOG_LEVEL": "warning",
    }
    tasklore = [sys.executable, "-m", "tasklore"]
    async with contextlib.AsyncExitStack() as stack:
        producer = await stack.enter_async_context(Producer(nats_url, redis_url))
        await producer.prepare(NOTHING)
        commands = [
            [*tasklore, "supervisor"],
            *[[*tasklore, "worker", "benchmarks.agents.tellers"]] * 2,
        ]
        processes = [
            await stack.enter_async_context(running(command, environment))
            for command in commands
        ]
        await stack.enter_async_context(producer.worker(NOTHING))
        asking = await stack.enter_async_context(producer.asking(NOTHING))
        client = await nats.connect(nats_url)
        stack.push_async_callback(client.close)
        yield _Stage(
            client,
            await stack.enter_async_context(Redis.from_url(redis_url)),
            asking,
            processes,
        )


async def _read(redis_url: str, count: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of *count* reads of a document, and of as many GETs of its bytes, in turns."""
    async with Redis.from_url(redis_url) as redis:
        store = AnalysisStore(redis)
        raw = await store.raw("fast", 1)
        await redis.set("bench:document", raw or b"")
        reads = list[float]()
        gets = list[float]()
        for _ in range(count):
            reads.append(await _timed(lambda: store.read("fast", 1)))
            gets.append(await _timed(lambda: redis.get("bench:document")))
        await redis.delete("bench:document")
    return reads, gets


async def _timed(call: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    if await call() is None:
        raise NotMeasuredError("the document has gone")
    return (time.perf_counter() - started) * 1000


def _slow_row(timed: _Timed) -> Row:
    over_ms = percentile(timed.took_ms, 0.5) - CHAIN * NAP_MS
    return Row(
        _SLOW,
        p50_ms=percentile(timed.took_ms, 0.5),
        p99_ms=percentile(timed.took_ms, 0.99),
        compared=f"p50 {over_ms:+.1f} ms over the chain of {CHAIN}, asked at most {ASKED_MS:g}",
        how=f"{len(timed.took_ms)} responses one after the other, two workers, one supervisor; request to answer",
    )


def _fast_row(timed: _Timed, bare: list[float]) -> Row:
    bare_ms = percentile(bare, 0.5)
    each_ms = (percentile(timed.took_ms, 0.5) - CHAIN * bare_ms) / _AGENTS
    cpu_ms = timed.cpu_ms / len(timed.took_ms) / _AGENTS
    return Row(
        _FAST,
        cpu_us=cpu_ms * 1000,
        p50_ms=percentile(timed.took_ms, 0.5),
        p99_ms=percentile(timed.took_ms, 0.99),
        compared=f"{each_ms:.2f} ms an agent over {CHAIN} bare tasks of {bare_ms:.2f} ms, asked at most "
        f"{ASKED_EACH_MS:g}",
        how=f"{len(timed.took_ms)} responses; CPU is the supervisor's, an agent",
    )


def _served_row(served: list[float], gets: list[float]) -> Row:
    return Row(
        _SERVED,
        p50_ms=percentile(served, 0.5),
        p99_ms=percentile(served, 0.99),
        compared=f"p50 {ratio(percentile(served, 0.5), percentile(gets, 0.5))} raw GET of the same bytes",
        how=f"{len(served):,} requests to a supervisor, no agent asked",
    )


def _read_row(reads: list[float], gets: list[float]) -> Row:
    return Row(
        _READ,
        p50_ms=percentile(reads, 0.5),
        p99_ms=percentile(reads, 0.99),
        compared=f"p50 {ratio(percentile(reads, 0.5), percentile(gets, 0.5))} GET of {percentile(gets, 0.5):.3f} ms",
        how=f"{len(reads):,} of each in turns; validated, and told whether it is stale",
    )


def _context(document: AnalysisDocument) -> Row:
    took = list[float]()
    tokens = 0
    for _ in range(200):
        started = time.perf_counter()
        tokens = within(document).tokens
        took.append((time.perf_counter() - started) * 1000)
    return Row(
        _CONTEXT,
        p50_ms=percentile(took, 0.5),
        p99_ms=percentile(took, 0.99),
        compared=f"{tokens} tokens of 350",
        how=f"a document of {len(document.minified()):,} bytes",
    )


def _hostile() -> Row:
    mara = (Entity(name="Mara Voss", kind="character"),)
    took = dict[str, float]()
    for fragment in _REPEATED:
        text = (fragment * 64_000)[:64_000]
        started = time.process_time()
        sentences(text)
        quotations(text)
        Handles(mara).count(text)
        took[fragment] = (time.process_time() - started) * 1000
    worst = max(took, key=lambda fragment: took[fragment])
    return Row(
        _HOSTILE,
        cpu_us=took[worst] * 1000,
        compared=f"{took[worst]:.0f} ms CPU for the worst, {worst!r} again and again",
        how=f"{len(took)} texts; sentences, speech and names of each",
    )
