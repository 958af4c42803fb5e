"""Who asks over HTTP is carried by the task of every route and tick, by runs of pipelines, and by webhooks."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.callers import Caller
from tasklore.contracts.messages import PipelineReply, PipelineRequest, TaskAssignment
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.schedules import store
from tasklore.memory.schedules.store import Schedule, ScheduleState, ScheduleStore
from tasklore.memory.sessions.pipeline_records import NewRun
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.webhooks.outbox import WebhookOutbox
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.schedules.scheduler import Scheduler
from tasklore.supervisor.webhooks.addresses import Addresses
from tasklore.supervisor.webhooks.events import WebhookEvents
from tests.http_client import ask
from tests.integration.http_stand import CARD, Stand, http_stand
from tests.servers import PATIENCE_S
from tests.unit.supervisor.pipelines.fake_system import a_chain
from tests.unit.supervisor.reports import report_on

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ACME = Caller(name="shop", roles=frozenset({"ask"}), tenant="acme")
ECHO = {"agent_id": CARD.agent_id, "task": "echo", "parameters": {"word": "hi"}}


@dataclass
class Pipelines:
    """Takes every request, and keeps it."""

    asked: list[PipelineRequest] = field(default_factory=list)

    async def take_up(
        self, request: PipelineRequest, *, from_door: bool = False
    ) -> PipelineReply:
        self.asked.append(request)
        return PipelineReply(session_id=request.session_id or "s", kind="accepted")

    async def demand_sound(self, *_words: Any) -> None:
        return


@dataclass
class Keyed:
    """The API with a key of the tenant acme."""

    stand: Stand
    headers: dict[str, str]
    pipelines: Pipelines
    ledger: Ledger

    async def send(self, path: str, body: dict[str, Any]) -> Any:
        answer = await ask(self.stand.url, "POST", path, body, self.headers)
        assert answer.status < 300, answer.body
        return answer.body

    async def task(self, task_id: str) -> TaskAssignment:
        """Return a task as the ledger has it, once it does."""
        async with asyncio.timeout(PATIENCE_S):
            while (entry := await self.ledger.read(task_id)) is None:  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.05)
        body = entry.generations[entry.newest].assignment
        return TaskAssignment.model_validate_json(body or b"")


@pytest.fixture
async def keyed(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[Keyed]:
    file = tmp_path / "keys.json"
    key = make_key(file, "shop", ("ask",), None, tenant="acme")
    pipelines = Pipelines()
    async with http_stand(
        servers,
        redis,
        keys=KeyRing(file),
        pipelines=pipelines,
        webhooks=Addresses([ip_network("127.0.0.0/8")]),
    ) as stand:
        stand.service.gate.set()
        # The ticks of the stand refuse pipelines, whose requests are looked at here.
        object.__setattr__(stand.parts.ticks, "pipelines", pipelines.take_up)
        ledger = Ledger(redis, deadline_s=PATIENCE_S)
        yield Keyed(stand, {"Authorization": f"Bearer {key}"}, pipelines, ledger)


async def test_a_task_is_of_the_key_that_sent_it_and_so_is_its_webhook(
    keyed: Keyed, redis: Redis
) -> None:
    body = {**ECHO, "wait_seconds": 0, "callback_url": "http://127.0.0.1:1/"}
    sent = await keyed.send("/v1/tasks", body)
    task = await keyed.task(sent["task_id"])
    assert (task.caller, task.tenant) == (ACME, "acme")
    outbox = WebhookOutbox(redis, deadline_s=PATIENCE_S)
    [callback] = await outbox.callbacks([task.task_id])
    await WebhookEvents(outbox, Metrics("t")).note_reports([(report_on(task), "")])
    found = await outbox.find("waiting", 100)
    [webhook] = [
        one.webhook
        for one in found
        if task.task_id in json.loads(one.webhook.body)["data"].values()
    ]
    assert callback is not None
    assert (callback.caller, webhook.caller) == (ACME, ACME)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/requests", {"text": "hello"}),
        (
            "/v1/chat/completions",
            {"model": "tasklore", "messages": [{"role": "user", "content": "hello"}]},
        ),
    ],
)
async def test_words_are_of_the_key_that_said_them(
    keyed: Keyed, path: str, body: dict[str, Any]
) -> None:
    await keyed.send(path, body)
    [request] = keyed.stand.service.asked
    assert (request.caller, request.tenant) == (ACME, "acme")


async def test_ticks_and_runs_of_a_schedule_are_of_the_key_that_made_it(
    keyed: Keyed,
) -> None:
    await keyed.send("/v1/schedules", {**ECHO, "id": "beat", "every": 1})
    begun = await keyed.send("/v1/schedules/beat/run", {})
    assert (await keyed.task(begun["task_id"])).caller == ACME
    parts = keyed.stand.parts
    desk = Scheduler(parts.schedules, parts.ticks)
    running = asyncio.create_task(desk.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while (  # noqa: ASYNC110 - a server is asked
                kept := (await parts.schedules.store.read("beat"))[0]
            ) is None or kept.state.task_id is None:
                await asyncio.sleep(0.05)
    finally:
        await desk.drain()
        await running
    tick = await keyed.task(kept.state.task_id)
    assert (tick.caller, tick.tenant) == (ACME, "acme")


async def test_a_key_fills_its_part_of_the_schedules_and_no_others(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither naming users nor many keys take what is kept free for the code of agents and for operators."""
    for name, most in (("MOST", 10), ("RESERVED", 4), ("MOST_OF_MAKER", 3)):
        monkeypatch.setattr(store, name, most)
    kept = ScheduleStore(redis, "Bounded", deadline_s=PATIENCE_S)
    number = itertools.count()

    async def put(caller: Caller | None, user: str | None = None) -> int:
        return await kept.put(
            Schedule(
                id=f"s{next(number)}",
                timing=Timing(every_s=60),
                agent_id="A",
                task="t",
                user_id=user,
                caller=caller,
                anchor=NOW,
                created_at=NOW,
                changed_at=NOW,
            ),
            ScheduleState(),
            None,
        )

    named = [Caller(name="named").for_tenant(f"t{one}") for one in range(4)]
    assert [await put(one, f"u{one.tenant}") for one in named] == [1, 1, 1, -3]
    assert [await put(ACME) for _ in range(3)] == [1, 1, 1]
    assert await put(Caller(name="late")) == -2
    operator = Caller(name="night", roles=frozenset({"admin"}))
    assert [await put(one) for one in (None, operator, None, None)] == [1] * 4
    assert await put(None) == -2
    # One that a supervisor of 0.2 removed counts no more, nor does one that today's did.
    [first, second] = (await kept.list("ut0"))[:1] + (await kept.list("ut1"))[:1]
    await redis.hdel(keys.schedules("Bounded").records, first.schedule.id)
    assert await kept.remove(second.schedule)
    await kept.remove((await kept.list("ut2"))[0].schedule)
    await redis.hdel(
        keys.schedules("Bounded").records, *(f"s{one}" for one in (4, 5, 6, 8, 9))
    )
    assert [await put(named[0], "ux") for _ in range(4)] == [1, 1, 1, -3]


