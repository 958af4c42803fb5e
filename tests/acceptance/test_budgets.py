"""Budgets with real workers, real stores and a provider with books of its own."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import NANO_USD, read_limits
from tasklore.contracts.messages import CompletionReport
from tasklore.memory import keys
from tasklore.memory.budgets.overview import read_overview
from tasklore.memory.budgets.store import Budgets, Spending
from tasklore.memory.functions import load_functions
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import make_key
from tasklore.supervisor.program_client import Asker, asking
from tests.acceptance.autoscaler import monitored
from tests.acceptance.system import AGENTS, System
from tests.http_client import PATIENCE_S
from tests.http_client import ask as http
from tests.llm_double import Asked, Canned, ScriptedLlm, answer

ASKER = str(AGENTS / "asker.py")
#: A dollar for a million tokens, so that a token costs a thousand of our units.
PRICE = "gpt-6.1-terra=1/1,cheap=0.1/0.1"
MODEL = "gpt-6.1-terra"
#: Seconds by which a schedule may be early, since what is due is read in whole
#: milliseconds by two clocks.
EARLY_S = 0.2


class Provider:
    """A provider that counts every call as it arrives, by task and in all."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.llm = ScriptedLlm(self._respond)
        self.delay_s = delay_s
        self.tokens = 0
        self.calls = 0
        self.by_task = Counter[str]()
        self._lock = threading.Lock()

    def _respond(self, asked: Asked) -> Canned:
        with self._lock:
            number = int(asked.user.rpartition(" ")[2])
            read = 100 + number % 50
            written = 10 + number % 20
            self.calls = self.calls + 1
            self.tokens = self.tokens + read + written
            self.by_task[asked.user] += 1
        said = {"reasoning": "it is", "colour": "red"}
        return answer(said, input_tokens=read, output_tokens=written).after(
            self.delay_s
        )


@asynccontextmanager
async def governed(
    system: System, provider: Provider, *limits: dict[str, Any], **more: Any
) -> AsyncIterator[Redis]:
    """Declare *limits* in the store of *system*, while *provider* answers."""
    async with provider.llm, Redis.from_url(system.servers.redis_url) as redis:
        await load_functions(redis)
        await Budgets(redis).change(read_limits({"limits": limits, **more}), "test")
        yield redis


def settings(provider: Provider, **more: Any) -> dict[str, Any]:
    """Return the settings of a worker that asks *provider*."""
    return {
        "llm_base_url": provider.llm.base_url,
        "llm_prices": PRICE,
        "llm_max_concurrency": 64,
        **more,
    }


def program(system: System) -> AbstractAsyncContextManager[Asker]:
    """Connect a program that asks for tasks."""
    return asking(
        "Shop", nats_url=system.servers.nats_url, redis_url=system.servers.redis_url
    )


async def ask(asker: Asker, number: int, **options: Any) -> CompletionReport:
    """Ask for the colour of a thing."""
    return await asker.ask("AskerAgent", "colour", {"number": number}, **options)


async def spent(redis: Redis) -> Spending:
    """Return what the books have of today."""
    lines = await Budgets(redis).book([f"{datetime.now(UTC):%Y-%m-%d}"])
    return next(
        line.spending
        for line in lines
        if line.agent == "AskerAgent" and line.model == MODEL
    )


