"""A provider of language models that is away: tasks wait for it without losing attempts, and nothing else waits."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.command import environment, tasklore
from tests.acceptance.external_program import Json, Outside, outside
from tests.acceptance.system import AGENTS, Served, System
from tests.llm_double import Asked, Canned, Scripted, ScriptedLlm, fault, rate_limited

ASKER = str(AGENTS / "asker.py")
MODEL = "scripted"
TASKS = 60
#: Seconds after an outage within which work goes on, however busy the machine: the longest
#: rest is five.
RESUMES_S = 80.0
#: Requests that may be under way when a provider goes away.
AT_ONCE = 8


@dataclass
class Provider:
    """Answers *says* until *back_at*, a reading of the monotonic clock, and then as it should; notes each request."""

    says: Canned
    back_at: float = float("inf")
    asked_at: list[float] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Scripted:
        """Answer one request."""
        self.asked_at.append(time.monotonic())
        if self.asked_at[-1] < self.back_at:
            return self.says
        return {"reasoning": "it is", "colour": "red"}


@dataclass
class Outage:
    """A worker whose provider is away."""

    worker: Served
    program: Outside
    provider: Provider

    async def assign(
        self, count: int = TASKS, task: str = "colour", **fields: Any
    ) -> list[str]:
        """Send *count* tasks that need the model."""
        return [
            await self.program.assign("AskerAgent", task, {"number": n}, **fields)
            for n in range(count)
        ]

    async def reports(self, tasks: list[str]) -> list[Json]:
        """Return the report of each of *tasks*."""
        return [await self.program.report_of(task) for task in tasks]

    def said(self) -> str:
        """Return what the process says of its models."""
        return str(self.worker.get("/healthz")[1]["checks"]["models"]["detail"])


@asynccontextmanager
async def provider_away(
    system: System, says: Canned, **settings: Any
) -> AsyncIterator[Outage]:
    """Start a worker whose provider says *says* until somebody sets when it is back."""
    provider = Provider(says)
    with ScriptedLlm(respond=provider) as model:
        worker = system.worker(
            ASKER, llm_base_url=model.base_url, llm_model=MODEL, **settings
        )
        await asyncio.to_thread(worker.ready)
        async with outside(system.servers.nats_url) as program:
            yield Outage(worker, program, provider)


@pytest.mark.parametrize(
    ("task", "says", "away_s"),
    [
        pytest.param("colour", fault(503), 5.0, id="503"),
        pytest.param("paint", fault(503), 5.0, id="503 for an agent with tools"),
        pytest.param(
            "colour", fault(503), 60.0, id="503 for a minute", marks=pytest.mark.long
        ),
        pytest.param(
            "colour",
            rate_limited(),
            60.0,
            id="429 for a minute",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "paint",
            rate_limited(),
            60.0,
            id="429 for agents with tools",
            marks=pytest.mark.long,
        ),
    ],
)
async def test_sixty_tasks_outlive_an_outage_of_their_provider(
    own_system: System, task: str, says: Canned, away_s: float
) -> None:
    """With one attempt allowed all of them complete, others go on meanwhile, and the provider is left alone."""
    async with provider_away(own_system, says) as outage:
        tasks = await outage.assign(task=task, max_attempts=1)
        await outage.program.eventually(lambda: _is_open(outage))
        asked_first = len(outage.provider.asked_at)
        outage.provider.back_at = time.monotonic() + away_s
        others = 0
        while time.monotonic() < outage.provider.back_at:
            assert (await outage.program.ask("AskerAgent", "double", {"number": 4}))[
                "result"
            ] == 8
            others += time.monotonic() < outage.provider.back_at
            await asyncio.sleep(0.5)
        reports = await outage.reports(tasks)
        took_s = time.monotonic() - outage.provider.back_at
    asked = sum(at < outage.provider.back_at for at in outage.provider.asked_at)
    asked_for_s = outage.provider.back_at - outage.provider.asked_at[0]
    print(  # noqa: T201 - figures
        f"{asked} requests in {asked_for_s:.1f} s, {asked_first} of them at first; "
        f"{others} others meanwhile; all done {took_s:.1f} s after it was back"
    )
    assert {(report["status"], report["attempt"]) for report in reports} == {
        ("completed", 1)
    }
    # Those under way when it went away, and then it is asked twice a second at most.
    assert asked <= 2 * AT_ONCE + 2 * asked_for_s
    # One that waited for the provider would end only when that is back.
    assert others >= 2
    assert took_s <= RESUMES_S


async def test_an_outage_is_told_until_it_is_over(own_system: System) -> None:
    """By a metric, the health page and the doctor: which model, since when, and how many wait."""
    async with provider_away(own_system, fault(503)) as outage:
        assert outage.said() == ""
        tasks = await outage.assign(20)
        await outage.program.eventually(lambda: _is_open(outage))
        series = f'tasklore_llm_waiting_tasks{{model="{MODEL}"}}'
        await outage.program.eventually(
            lambda: _holds(lambda: outage.worker.metric(series) >= 15)
        )
        said = outage.said()
        assert said.startswith(f"{MODEL} has been unavailable since ")
        assert "tasks wait for it" in said
        assert (
            outage.worker.get("/healthz")[0] == outage.worker.get("/readyz")[0] == 200
        )
        findings = await asyncio.to_thread(_doctor, own_system)
        [about] = [
            finding for finding in findings if finding["check"] == "processes.models"
        ]
        assert (
            about["mark"],
            f"{MODEL} has been unavailable since" in about["found"],
        ) == (
            "warning",
            True,
        )
        outage.provider.back_at = time.monotonic()
        await outage.reports(tasks)
        assert outage.said() == ""
        assert outage.worker.metric("tasklore_llm_breaker_open_seconds") == 0


async def test_a_task_whose_deadline_passes_in_an_outage_is_expired(
    own_system: System,
) -> None:
    async with provider_away(own_system, fault(503)) as outage:
        [task] = await outage.assign(1, deadline=_in_s(2.0))
        [report] = await outage.reports([task])
        assert report["status"] == "expired"
        assert outage.worker.metric("tasklore_dead_letters_total") == 0


async def _is_open(outage: Outage) -> bool:
    return await _holds(
        lambda: outage.worker.metric("tasklore_llm_breaker_open_seconds") > 0
    )


async def _holds(fact: Callable[[], bool]) -> bool:
    return await asyncio.to_thread(fact)


def _in_s(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def _doctor(system: System) -> list[Json]:
    """Return what `tasklore doctor` finds."""
    servers = {
        "TASKLORE_NATS_URL": system.servers.nats_url,
        "TASKLORE_REDIS_URL": system.servers.redis_url,
    }
    done = tasklore("doctor", "--json", cwd=system.folder, env=environment(**servers))
    return list(json.loads(done.stdout)["findings"])