async def test_runs_of_pipelines_are_of_the_key_that_began_them(
    keyed: Keyed, redis: Redis
) -> None:
    """At once, at a time, by a schedule, and after a resume; the store keeps who it was."""
    declared = a_chain("a").model_dump(mode="json", exclude_defaults=True)
    await keyed.send("/v1/pipelines", {"pipeline": declared})
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    later = await keyed.send("/v1/pipelines", {"pipeline": declared, "at": soon})
    parts = keyed.stand.parts
    kept = next(
        one
        for one in await parts.schedules.store.list()
        if later["session_id"].startswith(one.schedule.id)
    )
    assert kept.schedule.caller == ACME
    await parts.ticks.run_now(kept.schedule)
    runs = PipelineRuns(redis, deadline_s=PATIENCE_S)
    new = NewRun(
        session_id="of-acme",
        pipeline=a_chain("a"),
        supervisor_id="S",
        state="failed",
        caller=Caller(name="till", tenant="acme"),
    )
    assert await runs.create(new)
    before = await runs.read("of-acme")
    await keyed.send("/v1/pipelines/of-acme/resume", {})
    await keyed.send("/v1/pipelines/of-acme/rerun", {"phase": "a"})
    assert [one.caller for one in keyed.pipelines.asked] == [ACME] * 4
    resumed = await runs.reset_phases("of-acme", {}, restart=True, caller=ACME)
    assert before is not None
    assert resumed is not None
    assert (before.caller, resumed.caller) == (new.caller, ACME)


async def test_a_run_keeps_its_caller_in_the_store(redis: Redis) -> None:
    runs = PipelineRuns(redis, deadline_s=PATIENCE_S)
    new = NewRun(
        session_id="whole", pipeline=a_chain("a"), supervisor_id="S", caller=ACME
    )
    assert await runs.create(new)
    record = await runs.read("whole")
    assert record is not None
    assert record.caller == ACME


async def test_a_run_is_of_who_asked_for_it_whatever_is_written_into_its_session(
    redis: Redis,
) -> None:
    """Workers write sessions; who asked is noted elsewhere while the run goes on, and no longer."""
    runs = PipelineRuns(redis, deadline_s=PATIENCE_S)
    new = NewRun(
        session_id="altered",
        pipeline=a_chain("a"),
        supervisor_id="S",
        caller=ACME,
        user_id="alice",
    )
    root = keys.session("altered").root
    boss = Caller(name="boss", roles=frozenset({"admin"}))
    forged = {"caller": boss.model_dump_json(), "user_id": "mallory"}

    assert await runs.create(new)
    await redis.hset(root, mapping=forged)
    record = await runs.read("altered")
    assert record is not None
    assert (record.caller, record.user_id) == (ACME, "alice")
    await redis.hdel(root, *forged)
    record = await runs.reset_phases("altered", {}, restart=True)
    assert record is not None
    assert (record.caller, record.user_id) == (ACME, "alice")
    assert not await runs.create(replace(new, caller=boss))
    record = await runs.read("altered")
    assert record is not None
    assert record.caller == ACME

    fence = await runs.claim("altered", "s1", 10_000)
    assert fence is not None
    assert await runs.end("altered", fence, "failed", b"{}", keep=True)
    assert await redis.exists(keys.run_makers()) == 0


async def test_a_run_of_0_2_is_as_its_session_says(redis: Redis) -> None:
    """Who asked for it was noted nowhere else."""
    runs = PipelineRuns(redis, deadline_s=PATIENCE_S)
    new = NewRun(
        session_id="older", pipeline=a_chain("a"), supervisor_id="S", user_id="alice"
    )
    assert await runs.create(new)
    await redis.delete(keys.run_makers())
    record = await runs.read("older")
    assert record is not None
    assert (record.caller, record.user_id) == (None, "alice")