async def test_a_task_without_room_waits_without_a_slot_and_uncounted(
    own_system: System,
) -> None:
    """It begins when there is room, is at its first attempt, and the report names the model and the cost."""
    provider = Provider()
    async with governed(
        own_system, provider, {"name": "rpm", "requests": 1000, "every": "minute"}
    ) as redis:
        with own_system.worker(ASKER, **settings(provider, slots=1)) as worker:
            await asyncio.to_thread(worker.ready)
            until = time.time() + 9
            await redis.hset(
                keys.budget("account", "rpm"), "blocked", str(int(until * 1000))
            )
            async with asking(
                "Shop",
                nats_url=own_system.servers.nats_url,
                redis_url=own_system.servers.redis_url,
            ) as asker:
                waiting = asyncio.create_task(ask(asker, 7))
                await asyncio.sleep(5)
                # The only slot is free for others meanwhile.
                double = await asker.ask(
                    "AskerAgent", "double", {"number": 4}, within=timedelta(seconds=20)
                )
                assert (double.status, waiting.done()) == ("completed", False)
                report = await asyncio.wait_for(waiting, 60)
            assert time.time() >= until - 0.5
            assert (report.status, report.attempt) == ("completed", 1)
            assert report.usage.models == (MODEL,)
            assert report.usage.cost_usd == pytest.approx((107 + 17) / 1_000_000)
            assert provider.calls == 1


async def test_another_model_answers_when_the_budget_says_so(
    own_system: System,
) -> None:
    """The next of its chain that is cheaper; where there is none the task fails with the limit's name."""
    provider = Provider()
    limit = {
        "name": "day",
        "model": MODEL,
        "usd": "0.000001",
        "every": "day",
        "at_limit": "next",
    }
    async with governed(
        own_system, provider, limit, fallbacks={MODEL: ["cheap"]}
    ) as redis:
        with own_system.worker(ASKER, **settings(provider)) as worker:
            await asyncio.to_thread(worker.ready)
            async with asking(
                "Shop",
                nats_url=own_system.servers.nats_url,
                redis_url=own_system.servers.redis_url,
            ) as asker:
                report = await ask(asker, 1)
                assert (report.status, report.usage.models) == ("completed", ("cheap",))
                painted = await asker.ask("AskerAgent", "paint", {"number": 2})
                assert (painted.status, painted.usage.models) == (
                    "completed",
                    ("cheap",),
                ), painted
                await Budgets(redis).change(read_limits({"limits": [limit]}), "test")
                await asyncio.sleep(2.5)
                refused = await ask(asker, 3)
            assert refused.status == "failed"
            assert refused.error is not None
            assert (refused.error.type, "'day'" in refused.error.message) == (
                "BudgetSpent",
                True,
            )


async def test_a_remembered_answer_costs_nothing_and_says_what_it_saved(
    own_system: System,
) -> None:
    provider = Provider()
    async with governed(own_system, provider) as redis:
        with own_system.worker(ASKER, **settings(provider)) as worker:
            await asyncio.to_thread(worker.ready)
            async with asking(
                "Shop",
                nats_url=own_system.servers.nats_url,
                redis_url=own_system.servers.redis_url,
            ) as asker:
                first, again = [
                    await asker.ask("AskerAgent", "tint", {"number": 5})
                    for _ in range(2)
                ]
            assert again.memory.outcome == "hit"
            assert again.usage.saved_usd == pytest.approx(first.usage.cost_usd)
            assert (again.usage.input_tokens, provider.calls) == (0, 1)
            await asyncio.sleep(0.5)
            lines = await Budgets(redis).book([f"{datetime.now(UTC):%Y-%m-%d}"])
            saved = next(
                line.spending.saved for line in lines if line.model == "recalled"
            )
            assert saved == pytest.approx(first.usage.cost_usd, abs=1 / NANO_USD)


