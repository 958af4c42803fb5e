"""Durations: input, arithmetic, the form on the wire, and their places in sentences."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from tasklore.contracts.errors import AmbiguousAmount, InvalidAmount, UnitMismatch
from tasklore.contracts.parameters.questions import spell_field
from tasklore.contracts.quantities.amounts import Duration
from tasklore.contracts.quantities.times import find_durations

ADAPTER = TypeAdapter(Duration)


class Parking(BaseModel):
    """A model with a duration where a user would put one."""

    stay: Duration


@pytest.mark.parametrize(
    "spelling",
    [
        "90 minutes", "90min", "1.5 hours", "1,5 h", "an hour and a half", "one and a half hours", "1h30m", "1h30",
        "1 hour, 30 minutes", "1 hour and 30 minutes", "0 hours 90 minutes", "5400s", "PT1H30M", "PT90M", "01:30:00",
        "1:30 hours", "1½ hours", "1 1/2 hours",
        "ninety minutes", timedelta(minutes=90), {"value": 90, "unit": "minute"},
    ],
)  # fmt: skip
def test_every_wording_of_a_duration_is_one_value(spelling: Any) -> None:
    """Text, ISO 8601, clock and timedelta agree, in value, text, hash and key."""
    duration = Duration(spelling)
    assert duration == Duration("PT1H30M") == timedelta(minutes=90)
    assert (str(duration), hash(duration)) == ("PT1H30M", hash(Duration("PT1H30M")))
    assert spell_field("stay", duration) == "5400s"


@pytest.mark.parametrize(
    ("wording", "expected"),
    [
        ("fortnight", "P14D"), ("three quarters of an hour", "PT45M"), ("half a year", "P6M"), ("18 months", "P1Y6M"),
        ("a couple of days", "P2D"), ("250 ms", "PT0.25S"), ("P1Y2M3DT4H5.5S", "P1Y2M3DT4H5.5S"), ("-PT5M", "-PT5M"),
        ("2 dozen hours", "P1D"), ("2 hours 15", "PT2H15M"),
    ],
)  # fmt: skip
def test_words_and_letters_are_read_as_iso_8601_tells_them(
    wording: str, expected: str
) -> None:
    """The text of a duration is its one canonical spelling."""
    assert str(Duration(wording)) == expected


def test_a_day_is_24_hours_and_a_month_no_number_of_days() -> None:
    """Clocks have fixed units; calendars do not, and only a calendar could order them."""
    assert Duration("1 day") == Duration("24h") == Duration("P1D")
    assert Duration("1 year") == Duration("12 months")
    assert Duration("1 month") != Duration("30 days")
    assert Duration("1 month") > Duration("27 days")
    assert Duration("1 month") < Duration("32 days")
    with pytest.raises(UnitMismatch, match="a month has no fixed length"):
        assert Duration("1 month") < Duration("30 days")


def test_a_bare_number_counts_only_a_declared_unit() -> None:
    assert (
        Duration.read(90, unit="minute")
        == Duration("90", "min")
        == Duration("1.5 hours")
    )
    assert Duration.read("2 hours", unit="minute") == Duration("2h")
    for bare in (90, "90", 1.5, Decimal(3), "ninety"):
        with pytest.raises(InvalidAmount, match="without a unit of time"):
            Duration(bare)
    with pytest.raises(InvalidAmount, match="'km' is not a unit of time"):
        Duration(90, "km")


@pytest.mark.parametrize(
    "raw",
    ["", "soon", "5 km", "3 days ago", "5 years old", "a few days", "P", "PT", True, None, [], float("nan"), "3pm",
     "1:30", "1:30:60", "1:60:00", "a third of a month", "9" * 70 + " days", {"value": 5},
     {"value": True, "unit": "day"}, "1h 2h"],
)  # fmt: skip
def test_what_is_no_exact_length_is_refused(raw: Any) -> None:
    with pytest.raises(InvalidAmount):
        Duration(raw)


def test_a_point_that_may_group_thousands_is_ambiguous() -> None:
    """Both readings are named; what ISO 8601 writes has one."""
    with pytest.raises(AmbiguousAmount) as raised:
        Duration("1.500 hours")
    assert raised.value.readings == ("1.5 hours", "1500 hours")
    assert Duration("PT1.500S") == Duration("0.0250 min")
    assert find_durations("it takes 1.500 hours") == ()


def test_arithmetic_is_exact_and_keeps_months_apart() -> None:
    """Durations and timedeltas add up; what points both ways at once is refused."""
    assert Duration("1 month") + Duration("36 hours") == Duration("P1MT36H")
    assert timedelta(hours=1) + Duration("30 min") == Duration("90 min")
    assert Duration("1h") - timedelta(minutes=15) == Duration("45 min")
    assert Duration("20 min") * 3 == 3 * Duration("20 min") == Duration("1h")
    assert Duration("1h") / 4 == Duration("15 min")
    assert abs(-Duration("1h")) == Duration("1h")
    assert not Duration("0s")
    assert Duration("36h").to_timedelta() == timedelta(days=1.5)
    with pytest.raises(InvalidAmount, match="point apart"):
        Duration("1 month") - Duration("1 day")
    with pytest.raises(InvalidAmount, match="not a fixed number"):
        Duration("1 month").to_timedelta()
    with pytest.raises(TypeError):
        Duration("1h") * 1.5  # type: ignore[operator]  # a float is refused
    with pytest.raises(ZeroDivisionError):
        Duration("1h") / 0


def test_it_travels_as_iso_8601() -> None:
    """The model takes wordings and writes text, and its schema says which."""
    parking = Parking(stay="90 minutes")  # type: ignore[arg-type]  # what JSON brings
    assert parking.model_dump_json() == '{"stay":"PT1H30M"}'
    assert Parking.model_validate_json(parking.model_dump_json()) == parking
    described = ADAPTER.json_schema()
    assert (described["type"], described["format"]) == ("string", "duration")
    with pytest.raises(ValidationError, match="without a unit of time"):
        Parking(stay=90)  # type: ignore[arg-type]  # the mistake under test


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "park for 2 hours and 15 minutes, then 3 weeks off",
            {"2 hours and 15 minutes": "PT2H15M", "3 weeks": "P21D"},
        ),
        (
            "a half-day trip of twenty-five minutes",
            {"a half-day": "PT12H", "twenty-five minutes": "PT25M"},
        ),
        ("she is 5 years old and earns $50 an hour, 3 times a day", {}),
        ("wait a second: the second day, a second time", {"a second": "PT1S"}),
        ("flight mh370d and covid19h", {}),
    ],
)
def test_sentences_hold_durations_at_their_places(
    sentence: str, expected: dict[str, str]
) -> None:
    """Ages, rates and ordinals are none."""
    found = find_durations(sentence)
    assert {one.text: str(Duration(one.text)) for one in found} == expected
    assert all(sentence[one.start : one.end] == one.text for one in found)
