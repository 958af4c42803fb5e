"""Settings of an agent: their defaults, their fingerprint in the memory's version, and changing them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr
from pydantic import Field as Setting

from contracts.errors import ConfigurationError
from workers import Agent, Amount, Parameters


class Trip(Parameters):
    """A hotel and who shares it."""

    hotel: Amount
    travellers: int = 2


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
    with pytest.raises(ConfigurationError, match=r"give every setting a default .*hotel"):
        Agent("TripAgent", settings=Plain)


def test_settings_at_their_defaults_leave_the_version_alone() -> None:
    """However the default is spelled, and whatever does not affect results."""
    assert version_with({}) == "v1.1"
    assert version_with({"factor": "2.00", "colours": ["blue", "red", "green"]}) == "v1.1"
    assert version_with({"factor": 2, "log_level": "debug", "key": "b"}) == "v1.1"
    assert trip_agent().memory_version(trip_agent().tasks["share"]) == "v1.1"


def test_a_changed_setting_changes_the_version() -> None:
    """Each value has a fingerprint of its own, and equal values share one."""
    versions = [version_with({"factor": value}) for value in ("1.5", 1.5, Decimal("1.50"), "1.6")]
    assert versions[0] == versions[1] == versions[2] != versions[3]
    assert versions[0].startswith("v1.1+")
    assert len(versions[0]) == len("v1.1+") + 8
    assert set(versions[0][5:]) <= set("0123456789abcdef")
    nested = [version_with({"nested": {"b": "1", "a": two}}) for two in ("2", "2.0", "3")]
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
    with pytest.raises(ConfigurationError, match="no setting 'facto'; did you mean 'factor'\\? known are factor, col"):
        trip_agent(Options).configured({"facto": 1})
    with pytest.raises(ConfigurationError, match="factor: "):
        trip_agent(Options).configured({"factor": "much"})
    with pytest.raises(ConfigurationError, match="no settings at all"):
        trip_agent().configured({"factor": 1})
