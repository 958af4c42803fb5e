"""Agents, tasks, settings and memory as their authors declare them, and refusals with their cure."""

import math
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, SecretStr
from pydantic import Field as Setting

import tasklore
from tasklore import Agent, Amount, Context, Parameters
from tasklore.contracts.errors import ConfigurationError, GiveUp
from tasklore.workers.testing import AgentKit, run_task


class Trip(Parameters):
    """A hotel and who shares it."""

    hotel: Amount
    travellers: int = 2


async def test_a_decorated_function_is_still_the_function() -> None:
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

    assert (await run_task(agent, "stay", {"nights": 3})).result == {
        "nights": "6.0",
        "attempt": 1,
    }


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
        (
            bare_value,
            "'factor' is annotated with int; .* move plain values into the parameters class",
        ),
        (no_result, "no return annotation; say what it returns"),
        (unwritable, "has no JSON form"),
        (undocumented, "no docstring"),
        (unknown_name, "Nowhere.* define or import it above"),
    ],
)
def test_a_function_that_cannot_be_served_is_refused_with_the_cure(
    function: Callable[..., Any], cure: str
) -> None:
    """Every misuse of a signature is found when it is declared, and the message names the task."""
    with pytest.raises(ConfigurationError, match=cure) as caught:
        Agent("TripAgent").task(function)
    assert f"TripAgent.{function.__name__}" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"name": "a b"}, "letters, digits"),
        ({"name": 5}, "task name 5 must be 1 to 64 letters"),
        ({"at_mots": 1}, "no option 'at_mots'; did you mean 'at_most'"),
        ({"zzz": 1}, "no option 'zzz'; known are name, version, remember"),
        ({"version": "2"}, "version must be a whole number from 1, not '2'"),
        ({"max_attempts": True}, "max_attempts counts runs, the first included: 1 to"),
        ({"deadline": 60}, "deadline must be a timedelta above zero, or None; not 60"),
        ({"retry_base": "1s"}, "retry_base must be a timedelta"),
        (
            {"retry_base": timedelta(9), "retry_cap": timedelta(1)},
            "retry_base 9 days.* exceeds retry_cap 1 day",
        ),
        ({"retry_on": TypeError}, r"retry_on takes classes of exceptions, as retry_on"),
        ({"retry_on": (1,)}, r"retry_on takes classes of exceptions, .* not \(1,\)"),
        ({"idempotent": "no"}, "idempotent must be True or False, not 'no'"),
        ({"in_words": 0}, "in_words must be True or False, not 0"),
        ({"uses": 5}, r"uses must be strings that are not empty, not \(5,\)"),
        ({"confirm": 5}, "confirm=5; write True, 'user:ana' or 'role:finance'"),
        ({"every": 60}, "every must be a timedelta of whole seconds.* not 60"),
        ({"cron": 9}, r"cron must be text, as '0 9 \* \* mon-fri', not 9"),
        ({"cron": "0 9 * * *", "time_zone": None}, "time_zone must be the name of one"),
        ({"cron": "0 9 * * *", "time_zone": "Mars/Base"}, "Mars/Base"),
        ({"cron": "0 9 * * *", "missed": "other"}, "missed must be"),
        ({"cron": "0 9 * * *", "every": timedelta(1)}, "leave one of them out"),
        ({"cron": "0 9 * * *"}, "needs a default: give one to hotel"),
        ({"remember": True}, '"shared", "user" or False'),
        ({"remember_for": timedelta(0)}, "remember_for must be a timedelta"),
        ({"uses": "llm"}, r"write \('llm',\)"),
        ({"uses": ("network",)}, "knows llm, clock, edits, not network"),
        ({"at_most": 0}, "at_most counts runs: 1 to 1,000, not 0"),
        ({"at_most": True}, "at_most counts runs"),
        ({"per": "user"}, "per without at_most; say how many"),
        (
            {"at_most": 1, "per": "acount"},
            "per knows no 'acount'; it knows .*tenant, user",
        ),
        ({"at_most": 1, "per": ("user", "")}, "must be strings that are not empty"),
    ],
)
def test_an_option_that_cannot_be_served_is_refused_with_the_cure(
    options: dict[str, Any], cure: str
) -> None:
    """A misspelt option, or a value of another type, is found when it is declared."""
    with pytest.raises(ConfigurationError, match=rf"TripAgent.*{cure}"):
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


def _returning(kind: Any, value: Any) -> Agent:
    """Return an agent whose task returns *value* as *kind*."""
    agent = Agent("TripAgent")

    async def share(trip: Trip) -> Any:
        """Share."""
        return value

    share.__annotations__["return"] = kind
    agent.task(share)
    return agent


