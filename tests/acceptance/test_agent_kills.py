"""An agent of twelve steps and two children, killed with its supervisor: at most one request is repeated a kill."""

import asyncio
import contextlib
import itertools
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import httpx2
import pytest

from tests.acceptance.external_program import Json
from tests.acceptance.system import AGENTS, Served, System
from tests.agent_script import calling, number_of, results_of
from tests.llm_double import Asked, Canned, ScriptedLlm, dropped, saying

CLERK = str(AGENTS / "clerk.py")
#: The calls that each request but the last one is answered with; the last two numbers are children.
CALLS = (
    [("look", 0), ("send", 1)],
    [("look", 2), ("read", 6)],
    [("send", 3)],
    [("look", 4), ("read", 7)],
    [("send", 5)],
)
REQUESTS = len(CALLS) + 1
ANSWER = "saw 0 sent 1 saw 2 read 6 sent 3 saw 4 read 7 sent 5"
TOOLS = [number for calls in CALLS for _, number in calls]
#: Kills of one task's workers: with more in a row it would be taken for one that kills its worker.
MOST = 3
#: Tasks at once, and workers: as many as leave a free one also while several that died are being replaced.
AT_ONCE = 2
WORKERS = 8
ACK_WAIT_S = 1.0


@dataclass
class Plan:
    """The kills of one task: of workers and supervisors by request, seconds after it (None: before), and of `tools`."""

    label: str
    requests: dict[int, float | None] = field(default_factory=dict)
    tools: list[str] = field(default_factory=list)
    supervisors: dict[int, float] = field(default_factory=dict)
    found: bool = True


@dataclass
class Found:
    """What came of a task: requests and readings beyond one each, deaths of its runs, seconds until the next run."""

    answer: str
    repeated: int
    deaths: int
    doubled: int
    resumed_s: list[float]


class Stage:
    """Answers the tasks' requests to the model and logs them, kills as planned, and replaces what died."""

    def __init__(self, system: System, plans: list[Plan]) -> None:
        self.system = system
        self.folder = system.folder / "runs"
        self.plans = {plan.label: plan for plan in plans}
        self.log: Counter[tuple[str, int]] = Counter()
        self.workers: list[Served] = []
        self.supervisors: list[Served] = []
        self.asked: dict[str, Served] = {}
        self.killed_supervisors = 0
        self._loop = asyncio.get_running_loop()
        for plan in plans:
            for point in plan.tools:
                (self.folder / f"{plan.label}.{point}").touch()

    def respond(self, asked: Asked) -> Canned:
        """Return the next answer of the conversation, around which a worker or a supervisor may die."""
        plan = self.plans[asked.user]
        number = number_of(asked)
        self.log[plan.label, number] += 1
        if number in plan.supervisors:
            threading.Timer(
                plan.supervisors.pop(number), self._kill_supervisor, [plan.label]
            ).start()
        if number in plan.requests:
            delay_s = plan.requests.pop(number)
            if delay_s is None:
                self._kill_worker(plan.label)
                return dropped()
            threading.Timer(delay_s, self._kill_worker, [plan.label]).start()
        if number == len(CALLS):
            return saying(" ".join(results_of(asked)))
        label = plan.label
        return calling(
            *(
                (name, {"number": one} | ({"label": label} if name == "read" else {}))
                for name, one in CALLS[number]
            )
        )

    def _kill_worker(self, label: str) -> None:
        process = self.lines(f"{label}.runs")[-1][0]
        with (self.folder / "killed").open("a") as killed:
            killed.write(f"{process} {time.time()}\n")
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)

    def _kill_supervisor(self, label: str) -> None:
        self.killed_supervisors += 1
        self._loop.call_soon_threadsafe(self.asked[label].kill)

    def lines(self, name: str) -> list[list[str]]:
        """Return the lines of a file of the runs, by words; none when there is none."""
        path = self.folder / name
        return (
            [line.split() for line in path.read_text().splitlines()]
            if path.exists()
            else []
        )

    async def replace_dead(self, start_worker: Callable[[], Served]) -> None:
        """Start another process for each that died, for ever; a supervisor takes its place when it is ready."""
        starting: dict[int, asyncio.Task[Served]] = {}
        while True:
            for place, worker in enumerate(self.workers):
                if not worker.is_running:
                    self.workers[place] = start_worker()
            for place, supervisor in enumerate(self.supervisors):
                if place in starting and starting[place].done():
                    self.supervisors[place] = starting.pop(place).result()
                elif place not in starting and not supervisor.is_running:
                    starting[place] = asyncio.create_task(
                        asyncio.to_thread(self.system.supervisor().ready)
                    )
            await asyncio.sleep(0.05)

    async def ask(self, plan: Plan) -> Json:
        """Return the report of a task that is asked for over HTTP, again at another supervisor when one dies."""
        body = {
            "agent_id": "ClerkAgent",
            "task": "work",
            "parameters": {"label": plan.label, "found": plan.found},
        }
        async with asyncio.timeout(300), httpx2.AsyncClient(timeout=60) as http:
            for turn in itertools.count(self.killed_supervisors):
                self.asked[plan.label] = supervisor = self.supervisors[
                    turn % len(self.supervisors)
                ]
                with contextlib.suppress(httpx2.TransportError):
                    reply = await http.post(
                        f"{supervisor.api}/v1/tasks",
                        json=body,
                        headers={"Idempotency-Key": plan.label},
                    )
                    if reply.status_code == 200:
                        return dict(reply.json()["report"])
                await asyncio.sleep(0.1)
        raise AssertionError("count() never ends")

    def find(self, plan: Plan, report: Json) -> Found:
        """Return what came of a task, checked by the provider's log, the file of effects and its report."""
        assert report["status"] == "completed", report["error"]
        died = {process: float(at) for process, at in self.lines("killed")}
        runs = self.lines(f"{plan.label}.runs")
        deaths = sum(process in died for process, _ in runs)
        asked = [self.log[plan.label, number] for number in range(REQUESTS)]
        assert min(asked) == 1, (plan, asked)
        assert sum(asked) - REQUESTS <= deaths, (plan, asked, runs)
        events = Counter(" ".join(words) for words in self.lines(plan.label))
        for number in (6, 7):
            deaths_of_child = sum(
                process in died
                for process, _ in self.lines(f"{plan.label}.{number}.runs")
            )
            assert 1 <= events[f"read {number}"] <= 1 + deaths_of_child, (plan, events)
        sent = [events[f"send {number}"] for number in (1, 3, 5)]
        assert set(sent) <= ({1} if plan.found else {0, 1}), (plan, events)
        assert not list(self.folder.glob(f"{plan.label}.tool-*")), plan
        resumed = [
            float(at) - died[before]
            for (before, _), (_, at) in pairwise(runs)
            if before in died
        ]
        return Found(
            str(report["result"]),
            sum(asked) - REQUESTS,
            deaths,
            sum(one > 1 for one in sent),
            resumed,
        )


