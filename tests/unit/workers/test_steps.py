"""Steps of a task: journaled results, what counts as the same step, and what cannot be kept."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel

from tasklore import Agent, Context, Parameters
from tasklore.contracts.errors import EffectUncertain
from tasklore.workers.testing import AgentKit


class Paper(BaseModel):
    """A paper that was read."""

    title: str
    pages: int


class Topic(Parameters):
    """What to look for."""

    topic: str


class Library:
    """An agent with one task, and the calls of its steps."""

    def __init__(self, work: Callable[["Library", Context], Awaitable[Any]]) -> None:
        self.calls: list[Any] = []
        self.agent = Agent("LibraryAgent")

        @self.agent.task(remember=False, name="research")
        async def research(topic: Topic, context: Context) -> Any:
            """Find papers."""
            return await work(self, context)

    async def find(self, number: int) -> Paper:
        """Note the call, and find a paper."""
        self.calls.append(number)
        await asyncio.sleep(0)
        return Paper(title=f"paper {number}", pages=number)

    async def run(self, **more: Any) -> Any:
        """Return the report of one task."""
        self.kit = AgentKit(self.agent)
        return await self.kit.run("research", {"topic": "owls"}, **more)


async def test_a_later_run_reads_the_results_of_steps_and_takes_those_that_are_missing() -> (
    None
):
    """In the order of calls, also of steps at once; a result is an object of the annotated class both times."""

    async def work(library: Library, context: Context) -> list[int]:
        found = list(
            await asyncio.gather(
                *(context.step("find", library.find, number) for number in (1, 2))
            )
        )
        if context.attempt == 1:
            raise ConnectionResetError("after two steps")
        found.append(await context.step("find", library.find, 3))
        assert all(type(paper) is Paper for paper in found)
        return [paper.pages for paper in found]

    library = Library(work)
    assert (await library.run()).result == [1, 2, 3]
    assert library.calls == [1, 2, 3]


@pytest.mark.parametrize(("name", "argument"), [("find", 7), ("look", 1)])
async def test_from_the_first_step_that_differs_on_all_are_taken_again(
    name: str, argument: int
) -> None:
    """Another name or argument is another step, and later ones may rest on it."""

    async def work(library: Library, context: Context) -> None:
        is_first = context.attempt == 1
        await context.step("find", library.find, 0)
        await context.step(
            "find" if is_first else name, library.find, 1 if is_first else argument
        )
        await context.step("find", library.find, 2)
        if context.attempt < 3:
            raise ConnectionResetError("again")

    library = Library(work)
    assert (await library.run()).status == "completed"
    assert library.calls == [0, 1, 2, argument, 2]


async def test_a_step_that_fails_is_taken_again_and_a_step_inside_a_step_is_a_part_of_it() -> (
    None
):
    """An error is no result."""

    async def work(library: Library, context: Context) -> int:
        async def outer() -> int:
            paper = await context.step("inner", library.find, 1)
            if context.attempt == 1:
                raise ConnectionResetError("in the step")
            return paper.pages

        await context.step("outer", outer)
        await context.step("last", library.find, 2)
        if context.attempt == 2:
            raise ConnectionResetError("after the steps")
        return await context.step("more", outer)

    library = Library(work)
    assert (await library.run()).result == 1
    assert library.calls == [1, 1, 2, 1]


async def test_an_effect_of_a_step_is_not_made_again_and_is_said_to_be_uncertain() -> (
    None
):
    async def work(library: Library, context: Context) -> str:
        async def pay(_amount: int) -> str:
            library.calls.append("paid")
            raise ConnectionResetError("no answer")

        try:
            return await context.step("pay", pay, 5, once=True)
        except EffectUncertain:
            return "look at the account"

    library = Library(work)
    assert (await library.run()).result == "look at the account"
    assert library.calls == ["paid"]


async def return_function() -> Any:
    """Return what is no JSON."""
    return return_function


async def return_much() -> str:
    """Return more than a journal keeps."""
    return "x" * (8 * 1024 * 1024)


async def take_anything(_anything: object) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (take_anything, (object(),), "the arguments of step 'odd' are not JSON"),
        (
            abs,
            (-1,),
            "the function of step 'odd' returned nothing to await; make it an async one",
        ),
        (return_function, (), "the result of step 'odd' cannot be kept as JSON"),
        (return_much, (), "return a reference"),
    ],
)
async def test_what_a_journal_cannot_keep_is_refused_by_the_name_of_the_step(
    function: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...], words: str
) -> None:
    """The error says what to change."""

    async def work(_library: Library, context: Context) -> None:
        await context.step("odd", function, *arguments)

    report = await Library(work).run()
    assert report.status == "rejected"
    assert report.error is not None
    assert words in report.error.message


async def test_a_task_has_five_thousand_steps_at_most() -> None:
    """A loop without end fills no store."""

    async def work(_library: Library, context: Context) -> None:
        for number in range(5_001):
            await context.step("loop", take_anything, number)

    report = await Library(work).run()
    assert (
        report.status,
        report.error is not None and "at most 5,000 steps" in report.error.message,
    ) == (
        "rejected",
        True,
    )