class Rates(BaseModel):
    """Numbers of several kinds, where any value may stand too."""

    rate: float = 1.0
    rates: list[float] = []
    other: Any = None


class Spelled(BaseModel):
    """A number that may be none, spelled as a text."""

    model_config = ConfigDict(ser_json_inf_nan="strings")
    rate: float


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (float, math.nan, "it is nan"),
        (float, -math.inf, "it is -inf"),
        (Rates, Rates(rate=math.inf), "rate is inf"),
        (Rates, Rates(rates=[1.0, math.nan]), "rates[1] is nan"),
        (Rates, Rates(other={"deep": (None, math.nan)}), "other.deep[1] is nan"),
        (dict[str, Any], {"a": {"b": math.inf}}, "a.b is inf"),
        (float | None, math.nan, "it is nan"),
    ],
)
async def test_a_result_that_json_has_no_number_for_is_refused(
    kind: Any, value: Any, said: str
) -> None:
    """As null it would be remembered, and fail whoever called for a number."""
    report = await AgentKit(_returning(kind, value)).run("share", {"hotel": 1})
    assert (report.status, report.attempt) == ("failed", 1)
    assert report.error is not None
    assert f"{said}, which JSON has no number for; return None" in report.error.message


@pytest.mark.parametrize(
    ("kind", "value", "result"),
    [
        (float | None, None, None),
        (Rates, Rates(other=[None, "NaN"]), {"rate": 1.0, "rates": [], "other": [None, "NaN"]}),
        (Spelled, Spelled(rate=math.nan), {"rate": "NaN"}),
    ],
)  # fmt: skip
async def test_a_result_without_a_number_is_kept_where_its_type_has_a_word_for_it(
    kind: Any, value: Any, result: Any
) -> None:
    report = await AgentKit(_returning(kind, value)).run("share", {"hotel": 1})
    assert (report.status, report.result) == ("completed", result)


def test_the_public_api_is_exactly_what_is_documented() -> None:
    """`from tasklore import *` gives twenty-two names."""
    assert set(tasklore.__all__) == {
        "Agent",
        "Amount",
        "Approval",
        "Context",
        "Duration",
        "ExchangeRate",
        "FactBatch",
        "Field",
        "GiveUp",
        "ListenContext",
        "Middleware",
        "Moment",
        "Money",
        "Parameters",
        "PendingFact",
        "Percent",
        "Quantity",
        "RetryLater",
        "Ruling",
        "TaskOptions",
        "TurnBatch",
        "TurnFacts",
    }


class Plain(BaseModel):
    """A model that is not complete without arguments."""

    hotel: int


class Options(BaseModel):
    """Settings of every kind."""

    factor: Decimal = Decimal("2.0")
    colours: frozenset[str] = frozenset({"red", "green", "blue"})
    nested: dict[str, Decimal] = {}
    log_level: str = Setting("info", json_schema_extra={"affects_results": False})
    key: SecretStr = SecretStr("a")


def trip_agent(settings: BaseModel | type[BaseModel] | None = None) -> Agent:
    """Return an agent with one task."""
    agent = Agent("TripAgent", settings=settings)

    @agent.task
    async def share(trip: Trip) -> dict[str, Amount]:
        """Share the hotel."""
        return {"each": trip.hotel / trip.travellers}

    return agent


def version_with(values: Mapping[str, Any]) -> str:
    """Return the memory's version part under *values*."""
    agent = trip_agent(Options).configured(values)
    return agent.memory_version(agent.tasks["share"])


def test_settings_need_defaults() -> None:
    """A settings class must be complete without arguments, and the message names the field."""
    with pytest.raises(
        ConfigurationError, match=r"give every setting a default .*hotel"
    ):
        Agent("TripAgent", settings=Plain)


def test_settings_at_their_defaults_leave_the_version_alone() -> None:
    """However the default is spelled, and whatever does not affect results."""
    assert version_with({}) == "v1.1"
    assert (
        version_with({"factor": "2.00", "colours": ["blue", "red", "green"]}) == "v1.1"
    )
    assert version_with({"factor": 2, "log_level": "debug", "key": "b"}) == "v1.1"
    assert trip_agent().memory_version(trip_agent().tasks["share"]) == "v1.1"


def test_a_changed_setting_changes_the_version() -> None:
    """Each value has a fingerprint of its own, and equal values share one."""
    versions = [
        version_with({"factor": value})
        for value in ("1.5", 1.5, Decimal("1.50"), "1.6")
    ]
    assert versions[0] == versions[1] == versions[2] != versions[3]
    assert versions[0].startswith("v1.1+")
    assert len(versions[0]) == len("v1.1+") + 8
    assert set(versions[0][5:]) <= set("0123456789abcdef")
    nested = [
        version_with({"nested": {"b": "1", "a": two}}) for two in ("2", "2.0", "3")
    ]
    assert nested[0] == nested[1] != nested[2]


