"""Declaring agents and tasks: what is understood, and what is refused with the cure."""

import sys
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from contracts.errors import ConfigurationError, GiveUp
from workers import Agent, Amount, Context, Parameters
from workers.testing import AgentKit, run_task


class Trip(Parameters):
    """A hotel and who shares it."""

    hotel: Amount
    travellers: int = 2


class Options(BaseModel):
    """Settings of an agent of these tests."""

    factor: Decimal = Decimal("2.0")


async def test_a_decorated_function_is_still_the_function() -> None:
    """Both forms of the decorator return what they decorate, async or plain, callable in a unit test."""
    agent = Agent("TripAgent")

    @agent.task
    async def share(trip: Trip) -> Amount:
        """Share the hotel."""
        return trip.hotel / trip.travellers

    @agent.task(name="double")
    def twice(trip: Trip) -> Amount:
        """Double the hotel."""
        return trip.hotel * 2

    trip = Trip(hotel=Amount(100))
    assert await share(trip) == 50
    assert twice(trip) == 200
    assert list(agent.tasks) == ["share", "double"]


async def test_arguments_are_known_by_annotation_not_by_place() -> None:
    """Context and settings may stand anywhere under any name, in quotes or not, also for classes of a function."""
    agent = Agent("TripAgent", settings=Options)

    class Local(Parameters):
        nights: int

    @agent.task
    async def stay(how: "Options", where: "Context", what: "Local") -> "dict[str, Any]":
        """Count nights."""
        return {"nights": what.nights * how.factor, "attempt": where.attempt}

    assert (await run_task(agent, "stay", {"nights": 3})).result == {"nights": "6.0", "attempt": 1}


async def none_taken() -> int:
    """Take nothing."""
    return 1


async def two_taken(one: Trip, two: Trip) -> int:
    """Take two."""
    return 1


async def bare_value(trip: Trip, factor: int) -> int:
    """Take a bare value."""
    return 1


async def no_result(trip: Trip):  # type: ignore[no-untyped-def]  # the misuse under test
    """Say nothing of the result."""
    return 1


async def unwritable(trip: Trip) -> Callable[[], object] | type(sys):  # type: ignore[valid-type]  # the misuse
    """Return a module."""
    return sys


async def undocumented(trip: Trip) -> int:
    return 1


async def unknown_name(trip: "Nowhere") -> int:  # type: ignore[name-defined]  # noqa: F821 - the misuse under test
    """Take what is not defined."""
    return 1


@pytest.mark.parametrize(
    ("function", "cure"),
    [
        (none_taken, "annotation is a subclass of Parameters"),
        (two_taken, "'one' and 'two'; merge them"),
        (bare_value, "'factor' is annotated with int; .* move plain values into the parameters class"),
        (no_result, "no return annotation; say what it returns"),
        (unwritable, "has no JSON form"),
        (undocumented, "no docstring"),
        (unknown_name, "Nowhere.* define or import it above"),
    ],
)
def test_a_function_that_cannot_be_served_is_refused_with_the_cure(function: Callable[..., Any], cure: str) -> None:
    """Every misuse of a signature is found when it is declared, and the message names the task."""
    with pytest.raises(ConfigurationError, match=cure) as caught:
        Agent("TripAgent").task(function)
    assert f"TripAgent.{function.__name__}" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"name": "a b"}, "letters, digits"),
        ({"remember": True}, '"shared", "user" or False'),
        ({"remember_for": timedelta(0)}, "remember_for must be a timedelta"),
        ({"uses": "llm"}, r"write \('llm',\)"),
        ({"uses": ("network",)}, "knows llm, clock, edits, not network"),
    ],
)
def test_an_option_that_cannot_be_served_is_refused_with_the_cure(options: dict[str, Any], cure: str) -> None:
    """A misspelt option is found when it is declared."""
    with pytest.raises(ConfigurationError, match=cure):
        Agent("TripAgent").task(**options)(bare_trip)


async def bare_trip(trip: Trip) -> int:
    """Answer one."""
    return 1


def test_two_tasks_of_one_name_are_refused() -> None:
    """The second would hide the first."""
    agent = Agent("TripAgent")
    agent.task(bare_trip)
    with pytest.raises(ConfigurationError, match="two tasks 'bare_trip'; rename one"):
        agent.task(bare_trip)


async def test_a_result_that_does_not_fit_its_annotation_gives_up() -> None:
    """It is never written, and running again cannot help."""
    agent = Agent("TripAgent")

    @agent.task
    async def share(trip: Trip) -> dict[str, int]:
        """Share."""
        return {"each": "many"}  # type: ignore[dict-item]  # the misuse under test

    kit = AgentKit(agent)
    report = await kit.run("share", {"hotel": 1})
    assert (report.status, report.attempt) == ("failed", 1)
    assert report.error is not None
    assert report.error.type == "GiveUp"
    assert "TripAgent.share returned a dict" in report.error.message
    assert isinstance(kit.raised[0], GiveUp)


def test_the_public_api_is_exactly_what_is_documented() -> None:
    """`from workers import *` gives eighteen names."""
    import workers

    assert set(workers.__all__) == {
        "Agent",
        "Amount",
        "Context",
        "Duration",
        "FactBatch",
        "Field",
        "GiveUp",
        "ListenContext",
        "Middleware",
        "Moment",
        "Parameters",
        "PendingFact",
        "Percent",
        "Quantity",
        "RetryLater",
        "Ruling",
        "TurnBatch",
        "TurnFacts",
    }
