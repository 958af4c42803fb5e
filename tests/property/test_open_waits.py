"""In whatever order answers come, and wherever runs end: a task of many branches ends as if it was not interrupted."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tasklore import Agent, Context, Parameters
from tasklore.contracts.admission.waits import Wait
from tasklore.workers.testing import AgentKit
from tasklore.workers.testing.waits import KitWaits
from tests.property.examples import examples

agent = Agent("ProgramAgent")

#: A leaf, or what its parts make: in a row, gathered, or in a task group.
Program = str | tuple[str, list["Program"]]

LEAVES = st.sampled_from(["step", "effect", "ask", "pause", "fault"])
PROGRAMS: st.SearchStrategy[Program] = st.recursive(
    LEAVES,
    lambda parts: st.tuples(
        st.sampled_from(["row", "gather", "group"]), st.lists(parts, max_size=4)
    ),
    max_leaves=14,
)


class Nothing(Parameters):
    pass


class Drawn(KitWaits):
    """Answers some of the open waits, as drawn: which of them, and how many more, by number."""

    def __init__(self, choices: Sequence[int]) -> None:
        super().__init__()
        self.asked = Counter[tuple[str, str]]()
        self.open: list[set[str]] = []
        self._choices = iter([*choices, *([0] * 1000)])

    def end(self, task_id: str, waits: Sequence[Wait], now: datetime) -> datetime:
        """Answer at least one."""
        self.open.append({wait.text for wait in waits})
        for wait in waits:
            if (task_id, wait.slot) not in self._waits:
                self.asked[task_id, wait.text] += 1
            self._waits[task_id, wait.slot] = wait
        left = list(waits)
        for _ in range(1 + next(self._choices) % len(left)):
            wait = left.pop(next(self._choices) % len(left))
            self._script.append(True)
            self._script_answer(task_id, wait, now)
        return now


@dataclass
class World:
    """What a program does to the world: its *steps*, by name; *faults* are the calls of it that fail, by number."""

    program: Program
    faults: frozenset[int]
    steps: Counter[str]
    calls: int = 0

    def call(self) -> None:
        """Fail if that was drawn."""
        self.calls += 1
        if self.calls in self.faults:
            raise ConnectionError(f"call {self.calls} failed")


WORLD: ContextVar[World] = ContextVar("world")


async def take(name: str) -> str:
    """Take a step: it fails before it does anything."""
    world = WORLD.get()
    await asyncio.sleep(0)
    world.call()
    world.steps[name] += 1
    return f"took {name}"


async def work(program: Program, name: str, context: Context) -> Any:
    """Return what *program* makes."""
    if program in ("step", "effect"):
        # A branch that fails cuts off others within their effects, which are uncertain then.
        once = program == "effect" and not WORLD.get().faults
        return await context.step("take", take, name, once=once)
    if program == "ask":
        said = await context.ask_person("{name}?", name=name)
        return f"{name} {said.approved}"
    if program == "pause":
        for _ in range(len(name) % 7):
            await asyncio.sleep(0)
        return name
    if program == "fault":
        WORLD.get().call()
        return name
    kind, parts = program
    named = [(part, f"{name}.{number}") for number, part in enumerate(parts)]
    if kind == "row":
        return [await work(part, each, context) for part, each in named]
    if kind == "gather":
        return await asyncio.gather(*(work(*one, context) for one in named))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(*one, context)) for one in named]
    return [task.result() for task in tasks]


def result_of(program: Program, name: str) -> Any:
    """Return what the program makes where nothing happens to it."""
    if isinstance(program, str):
        said = {"step": f"took {name}", "effect": f"took {name}", "ask": f"{name} True"}
        return said.get(program, name)
    return [
        result_of(part, f"{name}.{number}") for number, part in enumerate(program[1])
    ]


def names_of(program: Program, name: str, kinds: tuple[str, ...]) -> Iterator[str]:
    """Yield the names of the leaves of *kinds*."""
    if isinstance(program, str):
        if program in kinds:
            yield name
        return
    for number, part in enumerate(program[1]):
        yield from names_of(part, f"{name}.{number}", kinds)


@agent.task(remember=False)
async def follow(_nothing: Nothing, context: Context) -> Any:
    """Follow the program."""
    return await work(WORLD.get().program, "p", context)


@examples(150)
@given(
    program=PROGRAMS,
    choices=st.lists(st.integers(0, 20), max_size=20),
    faults=st.frozensets(st.integers(1, 12), max_size=4),
)
def test_a_program_ends_as_if_nobody_had_interrupted_it(
    program: Program, choices: list[int], faults: frozenset[int]
) -> None:
    """Each question is put once; where no branch fails, each step is taken once, and no effect is uncertain."""
    world = World(program, faults, Counter())
    WORLD.set(world)
    kit = AgentKit(agent)
    waits = Drawn(choices)
    kit.services.waits = waits

    async def run() -> Any:
        async with asyncio.timeout(60):
            return await kit.run("follow", {}, max_attempts=30)

    report = asyncio.run(run())
    assert report.status == "completed", kit.raised
    assert report.result == result_of(program, "p")
    questions = set(names_of(program, "p", ("ask",)))
    assert {text for _, text in waits.asked} == {f"{name}?" for name in questions}
    assert set(waits.asked.values()) <= {1}
    assert set(world.steps) == set(names_of(program, "p", ("step", "effect")))
    if not faults:
        assert set(world.steps.values()) <= {1}
