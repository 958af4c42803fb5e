"""Pipelines driven on real servers by desks that die, leave and take over; workers are functions here."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

from nats.aio.client import Client
from nats.aio.msg import Msg
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.callers import Caller
from tasklore.contracts.messages import (
    AgentCard,
    CompletionReport,
    MemoryNote,
    PipelineEvent,
    PipelineReply,
    PipelineRequest,
    TaskAssignment,
    TaskCard,
)
from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import RunPermission
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import NewEntry, SessionCache
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.pipelines.driver import PipelineDriver
from tasklore.supervisor.pipelines.live import DriverDependencies, event_publisher
from tasklore.supervisor.pipelines.requests import Driving, PipelineRequests
from tasklore.supervisor.reports.reports import ReportWaiter

#: Seconds for a fact on a busy machine.
PATIENCE_S = 60.0
#: Milliseconds that every task says it took.
TOOK_MS = 1_000

Work = Callable[[dict[str, Any]], Any]


@dataclass
class Scene:
    """What a supervisor has, on real servers, and one agent "A" whose tasks are the functions in *works*."""

    client: Client
    redis: Redis
    parts: DriverDependencies
    requests: PipelineRequests
    works: dict[str, Work]
    outbox: Outbox
    ledger: Ledger
    runs: Counter[str] = field(default_factory=Counter)
    callers: dict[str | None, Caller | None] = field(default_factory=dict)
    desks: list[PipelineDriver] = field(default_factory=list)
    events: list[PipelineEvent] = field(default_factory=list)
    doing: set[asyncio.Task[None]] = field(default_factory=set)

    async def hear_task(self, message: Msg) -> None:
        doing = asyncio.create_task(
            self._work(TaskAssignment.model_validate_json(message.data))
        )
        self.doing.add(doing)
        doing.add_done_callback(self.doing.discard)

    async def hear_event(self, message: Msg) -> None:
        self.events.append(PipelineEvent.model_validate_json(message.data))

    async def _work(self, task: TaskAssignment) -> None:
        begun = await self.ledger.begin(task.task_id, 1, "w", 1, 60_000, token="w")
        if not isinstance(begun, RunPermission):
            return
        self.runs[task.phase] += 1
        self.callers[task.phase] = task.caller
        result = self.works[task.task.name](task.task.parameters)
        result = await result if asyncio.iscoroutine(result) else result
        entry = NewEntry(
            key=f"{task.phase}:results", value=result, agent="A", computation_ms=TOOK_MS
        )
        await self.parts.cache.set_many(
            task.session_id or "", [entry], task_id=task.task_id
        )
        report = CompletionReport(
            task_id=task.task_id,
            agent_id="A",
            supervisor_id=task.supervisor_id,
            task_name=task.task.name,
            status="completed",
            memory=MemoryNote(outcome="miss"),
            worker_id="w",
            run_ms=TOOK_MS,
            finished_at=datetime.now(UTC),
        ).model_dump_json().encode()  # fmt: skip
        earlier = await self.ledger.finish(task.task_id, 1, "completed", report)
        subject = subjects.report(task.supervisor_id, task.task_id, 1)
        await self.outbox.put(
            subject, earlier or report, subjects.report_message_id(task.task_id, 1)
        )

    async def ask(self, action: str, session_id: str, **told: Any) -> PipelineReply:
        """Ask for something of pipelines, and see it accepted."""
        pipeline = told.pop("pipeline", None)
        declared = pipeline.model_dump(mode="json") if pipeline is not None else None
        request = PipelineRequest(
            action=action, session_id=session_id, pipeline=declared, **told
        )
        reply = await self.requests.answer_bytes(request.model_dump_json().encode())
        assert reply.kind == "accepted", reply
        return reply

    async def outcome(self, session_id: str) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while (told := await self.parts.runs.outcome(session_id)) is None:  # noqa: ASYNC110 - a store tells nobody
                await asyncio.sleep(0.01)
        return dict(json.loads(told))

    async def until_run(self, phase: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.runs[phase]:  # noqa: ASYNC110 - the functions tell nobody
                await asyncio.sleep(0.01)

    @contextlib.asynccontextmanager
    async def desk(
        self, name: str = "d1", lease_s: float = 5.0
    ) -> AsyncIterator[PipelineDriver]:
        desk = PipelineDriver(self.parts, holder=name, lease_s=lease_s)
        self.desks.append(desk)
        working = asyncio.create_task(desk.run())
        try:
            yield desk
        finally:
            self.desks.remove(desk)
            desk._give_back = AsyncMock()  # type: ignore[method-assign] # as SIGKILL: it gives nothing back
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


@contextlib.asynccontextmanager
async def a_scene(
    servers: EmbeddedServers,
    folder: Path,
    *,
    makers: Makers | None = None,
    **works: Work,
) -> AsyncIterator[Scene]:
    """Open a supervisor's parts on *servers*."""
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            connected(servers.nats_url, "pipelines")
        )
        redis = await stack.enter_async_context(valkey.connect(servers.redis_url))
        await redis.flushdb()
        link = Link(client)
        outbox = await stack.enter_async_context(open_outbox(link))
        await declare_streams(client, StreamSizes())
        ledger = Ledger(redis, deadline_s=PATIENCE_S)
        reports = ReportWaiter(client, ledger)
        await link.listen(subjects.reports_to("S"), reports.hear_hint)
        parts = DriverDependencies(
            supervisor_id="S",
            runs=PipelineRuns(redis, deadline_s=PATIENCE_S),
            cache=SessionCache(redis, deadline_s=PATIENCE_S),
            projects=ProjectMemory(redis, deadline_s=PATIENCE_S),
            dispatch=Dispatch(outbox, ledger),
            reports=reports,
            canceller=Canceller(
                client, outbox, ledger, "S-1", waiting=WaitingTasks(redis)
            ),
            tell=event_publisher(link),
            meter=Metrics(),
            evidence_dir=folder / "evidence",
            makers=makers or Makers(),
        )
        tasks = tuple(
            TaskCard(name=name, parameters={"type": "object"}) for name in works
        )
        desks: list[PipelineDriver] = []
        driving = Driving(
            lambda session_id: [desk.look_soon(session_id) for desk in desks] and None,
            lambda session_id, reason: any(
                desk.cancel(session_id, reason) for desk in desks
            ),
        )
        card = AgentCard(agent_id="A", tasks=tasks, digest="0")
        requests = PipelineRequests(parts, cards=lambda: {"A": card}, driving=driving)
        scene = Scene(
            client, redis, parts, requests, works, outbox, ledger, desks=desks
        )
        await client.subscribe(subjects.tasks_of("A"), cb=scene.hear_task)
        await client.subscribe(
            subjects.run_events("any").replace("any", "*"), cb=scene.hear_event
        )
        yield scene
        for doing in list(scene.doing):
            doing.cancel()
        await asyncio.gather(*scene.doing, return_exceptions=True)