async def play(system: System, plans: list[Plan]) -> list[Found]:
    """Run a task for each of *plans* on workers and supervisors that are replaced when they die."""
    stage = Stage(system, plans)
    places = asyncio.Semaphore(AT_ONCE)

    async def run_one(plan: Plan) -> Found:
        async with places:
            return stage.find(plan, await stage.ask(plan))

    with ScriptedLlm(stage.respond) as model:
        settings = {
            "slots": 1,
            "ack_wait_s": ACK_WAIT_S,
            "llm_base_url": model.base_url,
            "llm_model": "scripted",
        }

        def start_worker() -> Served:
            return system.worker(CLERK, **settings)

        stage.workers = [start_worker() for _ in range(WORKERS)]
        stage.supervisors = [system.supervisor() for _ in range(2)]
        for process in (*stage.workers, *stage.supervisors):
            await asyncio.to_thread(process.ready)
        replacing = asyncio.create_task(stage.replace_dead(start_worker))
        found = await asyncio.gather(*map(run_one, plans))
        replacing.cancel()
        await asyncio.gather(replacing, return_exceptions=True)
    deaths = sum(one.deaths for one in found)
    resumed = sorted(time_s for one in found for time_s in one.resumed_s)
    late = sum(time_s > ACK_WAIT_S + 2 for time_s in resumed)
    print(  # noqa: T201 - figures
        f"{len(found)} tasks, {len(stage.lines('killed'))} kills of workers ({deaths} of runs) and "
        f"{stage.killed_supervisors} of supervisors; {sum(one.repeated for one in found)} requests repeated, at most "
        f"{max(one.repeated / max(1, one.deaths) for one in found):g} a kill; {sum(one.doubled for one in found)} "
        f"effects doubled; resumed after {resumed[len(resumed) // 2]:.2f} s, at most {resumed[-1]:.2f} s, "
        f"{late} of {len(resumed)} later than the lease and 2 s"
    )
    return found


async def test_killed_at_every_boundary_a_task_ends_the_same(
    own_system: System,
) -> None:
    """Workers before and after each answer, each effect and each child's work; supervisors at each answer."""
    points: list[tuple[str, int | str]] = [
        (when, number) for when in ("before", "after") for number in range(REQUESTS)
    ]
    points += [
        ("tool", f"tool-{number}-{when}")
        for number in TOOLS
        for when in ("before", "after")
    ]
    plans = [Plan(f"boundary-{place}") for place in range(-(-len(points) // MOST))]
    for place, (kind, which) in enumerate(points):
        plan = plans[place % len(plans)]
        if isinstance(which, str):
            plan.tools.append(which)
        else:
            plan.requests[which] = None if kind == "before" else 0.0
    for number in range(REQUESTS):
        plans[number].supervisors[number] = 0.0

    found = await play(own_system, plans)

    assert {one.answer for one in found} == {ANSWER}


@pytest.mark.parametrize("seeds", [4, pytest.param(200, marks=pytest.mark.long)])
async def test_killed_at_random_a_task_ends_the_same(
    own_system: System, seeds: int
) -> None:
    """One or two kills each: of a worker or a supervisor, at a boundary or up to 30 ms after an answer."""
    found = await play(own_system, [draw(seed) for seed in range(seeds)])

    assert {one.answer for one in found} == {ANSWER}
    assert len(found) == seeds


def draw(seed: int) -> Plan:
    """Return the plan of *seed*."""
    chance = random.Random(seed)
    plan = Plan(f"random-{seed}")
    kinds = ("boundary", "random", "tool", "supervisor")
    numbers = chance.sample(range(REQUESTS - 1), chance.choice((1, 2)))
    for kind, number in zip(
        (kinds[seed % 4], chance.choice(kinds)), numbers, strict=False
    ):
        match kind:
            case "boundary":
                plan.requests[number] = chance.choice((None, 0.0))
            case "random":
                plan.requests[number] = chance.uniform(0, 0.03)
            case "tool":
                plan.tools.append(
                    f"tool-{chance.choice(TOOLS)}-{chance.choice(('before', 'after'))}"
                )
            case _:
                plan.supervisors[number] = chance.uniform(0, 0.03)
    return plan


async def test_an_effect_that_nothing_can_look_up_is_never_made_again(
    own_system: System,
) -> None:
    """The model is told that it is not known whether it was made."""
    [found] = await play(
        own_system, [Plan("unknown", tools=["tool-3-after"], found=False)]
    )

    assert "it is not known whether its effect was made" in found.answer