def test_an_instance_that_differs_from_its_class_counts_as_changed() -> None:
    """It is the class's defaults that have no fingerprint; a later change of the instance changes nothing."""
    options = Options(factor=Decimal(3))
    agent = trip_agent(options)
    version = agent.memory_version(agent.tasks["share"])
    assert version == version_with({"factor": 3})
    options.factor = Decimal(4)
    assert isinstance(agent.settings, Options)
    assert agent.settings.factor == 3


def test_unknown_and_unusable_settings_are_named() -> None:
    """The message names the field, the nearest name and the known ones."""
    with pytest.raises(
        ConfigurationError,
        match="no setting 'facto'; did you mean 'factor'\\? known are factor, col",
    ):
        trip_agent(Options).configured({"facto": 1})
    with pytest.raises(ConfigurationError, match="factor: "):
        trip_agent(Options).configured({"factor": "much"})
    with pytest.raises(ConfigurationError, match="no settings at all"):
        trip_agent().configured({"factor": 1})


HOUR = timedelta(hours=1)


class Order(Parameters):
    """What is ordered."""

    pizza: str
    count: int = 1


def pizzeria(**options: Any) -> tuple[Agent, list[str]]:
    """Return an agent whose task has an effect, and the list of what it made."""
    agent = Agent("PizzaAgent")
    made = []

    @agent.task(**options)
    async def order_pizza(order: Order) -> int:
        """Order pizzas."""
        made.extend([order.pizza] * order.count)
        return len(made)

    return agent, made


@pytest.mark.parametrize("options", [{}, {"remember": False}])
async def test_what_is_ordered_twice_is_made_twice(options: dict[str, Any]) -> None:
    """The second order of two large salami pizzas is no question that was answered before."""
    agent, made = pizzeria(**options)
    kit = AgentKit(agent)
    reports = [
        await kit.run("order_pizza", {"pizza": "large salami", "count": 2})
        for _ in range(2)
    ]
    assert [report.memory.outcome for report in reports] == ["off", "off"]
    assert made == ["large salami"] * 4


async def test_what_is_declared_is_remembered() -> None:
    """For thirty days where the author says nothing else."""
    agent, made = pizzeria(remember="shared")
    assert agent.tasks["order_pizza"].remember_for == timedelta(days=30)
    kit = AgentKit(agent)
    reports = [await kit.run("order_pizza", {"pizza": "salami"}) for _ in range(2)]
    assert [report.memory.outcome for report in reports] == ["miss", "hit"]
    assert made == ["salami"]


@pytest.mark.parametrize(
    ("uses", "lifetime"), [(("clock",), {}), (("llm",), {"remember_for": None})]
)
def test_a_remembered_result_that_goes_stale_needs_a_time_to_live(
    uses: tuple[str, ...], lifetime: dict[str, Any]
) -> None:
    """It is found at the declaration; for ever is no time to live."""
    with pytest.raises(
        ConfigurationError,
        match=rf"'{uses[-1]}'.*remember_for=timedelta.*omit remember",
    ):
        pizzeria(remember="shared", uses=uses, **lifetime)
    agent, _ = pizzeria(remember="shared", uses=uses, remember_for=HOUR)
    assert agent.tasks["order_pizza"].remember_for == HOUR


@pytest.mark.parametrize("lifetime", [HOUR, None])
def test_a_time_to_live_of_what_is_not_remembered_is_refused(
    lifetime: timedelta | None,
) -> None:
    """Agents that were written when everything was remembered would lose their memory without a word."""
    with pytest.raises(
        ConfigurationError,
        match='remember_for without remember; add remember="shared" or "user"',
    ):
        pizzeria(remember_for=lifetime)


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ({"remember": "shared"}, None),
        ({"remember": "shared", "remember_for": HOUR}, 1),
        ({}, 2),
    ],
)
async def test_an_effect_of_a_remembered_task_needs_a_time_to_live(
    options: dict[str, Any], runs: int | None
) -> None:
    """A served answer makes no effect, so that the author says for how long; else the first use is refused."""
    agent = Agent("MailAgent")
    sent = []

    @agent.task(max_attempts=1, **options)
    async def remind(order: Order, context: Context) -> bool:
        """Send a reminder."""
        if is_ours := await context.once("mail"):
            sent.append(order.pizza)
        return is_ours

    kit = AgentKit(agent)
    reports = [await kit.run("remind", {"pizza": "salami"}) for _ in range(2)]
    if runs is None:
        assert [report.status for report in reports] == ["failed", "failed"]
        assert reports[0].error is not None
        assert "remember_for=timedelta" in reports[0].error.message
    assert len(sent) == (runs or 0)