def a_phase(name: str, task: str = "echo", **told: Any) -> Phase:
    """Return a phase of the agent "A"."""
    return Phase(name=name, agent="A", task=task, **told)


def nine() -> Pipeline:
    """Return nine phases: three in a row, three side by side, what joins them, a correction, a report."""
    return Pipeline(
        name="nine",
        inputs={"x": Input(type="number", default=1)},
        phases=(
            a_phase("a", parameters={"x": "${input.x}"}),
            a_phase("b", parameters={"x": "${a:results.x}"}),
            a_phase("c", parameters={"x": "${b:results.x}"}),
            *(
                a_phase(name, parameters={"x": "${c:results.x}", "of": name})
                for name in ("d", "e", "f")
            ),
            a_phase(
                "g",
                parameters={name: f"${{{name}:results.x}}" for name in ("d", "e", "f")},
            ),
            a_phase("h", parameters={"g": "${g:results.d}", "h": True}, corrects="g"),
            a_phase("i", parameters={"g": "${g:results}"}),
        ),
    )


def echo(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters."""
    return parameters


def a_gate() -> tuple[asyncio.Event, Work]:
    """Return an event, and work that waits for it and returns its parameters."""
    release = asyncio.Event()

    async def wait(parameters: dict[str, Any]) -> dict[str, Any]:
        await release.wait()
        return parameters

    return release, wait


#: Uses of entries in an undisturbed run of `nine`, by hand: a 1, b 1, c 3, d, e, f 1 each, g 1 (by h), h 1 (by i).
USES = 10


async def test_a_desk_that_is_killed_inside_a_phase_is_replaced(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    release, stop = a_gate()
    pipeline = nine()
    held = tuple(
        one.model_copy(update={"task": "stop"}) if one.name == "e" else one
        for one in pipeline.phases
    )
    async with a_scene(servers, tmp_path, echo=echo, stop=stop) as scene:
        async with scene.desk("first", lease_s=0.5):
            await scene.ask(
                "run", "s1", pipeline=pipeline.model_copy(update={"phases": held})
            )
            await scene.until_run("e")
        async with scene.desk("second", lease_s=0.5):
            release.set()
            ended = await scene.outcome("s1")
    assert scene.runs == dict.fromkeys("abcdefghi", 1)
    assert ended["result"] == {"i:results": {"g": {"g": 1, "h": True}}}
    assert ended["stats"]["total_hits"] == USES


async def test_a_desk_that_leaves_gives_its_runs_back_at_once(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    release, stop = a_gate()
    async with a_scene(servers, tmp_path, stop=stop) as scene:
        desk = PipelineDriver(scene.parts, holder="first", lease_s=3600)
        working = asyncio.create_task(desk.run())
        await scene.ask(
            "run", "s1", pipeline=Pipeline(name="p", phases=(a_phase("one", "stop"),))
        )
        await scene.until_run("one")
        assert desk.driven == ("s1",)
        await desk.drain()
        await working
        assert await scene.parts.runs.due("S") == ["s1"]
        async with scene.desk("second"):
            release.set()
            assert (await scene.outcome("s1"))["state"] == "completed"
    assert scene.runs == {"one": 1}


async def test_two_desks_at_once_drive_each_run_once_to_its_result(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    """Each phase once, no use counted twice; the session is gone, and outcome, history and events remain."""
    names = [f"s{number}" for number in range(1, 16)]
    async with (
        a_scene(servers, tmp_path, echo=echo) as scene,
        scene.desk("first"),
        scene.desk("second"),
    ):
        await scene.ask("run", "s0", pipeline=nine(), inputs={"x": 0})
        assert (await scene.outcome("s0"))["result"] == {
            "i:results": {"g": {"g": 0, "h": True}}
        }
        async with asyncio.timeout(PATIENCE_S):
            while not scene.events or scene.events[-1].kind != "completed":  # noqa: ASYNC110 - a list makes no event
                await asyncio.sleep(0.01)
        assert sorted(
            event.phase for event in scene.events if event.kind == "phase_done"
        ) == list("abcdefghi")
        await asyncio.gather(
            *(
                scene.ask("run", name, pipeline=nine(), inputs={"x": number})
                for number, name in enumerate(names, 1)
            )
        )
        for number, name in enumerate(names, 1):
            ended = await scene.outcome(name)
            assert ended["result"] == {"i:results": {"g": {"g": number, "h": True}}}
            assert (
                ended["stats"]["total_hits"],
                ended["stats"]["total_saved_time_ms"],
            ) == (USES, 0)
            assert await scene.parts.cache.root(name) is None
        assert scene.runs == dict.fromkeys("abcdefghi", 16)
        history = await scene.parts.projects.search("nine", kind="history")
        assert [record.data["saved_ms"] for record in history] == [0] * 16


async def test_a_run_goes_on_after_the_store_was_away(
    own_servers: EmbeddedServers, tmp_path: Path
) -> None:
    release, stop = a_gate()
    async with a_scene(own_servers, tmp_path, echo=echo, stop=stop) as scene:
        quick = replace(scene.parts, runs=PipelineRuns(scene.redis, deadline_s=0.2))
        desk = PipelineDriver(quick, holder="d", lease_s=0.5)
        working = asyncio.create_task(desk.run())
        phases = (
            a_phase("one"),
            a_phase("two", "stop", after=("one",)),
            a_phase("three", after=("two",)),
        )
        await scene.ask("run", "s1", pipeline=Pipeline(name="p", phases=phases))
        await scene.until_run("two")
        await own_servers.valkey.stop()
        async with asyncio.timeout(PATIENCE_S):
            while desk.driven:  # noqa: ASYNC110 - a desk tells nobody
                await asyncio.sleep(0.01)
        await own_servers.valkey.start()
        release.set()
        assert (await scene.outcome("s1"))["state"] == "completed"
        await desk.drain()
        await working
    assert scene.runs == {"one": 1, "two": 1, "three": 1}