@pytest.mark.parametrize("stores", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.parametrize(
    ("tasks", "kills"), [(120, 2), pytest.param(240, 3, marks=pytest.mark.long)]
)
async def test_our_books_and_the_providers_agree_while_workers_are_killed(
    own_system: System, tasks: int, kills: int, stores: bool
) -> None:
    """What arrived is booked once, to the token. What a killed worker had under way stays as unconfirmed as it is.

    With *stores* Valkey and NATS are killed too: no reply comes before the write, so that their own end loses nothing.
    Idle workers look after nobody's reservations: the supervisor ends those that nobody renews.
    """
    provider = Provider(delay_s=0.4)
    limits = [
        {"name": "day", "usd": 50, "every": "day", "at_limit": "refuse"},
        {"name": "tpm", "tokens": 10_000_000, "every": "minute"},
    ]
    async with governed(own_system, provider, *limits) as redis:
        given = settings(provider, slots=8)
        await asyncio.to_thread(own_system.supervisor().ready)
        own_system.worker(ASKER, **given).ready()
        victim = await asyncio.to_thread(own_system.worker(ASKER, **given).ready)
        async with program(own_system) as asker:
            asked = [
                asyncio.create_task(
                    ask(asker, number, memory="bypass", within=timedelta(seconds=300))
                )
                for number in range(tasks)
            ]
            for kill in range(kills):
                # While calls are under way, however slow the machine is.
                async with asyncio.timeout(60):
                    while provider.calls < (kill + 1) * tasks // (kills + 2):  # noqa: ASYNC110 - another thread
                        await asyncio.sleep(0.02)
                victim.kill()
                for server in (
                    (own_system.servers.valkey, own_system.servers.nats)
                    if stores
                    else ()
                ):
                    server.kill()
                    await asyncio.sleep(0.5)
                    await server.start()
                victim = await asyncio.to_thread(
                    own_system.worker(ASKER, **given).ready
                )
            reports = await asyncio.gather(*asked)
        assert {report.status for report in reports} == {"completed"}, reports
        ended = time.monotonic()
        while any(one.reserved for one in await Budgets(redis).standings()):
            # A reservation that nobody renews is over after 20 s.
            assert time.monotonic() - ended < 100
            await asyncio.sleep(0.2)
        ours = await spent(redis)
        lost = provider.calls - ours.calls
        billed = provider.tokens * 1_000
        booked = round(ours.usd * NANO_USD)
        figures = f"{provider.calls} calls, {lost} unconfirmed: {billed} billed, {booked} booked"
        print(  # noqa: T201 - the figures
            f"{figures}; free again {time.monotonic() - ended:.1f} s after the last report"
        )
        # A call whose worker died behind its report and before its settlement stays unconfirmed.
        assert provider.calls >= tasks
        assert lost >= 0
        assert 0 <= billed - booked <= round(ours.unconfirmed * NANO_USD)
        assert (lost == 0) == (billed == booked)
        day = next(one for one in await Budgets(redis).standings() if one.key == "day")
        assert (day.spent, day.unconfirmed) == (
            booked,
            round(ours.unconfirmed * NANO_USD),
        )


@pytest.fixture
async def watched_system(tmp_path: Path) -> AsyncIterator[System]:
    """Give a system whose NATS shows what the autoscaler reads."""
    async with EmbeddedServers(tmp_path / "servers", monitor=True) as servers:
        with System(servers, tmp_path) as system:
            yield system


@pytest.mark.parametrize("tasks", [60, pytest.param(10_000, marks=pytest.mark.long)])
async def test_parked_tasks_hold_nothing_and_begin_in_order_when_there_is_room(
    watched_system: System, tasks: int
) -> None:
    """No slot, nothing pending, nothing for the autoscaler to see; each begins at its turn."""
    provider = Provider()
    begun = dict[int, float]()
    respond = provider.llm.respond
    assert respond is not None

    def note(asked: Asked) -> Canned:
        begun.setdefault(int(asked.user.rpartition(" ")[2]), time.time())
        return respond(asked)  # type: ignore[return-value]

    provider.llm.respond = note
    # Ten turns a second in the small run, 15 in the large one: a worker that shares two cores with the provider, the
    # servers and other work makes some 30 calls a second, and a turn that comes sooner than that says nothing of turns.
    rate = 600 if tasks < 1_000 else 900
    async with governed(
        watched_system, provider, {"name": "rpm", "requests": rate, "every": "minute"}
    ) as redis:
        with watched_system.worker(ASKER, **settings(provider, slots=64)) as worker:
            await asyncio.to_thread(worker.ready)
            blocked_s = 15 + tasks / 50
            until = time.time() + blocked_s
            await redis.hset(
                keys.budget("account", "rpm"), "blocked", str(int(until * 1000))
            )
            async with program(watched_system) as asker:
                within = timedelta(seconds=blocked_s + 1_200)
                asked = []
                for number in range(tasks):
                    asked.append(asyncio.create_task(ask(asker, number, within=within)))
                    if number % 100 == 99:
                        await asyncio.sleep(0.25)
                queue = keys.budget("account", "rpm") + ":queue"
                while (waiting := await redis.zcard(queue)) < tasks or held(
                    watched_system
                ) != 0:
                    assert time.time() < until - 1, (waiting, held(watched_system))
                    await asyncio.sleep(0.2)
                due = {
                    name.decode(): at / 1000
                    for name, at in await redis.zrange(queue, 0, -1, withscores=True)
                }
                assert not begun
                reports = await asyncio.gather(*asked)
    assert {(report.status, report.attempt) for report in reports} == {("completed", 1)}
    turns = sorted(
        (due[f"{report.task_id}:1"], number) for number, report in enumerate(reports)
    )
    late = sorted(begun[number] - at for at, number in turns)
    places = {
        number: place for place, number in enumerate(sorted(begun, key=begun.get))
    }  # type: ignore[arg-type]
    moved = [abs(places[number] - place) for place, (_, number) in enumerate(turns)]
    p95 = late[int(0.95 * len(late))]
    print(  # noqa: T201 - the figures
        f"{tasks} parked: begun {late[0]:.2f} s after its turn at least, "
        f"p50 {late[len(late) // 2]:.2f} s, p95 {p95:.2f} s; "
        f"{sum(moved) / tasks:.1f} places from its turn, at most {max(moved)}"
    )
    assert len(begun) == tasks == provider.calls
    assert late[0] >= -EARLY_S
    # All turns of a second come together; in any order it would be a third of all.
    assert sum(moved) / tasks <= rate / 60


def held(system: System) -> int | None:
    """Return what the autoscaler sees of the agent's queue."""
    return monitored([system.servers.nats.monitor_url], "TASKS", "AskerAgent")


async def test_a_tenant_without_budget_does_not_go_on_by_a_schedule(
    own_system: System, tmp_path: Path
) -> None:
    """Ticks are booked to the tenant of the key that made the schedule, and wait as its own tasks do."""
    provider = Provider()
    file = tmp_path / "keys.json"
    key = make_key(file, "shop", ("ask",), None, tenant="acme")
    headers = {"Authorization": f"Bearer {key}"}
    limit = {"name": "acme", "tenant": "acme", "requests": 2, "every": "day"}
    async with governed(own_system, provider, limit) as redis:
        supervisor = own_system.supervisor(api_keys_file=file)
        with supervisor, own_system.worker(ASKER, **settings(provider)) as worker:
            await asyncio.to_thread(worker.ready)
            url = (await asyncio.to_thread(supervisor.ready)).api
            await asyncio.to_thread(supervisor.await_agents, 1)
            task = {"agent_id": "AskerAgent", "task": "colour"}
            for number in range(2):
                body = {**task, "parameters": {"number": number}, "wait_seconds": 60}
                done = await http(url, "POST", "/v1/tasks", body, headers)
                assert done.body["report"]["status"] == "completed"
            schedule = {**task, "parameters": {"number": 7}, "every": 1}
            added = await http(url, "POST", "/v1/schedules", schedule, headers)
            assert added.status == 201
            async with asyncio.timeout(PATIENCE_S):
                while not any(  # noqa: ASYNC110 - a server is asked
                    account.waiting
                    for account in (
                        await read_overview(Budgets(redis), datetime.now(UTC))
                    ).accounts
                ):
                    await asyncio.sleep(0.1)
            lines = await Budgets(redis).book([f"{datetime.now(UTC):%Y-%m-%d}"])
    assert provider.calls == 2
    assert {line.tenant for line in lines} == {"acme"}
