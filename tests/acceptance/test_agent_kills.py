"""An agent of twelve steps whose worker is killed: no step is lost, at most one request is repeated a kill."""

import asyncio
import json
import os
import random
import signal
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.acceptance.house import AGENTS, House
from tests.acceptance.outside import outside
from tests.agent_script import CALLS, REQUESTS, next_answer, number_of
from tests.llm_double import Asked, Canned, ScriptedLlm, dropped

CLERK = str(AGENTS / "clerk.py")
ANSWER = "saw 0 sent 1 saw 2 sent 3 saw 4 sent 5"
TOOLS = [number for calls in CALLS for _, number in calls]
#: Kills of one task: with more in a row it would be taken for one that kills its worker.
MOST = 3
WORKERS = 3


@dataclass
class Plan:
    """The kills of one task: `requests` by number, seconds after the answer (None: before it), and of `tools`."""

    label: str
    requests: dict[int, float | None] = field(default_factory=dict)
    tools: list[str] = field(default_factory=list)
    found: bool = True
    kills: int = 0

    @property
    def size(self) -> int:
        """How many kills are planned."""
        return len(self.requests) + len(self.tools)


class Killer:
    """Answers the tasks' requests to the model, keeps a log of them, and kills workers as planned."""

    def __init__(self, folder: Path, plans: list[Plan]) -> None:
        self.folder = folder
        self.plans = {plan.label: plan for plan in plans}
        self.log: Counter[tuple[str, int]] = Counter()
        for plan in plans:
            for point in plan.tools:
                (folder / f"{plan.label}.{point}").touch()

    def respond(self, asked: Asked) -> Canned:
        """Return the next answer of the conversation, around which a worker may die."""
        plan, number = self.plans[asked.user], number_of(asked)
        self.log[plan.label, number] += 1
        if number in plan.requests:
            delay_s = plan.requests.pop(number)
            if delay_s is None:
                self._kill(plan)
                return dropped()
            threading.Timer(delay_s, self._kill, [plan]).start()
        return next_answer(asked)

    def _kill(self, plan: Plan) -> None:
        plan.kills += 1
        os.kill(json.loads((self.folder / f"{plan.label}.pid").read_text()), signal.SIGKILL)


async def play(house: House, plans: list[Plan]) -> dict[str, str]:
    """Run a task for each of *plans* on workers that hold one each and are replaced when they die; return answers."""
    killer = Killer(house.folder / "runs", plans)
    with ScriptedLlm(killer.respond) as model:
        settings = {"slots": 1, "ack_wait_s": 1, "llm_base_url": model.base_url, "llm_model": "scripted"}
        workers = [house.worker(CLERK, **settings) for _ in range(WORKERS)]
        is_over = False

        async def replace_dead() -> None:
            while not is_over:
                for place, worker in enumerate(workers):
                    if not worker.is_running:
                        workers[place] = house.worker(CLERK, **settings)
                await asyncio.sleep(0.05)

        replacing = asyncio.create_task(replace_dead())
        async with outside(house.servers.nats_url) as program:
            tasks = {
                plan.label: await program.assign("ClerkAgent", "work", {"label": plan.label, "found": plan.found})
                for plan in plans
            }
            reports = {label: await program.report_of(task) for label, task in tasks.items()}
        is_over = True
        await replacing
    for plan in plans:
        check(plan, killer, reports[plan.label])
    return {label: str(report["result"]) for label, report in reports.items()}


def check(plan: Plan, killer: Killer, report: dict[str, object]) -> None:
    """Check one task by the provider's log, the file of effects and its report."""
    kills = plan.kills + len(plan.tools)
    assert report["status"] == "completed", report["error"]
    asked = [killer.log[plan.label, number] for number in range(REQUESTS)]
    assert min(asked) == 1, (plan, asked)
    assert sum(asked) - REQUESTS <= kills, (plan, asked)
    events = Counter((killer.folder / plan.label).read_text().splitlines())
    assert {events[f"send {number}"] for number in (1, 3, 5)} <= ({1} if plan.found else {0, 1}), (plan, events)
    assert not list(killer.folder.glob(f"{plan.label}.tool-*")), plan


async def test_a_worker_killed_at_every_boundary_repeats_at_most_one_request(own_house: House) -> None:
    """Before and after each answer of the model, before and after each effect of a tool."""
    points: list[tuple[str, int | str]] = [(when, number) for when in ("before", "after") for number in range(REQUESTS)]
    points += [("tool", f"tool-{number}-{when}") for number in TOOLS for when in ("before", "after")]
    plans = [Plan(f"boundary-{place}") for place in range(len(points) // MOST)]
    for place, (kind, which) in enumerate(points):
        plan = plans[place % len(plans)]
        if isinstance(which, str):
            plan.tools.append(which)
        else:
            plan.requests[which] = None if kind == "before" else 0.0

    answers = await play(own_house, plans)

    assert set(answers.values()) == {ANSWER}
    assert sum(plan.kills + len(plan.tools) for plan in plans) == len(points) == 24


async def test_a_worker_killed_at_random_loses_and_doubles_nothing(own_house: House) -> None:
    """The moments are drawn from a seed: up to 30 ms after an answer of the model."""
    await storm(own_house, seed=7, kills=8)


@pytest.mark.long
async def test_two_hundred_kills_lose_and_double_nothing(own_house: House) -> None:
    """As above, for some minutes."""
    await storm(own_house, seed=8, kills=200)


async def storm(house: House, *, seed: int, kills: int) -> None:
    """Run tasks with two kills each."""
    drawn = random.Random(seed)
    plans = [
        Plan(f"random-{place}", {number: drawn.uniform(0, 0.03) for number in drawn.sample(range(REQUESTS - 1), 2)})
        for place in range(kills // 2)
    ]
    answers = await play(house, plans)
    assert set(answers.values()) == {ANSWER}
    assert sum(plan.kills for plan in plans) == kills


async def test_an_effect_that_nothing_can_look_up_is_never_made_again(own_house: House) -> None:
    """The model is told that it is not known whether it was made."""
    plans = [Plan("unknown", tools=["tool-3-after"], found=False)]

    answers = await play(own_house, plans)

    assert "it is not known whether its effect was made" in answers["unknown"]
